"""Certified tables: from the leading bits of V to the magnitude of a draw, or to "too close to call".

Two kinds, both built here in ball arithmetic, so that their tolerances are proved by the program that uses
them (docs/theory/samplers.md):

* `QuantilePolynomials`: a quantile function of V as polynomials on 32 cells per octave, each cell with a
  bound on what can go wrong in it: truncation, rounded coefficients, rounded evaluation, unread bits of V.
* `thresholds`: the leading bits of S(1), S(2), ... for narrow laws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.balls import certain
from evertally.noise.laws import DiscreteGaussian
from evertally.privacy._exact import ball

WORD_BITS = 63  # bits of V in the first word; the lowest bit of the word is the sign
OCTAVES = 40  # V below 2^-40 goes to the slow path
CELLS = 32  # cells per octave
DEGREE = 8

_UNIT = 2.0**-53
_FOR_THE_KERNEL = 1 + 2.0**-49  # pays for the roundings between a radius and the kernel's decision (section 2)
_PRECISION = 160
_SHARP = 80  # bits that must be certain of a coefficient
_MORE = 96  # bits of precision beyond those of a threshold: enough to tell it from an integer


@dataclass(frozen=True)
class QuantilePolynomials:
    """Polynomials in x = 2 CELLS m - cell - 1/2, where V ~ m 2^-octave and 1/2 <= m < 1.

    `radius[row]` bounds |polynomial as evaluated in float64 - function(V)| for every V whose first word falls
    into the cell.
    """

    coefficients: NDArray[np.float64]  # (OCTAVES * CELLS, DEGREE + 1)
    radius: NDArray[np.float64]  # (OCTAVES * CELLS,)
    bits: int


# A function's Taylor coefficients at a ball: the ball may be a point (for the polynomial) or a whole cell
# (for the remainder, by Taylor's theorem with Lagrange's remainder).
Taylor = Callable[[arb, int], list[arb]]


def minus_log(v: arb, n: int) -> list[arb]:
    """-ln V and its derivatives: the quantile of the Laplace law."""
    return [-v.log()] + [(-1) ** k / (k * v**k) for k in range(1, n + 1)]


def normal_quantile(v: arb, n: int) -> list[arb]:
    """z(V) with erfc(z / sqrt 2) = V and its derivatives: the quantile of |N(0, 1)|.

    z' = -sqrt(pi/2) w with w = exp(z^2/2), and w' = w z z'; the coefficients follow by comparing powers.
    """
    # z falls with V, so its values at the ends enclose it; the ball function is wasteful on wide balls.
    z0 = arb(2).sqrt() * v.lower().erfcinv().union(v.upper().erfcinv())
    z, w = [z0], [(z0 * z0 / 2).exp()]
    c = -(arb.pi() / 2).sqrt()
    zz: list[arb] = []  # z z', each coefficient
    for k in range(n):
        z.append(c * w[k] / (k + 1))
        zz.append(sum((z[i] * z[k + 1 - i] * (k + 1 - i) for i in range(k + 1)), arb(0)))
        w.append(sum((w[i] * zz[k - i] for i in range(k + 1)), arb(0)) / (k + 1))
    return z


def build_polynomials(taylor: Taylor, bits: int = WORD_BITS, octaves: int = OCTAVES) -> QuantilePolynomials:
    """Builds and certifies the table for words of `bits` bits (63; in tests fewer, to enumerate them all)."""
    rows = octaves * CELLS
    coefficients = np.empty((rows, DEGREE + 1))
    radius = np.empty(rows)
    for row in range(rows):
        octave, cell = divmod(row, CELLS)
        coefficients[row], radius[row] = certain(partial(_certified_cell, taylor, octave, cell, bits), _PRECISION)
    return QuantilePolynomials(coefficients, radius, bits)


def _certified_cell(taylor: Taylor, octave: int, cell: int, bits: int) -> tuple[list[float], float] | None:
    """The polynomial of a cell and the bound on what can go wrong; None if the balls are wider than they should be."""
    unit = arb(2) ** (-octave) / (2 * CELLS)  # width of a cell in V
    centre = unit * (2 * (CELLS + cell) + 1) / 2
    # V is known as a float64 (relative 2^-53) and up to the bits behind the first word.
    blur = unit * (CELLS + cell + 1) * _UNIT + arb(2) ** (-bits)
    hull = centre + (unit / 2 + blur) * arb(0, 1)
    point = taylor(centre, DEGREE)
    spread = taylor(hull, DEGREE + 1)
    truncation = spread[DEGREE + 1] * (unit / 2) ** (DEGREE + 1)
    exact = [c * unit**k for k, c in enumerate(point)]
    if any(c.rel_accuracy_bits() < _SHARP for c in exact):
        return None
    rounded = [float(c.mid()) for c in exact]
    rounding = sum((abs(exact[k] - arb(r)) / 2**k for k, r in enumerate(rounded)), arb(0))
    # Horner's rule: gamma_{2n} times the polynomial of absolute values (Higham 2002, sec. 5.1).
    steps = 2 * DEGREE + 1
    gamma = arb(steps) * _UNIT / (1 - arb(steps) * _UNIT)
    horner = gamma * sum((abs(arb(r)) / 2**k for k, r in enumerate(rounded)), arb(0))
    bound = abs(truncation) + rounding + horner + abs(spread[1]) * blur
    return rounded, upward(bound * _FOR_THE_KERNEL)


@lru_cache(maxsize=2)
def laplace_quantile() -> QuantilePolynomials:
    return build_polynomials(minus_log)


@lru_cache(maxsize=2)
def gaussian_quantile() -> QuantilePolynomials:
    return build_polynomials(normal_quantile)


def thresholds(law: DiscreteGaussian, bits: int = WORD_BITS) -> NDArray[np.int64]:
    """floor(2^bits S(k)) for k = 1, 2, ... as long as it is positive. For V = 0.v... : v < s_k implies
    V < S(k), v > s_k implies V > S(k); on equality, and at v = 0, more bits are needed."""
    return np.array(certain(partial(_separated, law, bits), bits + _MORE), dtype=np.int64)


def _separated(law: DiscreteGaussian, bits: int) -> list[int] | None:
    last = 1 + math.ceil(math.sqrt(2 * float(law.sigma_squared) * (bits + _MORE + 8) * math.log(2)))
    rate = ball(-1 / (2 * law.sigma_squared))  # one fraction for all: `_MORE` has bits for what that costs
    weights = [(rate * (j * j)).exp() for j in range(1, last + 1)]
    ratio = (rate * (2 * last + 1)).exp()
    running = arb(0, (weights[-1] * ratio / (1 - ratio)).upper())
    sums = []
    for weight in reversed(weights):
        running += weight
        sums.append(running)
    sums.reverse()
    result = []
    for tail in sums:
        scaled = (2 * tail / (1 + 2 * sums[0]) * arb(2) ** bits).floor().unique_fmpz()
        if scaled is None:  # the ball straddles an integer: the precision was not what was asked for
            return None
        if scaled == 0:
            break
        result.append(int(scaled))
    return result


def upward(value: arb) -> float:
    """A float64 that is not below the ball."""
    return math.nextafter(float(value.upper()), math.inf)
