"""The doors of sums: amounts of a tick to whole steps, each event bounded by itself, or each user by an allowance."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.contract.doors import RowDoor
from evertally.contract.inputs import IntArray
from evertally.contract.owned import ReadCells
from evertally.contract.rounding import Rounder
from evertally.contract.rows import Rows
from evertally.encode.labels import as_list, require_column
from evertally.encode.owned import OwnedTick
from evertally.encode.texts import Texts
from evertally.encode.user_table import Digest, UserTable
from evertally.encode.values import MOST_STEPS, AmountGrid
from evertally.secret import Secret

_PIECE = 2**61 // MOST_STEPS  # events whose steps add up within 64 bits


def exact_sum(steps: IntArray) -> int:
    """The sum of steps of events, however many there are."""
    return sum(int(steps[start : start + _PIECE].sum()) for start in range(0, len(steps), _PIECE))


class AmountsOfTicks(RowDoor):
    """Ticks of amounts; there is no total to hand over: `step` takes the amounts of the tick, `run` those of many."""

    def __init__(self, grid: AmountGrid, rounder: Rounder, limit: int) -> None:
        super().__init__(1, limit, signed=True)
        self._grid, self._rounder = grid, rounder

    def row(self, x: Any, tick: int) -> IntArray:
        steps = exact_sum(self._rounder.steps(self._grid.places(x), tick))
        return np.array([max(-self._limit, min(self._limit, steps))], dtype=np.int64)

    def event_row(self, events: Any, tick: int) -> IntArray:
        return self.row(events, tick)

    def many(self, x: Any, first: int) -> Rows:
        rows = [self.row(amounts, first + i) for i, amounts in enumerate(ticks_of(x))]
        return np.stack(rows) if rows else np.empty((0, self.columns), dtype=np.int64)


def ticks_of(x: Any) -> list[Any]:
    """The ticks of a run: a sequence of sequences of amounts."""
    require_column(x, "the ticks of a run")
    ticks = as_list(x)
    for amounts in ticks:
        require_column(amounts, "the amounts of a tick")
    return ticks


def places_as_bits(grid: AmountGrid) -> ReadCells:
    """Where each amount lies, for a door that hands on whole numbers: it is rounded when it is known whose it is."""
    return lambda events: grid.places(events).view(np.int64)[:, None]


class Allowance(Secret):
    """What each user may still add in the life of the stream, in steps (users-and-domains 3).

    An amount uses up its size, whatever its sign, and is cut to what is left. A cap on the *net* sum would give back
    what a refund takes, and one user could move the sum at every tick, for ever.
    """

    def __init__(self, grid: AmountGrid, rounder: Rounder, most: int, limit: int) -> None:
        self._grid, self._rounder, self._most, self._limit = grid, rounder, most, limit
        self._users = UserTable(1)  # steps used up so far

    def begin(self, tick: int) -> None:
        self._users.begin()

    def undo(self, tick: int) -> None:
        self._users.undo()

    def admit(self, arrivals: OwnedTick) -> IntArray:
        places = np.ascontiguousarray(arrivals.cells[:, 0]).view(np.float64)
        steps = self._rounder.steps(places, arrivals.tick, arrivals.codes, arrivals.names)
        numbers = self._users.enter(arrivals.names)
        # Whoever was erased has nothing left.
        used, total = np.where(self._users.erased(numbers), self._most, self._users.read(0, numbers)), 0
        for start in range(0, len(steps), _PIECE):
            total += self._take(steps[start : start + _PIECE], arrivals.codes[start : start + _PIECE], used)
        self._users.write(0, numbers, used)
        return np.array([max(-self._limit, min(self._limit, total))], dtype=np.int64)

    def _take(self, steps: IntArray, codes: IntArray, used: IntArray) -> int:
        """The sum of what is still allowed of these events, in their order; `used` (by code) goes up by its size."""
        order = np.argsort(codes, kind="stable")
        codes, steps = codes[order], steps[order]
        sizes = np.abs(steps)
        before = np.cumsum(sizes) - sizes  # of this user and of those sorted before
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        before -= np.repeat(before[first], np.diff(np.append(first, len(codes))))
        taken = np.clip(self._most - used[codes] - before, 0, sizes)
        np.add.at(used, codes, taken)
        return int((np.sign(steps) * taken).sum())

    def recognise(self, digest: Digest) -> None:
        self._users.recognise(digest)

    def erase(self, names: Texts) -> None:
        self._users.erase(names)

    def save(self) -> bytes:
        return self._users.save()

    def load(self, tick: int, data: bytes) -> None:
        self._users.load(data)
