"""Noise made a little ahead and kept: for processes that take long to go to a tick, played a tick at a time from bytes.

Noise never sees data, so the noise of later ticks may be made, and kept, before they begin. Where going to a tick costs
as much as hundreds of ticks (the square root makes a block of the path again, blocks of Laplace noise go through a
block), a slice that is restored for every batch would pay for that in each; this way once in `AHEAD` ticks.
"""

from __future__ import annotations

import numpy as np

from evertally.bounds.tails import Spread
from evertally.contract.ticks import last_tick
from evertally.counting.column_memory import ColumnMemory
from evertally.counting.process import IntArray, NoiseProcess, check_horizon
from evertally.errors import StateError
from evertally.secret import Secret

AHEAD = 32  # ticks: 128 bytes a column on average


class Ahead(Secret):
    """A process that is asked for some ticks more than are wanted. The same noise.

    >>> from evertally.counting.tree import TreeProcess
    >>> from evertally.noise import simulation
    >>> from evertally.privacy import Change, PureDP
    >>> def tree():
    ...     return TreeProcess(PureDP(1), Change(1, 1, 1), horizon=90, columns=2, source=simulation(1).source("doc"))
    >>> ahead = Ahead(tree())
    >>> bool((ahead.advance(3) == tree().advance(3)).all()), ahead.kept().numbers.shape
    (True, (29, 2))
    """

    def __init__(self, process: NoiseProcess) -> None:
        self._process = process
        self.columns, self.horizon = process.columns, process.horizon
        self.tick = 0
        self._rows = np.empty((0, self.columns), dtype=np.int64)  # of the ticks after `tick`: secret

    def advance(self, count: int = 1) -> IntArray:
        check_horizon(self, self.tick + count)
        rows = self._rows
        if len(rows) < count:
            made = self.tick + len(rows)
            if self._process.tick != made:
                self._process.seek(made)
            wanted = max(count - len(rows), min(AHEAD, last_tick(self.horizon) - made))
            rows = np.concatenate([rows, self._process.advance(wanted)])
        self._rows, self.tick = rows[count:], self.tick + count
        return rows[:count]

    def seek(self, tick: int) -> None:
        self.tick, self._rows = tick, self._rows[:0]

    def kept(self) -> ColumnMemory:
        return ColumnMemory.of(self._rows)

    def take(self, tick: int, kept: ColumnMemory) -> None:
        rows, bounds = kept.shape
        if bounds or kept.columns != self.columns or rows > AHEAD or tick + rows > last_tick(self.horizon):
            raise StateError("these numbers are not noise made ahead; restore from an intact state")
        self.tick, self._rows = tick, kept.numbers

    def spread(self, tick: int) -> Spread:
        return self._process.spread(tick)

    def worst(self) -> Spread:
        return self._process.worst()

    def window_spread(self, tick: int, window: int) -> Spread:
        return self._process.window_spread(tick, window)
