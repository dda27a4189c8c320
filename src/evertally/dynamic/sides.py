"""The worker of all constructions that release prefixes: what was inserted so far (C1-C4), minus what was deleted (B).

A side has a partition, the updates since its last boundary, and a prefix structure; at a boundary the updates become
one index of the structure, also if there are none. The released row is the sum or difference of the sides' rows.
dynamic-data 5 and 6.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evertally.contract.in_place import stairs
from evertally.contract.rows import from_bytes, to_bytes
from evertally.dynamic.accuracy import SummedAccuracy
from evertally.dynamic.partitioners import EveryTick, Partitioner, Staleness
from evertally.dynamic.parts import Budget, IntArray, StaticMechanism, Updates
from evertally.dynamic.prefix import DoublingBlocks, FiniteTree
from evertally.secret import Secret

Takes = Literal["all", "insertions", "deletions"]


class Side(Secret):
    """One prefix structure and its partition. `takes` says which updates it gets; deletions go in as insertions unless
    it takes all, and then with their sign (additive mechanisms only)."""

    def __init__(
        self, takes: Takes, partition: Partitioner, structure: FiniteTree | DoublingBlocks, cells: int
    ) -> None:
        self.takes = takes
        self.partition = partition
        self.structure = structure
        self._open = np.zeros(cells, dtype=np.int64)  # the updates of the open segment

    def advance(self, updates: Updates) -> bool:
        """The next tick: whether it ended a segment."""
        cells, amounts = self._mine(updates)
        np.add.at(self._open, cells, amounts)
        # All updates that count here are seen by the partition: how stale an answer is, is then what it promises.
        if not self.partition.boundary(len(cells)):
            return False
        self.structure.feed(self._open)
        self._open = np.zeros_like(self._open)
        return True

    def _mine(self, updates: Updates) -> tuple[IntArray, IntArray]:
        if self.takes == "all":
            return updates.cells, updates.signs
        mine = updates.signs == (1 if self.takes == "insertions" else -1)
        cells: IntArray = updates.cells[mine]
        return cells, np.ones(len(cells), dtype=np.int64)

    def cover(self, tick: int) -> list[Budget]:
        """Budgets of the releases in the row after `tick`, at worst; exact now, and where every tick is released."""
        if isinstance(self.partition, EveryTick):
            return self.structure.budgets(tick)
        return self.structure.budgets() if tick == self.partition.tick else self.structure.widest(tick)

    def state(self) -> list[bytes]:
        return [*self.partition.state(), *self.structure.state(), to_bytes(self._open)]

    def load(self, parts: list[bytes]) -> None:
        self.partition.load(parts[:1])
        self.structure.load(parts[1:-1])
        self._open = from_bytes(parts[-1])


@dataclass(frozen=True)
class Facts:
    """What is public about the stream: its horizon, and how many items the sides hold at most (None: nobody knows)."""

    horizon: int | None
    size: float | None


class Sides(Secret):
    """A worker: the first side's row, minus the second's if there is one.

    Time O(updates) for a tick, and at a boundary one static release and O((cells + width) log t); memory O((cells +
    width) log t) for a side.

    >>> from evertally.dynamic.families import Points
    >>> from evertally.dynamic.parts import Place
    >>> from evertally.dynamic.static import make_static
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import PureDP
    >>> static, source = make_static("histogram", Points(["a", "b"]), pure=True, options={}), ZeroNoise().source()
    >>> def side(takes):
    ...     blocks = DoublingBlocks(static, PureDP(1), lambda lane, node: Place(source, f"{takes}/{lane}", node))
    ...     return Side(takes, EveryTick(), blocks, static.cells)
    >>> worker = Sides(static, [side("insertions"), side("deletions")], Facts(None, None))
    >>> tick = Updates(np.array([0, 1, 0]), np.array([1, 1, -1]), np.array([-1, -1, -1]))
    >>> rows, lasts = worker.advance([tick, tick])
    >>> rows.tolist(), lasts.tolist(), round(worker.accuracy(2).of("b").stddev, 1)
    ([[0, 0], [0, 1], [0, 2]], [0, 1, 1], 5.6)
    """

    def __init__(self, static: StaticMechanism, sides: Sequence[Side], facts: Facts) -> None:
        self.width = static.width
        self._static, self._sides, self._facts = static, sides, facts
        self.tick = 0

    def advance(self, batch: Sequence[Updates]) -> tuple[IntArray, IntArray | None]:
        before, changes = self._row(), []
        for side in self._sides:
            side.partition.look_ahead(len(batch))
        for offset, updates in enumerate(batch):
            ended = [side.advance(updates) for side in self._sides]
            if any(ended):
                changes.append((offset, self._row()))
        self.tick += len(batch)
        return stairs(before, changes, len(batch))

    def _row(self) -> IntArray:
        row = self._sides[0].structure.row()
        return row if len(self._sides) == 1 else row - self._sides[1].structure.row()

    def accuracy(self, tick: int) -> SummedAccuracy:
        covers = [side.cover(tick) for side in self._sides]
        unseen = self._unseen(None if tick == self.tick else tick)
        return SummedAccuracy(self._static, covers, self._facts.size, unseen, fixed=not unseen)

    def _unseen(self, tick: int | None) -> list[Staleness]:
        found = [side.partition.staleness(tick) for side in self._sides]
        return [staleness for staleness in found if staleness is not None]

    def error_bound(self, beta: float, tick: int | None) -> float:
        """Before anything is known. Without a horizon nothing bounds all ticks together."""
        last = self._facts.horizon if tick is None else tick
        if last is None:
            return math.inf
        exact = tick is not None and isinstance(self._sides[0].partition, EveryTick)
        covers = [side.structure.budgets(last) if exact else side.structure.widest(last) for side in self._sides]
        bound = SummedAccuracy(self._static, covers, self._facts.size, self._unseen(last))
        return bound.radius(beta if tick is not None else beta / last)

    def state(self) -> list[bytes]:
        return [part for side in self._sides for part in side.state()]

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.tick = tick
        each = len(parts) // len(self._sides)
        for i, side in enumerate(self._sides):
            side.load(parts[i * each : (i + 1) * each])
