"""C5 and C5f at work: a partition, a stack of holders and one node for each of them (dynamic-data 6, 14.4, 14.8)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from functools import partial

import numpy as np

from evertally.contract.in_place import stairs
from evertally.contract.rows import from_bytes, to_bytes
from evertally.dynamic.holders import Holders
from evertally.dynamic.interval_accuracy import Asked, Terms, TreeAccuracy, Unknown, without_restarts
from evertally.dynamic.node import Node, Workshop
from evertally.dynamic.partitioners import EveryTick, Partitioner
from evertally.dynamic.parts import IntArray, Updates
from evertally.secret import Secret

_REMEMBERED = 4096  # ticks whose accuracy is known without asking anew


class IntervalTree(Secret):
    """Answers about what is present now, from the nodes of the query chain of the last closed segment (6.7).

    Theorem (dynamic-data 6.6 [P+R], Lemma R of 6.3 [R, reviewed twice], ledgers of 6.10): given the boundaries, one
    lifetime, or one update by value, changes the inputs of one node a level, each release by one item at most, and what
    these may cost adds up to the tree's budget at most, on every path of restarts; adaptive streams included (1.2).
    Error: that of log^2 m releases at a budget divided by log^5 m after m segments (6.8), with the size of what is
    present now. Time: log m releases a segment; memory O(items present + (cells + width) log^2 m).

    `named`: deletions name a lifetime; otherwise a cell. `most`: how many segments there may be (C5f): past it nothing
    is released any more, and the last answer stands.

    >>> from evertally.dynamic.ledgers import allocation
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import PureDP
    >>> class Exact:
    ...     cells = width = 2
    ...     def fit(self, data, budget, place, size_hint=None):
    ...         return data
    >>> shares = allocation("AT", form="value", rounds=8)
    >>> shop = Workshop(Exact(), shares, PureDP(1), ZeroNoise().source(), beta=0.05)
    >>> tree = IntervalTree(shop, named=False)
    >>> def tick(*updates):
    ...     cells, signs = np.array(updates, dtype=np.int64).reshape(-1, 2).T
    ...     return Updates(cells, signs, np.full(len(cells), -1))
    >>> rows, lasts = tree.advance([tick((0, 1), (1, 1)), tick(), tick((0, -1))])
    >>> np.repeat(rows, lasts, axis=0).tolist()
    [[1, 1], [1, 1], [0, 1]]
    """

    def __init__(
        self,
        shop: Workshop,
        *,
        named: bool,
        partition: Partitioner | None = None,
        most: int | None = None,
        horizon: int | None = None,
        largest: int | None = None,
    ) -> None:
        cap = shop.allocation.cap
        assert cap is None or (most is not None and most < 2**cap), "a segment on a level that is not paid for"
        self.width: int = shop.static.width
        self.tick = self.segment = 0
        self._shop, self._most = shop, most
        self._terms = Terms(shop.static, shop.allocation, shop.budget)
        self._partition = EveryTick() if partition is None else partition
        self._horizon, self._largest = horizon, largest
        self._holders = Holders(named=named)
        self._nodes: list[Node] = []
        self._row = np.zeros(self.width, dtype=np.int64)
        self._asked: deque[tuple[Asked, ...] | None] = deque(maxlen=_REMEMBERED)  # at the last ticks

    def advance(self, batch: Sequence[Updates]) -> tuple[IntArray, IntArray | None]:
        before, changes = self._row, []
        for offset, updates in enumerate(batch):
            self.tick += 1
            if self._over:
                self._asked.append(None)
                continue
            self._holders.update(updates)
            # What the door dropped is not counted here either: one lifetime, or one update by value, is two counts.
            if self._partition.boundary(len(updates)):
                self._close()
                changes.append((offset, self._row))
            self._asked.append(tuple(Asked.of(node) for node in self._nodes))
        return stairs(before, changes, len(batch))

    @property
    def _over(self) -> bool:
        """Whether the last segment that was paid for is closed."""
        return self._most is not None and self.segment >= self._most

    def _close(self) -> None:
        """In the order of dynamic-data 14.4: nodes end, those that go on take a step, the new one begins."""
        segment = self.segment + 1
        closed = self._holders.close(segment)
        going_on = self._nodes[: len(self._nodes) - len(closed.retired)]
        for node in going_on:
            node.step(segment, closed.deleted[node.number], partial(self._holders.content, node.number))
        new = Node(segment, self._shop)
        new.open(segment, closed.content)
        self._nodes = [*going_on, new]
        self.segment = segment
        self._row = np.sum([node.row() for node in self._nodes], axis=0)

    def accuracy(self, tick: int) -> TreeAccuracy | Unknown:
        """Known for the last ticks, and for all others if no node opens a second round; otherwise no bound."""
        ago = self.tick - tick
        asked = self._asked[-1 - ago] if 0 <= ago < len(self._asked) else self._before_data(tick)
        if asked is None:
            return Unknown()
        return TreeAccuracy(self._terms, asked, self._partition.staleness(tick if ago else None), self._largest)

    def _before_data(self, tick: int) -> tuple[Asked, ...] | None:
        """Where restarts or boundaries decide nobody knows beforehand, nor what comes after the last segment."""
        every_tick = isinstance(self._partition, EveryTick)
        if self._shop.allocation.rounds > 1 or not every_tick or (self._most is not None and tick > self._most):
            return None
        return without_restarts(tick)

    def error_bound(self, beta: float, tick: int | None) -> float:
        """Of all ticks together, or of one. Infinite where restarts or boundaries to come decide: they follow from
        noise."""
        if tick is not None:
            return self.accuracy(tick).radius(beta)
        if self._horizon is None or self._before_data(self._horizon) is None:
            return math.inf
        # Of all prefixes with so many levels the one with all bits set asks for the most releases, at every level.
        asked = without_restarts(2 ** self._horizon.bit_length() - 1)
        return TreeAccuracy(self._terms, asked, None, self._largest).radius(beta / self._horizon)

    def state(self) -> list[bytes]:
        """Secret: holders, inner trees, and what the nodes have released; noise follows from its address."""
        partition, held = self._partition.state(), self._holders.state()
        counts = np.array([self.segment, len(partition), len(held), len(self._nodes)])
        nodes = [part for node in self._nodes for part in node.state()]
        return [to_bytes(counts), to_bytes(self._row), *partition, *held, *nodes]

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.tick = tick
        self.segment, partition, held, nodes = from_bytes(parts[0]).tolist()
        self._row = from_bytes(parts[1])
        rest = parts[2:]
        self._partition.load(rest[:partition])
        self._holders.load(rest[partition : partition + held])
        rest, size = rest[partition + held :], Node.PARTS
        self._nodes = [Node.read(rest[k * size : (k + 1) * size], self._shop) for k in range(nodes)]
        self._asked.clear()
        if not self._over or self._partition.tick == tick:  # later ticks the partition is not told
            self._asked.append(tuple(Asked.of(node) for node in self._nodes))
