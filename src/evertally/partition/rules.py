"""Rules: which thresholds an interval is tested against. parameterized-histograms 2.1, 4, 5 and 7.2.

Every rule asks the same question at a tick: is some query above its threshold? Threshold i is `floors[i] + rise`, where
`rise` depends on the number of the interval and on the public tick, and `floors` on what has been released. So

    slack(s) = min_i (floors[i] - g_i(s)),   close iff  mu - tau - rise > slack(s),

all in integers: queries are integer-valued (the ceiling of an exact query is as insensitive as the query, 1.5), so the
level of the test moves by at most 1 between neighbours, and one mu and one tau serve all queries (8.8).
Rules differ in what happens to the floors at a close. **A rule never decides privacy**: floors and rises are functions
of the released transcript and of public numbers only (2.2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np

from evertally.counting.process import IntArray
from evertally.noise import Law
from evertally.secret import Secret

# How far thresholds rise above their floors in interval j at these ticks: one number for each tick, or one for all.
Rise = Callable[[int, IntArray], IntArray | int]


class Queries(Protocol):
    """Integer-valued queries of sensitivity 1 (parameterized-histograms 1.5), monotone, evaluated exactly."""

    @property
    def count(self) -> int:
        """How many."""

    def values(self, v: IntArray) -> IntArray:
        """One integer for each query."""


class Rule(Secret, ABC):
    """Thresholds of a partition. Not used directly; see its subclasses."""

    update_law: Law | None = None
    on_interval = False  # True: queries look at the counts of the open interval alone

    def __init__(self, queries: Queries, rise: Rise) -> None:
        self.queries = queries
        self.rise = rise
        self.floors = np.zeros(queries.count, dtype=np.int64)

    def slack(self, v: IntArray) -> int:
        """How far the highest query is below its floor (negative: above). It never rises within an interval."""
        return int((self.floors - self.queries.values(v)).min())

    def start(self, released: IntArray) -> None:
        """Before the first tick, from the released base."""
        self.floors = self.queries.values(released).astype(np.int64)

    def fire(self, s: IntArray, noise: IntArray) -> None:
        """The extra release at a close (2.3): sees the secret sums and must add `noise` to what it takes from them."""

    @abstractmethod
    def closed(self, released: IntArray, interval: int, tick: int) -> None:
        """New floors after interval number `interval` closed at `tick`."""


class Ladder(Rule):
    """Floors climb by their rise at every close, whatever was released: Algorithms 2, 3, 5, 7, 10 and 15.

    With several queries all climb together, which is a ladder for the largest of them.
    """

    def start(self, released: IntArray) -> None:
        """All queries start from the largest."""
        self.floors = np.full(self.queries.count, self.queries.values(released).max(), dtype=np.int64)

    def closed(self, released: IntArray, interval: int, tick: int) -> None:
        self.floors = self.floors + self.rise(interval, np.array([tick]))


class NoisyLadders(Rule):
    """A ladder for each query, climbed when a noisy look at the query says so: Algorithms 8, 12, 13 and 17.

    The look is q_i = ceil(g_i(s)) - K_i + C plus integer noise, and threshold i climbs iff it is at least 1. Integer
    noise on the fractional g_i(s) itself would publish its fraction (parameterized-histograms 2.3).
    """

    def __init__(self, queries: Queries, rise: int, margin: int, update_law: Law) -> None:
        super().__init__(queries, lambda interval, ticks: rise)
        self._step = rise
        self._margin = margin
        self.update_law = update_law

    def fire(self, s: IntArray, noise: IntArray) -> None:
        # s is the vector that fired the test: before H's output, and therefore with noise (slips 1 and 2)
        look = self.queries.values(s) - (self.floors + self._step) + self._margin
        self.floors = self.floors + self._step * (look + noise >= 1)

    def closed(self, released: IntArray, interval: int, tick: int) -> None:
        """Nothing: `fire` has moved the floors."""


class Rebased(Rule):
    """Floors are the released answers: variant V1 (7.2), no update and nothing to pay for one."""

    def closed(self, released: IntArray, interval: int, tick: int) -> None:
        self.floors = self.queries.values(released).astype(np.int64)


class Intervals(Rule):
    """Queries of the open interval alone: variant V2 for linear queries, and the partition of Dwork, Naor, Reingold and
    Rothblum (4.5). The test does not look at H's output at all."""

    on_interval = True

    def start(self, released: IntArray) -> None:
        """An interval starts from nothing."""

    def closed(self, released: IntArray, interval: int, tick: int) -> None:
        """Floors stay 0."""
