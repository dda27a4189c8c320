"""The integer coefficients of the path process, what a run costs under them, and the best ones for a length of runs.

users-and-domains 1.4 [R, reviewed twice]. R is Toeplitz with r_k = 2 floor(2^(q-1) lambda^k g(k) + 1/2), g the series
of (1 - z)^(1/2), q = 16, lambda a rational number below 1. Public numbers, all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from evertally.counting.recursion import inverse_series
from evertally.counting.sqrt_factor import GRID_BITS

# lambda = 1 - n/2^14, with n in steps of 2^(1/8): a finer choice saves less than a thousandth.
FINENESS = 1 << 14
FINER = tuple(sorted({round(FINENESS * 2 ** (-i / 8)) for i in range(113)}))


@dataclass(frozen=True)
class PathFactor:
    """r_0 > 0 >= r_1, r_2, ..., with what privacy needs checked in integers.

    >>> half = path_factor(2**13)  # lambda = 1/2
    >>> half.r[:3], len(half.r), half.cost(1) == sum(x * x for x in half.r)
    ((65536, -16384, -2048), 10, True)
    """

    r: tuple[int, ...]
    correlations: tuple[int, ...]  # rho(m) = sum_i r_i r_(i+m)
    terms: int  # of the inverse, beyond which nothing is left that matters

    def __post_init__(self) -> None:
        r, own = self.r, self.correlations
        if not (r[0] > 0 and all(x <= 0 for x in r[1:]) and sum(r) > 0 and all(c <= 0 for c in own[1:])):
            raise ArithmeticError("these coefficients do not have the signs that the cost of a run rests on")

    def cost(self, length: int) -> int:
        """c(l): the squared norm of R times a run of l ones, at most; grows with l. Runs that do not meet cost no more
        together than one by one."""
        own = self.correlations
        beyond = sum((length - m) * own[m] for m in range(1, min(length, len(own))))
        return length * own[0] + 2 * beyond

    def costs(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """`cost` of many lengths at once; exact while l 2^34 fits 64 bits."""
        table = _costs(self)
        beyond = np.maximum(lengths - (len(table) - 1), 0)
        costs: NDArray[np.int64] = table[np.minimum(lengths, len(table) - 1)] + beyond * self.level
        return costs

    @property
    def level(self) -> int:
        """h = (sum r)^2: what every further tick of a long run costs."""
        return sum(self.r) ** 2

    def always(self, horizon: int) -> int:
        """tot: the squared norm of R times ones at all ticks."""
        sums = list(accumulate(self.r[:horizon]))
        return sum(x * x for x in sums) + max(0, horizon - len(sums)) * self.level

    def inverse(self) -> NDArray[np.float64]:
        """The series of 1/r, in floats: errors are quoted by it, nothing private rests on it."""
        return _inverse(self)


@lru_cache(maxsize=256)
def path_factor(n: int) -> PathFactor:
    """The factor of lambda = 1 - n/2^14."""
    r = _coefficients(FINENESS - n)
    table = np.array(r, dtype=np.int64)
    correlations = np.correlate(table, table, "full")[len(r) - 1 :]  # below 2^34 each: exact
    return PathFactor(r, tuple(correlations.tolist()), min(60_000, 40 * FINENESS // n + 3000))


def _coefficients(j: int) -> tuple[int, ...]:
    r, k = [1 << GRID_BITS], 1
    power, binomial, bottom = j, 2, 4 * FINENESS  # j^k, binom(2k, k), (4 2^14)^k
    while True:
        # lambda^k g(k) = -j^k binom(2k, k) / (4^k 2^(14 k) (2k - 1)); times 2^(q-1), rounded half up
        top, below = -(power * binomial) << (GRID_BITS - 1), bottom * (2 * k - 1)
        coefficient = 2 * ((2 * top + below) // (2 * below))
        if coefficient == 0:  # and so are all later ones: lambda^k |g(k)| only falls
            return tuple(r)
        r.append(coefficient)
        power, binomial, bottom = power * j, binomial * 2 * (2 * k + 1) // (k + 1), bottom * 4 * FINENESS
        k += 1


@lru_cache(maxsize=256)
def _costs(factor: PathFactor) -> NDArray[np.int64]:
    """c(0), c(1), .. up to where it goes on as a straight line."""
    own = np.array(factor.correlations, dtype=np.int64)
    steps = own[0] + 2 * np.concatenate([[0], np.cumsum(own[1:])])
    return np.concatenate([[0], np.cumsum(steps)])


@lru_cache(maxsize=64)
def _inverse(factor: PathFactor) -> NDArray[np.float64]:
    return inverse_series(factor.r, factor.terms)


@lru_cache(maxsize=64)
def best_factor(longest: int) -> PathFactor:
    """The factor of least worst standard deviation sqrt(c(W) S) for runs of at most `longest` ticks."""

    def squared(n: int) -> float:
        # S of the real series lambda^k f(k) is 1/agm(1, sqrt(1 - lambda^2)): for the choice alone, and made of
        # operations that give the same float on every machine.
        ratio = 1 - n / FINENESS
        return path_factor(n).cost(longest) / _agm(1.0, math.sqrt(1 - ratio * ratio))

    return path_factor(min(FINER, key=squared))


def _agm(a: float, b: float) -> float:
    for _ in range(60):
        a, b = (a + b) / 2, math.sqrt(a * b)
    return a
