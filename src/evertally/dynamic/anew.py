"""K: a static release of what is present, anew at public ticks; in between the last answer stands. dynamic-data 13.3.

The charge is that of the releases at which neighbours differ, each at distance at most 1 for a lifetime: all of them in
general, and with lifetimes of at most W ticks at most ceil(W/P) of those that are P ticks apart, for ever. Any static
mechanism will do, also one that answers questions that are not linear; its error depends on how much is present, and
not on how much ever was. The ticks are public: a release that is decided by looking at data would need a test of its
own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from evertally.contract.in_place import stairs
from evertally.contract.rows import from_bytes, to_bytes
from evertally.dynamic.accuracy import SummedAccuracy, check_laws
from evertally.dynamic.insertions import NO_LAST_TICK, SIZE_UNKNOWN
from evertally.dynamic.parts import Budget, Construction, IntArray, Place, Plan, Setting, StaticMechanism, Updates
from evertally.dynamic.tolls import anew_toll, check_units, options_of, purse
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Contribution
from evertally.secret import Secret

_SMALL = 1 << 17  # cells of a state that is kept before each call
_LAST = 62  # releases whose laws are checked where there is no last one: at ticks 1, 2, 4, ...
_STALE = "between two releases the last answer stands, and nobody declared how many items there are at most"


@dataclass(frozen=True)
class Schedule:
    """Public ticks: 1, P + 1, 2P + 1, ...; without a period 1, 2, 4, 8, ...

    >>> [[t for t in range(1, 20) if Schedule(p).due(t)] for p in (5, None)]
    [[1, 6, 11, 16], [1, 2, 4, 8, 16]]
    >>> Schedule(5).within(11), Schedule(None).within(11), Schedule(5).by(11), Schedule(None).by(11)
    (3, 4, 3, 4)
    """

    period: int | None

    def due(self, tick: int) -> bool:
        """Whether a release is made at a tick."""
        return tick & (tick - 1) == 0 if self.period is None else (tick - 1) % self.period == 0

    def by(self, tick: int) -> int:
        """How many releases there are by a tick."""
        return tick.bit_length() if self.period is None else -(-tick // self.period)

    def last(self, number: int) -> int:
        """The tick of a release."""
        return 1 << (number - 1) if self.period is None else (number - 1) * self.period + 1

    def within(self, ticks: int) -> int:
        """How many releases any run of so many ticks has at most: as many as the first such run."""
        return self.by(ticks)


@dataclass(frozen=True)
class Allowance:
    """What each release may spend: `equal` parts of the budget, or 1/(k(k+1)) of it for the k-th, which add up to less
    than 1 for ever.

    >>> from evertally.privacy import PureDP
    >>> [Allowance(PureDP(1), None).share(k).epsilon for k in (1, 2, 4)], Allowance(PureDP(1), 4).share(7).epsilon
    ([0.5, 0.16666666666666669, 0.05], 0.25)
    """

    budget: Budget
    equal: int | None

    def share(self, number: int) -> Budget:
        parts = self.equal if self.equal is not None else number * (number + 1)
        return self.budget.share(Fraction(1, parts))

    def lane(self, number: int) -> str:
        """One lane, one law."""
        return "anew" if self.equal is not None else f"anew-{number}"


class Anew(Secret):
    """The worker: exact multiplicities, and the last row.

    Time O(updates), and one static release when it is due; memory O(cells).

    >>> from evertally.dynamic.families import Count
    >>> from evertally.dynamic.static import make_static
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import PureDP
    >>> static = make_static("histogram", Count(), pure=True, options={})
    >>> setting = Setting(static, PureDP(1), horizon=6, identity="id", protects="item", steps=1, every=3)
    >>> worker = plan_anew(setting, Contribution()).worker(ZeroNoise().source())
    >>> insert = Updates(np.array([0]), np.array([1]), np.array([1]))
    >>> rows, lasts = worker.advance([insert] * 6)
    >>> np.repeat(rows[:, 0], lasts).tolist(), worker.accuracy(4).of("count").stddev > 2
    ([1, 1, 1, 4, 4, 4], True)
    """

    def __init__(self, setting: Setting, schedule: Schedule, allowance: Allowance, source: ItemSource) -> None:
        self._static: StaticMechanism = setting.static
        self._schedule, self._allowance, self._source = schedule, allowance, source
        self._horizon, self._max_items = setting.horizon, setting.max_items
        self.width = self._static.width
        self.tick = 0
        self._present = np.zeros(self._static.cells, dtype=np.int64)
        self._row = np.zeros(self.width, dtype=np.int64)

    def advance(self, batch: Sequence[Updates]) -> tuple[IntArray, IntArray | None]:
        before, changes = self._row, []
        for offset, updates in enumerate(batch):
            np.add.at(self._present, updates.cells, updates.signs)
            self.tick += 1
            if self._schedule.due(self.tick):
                self._row = self._release(self._schedule.by(self.tick))
                changes.append((offset, self._row))
        return stairs(before, changes, len(batch))

    def _release(self, number: int) -> IntArray:
        place = Place(self._source, self._allowance.lane(number), number)
        return self._static.fit(self._present, self._allowance.share(number), place)

    def accuracy(self, tick: int) -> SummedAccuracy:
        number = self._schedule.by(tick)
        if number == 0:
            return SummedAccuracy(self._static, [], 0.0)
        age = tick - self._schedule.last(number)
        unseen = [_Since(self._most_unseen())] if age else []
        covers = [[self._allowance.share(number)]]
        return SummedAccuracy(self._static, covers, self._max_items, unseen, fixed=not unseen)

    def _most_unseen(self) -> float:
        # Both the answer then and the answer now lie between 0 and the number of items, if it is linear.
        linear = getattr(self._static, "linear", True)
        return math.inf if self._max_items is None or not linear else float(self._max_items)

    def error_bound(self, beta: float, tick: int | None) -> float:
        if tick is not None:
            return self.accuracy(tick).radius(beta)
        if self._horizon is None:
            return math.inf
        releases = self._schedule.by(self._horizon)
        stale = [] if releases == self._horizon else [_Since(self._most_unseen())]
        bound = SummedAccuracy(self._static, [[self._allowance.share(releases)]], self._max_items, stale)
        return bound.radius(beta / self._horizon)

    def state(self) -> list[bytes]:
        return [to_bytes(self._present), to_bytes(self._row)]

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.tick = tick
        self._present, self._row = map(from_bytes, parts)


@dataclass(frozen=True)
class _Since:
    most: float

    def __call__(self, beta: float) -> float:
        return self.most


def plan_anew(setting: Setting, contribution: Contribution) -> Plan:
    """Every `every` ticks if a horizon or a bound on lifetimes makes that finitely many for an item; without `every` at
    ticks 1, 2, 4, 8, ..."""
    check_units(setting)
    options_of(setting)
    if setting.identity == "raw" and not setting.static.additive:
        raise ConfigurationError(
            'identity="raw" can count below 0, which this static mechanism knows nothing of: use identity="value", '
            "names, or another static mechanism"
        )
    period = None if setting.every is None else whole("every", setting.every, 1)
    schedule = Schedule(period)
    counted = [schedule.within(ticks) for ticks in (setting.max_lifetime, setting.horizon) if ticks is not None]
    if not counted and period is not None:
        raise ConfigurationError(
            f"a release every {period} ticks for ever has no finite charge if items may stay for ever: declare "
            "max_lifetime or a horizon, or leave out `every` for releases at ticks 1, 2, 4, 8, ..."
        )
    spent = purse(setting, anew_toll(setting))
    allowance = Allowance(spent.releases, min(counted) if counted else None)
    last = _LAST if setting.horizon is None else schedule.by(setting.horizon)
    check_laws(setting.static, allowance.share(last), setting.max_items)
    opened = _open(setting, schedule)
    small = setting.static.cells + setting.static.width <= _SMALL
    return Plan(spent.charge, partial(Anew, setting, schedule, allowance), returns=small, open=opened)


def _open(setting: Setting, schedule: Schedule) -> str:
    if setting.max_items is None and not setting.static.additive:
        return SIZE_UNKNOWN
    if setting.max_items is None and schedule.period != 1:
        return _STALE
    return NO_LAST_TICK if setting.horizon is None else ""


ANEW = Construction("anew", "dynamic-data 13.3", plan_anew)
