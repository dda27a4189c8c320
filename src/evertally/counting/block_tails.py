"""How large the whole path of blocks gets: the expected number of ticks beyond r, by every weight of every row.

A row of a level is a weighted sum of Laplace numbers, E exp(z X) = prod 1/(1 - (z w)^2). A tick is a row of each level,
and all rows go together with all: so the sum over ticks of E exp(z X_t) is M(z), a product over the levels of sums over
their rows. What M counts beyond r follows by inversion on a line Re z = c,

    sum over ticks P(X_t > r) = 1/(2 pi) integral of M(c + iu) exp(-(c + iu) r)/(c + iu) du,

and the trapezoidal rule adds only what lies 2 pi/h further along, with a positive weight: it stays a bound. c is where
Chernoff's bound exp(-c r) M(c) is least, so that no digits cancel. Accuracy only. About a tenth above the true quantile
of the largest error, where Chernoff's bound is a half above.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from evertally.counting.block_table import ROOTS, block_table
from evertally.counting.process import FloatArray
from evertally.noise.jit import jit_once

_POINTS = 24  # of c that are tried
_REACH = 4.0  # 2 pi/h in units of what Chernoff's bound says
_NEGLIGIBLE = 1e-7  # of M(c): where the integral is cut off


@lru_cache(maxsize=32)
def _levels(sizes: tuple[int, ...]) -> tuple[FloatArray, ...]:
    """Squared weights of the rows of each level, for eps = 1 and events that move one tick by 1."""
    total = sum(ROOTS[n] for n in sizes)
    found = [(block_table(n).weights * (total / ROOTS[n])) ** 2 for n in sizes]
    return (*(rows[:-1] for rows in found[:-1]), found[-1])  # the last row of a block is never read below the top


def _counted(sizes: tuple[int, ...], z: complex) -> complex:
    """M(z). Row 0 of all levels is tick 0, which is none: 1 less."""
    sums = jit_once(_summed)
    return complex(math.prod(complex(sums(rows, complex(z * z))) for rows in _levels(sizes)) - 1)


def _summed(squares: FloatArray, z: complex) -> complex:
    """The sum over rows of the product of 1/(1 - z w^2)."""
    total = 0j
    for i in range(squares.shape[0]):
        product = 1 + 0j
        for j in range(squares.shape[1]):
            product *= 1 - z * squares[i, j]
        total += 1 / product
    return total


@lru_cache(maxsize=32)
def _on_the_axis(sizes: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    largest = math.sqrt(max(float(rows.max()) for rows in _levels(sizes)))
    c = np.geomspace(0.03, 0.95, _POINTS) / largest
    return c, np.array([math.log(_counted(sizes, x).real) for x in c])


@lru_cache(maxsize=256)
def path_radius(sizes: tuple[int, ...], beta: float) -> float:
    """What the real path exceeds at some tick with probability at most beta, in units of l1/eps.

    >>> round(path_radius((256,), 0.05), 1)
    31.3
    """
    c, logs = _on_the_axis(sizes)
    bounds = (math.log(2 / beta) + logs) / c
    best = int(bounds.argmin())
    high, c0, log = float(bounds[best]), float(c[best]), float(logs[best])
    h = 2 * math.pi / (_REACH * high)
    line = [complex(c0, 0)]
    values = [complex(math.exp(log)) / 2]
    while abs(values[-1]) > _NEGLIGIBLE * math.exp(log):
        line.append(complex(c0, h * len(line)))
        values.append(_counted(sizes, line[-1]))
    z, M = np.array(line), np.array(values)

    def beyond(r: float) -> float:
        both = 2 * h / math.pi * float((M * np.exp(-z * r) / z).sum().real)
        return both + 2 * len(line) * _NEGLIGIBLE * math.exp(log - c0 * r)

    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) <= beta else (middle, high)
    return high * (1 + 1e-9)
