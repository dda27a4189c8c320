"""Which node of the interval tree holds what: the secret stack of holders (dynamic-data 6.3, 6.4).

The numbers in the stack are the query chain of the last closed segment. A deletion takes one copy out of one holder,
and that is the *newest* copy when items are told apart by value: with the oldest, or any other rule, one more update
re-matches arbitrarily many later deletions, and the guarantee is lost (6.3). Holders are retired when their window
ends; what they still hold moves into the new node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from evertally.dynamic.interval_index import left_ancestor
from evertally.dynamic.parts import IntArray, Updates
from evertally.secret import Secret

Counts = dict[int, int]  # cell -> copies, more than 0


class Content(Secret):
    """Items as copies per cell and, where items have names, each item's cell."""

    __slots__ = ("copies", "items")

    def __init__(self) -> None:
        self.copies: Counts = {}
        self.items: Counts = {}

    def add(self, cell: int, item: int) -> None:
        _add(self.copies, cell, 1)
        if item >= 0:
            self.items[item] = cell

    def remove(self, cell: int, item: int) -> None:
        _add(self.copies, cell, -1)
        if item >= 0:
            del self.items[item]

    def __len__(self) -> int:
        return len(self.copies) + len(self.items)


@dataclass(frozen=True, repr=False)
class Closed(Secret):
    """What closing a segment does: which nodes end, what was deleted from those that go on, what the new one holds."""

    segment: int
    retired: tuple[int, ...]
    deleted: dict[int, Counts]
    content: Counts


class Holders(Secret):
    """The stack. `named`: deletions name a lifetime; otherwise a cell, and take its newest copy.

    >>> stack = Holders(named=False)
    >>> for sign in (+1, +1, -1):
    ...     stack.apply(cell=4, sign=sign)
    >>> stack.close(1).content, stack.close(2).retired
    ({4: 1}, (1,))
    """

    def __init__(self, *, named: bool) -> None:
        self.named = named
        self.numbers: list[int] = []
        self._contents: list[Content] = []
        self._deleted: list[Counts] = []  # from each holder, since the last segment was closed
        self._new = Content()
        self._where: dict[int, Content] = {}  # of each living item

    def update(self, updates: Updates) -> None:
        """The updates of a tick, in their order of arrival."""
        for cell, sign, item in zip(
            updates.cells.tolist(), updates.signs.tolist(), updates.items.tolist(), strict=True
        ):
            self.apply(cell, sign, item)

    def apply(self, cell: int, sign: int, item: int = -1) -> None:
        """One insertion or deletion; the deletion of what is not there does nothing."""
        if sign > 0:
            if self.named:
                assert item >= 0, "a lifetime has a number"
                assert item not in self._where, "a lifetime begins once"
                self._where[item] = self._new
            self._new.add(cell, item if self.named else -1)
            return
        found = self._named(item) if self.named else self._newest(cell)
        if found is None:
            return
        content, cell = found
        content.remove(cell, item if self.named else -1)
        if content is not self._new:  # what came in this segment was in no node yet
            _add(self._deleted[self._holder(content)], cell, 1)

    def _named(self, item: int) -> tuple[Content, int] | None:
        content = self._where.pop(item, None)
        return None if content is None else (content, content.items[item])

    def _newest(self, cell: int) -> tuple[Content, int] | None:
        for content in (self._new, *reversed(self._contents)):
            if cell in content.copies:
                return content, cell
        return None

    def _holder(self, content: Content) -> int:
        return next(i for i, held in enumerate(self._contents) if held is content)

    def close(self, segment: int) -> Closed:
        """Segment number `segment` ends: holders whose window is over are merged into the new one."""
        cut = left_ancestor(segment)
        kept = sum(number <= cut for number in self.numbers)
        retired = tuple(self.numbers[kept:])
        merged = self._merge([*self._contents[kept:], self._new])
        deleted = dict(zip(self.numbers[:kept], self._deleted, strict=False))
        self.numbers = [*self.numbers[:kept], segment]
        self._contents = [*self._contents[:kept], merged]
        self._deleted = [{} for _ in self.numbers]
        self._new = Content()
        return Closed(segment, retired, deleted, dict(merged.copies))

    def content(self, number: int) -> Counts:
        """What a holder holds now."""
        return dict(self._contents[self.numbers.index(number)].copies)

    def _merge(self, contents: list[Content]) -> Content:
        # Small into large: an item moves only into something at least as large, so O(log n) times.
        largest = max(contents, key=len)
        for content in contents:
            if content is largest:
                continue
            for cell, copies in content.copies.items():
                _add(largest.copies, cell, copies)
            largest.items.update(content.items)
            for item in content.items:
                self._where[item] = largest
        return largest

    def state(self) -> list[bytes]:
        """Canonical: the same content gives the same bytes, in whatever order it came."""
        parts = [np.array([len(self.numbers), *self.numbers], dtype="<i8").tobytes()]
        for content in (self._new, *self._contents):
            parts += [_bytes(content.items if self.named else content.copies)]
        return parts + [_bytes(deleted) for deleted in self._deleted]

    def load(self, parts: Iterable[bytes]) -> None:
        """The way back."""
        rest = iter(parts)
        self.numbers = np.frombuffer(next(rest), dtype="<i8").tolist()[1:]
        self._where = {}
        self._new, *self._contents = [self._read(next(rest)) for _ in range(len(self.numbers) + 1)]
        self._deleted = [_pairs(next(rest)) for _ in self.numbers]

    def _read(self, data: bytes) -> Content:
        content = Content()
        if not self.named:
            content.copies = _pairs(data)
            return content
        content.items = _pairs(data)
        for item, cell in content.items.items():
            _add(content.copies, cell, 1)
            self._where[item] = content
        return content


def dense(counts: Counts, cells: int) -> IntArray:
    """The vector of counts."""
    vector = np.zeros(cells, dtype=np.int64)
    if counts:
        vector[np.fromiter(counts.keys(), np.int64, len(counts))] = np.fromiter(counts.values(), np.int64, len(counts))
    return vector


def _add(counts: Counts, cell: int, copies: int) -> None:
    now = counts.get(cell, 0) + copies
    if now:
        counts[cell] = now
    else:
        del counts[cell]


def _bytes(counts: Counts) -> bytes:
    pairs = np.array(sorted(counts.items()), dtype="<i8")
    return pairs.tobytes()


def _pairs(data: bytes) -> Counts:
    pairs = np.frombuffer(data, dtype="<i8").reshape(-1, 2).tolist()
    return dict(pairs)
