"""One node of the interval tree: a data set from which things are only deleted (Algorithm 3, dynamic-data 6.5 and 14).

A round releases the content once and then the deletions by a tree, one index per segment (per update, the indices
themselves would be data: 10.1.2). When about half of it seems gone, a new round releases what is left. Tests read
noisy numbers and public ones only, so they cost nothing; exactly half would be a leak.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evertally.contract.rows import from_bytes, to_bytes
from evertally.counting.process import node_law, spread_of
from evertally.dynamic.holders import Counts, dense
from evertally.dynamic.interval_index import level, window_end
from evertally.dynamic.ledgers import Allocation
from evertally.dynamic.parts import Budget, IntArray, Place, StaticMechanism
from evertally.dynamic.prefix import FiniteTree
from evertally.noise import Law, VariateSource
from evertally.privacy import Change
from evertally.secret import Secret

_ONE_ITEM = Change(l1=1, l2_squared=1, linf=1)


@lru_cache(maxsize=4096)
def size_law(budget: Budget) -> Law:
    """The noise of a number of items."""
    return node_law(budget, _ONE_ITEM, 1)


class SizeRelease:
    """How many items there are: a data set is one number. How far it is off, `margins` says."""

    cells = width = 1

    def fit(self, data: IntArray, budget: Budget, place: Place, size_hint: int | None = None) -> IntArray:
        return data + place.draws(size_law(budget), 1)


@dataclass(frozen=True, repr=False)
class Workshop(Secret):
    """What all nodes of a tree share."""

    static: StaticMechanism
    allocation: Allocation
    budget: Budget  # of the whole tree, for one change of the stream
    source: VariateSource
    beta: float  # accuracy only: how often restarts may go wrong

    def place(self, role: str, segment: int) -> Place:
        """One lane for each role, level, round and height, hence one law; at a level only one node is asked in a
        segment, so the segment says which node and which inner index."""
        return Place(self.source, f"interval/{role}", segment)


def margins(shop: Workshop, node_level: int, round_: int, height: int) -> list[int]:
    """gamma of dynamic-data 6.5 for inner indices of 1, 2, ..., `height` bits, in whole items: what the noise of the
    count of deletions, and that of the size, exceed with small probability. Public, and computed once per round."""
    shares = shop.allocation.shares(node_level, round_)
    size = spread_of(size_law(shop.budget.share(shares.size)), 1.0, 1.0)
    counted = size_law(shop.budget.share(shares.counted / height))
    at_round = 6 * shop.beta / (math.pi * node_level) ** 2 / (math.pi * round_) ** 2
    return [
        math.ceil(max(spread_of(counted, bits, 1.0).radius(beta), size.radius(beta)))
        for bits in range(1, height + 1)
        for beta in [at_round * 6 / (math.pi * 2**bits) ** 2]
    ]


class Node(Secret):
    """v_i, from the segment that it is named after to the end of its window."""

    PARTS = 2 + 2 * FiniteTree.PARTS  # byte strings in a state

    def __init__(self, number: int, shop: Workshop) -> None:
        self.number, self.level, self.last = number, level(number), window_end(number)
        self._shop = shop
        self.round, self.opened, self.halted = 0, number, False
        self.size: int | None = None  # the noisy one
        self.margins: list[int] = []
        self._row = np.zeros(shop.static.width, dtype=np.int64)
        self._counted: FiniteTree | None = None
        self._deleted: FiniteTree | None = None

    def open(self, segment: int, content: Counts) -> None:
        """A round begins: `content` is what is held after this segment."""
        shop, self.opened = self._shop, segment
        self.round += 1
        self._set_up()
        place = f"{self.level}/{self.round}"
        if self._counted is not None:  # somebody will read the size
            budget = shop.budget.share(shop.allocation.shares(self.level, self.round).size)
            items = np.array([sum(content.values())], dtype=np.int64)
            self.size = int(SizeRelease().fit(items, budget, shop.place(f"size/{place}", segment))[0])
            if self.round > 1 and self.halts():
                self._halt()
                return
        hint = None if self.size is None else max(0, self.size)
        data = dense(content, shop.static.cells)
        self._row = shop.static.fit(data, self.content_budget, shop.place(f"content/{place}", segment), hint)

    def _set_up(self) -> None:
        """The trees over deletions and their margins: functions of level, round and segment."""
        self.size, self.margins, self._counted, self._deleted = None, [], None, None
        steps = self.last - self.opened
        if steps == 0:
            return  # nothing will ever be deleted while anybody asks: no size, no trees, no tests (14.5)
        shop, shares = self._shop, self._shop.allocation.shares(self.level, self.round)
        height = steps.bit_length()
        self.margins = margins(shop, self.level, self.round, height)
        lane = f"{self.level}/{self.round}/{height}"
        self._counted = FiniteTree(
            SizeRelease(), shop.budget.share(shares.counted), steps, self._places(f"counted/{lane}")
        )
        self._deleted = FiniteTree(
            shop.static, shop.budget.share(shares.deleted), steps, self._places(f"deleted/{lane}")
        )

    def _places(self, role: str) -> Callable[[int, int], Place]:
        shop, opened = self._shop, self.opened
        return lambda inner_level, index: shop.place(role, opened + index)

    @property
    def content_budget(self) -> Budget:
        """What the release of the content costs in this round; a leaf releases nothing else."""
        allocation = self._shop.allocation
        share = allocation.leaf if self.level == 1 else allocation.shares(self.level, self.round).content
        return self._shop.budget.share(share)

    def step(self, segment: int, deleted: Counts, content: Callable[[], Counts]) -> None:
        """The next segment of the window is closed: what it deleted here, maybe nothing, and what is left."""
        assert self.number < segment <= self.last, "a node is asked in its window only"
        if self.halted:
            return
        assert self._counted is not None
        assert self._deleted is not None
        assert segment == self.opened + self._counted.index + 1, "one inner index for each segment"
        self._counted.feed(np.array([sum(deleted.values())], dtype=np.int64))
        # The test reads the count only: where it opens a new round, the old one releases nothing more (14.5).
        if self.round < self._shop.allocation.rounds and self.restarts():
            self.open(segment, content())
        else:
            hint = max(0, int(self._counted.newest[0]))
            self._deleted.feed(dense(deleted, self._shop.static.cells), hint)

    def restarts(self) -> bool:
        """Whether more than half of this round's base seems deleted: count >= size/2 + 2 gamma."""
        assert self.size is not None
        assert self._counted is not None
        margin = self.margins[self._counted.index.bit_length() - 1]
        return 2 * self.deletions >= self.size + 4 * margin

    def halts(self) -> bool:
        """Whether so little is left that 0 is as good an answer: size < 2 gamma."""
        assert self.size is not None
        return self.size < 2 * self.margins[0]

    def _halt(self) -> None:
        self.halted = True
        self._row = np.zeros_like(self._row)
        self._counted = self._deleted = None

    @property
    def deletions(self) -> int:
        """How many deletions of this round the released count says."""
        return 0 if self._counted is None else int(self._counted.row()[0])

    @property
    def steps(self) -> int:
        """The inner index."""
        return 0 if self._counted is None else self._counted.index

    def row(self) -> IntArray:
        """The released row of what is left: content less deletions."""
        return self._row if self._deleted is None else self._row - self._deleted.row()

    def deleted_budgets(self) -> list[Budget]:
        """Of the releases whose sum is the released row of deletions."""
        return [] if self._deleted is None else self._deleted.budgets()

    def state(self) -> list[bytes]:
        size = (0, 0) if self.size is None else (1, self.size)
        numbers = np.array([self.number, self.round, self.opened, self.halted, *size, *self.margins], dtype=np.int64)
        trees = [
            part
            for tree in (self._counted, self._deleted)
            for part in (tree.state() if tree is not None else [b""] * FiniteTree.PARTS)
        ]
        return [to_bytes(numbers), to_bytes(self._row), *trees]

    @classmethod
    def read(cls, parts: list[bytes], shop: Workshop) -> Node:
        """The way back. The margins are those that were kept: another machine's logarithm must not decide anew."""
        number, round_, opened, halted, sized, size, *kept = from_bytes(parts[0]).tolist()
        node = cls(number, shop)
        node.round, node.opened = round_, opened
        node._set_up()
        node.size, node.margins = size if sized else None, kept
        node._row = from_bytes(parts[1])
        if halted:
            node._halt()
        trees = FiniteTree.PARTS
        if node._counted is not None and node._deleted is not None:
            node._counted.load(parts[2 : 2 + trees])
            node._deleted.load(parts[2 + trees :])
        return node
