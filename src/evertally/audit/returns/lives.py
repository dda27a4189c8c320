"""Which items are there, by dictionaries that forget nothing: those that come and go, and those whose time is over."""

from __future__ import annotations

from collections import Counter

from evertally.audit.returns.books import Declared, Moving
from evertally.audit.returns.histories import Visits
from evertally.audit.returns.muted import Numbers


class FlipBooks(Moving):
    """Items that are there or not, or in so many copies, until that has changed too often from tick to tick."""

    def __init__(self, copies: bool, most: int | None) -> None:
        self._several, self._most = copies, most
        self._copies, self._flips = Counter[str](), Counter[str]()
        self.declared = Declared(turns=most or 1, sparse=True)

    def moved(self, tick: int, visits: Visits) -> Numbers:
        change = 0
        for visit in visits:  # each item comes once a tick
            if self._most is not None and self._flips[visit.name] >= self._most:
                continue
            before = self._copies[visit.name]
            for _ in range(visit.events):
                now = self._copies[visit.name] + (-1 if visit.ends else 1)
                self._copies[visit.name] = max(0, now) if self._several else int(not visit.ends)
            flipped = (self._copies[visit.name] > 0) - (before > 0)
            self._flips[visit.name] += abs(flipped)
            change += flipped
        return {0: change} if change else {}


class LifeBooks(Moving):
    """Named items in one cell: each lives so many times, and no longer than so many ticks, whoever comes or not.

    >>> from evertally.audit.returns.histories import Visit
    >>> books = LifeBooks(lives=1, longest=3, cell=0)
    >>> visits = {1: [Visit(1, "ann")], 9: [Visit(9, "ann")]}
    >>> [tick for tick in range(1, 10) if books.moved(tick, visits.get(tick, []))]
    [1, 4]
    """

    def __init__(self, lives: int, longest: int | None, cell: int) -> None:
        self._most, self._longest, self._cell = lives, longest, cell
        self._since, self._lives = dict[str, int](), Counter[str]()
        self._ending: dict[int, list[str]] = {}
        lengths = () if longest is None else (longest,)
        self.declared = Declared(lengths, turns=2 * lives, sparse=longest is None)

    def moved(self, tick: int, visits: Visits) -> Numbers:
        change = 0
        for name in self._ending.pop(tick, ()):  # before those who come
            if self._since.get(name) == tick - (self._longest or 0):
                del self._since[name]
                change -= 1
        for visit in visits:
            if visit.ends:
                change -= self._since.pop(visit.name, None) is not None
            elif visit.name not in self._since and self._lives[visit.name] < self._most:
                self._since[visit.name] = tick
                self._lives[visit.name] += 1
                change += 1
                if self._longest is not None:
                    self._ending.setdefault(tick + self._longest, []).append(visit.name)
        return {self._cell: change} if change else {}
