"""Bugs on the way of an unknown item: at the door, in the table, and in what is shown of it.

Ties in the order of arrival are not planted: one event moves one label then, too.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, plant, replaced
from evertally.encode import ItemDoor, ItemTotals
from evertally.encode.door import _TOTAL_LIMIT
from evertally.encode.labels import as_list
from evertally.encode.plain import pairs, whole
from evertally.errors import ReplayRefused
from evertally.selection.found import Found
from evertally.selection.item_engine import ItemEngine
from evertally.selection.item_table import ItemTable
from evertally.selection.label_limit import FollowedLabels
from evertally.statistics import UnknownHistogram

_FORM = "one event of an unknown domain, in any form"
_LONG = "one event of an unknown domain, out of many long ones"
_BELOW = "what is below the threshold"


# -- the door and the table ------------------------------------------------------------------------------------------


def _door(contribution: Callable[[ItemDoor, list[dict[str, int]], int, int], dict[str, int]]) -> Bug:
    """Events counted one by one; `contribution(door, batch, i, tick)` is what event i of the batch adds."""

    def totals(self: ItemDoor, events: Any, tick: int) -> ItemTotals:
        batch = [self._items(event) for event in as_list(events)]
        found: Tally[str] = Tally()
        for i in range(len(batch)):
            found.update(contribution(self, batch, i, tick))
        return ItemTotals.of(dict(found))

    return replaced(ItemDoor, totals=totals)


@plant(_LONG)
def cut_by_position() -> Bug:
    """long lists of items cut by their place in the batch (streaming-selection 10.1: never a function of the position
    in a batch)"""

    def contribution(door: ItemDoor, batch: list[dict[str, int]], i: int, tick: int) -> dict[str, int]:
        ranked = sorted(batch[i], key=lambda label: (sum(label.encode()) + i) % 3)
        return {label: batch[i][label] for label in ranked[: door.max_per_event]}

    return _door(contribution)


@plant(_LONG)
def cut_by_popularity() -> Bug:
    """long lists of items cut to the most frequent ones (streaming-selection 10.1: never choose by private state)"""

    def contribution(door: ItemDoor, batch: list[dict[str, int]], i: int, tick: int) -> dict[str, int]:
        seen = Tally(label for row in batch for label in row)
        ranked = sorted(batch[i], key=lambda label: (-seen[label], label))
        return {label: batch[i][label] for label in ranked[: door.max_per_event]}

    return _door(contribution)


@plant(_FORM)
def copies_counted() -> Bug:
    """items counted as often as an event names them (streaming-selection 10.1: an event is a set, two copies of an item
    count once)"""

    def counts(self: Any, bag: Any, items: Any, labels: Any, tick: int) -> Any:
        return np.bincount(items[items >= 0], minlength=len(labels))

    return replaced(ItemDoor, _counts=counts)


@plant(_FORM)
def weights_not_clipped() -> Bug:
    """weights of items not clipped (streaming-selection 10.1: multiplicities beyond DeltaInf are clipped for each
    item)"""

    def items(self: ItemDoor, event: object) -> dict[str, int]:
        found: dict[str, int] = {}
        for value, weight in pairs(event):
            item, times = self._item(value), whole(weight, _TOTAL_LIMIT)
            if item is not None and times > 0:
                found[item] = found.get(item, 0) + times
        return found

    return replaced(ItemDoor, _items=items, _bags=lambda self, events: None)  # event by event


@plant(_FORM)
def clipped_too_early() -> Bug:
    """spellings of an item clipped before they are merged (streaming-selection 10.1: canonicalise, merge duplicates,
    then clip)"""

    def items(self: ItemDoor, event: object) -> dict[str, int]:
        found: dict[str, int] = {}
        for value, weight in pairs(event):
            item, times = self._item(value), whole(weight, self.max_weight)
            if item is not None and times > 0:
                found[item] = found.get(item, 0) + times
        return found

    return replaced(ItemDoor, _items=items, _bags=lambda self, events: None)  # event by event


@plant("one event before a long stream")
def eviction() -> Bug:
    """the smallest counts forgotten (streaming-selection 7.1: eviction by private state is broken in general)"""
    original = ItemTable.add

    def add(self: ItemTable, totals: ItemTotals) -> None:
        original(self, totals)
        others = np.setdiff1d(np.flatnonzero(self.counts), self._index.find(totals.labels))[::-1]
        if others.size > 1:  # room for two; of equals, the one that came first stays
            self.counts[others[np.argmin(self.counts[others])]] = 0

    return replaced(ItemTable, add=add)


@plant("one event before a flood of labels")
def full_is_full() -> Bug:
    """no label taken once the table is full (streaming-selection 7.5: who came first is private; one event more decides
    about all later events of another label)"""
    original = ItemTable.add

    def add(self: ItemTable, totals: ItemTotals) -> None:
        assert self._followed is not None
        room = max(0, self._followed._limit.most - len(self))
        numbers = self.find(totals.labels)
        taken = np.sort(np.append(np.flatnonzero(numbers >= 0), np.flatnonzero(numbers < 0)[:room]))
        original(self, ItemTotals(totals.labels.take(taken), totals.counts[taken]))

    return replaced(ItemTable, add=add)


@plant("the noise of looks at the number of labels")
def exact_number_of_labels() -> Bug:
    """labels dropped by their exact number (streaming-selection 7.5: the number of labels is private, and paid for)"""

    def look(self: FollowedLabels, tick: int, labels: int) -> int | None:
        return labels if labels > self._limit.at else None

    return replaced(FollowedLabels, look=look)


# -- what is shown ---------------------------------------------------------------------------------------------------


@plant("the order of what is released")
def order_of_arrival() -> Bug:
    """labels released in the order of their arrival (streaming-selection 10.3: insertion order is private)"""
    return _shown(lambda labels, counts: {label: counts[label] for label in labels if label in counts})


def _shown(change: Callable[[list[str], dict[str, int]], dict[str, int]]) -> Bug:
    """What a tree releases, changed as a function of all labels, as they came, and of the counts to release."""
    original = ItemEngine.released

    def released(self: ItemEngine, tick: int) -> Found:
        found = original(self, tick)
        return Found(change(self.table.labels.list(), found.counts), found.lost)

    return replaced(ItemEngine, released=released)


@plant(_BELOW)
def labels_in_errors() -> Bug:
    """labels in the text of an error (streaming-selection 10.3: no error texts with labels)"""
    original = UnknownHistogram._step

    def step(self: Any, totals: Any, tick: int | None, users: Any = None) -> Any:
        try:
            return original(self, totals, tick, users)
        except ReplayRefused as error:
            raise ReplayRefused(f"{error} (items: {', '.join(self._worker().table.labels.list())})") from None

    return replaced(UnknownHistogram, _step=step)


@plant(_BELOW)
def number_in_repr() -> Bug:
    """number of labels in the name of the object (streaming-selection 10.3: no |U_t|, no row metrics)"""
    return replaced(UnknownHistogram, __repr__=lambda self: f"UnknownHistogram({len(self._worker().table)} items)")


@plant(_BELOW)
def bound_for_what_is_there() -> Bug:
    """error bound for as many labels as there are (streaming-selection 10.3: no |U_t|, no row metrics)"""
    original = UnknownHistogram.error_bound

    def error_bound(self: Any, beta: float = 0.05, tick: int | None = None, *, items: int | None = None) -> float:
        return original(self, beta, tick, items=items or max(1, len(self._worker().table)))

    return replaced(UnknownHistogram, error_bound=error_bound)


@plant(_BELOW)
def shown_as_zero() -> Bug:
    """unreleased labels shown with a count of 0 (streaming-selection 10.3: only the thresholded lists may leave)"""
    return _shown(lambda labels, counts: counts | {label: 0 for label in labels if label not in counts})
