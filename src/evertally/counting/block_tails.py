"""How large the noise of blocks gets, by every weight of every row (bounds/inversion.py).

A row of a level is a weighted sum of Laplace numbers, E exp(z X) = prod 1/(1 - (z w)^2). A tick is a row of each level,
and all rows go together with all: so the sum of E exp(z X_t) over all ticks is a product over the levels of sums over
their rows. Accuracy only. The bound on the whole path is about a tenth above the true quantile of its largest error,
where Chernoff's bound with the largest weight of each row is twice as large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from evertally.bounds.inversion import above, radius_of
from evertally.bounds.tails import Spread
from evertally.counting.block_level import WeightedRow
from evertally.counting.block_table import ROOTS, block_table
from evertally.counting.process import FloatArray
from evertally.noise.jit import jit_once

Squares = FloatArray | WeightedRow


class RowSpread(Spread):
    """The spread of one tick or window, with the squared weights that it is made of: arrays of them, or rows."""

    def __init__(self, parts: Sequence[Squares], roundings: float = 1, rounded: float | None = None) -> None:
        proxy = peak = 0.0
        for part in parts:
            if type(part) is WeightedRow:
                total, largest = part.total, part.largest
            else:
                assert isinstance(part, np.ndarray)
                total, largest = float(part.sum()), float(part.max(initial=0.0))
            proxy += total
            if largest > peak:
                peak = largest
        Spread.__init__(self, "laplace", 2 * proxy, proxy, math.sqrt(peak), math.inf, roundings, rounded)
        self._parts = parts

    def __add__(self, other: Spread) -> Spread:
        if not isinstance(other, RowSpread):
            return super().__add__(other)
        both = [*self._parts, *other._parts]
        return RowSpread(both, self.roundings + other.roundings, self.rounded + other.rounded)

    def radius(self, beta: float) -> float:
        if self.proxy == 0:
            return super().radius(beta)
        return min(super().radius(beta), _radius(self._weights().tobytes(), self.peak, beta) + 0.5 * self.roundings)

    def above(self, x: FloatArray) -> FloatArray:
        """A bound on P(noise > x) before rounding, for each x >= 0."""
        return np.minimum(above(self._moments(), self.peak, x), 1.0)

    @staticmethod
    def covering(spreads: Sequence[RowSpread]) -> RowSpread:
        """A spread that is as wide as each of these: the largest weights of all, the second largest, and so on.

        A symmetric unimodal term that is made larger makes a sum of such terms less peaked (Birnbaum 1948).
        """
        sorted_squares = [-np.sort(-np.concatenate(spread._squares())) for spread in spreads]
        most = np.zeros(max(part.size for part in sorted_squares))
        for part in sorted_squares:
            most[: part.size] = np.maximum(most[: part.size], part)
        return RowSpread([most], max(spread.roundings for spread in spreads))

    def _weights(self) -> FloatArray:
        return np.concatenate([part[part > 0] for part in self._squares()])

    def _squares(self) -> list[FloatArray]:
        return [part.squares if isinstance(part, WeightedRow) else part for part in self._parts]

    def _moments(self) -> Callable[[complex], complex]:
        return _moments(self._weights())


def _moments(squares: FloatArray) -> Callable[[complex], complex]:
    some = squares[None, :]
    product = jit_once(_summed)
    return lambda z: complex(product(some, complex(z * z)))


@lru_cache(maxsize=2048)
def _radius(squares: bytes, peak: float, beta: float) -> float:
    """Of one row of squared weights. Kept, for it takes half a millisecond, and a page asks for its windows again."""
    # A copy: compiled code would be made anew for an array that cannot be written to.
    return radius_of(_moments(np.frombuffer(squares, dtype=np.float64).copy()), peak, beta)


@lru_cache(maxsize=256)
def path_radius(sizes: tuple[int, ...], beta: float, held: tuple[tuple[int, ...], ...] = ()) -> float:
    """What the real path exceeds at some tick with probability at most beta, in units of l1/eps; with the last rows of
    blocks of the sizes `held` added to it.

    >>> round(path_radius((256,), 0.05), 1)
    31.3
    """
    levels = _levels(sizes)
    # The last row of levels is that of the top one alone.
    closed = [_levels(one)[-1][-1:] for one in held]
    sums = jit_once(_summed)

    def counted(z: complex) -> complex:
        # Row 0 of all levels is tick 0, which is none: 1 less.
        path = math.prod(complex(sums(rows, complex(z * z))) for rows in levels) - 1
        return complex(path * math.prod(complex(sums(row, complex(z * z))) for row in closed))

    return radius_of(counted, math.sqrt(max(float(rows.max()) for rows in (*levels, *closed))), beta)


@lru_cache(maxsize=32)
def _levels(sizes: tuple[int, ...]) -> tuple[FloatArray, ...]:
    """Squared weights of the rows of each level, for eps = 1 and events that move one tick by 1."""
    total = sum(ROOTS[n] for n in sizes)
    found = [(block_table(n).weights * (total / ROOTS[n])) ** 2 for n in sizes]
    return (*(rows[:-1] for rows in found[:-1]), found[-1])  # the last row of a block is never read below the top


def _summed(squares: FloatArray, z: complex) -> complex:
    """The sum over rows of the product of 1/(1 - z w^2)."""
    total = 0j
    for i in range(squares.shape[0]):
        product = 1 + 0j
        for j in range(squares.shape[1]):
            product *= 1 - z * squares[i, j]
        total += 1 / product
    return total
