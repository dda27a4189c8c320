"""Which items live: arrivals become updates of which every one is valid (dynamic-data 6.3, 13.1, 14.2).

Every rule looks at the events of one name (or of one value) alone, in their order of arrival: that is what the charges
of 13.1 rest on. O(1) for an update; memory and snapshots grow with what lives, and where names come from outside with
all names that ever lived, for a name that may come back for ever has no bounded charge.

What a call changes can be taken back: before an entry is touched for the first time it goes into a log, and entering
the log again is the same as entering it once. So a call that is interrupted at any line leaves nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from evertally.dynamic.parts import Updates
from evertally.dynamic.presence_bytes import packed, unpacked
from evertally.encode.updates import Arrivals
from evertally.secret import Secret

Name = TypeVar("Name", int, str)

# Of a name: its cell (-1: it does not live), the number of its lifetime, the tick of its insertion, lives used so far.
Life = tuple[int, int, int, int]


class Presence(Secret, ABC, Generic[Name]):
    """What lives, and the log of the call that is under way. Not used directly; see `presence_of`.

    `counts_all`: whether updates that do nothing count as arrived (the event unit, 10.1.7).
    """

    kind: bytes

    def __init__(self, *, counts_all: bool) -> None:
        self.tick = 0
        self._counts_all = counts_all
        self._lives: dict[Name, Life] = {}
        self._next = 1  # the number of the next lifetime: none is used twice
        self._fresh = (1, 1)  # those of the last tick
        self._log: dict[Name, Life | None] = {}
        self._mark = (0, 1, (1, 1))

    def begin(self, tick: int) -> None:
        """A call begins after `tick` ticks: where `undo` goes back to."""
        log: dict[Name, Life | None] = {}
        # One assignment each; until the engine is said to move, nothing looks at them.
        self._log, self._mark = log, (tick, self._next, self._fresh)
        self.tick = tick

    def undo(self, tick: int) -> None:
        """Back to the beginning of the call. Can itself be interrupted, and done again."""
        at, number, fresh = self._mark
        assert at == tick, "presence goes back to the beginning of the call that was interrupted"
        for name, life in self._log.items():
            self._write(name, life)
        self._next, self._fresh, self.tick = number, fresh, at

    def admit(self, arrivals: Arrivals) -> Updates:
        """The valid updates of the next tick."""
        tick = self.tick + 1
        first = self._next
        changes = self._changes(arrivals, tick)
        self._fresh = (first, self._next)
        self.tick = tick
        table = np.array(changes, dtype=np.int64).reshape(-1, 3)
        arrived = self._arrived(arrivals) if self._counts_all else None
        return Updates(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy(), arrived)

    def save(self) -> bytes:
        """All of it as secret bytes, the same for the same state."""
        return packed(self.kind, (self.tick, self._next, *self._fresh), self._lives)

    def load(self, tick: int, data: bytes) -> None:
        """The way back."""
        (self.tick, self._next, first, after), lives = unpacked(self.kind, data)
        self._fresh, self._lives, self._log = (first, after), lives, {}
        assert self.tick == tick
        self._mark = (tick, self._next, self._fresh)

    @property
    def living(self) -> int:
        """How many items live. Secret."""
        return sum(life[0] >= 0 for life in self._lives.values())

    @abstractmethod
    def _changes(self, arrivals: Arrivals, tick: int) -> list[tuple[int, int, int]]:
        """(cell, sign, item) of each valid update."""

    def _arrived(self, arrivals: Arrivals) -> int:
        return int(np.sum((arrivals.cells >= 0) | (arrivals.signs < 0)))

    def _write(self, name: Name, life: Life | None) -> None:
        if life is None:
            self._lives.pop(name, None)
        else:
            self._lives[name] = life

    def _set(self, name: Name, life: Life | None) -> None:
        self._log.setdefault(name, self._lives.get(name))
        self._write(name, life)


class Everything(Presence[int]):
    """Nothing is looked at: every insertion counts 1, every deletion -1, whether or not there was anything to delete.

    >>> raw = Everything(counts_all=True)
    >>> raw.admit(Arrivals(np.array([0, 1]), np.array([-1, 1]), [None, None])).signs.tolist()
    [-1, 1]
    """

    kind = b"raw"

    def _changes(self, arrivals: Arrivals, tick: int) -> list[tuple[int, int, int]]:
        raise AssertionError("nothing is looked at one by one")

    def admit(self, arrivals: Arrivals) -> Updates:
        self.tick += 1
        none = np.full(len(arrivals), -1, dtype=np.int64)
        return Updates(arrivals.cells, arrivals.signs, none, len(arrivals) if self._counts_all else None)


class Multiplicities(Presence[int]):
    """How many of each value there are; a deletion where there is none does nothing (13.1, "value, floored").

    >>> copies = Multiplicities(counts_all=False)
    >>> copies.admit(Arrivals(np.array([0, 0, 0]), np.array([-1, 1, -1]), [None] * 3)).signs.tolist()
    [1, -1]
    """

    kind = b"value"

    @property
    def living(self) -> int:
        return sum(life[0] for life in self._lives.values())

    def _changes(self, arrivals: Arrivals, tick: int) -> list[tuple[int, int, int]]:
        changes = []
        for cell, sign in zip(arrivals.cells.tolist(), arrivals.signs.tolist(), strict=True):
            there = self._lives.get(cell, (0, 0, 0, 0))[0]
            if there + sign >= 0:
                self._set(cell, (there + sign, 0, 0, 0) if there + sign else None)
                changes.append((cell, sign, -1))
        return changes
