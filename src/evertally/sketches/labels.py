"""Labels of events as columns: who reads them, and the rows that come of it. Bounded event by event."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evertally.contract.parts import IntArray
from evertally.contract.rows import to_bytes
from evertally.encode import ItemDoor, require_column
from evertally.encode.labels import Codes, as_list
from evertally.encode.texts import Texts
from evertally.secret import Secret
from evertally.sketches.charges import Touched

LARGEST_WEIGHT = 2**30  # with fewer than 2^32 events a tick's sums fit 64 bits; then they are clipped
_PIECE = 1 << 22  # numbers handled at once by run

Named = tuple[Codes, Codes, IntArray, Texts]  # event, number of its label, weight; the labels


class Columns(Protocol):
    """Which columns a label is counted in. A fixed function of the label, for the life of the stream."""

    width: int
    touched: Touched

    def of(self, labels: Texts) -> tuple[IntArray, IntArray]:
        """(labels, touched.columns) columns and signs; column -1 where there is none. Two places of a label are never
        the same column: each has columns of its own."""


class KeyedColumns(Columns, Protocol):
    """The same by hashes, which are fixed once there is a key."""

    def key(self, seed: bytes) -> None:
        """Fixes the hashes, for life."""


class LabelReader(ItemDoor):
    """Events as `ItemDoor` bounds them, event by event: which labels, and how much of each."""

    def named(self, events: Any, tick: int) -> Iterator[Named]:
        """The labels of the events, in pieces, events and labels of an event in ascending order; a label once for each
        event."""
        require_column(events, "events")
        plain = self._labelled(events)
        if plain is not None:
            items, labels = plain
            there = np.flatnonzero(items >= 0)
            yield there, items[there], np.ones(len(there), dtype=np.int64), labels
            return
        lists = self._labelled_bags(events)
        if lists is None or any(bag.weights is not None for bag, *_ in lists):
            yield self._each(as_list(events), tick)
            return
        first = 0
        for bag, items, labels in lists:
            count = len(bag.lengths)
            yield self._of_long_lists(first, np.repeat(np.arange(count), bag.lengths), items, labels, tick)
            first += count

    def _each(self, events: list[object], tick: int) -> Named:
        number: dict[str, int] = {}
        found: list[tuple[int, int, int]] = []
        for place, event in enumerate(events):
            row = self.row(event, tick)
            found += [(place, number.setdefault(label, len(number)), row[label]) for label in sorted(row)]
        whole = np.array(found, dtype=np.int64).reshape(-1, 3)
        return whole[:, 0], whole[:, 1], whole[:, 2], Texts.of(list(number))

    def _of_long_lists(self, first: int, events: Codes, items: Codes, labels: Texts, tick: int) -> Named:
        there = items >= 0
        n = max(1, len(labels))
        pairs, times = np.unique(events[there] * n + items[there], return_counts=True)
        events, items = np.divmod(pairs, n)
        weights = np.minimum(times, self.max_weight).astype(np.int64)
        long = np.bincount(events, minlength=1)[events] > self.max_per_event if len(events) else np.zeros(0, bool)
        if long.any():
            kept = ~long
            starts = np.append(np.flatnonzero(np.diff(events[long], prepend=-1)), np.count_nonzero(long))
            kept[long] = self._kept(starts, items[long], weights[long], labels, tick)
            events, items, weights = events[kept], items[kept], weights[kept]
        return events + first, items, weights, labels


class LabelDoor(Secret):
    """Ticks of events in, bounded rows out. There are no totals to hand over: what `step` is given is bounded as
    `step_events` does it."""

    def __init__(self, reader: LabelReader, columns: Columns, limit: int) -> None:
        self.reader, self.columns, self._limit = reader, columns, limit

    def events(self, events: Any, tick: int) -> IntArray:
        require_column(events, "events")
        row = np.zeros(self.columns.width, dtype=np.int64)
        if self.reader.max_per_event == 1:
            totals = self.reader.totals(events, tick)
            # One label to an event: no two of them meet in a bucket, and what is bounded already may be added up.
            columns, signs = self.columns.of(totals.labels)
            there = columns >= 0
            np.add.at(row, columns[there], (signs * totals.counts[:, None])[there])
        else:
            for named in self.reader.named(events, tick):
                self._add_bounded(row, *named)
        # 1-Lipschitz in every total, hence free; keeps the sums far from the end of int64.
        return np.clip(row, -self._limit, self._limit)

    def _add_bounded(self, row: IntArray, events: Codes, items: Codes, weights: IntArray, labels: Texts) -> None:
        columns, signs = self.columns.of(labels)
        for _, column, value in merged(events, columns[items], signs[items] * weights[:, None], self.bound):
            np.add.at(row, column, value)

    @property
    def bound(self) -> int:
        return self.reader.max_weight

    def cells(self, events: Any) -> IntArray:
        """What each event adds, bounded: columns and amounts, -1 where there is no more. For each place of a label as
        many as an event has labels."""
        places, each = self.columns.touched.columns, self.reader.max_per_event
        found = np.full((len(events), 2, places, each), -1, dtype=np.int64)
        # The tick plays no part in the cut: what is read of an event follows from the event alone.
        for numbers, items, weights, labels in self.reader.named(events, 0):
            columns, signs = self.columns.of(labels)
            whole = merged(numbers, columns[items], signs[items] * weights[:, None], self.bound)
            for place, (event, column, value) in enumerate(whole):
                rank = np.arange(len(event)) - np.searchsorted(event, event)
                found[event, 0, place, rank] = column
                found[event, 1, place, rank] = value
        return found.reshape(len(events), 2 * places * each)

    def total(self, x: Any, tick: int) -> IntArray:
        return self.events(x, tick)

    def many(self, x: Any, first: int) -> list[tuple[Any, int]]:
        require_column(x, "the ticks of a run")
        ticks = as_list(x)
        for events in ticks:
            require_column(events, "the events of a tick")
        return [(events, first + i) for i, events in enumerate(ticks)]

    def pieces(self, many: list[tuple[Any, int]]) -> Iterator[IntArray]:
        piece = max(1, _PIECE // self.columns.width)
        for start in range(0, len(many), piece):
            yield np.stack([self.events(*one) for one in many[start : start + piece]])

    def batch(self, totals: IntArray) -> IntArray:
        return totals[None, :]

    def last(self, batch: IntArray) -> IntArray:
        row: IntArray = batch[-1]
        return row

    def digest(self, totals: IntArray) -> bytes:
        return hashlib.sha256(to_bytes(totals)).digest()


def merged(
    events: Codes, columns: IntArray, values: IntArray, bound: int
) -> Iterator[tuple[Codes, IntArray, NDArray[np.int64]]]:
    """What each event adds to each column, clipped to `bound`: for each place of a label events (ascending), columns
    and amounts. Two labels of an event that share a column would count twice there otherwise."""
    for place in range(columns.shape[1]):
        there = np.flatnonzero(columns[:, place] >= 0)
        wide = int(columns[:, place].max(initial=0)) + 1
        keys, which = np.unique(events[there] * wide + columns[there, place], return_inverse=True)
        sums = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sums, which, values[there, place])
        kept = np.flatnonzero(sums)
        yield keys[kept] // wide, keys[kept] % wide, np.clip(sums[kept], -bound, bound)
