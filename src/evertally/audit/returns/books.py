"""Who counts, by dictionaries that forget nobody: rules of users written once more, from their words.

A rule that lets somebody count says who (`Counting`): what a newcomer moves is asked of the program, which has seen
nobody then. A rule whose numbers move without anybody coming says what they are (`Moving`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evertally.audit.returns.histories import Visits
from evertally.audit.returns.muted import Numbers

MOST_EVENTS = 1000  # of one user in a tick


@dataclass(frozen=True)
class Declared:
    """What a rule declares, as histories need it (`Manners`).

    `sparse`: whether nothing happens in a tick without events, so that most of them may be left out.
    """

    lengths: tuple[int, ...] = ()
    whole: int = 1
    turns: int = 1
    singly: bool = True
    sparse: bool = False


class Books(ABC):
    """The memory of a rule. `declared` is what the rule says of itself."""

    declared: Declared


class Counting(Books):
    """A rule that lets some events of some users count, each as those of a newcomer."""

    @abstractmethod
    def counting(self, tick: int, visits: Visits) -> Visits:
        """What counts of the visits of a tick. Ticks come in turn."""


class Moving(Books):
    """A rule that moves numbers, at ticks without events too."""

    @abstractmethod
    def moved(self, tick: int, visits: Visits) -> Numbers:
        """By how much each number changes. Ticks come in turn."""


# -- who counts --------------------------------------------------------------------------------------------------------


class FirstEvents(Counting):
    """The first w events of each user, for ever.

    >>> from evertally.audit.returns.histories import Visit
    >>> books = FirstEvents(2)
    >>> [visit.events for tick in (1, 900) for visit in books.counting(tick, [Visit(tick, "ann", 3)])]
    [2]
    """

    def __init__(self, most: int) -> None:
        self._most, self._used = most, Counter[str]()
        whole = min(most + 1, MOST_EVENTS)
        self.declared = Declared(whole=whole, turns=-(-most // whole), sparse=True)

    def counting(self, tick: int, visits: Visits) -> Visits:
        found = []
        for visit in visits:
            left = min(visit.events, self._most - self._used[visit.name])
            self._used[visit.name] += left
            found += [replace(visit, events=left)] if left else []
        return found


class SeparateTicks(Counting):
    """Ticks far enough apart, or one in each block of the calendar; the first so many of them."""

    def __init__(self, cap: Any) -> None:
        self._cap, self._last, self._ticks = cap, dict[str, int](), Counter[str]()
        ticks = cap.ticks or 1
        whole = min(cap.events + 1, MOST_EVENTS)
        self.declared = Declared((cap.separation,), whole, turns=ticks * cap.separation, sparse=True)

    def counting(self, tick: int, visits: Visits) -> Visits:
        found = []
        for visit in visits:
            if self._free(tick, visit.name):
                self._last[visit.name] = tick
                self._ticks[visit.name] += 1
                found.append(replace(visit, events=min(visit.events, self._cap.events)))
        return found

    def _free(self, tick: int, name: str) -> bool:
        cap, last = self._cap, self._last.get(name)
        if cap.ticks is not None and self._ticks[name] >= cap.ticks:
            return False
        if last is None:
            return True
        return self._block(tick) > self._block(last) if cap.calendar else tick - last >= cap.separation

    def _block(self, tick: int) -> int:
        first = self._cap.first_block
        return 1 if tick <= first else 2 + (tick - first - 1) // self._cap.separation


class FirstVisit(Counting):
    """All that counts of a user is in the first tick, for `whole` events bring all that there is. `most`: of the first
    so many users."""

    def __init__(self, whole: int = 1, most: int | None = None) -> None:
        self._known, self._most = set[str](), most
        self.declared = Declared(whole=whole, singly=whole == 1, sparse=True)

    def counting(self, tick: int, visits: Visits) -> Visits:
        new = [visit for visit in visits if visit.name not in self._known]
        new = new[: None if self._most is None else max(0, self._most - len(self._known))]
        self._known.update(visit.name for visit in new)
        return new


# -- what moves --------------------------------------------------------------------------------------------------------


class ActiveBooks(Moving):
    """Users whose last event is less than a window ago; of each the first so many active ticks. `cell`: the category
    of all of them, of `width`."""

    def __init__(self, windows: Sequence[int], cell: int, width: int, most: int | None) -> None:
        self._windows, self._cell, self._width, self._most = list(windows), cell, width, most
        self._last, self._used = dict[str, int](), Counter[str]()
        self._at = np.zeros(1, np.int64)  # how many were last seen at each tick
        self._shown = [0] * len(self._windows)
        self.declared = Declared(tuple(self._windows), turns=most or 1)

    def moved(self, tick: int, visits: Visits) -> Numbers:
        if tick >= len(self._at):
            self._at = np.append(self._at, np.zeros(len(self._at) + tick, np.int64))
        for visit in visits:
            if self._most is not None and self._used[visit.name] >= self._most:
                continue
            self._used[visit.name] += 1
            self._at[self._last.get(visit.name, 0)] -= 1
            self._at[tick] += 1
            self._last[visit.name] = tick
        now = [int(self._at[max(1, tick - window + 1) : tick + 1].sum()) for window in self._windows]
        found = {i * self._width + self._cell: n - m for i, (n, m) in enumerate(zip(now, self._shown, strict=True))}
        self._shown = now
        return _without_zeros(found)


class PeriodBooks(Moving):
    """Users of the period that runs, or of the last that is over; of each the first so many active periods."""

    def __init__(self, period: int, so_far: bool, most: int | None) -> None:
        self._period, self._so_far, self._most = period, so_far, most
        self._here, self._used, self._shown = set[str](), Counter[str](), 0
        self.declared = Declared((period,), turns=period * (most or 1))

    def moved(self, tick: int, visits: Visits) -> Numbers:
        place = (tick - 1) % self._period
        if place == 0:
            self._here = set()
        for visit in visits:
            if visit.name not in self._here and (self._most is None or self._used[visit.name] < self._most):
                self._here.add(visit.name)
                self._used[visit.name] += 1
        before = self._shown
        if self._so_far or place == self._period - 1:
            self._shown = len(self._here)
        return _without_zeros({0: self._shown - before})


class CohortBooks(Moving):
    """Users of a period by the period of their first event, for ever. The first number is that of periods."""

    def __init__(self, period: int, periods: int, ages: int) -> None:
        self._period, self._periods = period, periods
        cells = [(c, a) for c in range(1, periods + 1) for a in range(min(ages, periods + 1 - c))]
        self._place = {cell: 1 + i for i, cell in enumerate(cells)}
        self._cohort, self._here = dict[str, int](), set[str]()
        self.declared = Declared((period, ages * period))

    def moved(self, tick: int, visits: Visits) -> Numbers:
        number = (tick - 1) // self._period + 1
        if number > self._periods:
            return {}
        for visit in visits:
            self._cohort.setdefault(visit.name, number)
            self._here.add(visit.name)
        if tick % self._period:
            return {}
        rows = Counter(self._cohort[name] for name in self._here)
        self._here = set()
        found = {self._place.get((cohort, number - cohort)): count for cohort, count in rows.items()}
        return {0: 1} | {place: count for place, count in found.items() if place is not None}


def _without_zeros(found: Numbers) -> Numbers:
    return {place: amount for place, amount in found.items() if amount}
