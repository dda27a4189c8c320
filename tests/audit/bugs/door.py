"""Bugs at the door: events that are not bounded, or not bounded by a function of themselves alone."""

from __future__ import annotations

from collections import Counter as Tally
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.bugs.planting import Bug, plant, replaced
from evertally.encode import AmountDoor, CategoryDoor, UserCap, UserTick
from evertally.encode.labels import as_list, canonical
from evertally.encode.plain import pairs
from evertally.encode.texts import Texts


@plant("one user with many events")
def cap_not_enforced() -> Bug:
    """user cap not enforced (price-of-continual-release 9.5: w is enforced at ingestion)"""
    return replaced(UserCap, look=lambda self, users, tick: (np.ones(len(users), dtype=bool), UserTick(tick)))


@plant("one of two users, by category")
def cap_by_arrival() -> Bug:
    """user cap looks at other users' events (price-of-continual-release 9.5: keep the first w of this person, looking
    at the owner only)"""

    def look(self: UserCap, users: Any, tick: int) -> tuple[NDArray[np.bool_], UserTick]:
        return np.arange(len(users)) < self.max_events, UserTick(tick)

    return replaced(UserCap, look=look)


@plant("a user who was erased and comes back")
def erased_user_forgotten() -> Bug:
    """an erased user is forgotten, and counted again (users-and-domains, trap 7: replace the name by a digest that is
    never counted again)"""

    def erase(self: UserCap, names: Texts) -> None:
        self._settle()
        self._table.forget(self._table.find(names))
        self._table.begin()

    return replaced(UserCap, erase=erase)


@plant("one event of any weight")
def amounts_not_clipped() -> Bug:
    """amounts not clipped (streaming-selection 10.1: multiplicities beyond the limit are clipped for each item)"""

    def totals(self: AmountDoor, events: Any, tick: int) -> int:
        return sum(min(2**40, max(0, int(x))) for x in as_list(events) if isinstance(x, int))

    return replaced(AmountDoor, totals=totals)


@plant("one event with repeated labels")
def repeated_labels() -> Bug:
    """repeated labels not merged before the clip (streaming-selection 10.1: two copies of an item count once)"""

    def items(self: CategoryDoor, event: object) -> dict[int, int]:
        found: dict[int, int] = {}
        for value, count in pairs(event):
            column = self.column(value)
            if column is not None and isinstance(count, int):
                found[column] = found.get(column, 0) + min(self.max_weight, count)
        return found

    def counts(self: CategoryDoor, bag: Any, columns: Any, labels: Any, tick: int) -> NDArray[np.int64]:
        weights = np.ones(len(columns)) if bag.weights is None else np.minimum(bag.weights, self.max_weight)
        there = columns >= 0
        return np.bincount(columns[there], weights[there], self.width).astype(np.int64)

    return replaced(CategoryDoor, _items=items, _counts=counts)


@plant("one event taken out of a batch of long ones")
def cut_by_position() -> Bug:
    """long events cut by their place in the batch (streaming-selection 10.1: never a function of the position in a
    batch)"""
    return _cut_over_the_batch(lambda door, batch, i, items: sorted(items, key=lambda column: (column + i) % 3))


@plant("one event taken out of a batch of long ones")
def cut_by_popularity() -> Bug:
    """long events cut to their most frequent items (streaming-selection 10.1: never choose by private state)"""

    def ranked(door: CategoryDoor, batch: list[dict[int, int]], i: int, items: dict[int, int]) -> list[int]:
        seen = Tally(column for row in batch for column in row)
        return sorted(items, key=lambda column: (-seen[column], column))

    return _cut_over_the_batch(ranked)


def _cut_over_the_batch(ranked: Any) -> Bug:
    def totals(self: CategoryDoor, events: Any, tick: int) -> NDArray[np.int64]:
        batch = [self._items(event) for event in as_list(events)]
        row = np.zeros(self.width, dtype=np.int64)
        for i, items in enumerate(batch):
            for column in ranked(self, batch, i, items)[: self.max_per_event]:
                row[column] += items[column]
        return row

    return replaced(CategoryDoor, totals=totals)


@plant("records that nobody can count")
def bad_record_raises() -> Bug:
    """error raised on a bad record (price-of-continual-release P8: errors visible to readers leak data)"""

    def totals(self: AmountDoor, events: Any, tick: int) -> int:
        numbers: list[Any] = as_list(events)
        return sum(min(self.max_weight, max(0, int(x))) for x in numbers)

    return replaced(AmountDoor, totals=totals)


@plant("form of releases")
def unknown_category_raises() -> Bug:
    """error raised on an unknown category (streaming-selection 10.1: out-of-domain items must not show)"""

    def column(self: CategoryDoor, value: object) -> int:
        return self._index[str(canonical(value))]

    return replaced(CategoryDoor, column=column)
