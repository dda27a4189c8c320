"""Noise that piles up: every insert brings a draw of its own, and all of them stay. H0 of parameterized-histograms 3.1.

noise(t) = Z_1 + ... + Z_t. An event lies in one insert, so each draw has the whole budget: D1/eps or D2^2/(2 rho), for
any number of inserts [R]. The error grows with sqrt(t): for few inserts, such as the segments of a doubling partition,
there is nothing better. (Fresh noise on the running sum, in place of noise that piles up, would pay again at every
insert, 8.7.)
"""

from __future__ import annotations

import math

import numpy as np

from evertally.bounds.joint import grid_step, tree_maximum
from evertally.bounds.tails import Spread
from evertally.counting.process import Budget, IntArray, check_horizon, kind_and_scale, node_law, spread_of
from evertally.noise import Source
from evertally.privacy import Change
from evertally.secret import Secret

_LONGEST_WALK = 256  # steps whose law is computed one by one


class AccumulatingProcess(Secret):
    """Noise of H0. Time O(d) for each insert, memory O(d).

    >>> from evertally.noise import simulation
    >>> from evertally.privacy import PureDP
    >>> source = simulation(0).source("demo")
    >>> pile = AccumulatingProcess(PureDP(1), Change(2, 2, 1), horizon=None, columns=2, source=source)
    >>> pile.law.scale, pile.advance(3).shape, pile.spread(4).variance == 4 * pile.spread(1).variance
    (Fraction(2, 1), (3, 2), True)
    """

    def __init__(
        self, charge: Budget, change: Change, *, horizon: int | None, columns: int, source: Source, lane: str = "pile"
    ) -> None:
        self.horizon = horizon
        self.columns = columns
        self.law = node_law(charge, change, 1)
        self.tick = 0
        self._source = source
        self._lane = lane
        self._noise = np.zeros(columns, dtype=np.int64)

    def advance(self, count: int = 1) -> IntArray:
        check_horizon(self, self.tick + count)
        draws = self._source.draws(self._lane, self.law, range(self.tick + 1, self.tick + count + 1), self.columns)
        path = np.cumsum(draws, axis=0) + self._noise
        self._noise = path[-1].copy()
        self.tick += count
        return path

    def seek(self, tick: int) -> None:
        self._noise = self._source.draws(self._lane, self.law, range(1, tick + 1), self.columns).sum(axis=0)
        self.tick = tick

    def spread(self, tick: int) -> Spread:
        return spread_of(self.law, tick, 1.0)

    def worst(self) -> Spread:
        if self.horizon is None:
            raise ValueError("noise that piles up for ever has no widest spread")
        return self.spread(self.horizon)

    def widest(self, tick: int) -> Spread:
        return self.spread(tick)

    def mean_variance(self, tick: int) -> float:
        return self.law.stddev() ** 2 * (tick + 1) / 2

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        n = self.horizon
        if n is None or n > _LONGEST_WALK:
            return math.inf
        kind, scale = kind_and_scale(self.law)
        # A walk of n steps is a tree of one level.
        reach = self.worst().radius(1e-9 / n)
        return tree_maximum(kind, scale, n + 1, n, reach, grid_step(kind, scale)).radius(beta / 2)

    exact_windows = True

    def window_spread(self, tick: int, window: int) -> Spread:
        return spread_of(self.law, window, 1.0)
