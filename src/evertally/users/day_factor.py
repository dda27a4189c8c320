"""The noise of "so far today": what a step inside of a day costs under a path factor, and the best factor.

users-and-domains 2.4 [R]: in every day a user's path is 0 up to some tick and 1 from then on, or 0 throughout. Days
have processes of their own, so the squared shifts of days add up, and of one day the P + 1 possible paths are tried,
all of them, in integers. Public numbers, all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np

from evertally.counting.path_factor import FINENESS, path_factor
from evertally.counting.runs import PathCost

LONGEST_DAY = 1 << 12
_GRID = 128  # lambda = j/128
_COARSE = 8


@dataclass(frozen=True)
class DayFactor:
    """The path factor of lambda = ratio/2^14, for days of `length` ticks.

    >>> white = DayFactor(0, 24)  # independent noise at every tick
    >>> white.uncentred == 24 * 4**16, white.centred == 24 * 4**15, white.energy
    (True, True, 1.0)
    """

    ratio: int
    length: int

    @property
    def r(self) -> tuple[int, ...]:
        return path_factor(FINENESS - self.ratio).r

    def cost(self, days: int, centre: bool) -> PathCost:
        """What paths of so many days cost."""
        return PathCost(self.ratio, days * (self.centred if centre else self.uncentred), self.energy)

    @property
    def uncentred(self) -> int:
        """max ||R y||^2 over the paths y of a day: that of being there all day."""
        return int(np.sum(self._sums() ** 2))

    @property
    def centred(self) -> int:
        """max ||R (y - 1/2)||^2 over the paths y of a day."""
        return _centred(self)

    @property
    def energy(self) -> float:
        """S: the sum of squares of the series of r_0/r, over a day."""
        return self.energy_up_to(self.length)

    def energy_up_to(self, place: int) -> float:
        """The same for the first ticks of a day."""
        return _energies(self)[place - 1]

    def _sums(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """R times a path of ones: sums of the first coefficients, below 2^17 each."""
        table = np.zeros(self.length, dtype=np.int64)
        kept = self.r[: self.length]
        table[: len(kept)] = kept
        return np.cumsum(table)


@lru_cache(maxsize=256)
def _centred(day: DayFactor) -> int:
    sums = day._sums()
    half = sums // 2  # exactly: the coefficients are even
    found = int(np.sum(half**2))  # nothing all day
    for first in range(day.length):
        moved = -half
        moved[first:] += sums[: day.length - first]
        found = max(found, int(np.sum(moved**2)))
    return found


@lru_cache(maxsize=256)
def _energies(day: DayFactor) -> list[float]:
    # One correctly rounded sum for each number, so that every machine finds the same floats: laws follow from them.
    r0, later = float(day.r[0]), [float(x) for x in day.r[1:]]
    found = [1.0]
    for k in range(1, day.length):
        reach = min(k, len(later))
        found.append(-math.fsum(a * b for a, b in zip(later[:reach], reversed(found[k - reach : k]), strict=True)) / r0)
    return list(accumulate(x * x for x in found))


@lru_cache(maxsize=64)
def best_day(length: int, centred: bool) -> DayFactor:
    """The factor of least cost times energy: of every eighth lambda = j/128, then of those around the best."""

    def squared(j: int) -> float:
        day = day_factor(j, length)
        return (day.centred if centred else day.uncentred) * day.energy

    near = min(range(0, _GRID, _COARSE), key=squared)
    best = min(range(max(0, near - _COARSE + 1), min(_GRID, near + _COARSE)), key=squared)
    return day_factor(best, length)


def day_factor(j: int, length: int) -> DayFactor:
    """The factor of lambda = j/128."""
    return DayFactor(j * (FINENESS // _GRID), length)
