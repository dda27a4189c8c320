"""What 0/1 paths cost under the path factor: B_u and B_c of users-and-domains 1.4, 1.5 and 2.3, in integers.

A unit (a user, an item) is a path y of ones and zeros: there or not, tick by tick. `Presence` says which paths a door
lets it have; `uncentred` and `centred` bound ||R y||^2 and ||R(y - 1/2)||^2 over all of them; `best_path` takes the
coefficients of least error. Public numbers, all of them.

With n runs of l_1 + .. + l_n = L ticks, c(l) the cost of one run, h = (sum r)^2, kappa(l) = c(l) - l h and tot the cost
of being there always (1.4, Lemma, [R, reviewed twice]):

    ||R y||^2        <= min( sum c(l_j), tot - (T - L) h + sum over gaps kappa(gap) )
    ||R(y - 1/2)||^2 <= tot/4 + min( sum kappa(l_j), sum over gaps kappa(gap) ),   at most n + 1 gaps

c and kappa are concave with value 0 at 0, so the largest sum over n runs of L ticks is that of lengths that differ by
one at most: (n - b) c(a) + b c(a + 1), L = a n + b. An integer, hence nothing is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evertally.counting.path_factor import FINENESS, FINER, PathFactor, path_factor
from evertally.counting.sqrt_factor import GRID_BITS
from evertally.errors import ConfigurationError

IntArray = NDArray[np.int64]

LONGEST_PATH = 1 << 20  # costs of all totals L are looked at, for some thirty coefficients
# lambda = j/128, and finer where it is nearly 1, for few and long runs
RATIOS = (*range(0, FINENESS, FINENESS // 128), *sorted(FINENESS - n for n in FINER if n < FINENESS // 128))
_PIECE = 1 << 16


@dataclass(frozen=True)
class Presence:
    """The paths that one unit can have within `horizon` ticks: at most `runs` runs, of at most `most` ticks together,
    none but the last shorter than `shortest` (`carried`: nor but the first). Who makes one says that a door sees to it.

    Without a horizon only the runs themselves are counted, and there is no centre.

    >>> Presence.windows(365, 28).runs, Presence.windows(365, 28, active=3).most
    (13, 84)
    """

    horizon: int | None
    runs: int
    shortest: int = 1
    most: int | None = None
    carried: bool = False

    @classmethod
    def windows(cls, horizon: int, window: int, *, active: int | None = None, carried: bool = False) -> Presence:
        """Active within the last `window` ticks (2.3): unions of windows. `active`: so many active ticks of a user
        count; `carried`: the first tick finds users of an earlier stream active."""
        runs = -(-horizon // (window + 1)) + carried
        if active is None:
            return cls(horizon, runs, window, None, carried)
        if carried:
            raise ConfigurationError("a cap on active ticks starts anew with a stream: nobody can be carried over")
        return cls(horizon, min(runs, active), window, active * window)

    @classmethod
    def block(cls, period: int, window: int, horizon: int | None) -> Presence:
        """What the events of one block of `period` ticks make of windows (2.3): user-period, or one tick of a user. The
        events around the block may cut its runs, so these have any length."""
        most = period + window - 1 if horizon is None else min(horizon, period + window - 1)
        return cls(None, min(most, -(-period // (window + 1))), 1, most)

    @classmethod
    def flips(cls, horizon: int, flips: int) -> Presence:
        """Comes and goes, `flips` changes in all (2.5)."""
        return cls(horizon, min(-(-flips // 2), -(-horizon // 2)))

    @classmethod
    def mates(cls, horizon: int, window: int) -> Presence:
        """Windows of buckets that several users share (2.6): a user's path without that of his mates."""
        return cls(horizon, min(2 * -(-horizon // (window + 1)), -(-horizon // 2)))

    def runs_of(self, total: IntArray) -> IntArray:
        """How many runs of `total` ticks together there are at most.

        More runs never cost less: both branches are largest sums over runs, or over gaps, of which one may be empty.
        So for each total the largest number is the worst, and no other is looked at.
        """
        assert self.horizon is not None
        by_length = (total - 2) // self.shortest + 2 if self.carried else (total - 1) // self.shortest + 1
        return np.minimum(np.minimum(by_length, self.horizon - total + 1), self.runs)


def together(cost: Callable[[IntArray], IntArray], runs: IntArray, total: IntArray) -> IntArray:
    """The largest cost of so many runs of `total` ticks together."""
    each: IntArray = total // runs
    rest: IntArray = total - each * runs
    longer, shorter = rest * cost(each + 1), (runs - rest) * cost(each)
    sums: IntArray = np.add(longer, shorter, dtype=np.int64)
    return sums


def _largest(factor: PathFactor, presence: Presence, value: Callable[[IntArray, IntArray], IntArray]) -> int:
    """The maximum over all totals and numbers of runs."""
    T = presence.horizon
    assert T is not None
    if T > LONGEST_PATH:
        raise ConfigurationError(f"runs are counted for horizons up to {LONGEST_PATH}; take longer ticks")
    last, top = min(T, presence.most or T), 0
    for start in range(1, last + 1, _PIECE):
        total = np.arange(start, min(start + _PIECE, last + 1), dtype=np.int64)
        top = max(top, int(value(presence.runs_of(total), total).max()))
    return top


def uncentred(factor: PathFactor, presence: Presence) -> int:
    """B_u: what ||R y||^2 is at most.

    >>> small = PathFactor((16, -4), (272, -64), 10)
    >>> uncentred(small, Presence.windows(6, 2)), centred(small, Presence.windows(6, 2))
    (976, 500)
    """
    T, h = presence.horizon, factor.level
    if T is None:
        assert presence.most is not None, "runs without an end cost without bound"
        runs, most = np.array([presence.runs]), np.array([presence.most])
        return int(together(factor.costs, runs, most)[0])
    tot = factor.always(T)

    def value(runs: IntArray, total: IntArray) -> IntArray:
        gaps = tot - (T - total) * h + together(lambda g: factor.costs(g) - g * h, runs + 1, T - total)
        worst: IntArray = np.minimum(together(factor.costs, runs, total), gaps)
        return worst

    return _largest(factor, presence, value)


def centred(factor: PathFactor, presence: Presence) -> int:
    """B_c: what ||R(y - 1/2)||^2 is at most, paths that never come included."""
    T, h = presence.horizon, factor.level
    assert T is not None, "without a horizon there is no centre"
    if any(x % 2 for x in factor.r):
        raise ArithmeticError("a centre of 1/2 needs even coefficients")

    def kappa(lengths: IntArray) -> IntArray:
        return factor.costs(lengths) - lengths * h

    def value(runs: IntArray, total: IntArray) -> IntArray:
        return np.minimum(together(kappa, runs, total), together(kappa, runs + 1, T - total))

    return factor.always(T) // 4 + _largest(factor, presence, value)


@dataclass(frozen=True)
class PathCost:
    """Coefficients, and what the paths of a `Presence` cost under them."""

    ratio: int  # lambda = ratio/2^14
    squared: int  # B_u, or B_c
    energy: float  # S of the real series: errors and shares of a budget go by it, nothing else

    @property
    def factor(self) -> PathFactor:
        return path_factor(FINENESS - self.ratio)

    @property
    def deviation(self) -> float:
        """sqrt(B S): the standard deviation of one number, times sqrt(2 rho); without the shared draw."""
        return math.sqrt(self.squared / 4.0**GRID_BITS * self.energy)


@lru_cache(maxsize=256)
def best_path(presence: Presence, centre: bool) -> PathCost:
    """The coefficients of least error, of `RATIOS`.

    With a horizon every eighth of them is looked at, then those around the best: what is taken decides accuracy, and
    privacy follows the integers used.

    >>> path = best_path(Presence.windows(365, 28), True)
    >>> path.ratio / FINENESS, round(path.deviation + 0.5, 3)
    (0.8515625, 7.267)
    """

    def cost(ratio: int) -> PathCost:
        factor = path_factor(FINENESS - ratio)
        bound = (centred if centre else uncentred)(factor, presence)
        return PathCost(ratio, bound, _energy(ratio, presence.horizon))

    def least(ratios: list[int]) -> PathCost:
        return min((cost(ratio) for ratio in ratios), key=lambda path: path.squared * path.energy)

    if presence.horizon is None:
        return least([FINENESS - n for n in FINER])
    rough = RATIOS.index(least([*RATIOS[::8], RATIOS[-1]]).ratio)
    return least(list(RATIOS[max(0, rough - 7) : rough + 8]))


def _energy(ratio: int, horizon: int | None) -> float:
    """sum of (lambda^k f(k))^2 over the ticks. Operations that give the same float on every machine."""
    if ratio == 0:
        return 1.0
    terms = 20 * FINENESS // (FINENESS - ratio) + 8
    k = np.arange(1, min(horizon or terms, terms), dtype=np.float64)
    return math.fsum([1.0, *(np.cumprod((2 * k - 1) / (2 * k) * (ratio / FINENESS)) ** 2).tolist()])
