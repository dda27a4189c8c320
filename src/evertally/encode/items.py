"""The door of an unknown domain: events that name any items become the totals of one tick by label.

As `encode.door`, without a list of declared labels: what an event may contribute is bounded in number and weight, never
in kind (streaming-selection 10.1). What is cut away or weighs nothing leaves no trace at all: a label that does not
count must not become known either (1.3 there).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.bags import Bag
from evertally.encode.cutting import CUTTING
from evertally.encode.door import EventDoor, Order
from evertally.encode.item_cells import Grid, ItemCells
from evertally.encode.labels import Codes, as_list, canonical, coded, coded_arrow, is_arrow, label_bytes, require_column
from evertally.encode.lists import encoded
from evertally.encode.spelled import Named, Spelled
from evertally.encode.texts import LONGEST_LABEL, Texts
from evertally.secret import Secret

_LARGEST_TOTAL = 2**62


@dataclass(frozen=True, repr=False)
class ItemTotals(Secret):
    """Distinct canonical labels and how much each of them counts in one tick, all positive. Secret, and never shown.

    >>> totals = ItemTotals.of({"pear": 3})
    >>> totals, totals.mapping()
    (<ItemTotals, not shown>, {'pear': 3})
    """

    labels: Texts
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, totals: dict[str, int]) -> ItemTotals:
        # The mechanism clips again, far below; here only so that the numbers fit.
        counts = np.array([min(total, _LARGEST_TOTAL) for total in totals.values()], dtype=np.int64)
        return cls(Texts.of(list(totals)), counts)

    def mapping(self) -> dict[str, int]:
        return dict(zip(self.labels.list(), self.counts.tolist(), strict=True))


class ItemDoor(EventDoor[str]):
    """Events that name items become totals by label.

    Events are bounded as `EventDoor` says. Labels are texts, whole numbers, truth values or bytes, in the one spelling
    of `canonical`, of at most 1024 bytes; everything else is no item and is dropped. Columns of plain labels, lists and
    mappings (Arrow's, or Python's own) take a fast path, which gives the same totals; what else there may be is looked
    at one by one.

    >>> from hashlib import blake2b
    >>> secret_order = lambda message: blake2b(message, key=b"secret").digest()
    >>> door = ItemDoor(max_per_event=2, order=secret_order)
    >>> door.totals(["pear", ["pear", "fig", "fig"], {"fig": 5}, None, 3.5, 7], tick=1).mapping()
    {'pear': 2, 'fig': 2, '7': 1}
    """

    def __init__(self, max_per_event: int = 1, max_weight: int = 1, *, order: Order, cutting: int = CUTTING) -> None:
        super().__init__(max_per_event, max_weight, signed=False, order=order, cutting=cutting)

    @property
    def may_cut(self) -> bool:
        return True

    def totals(self, events: Any, tick: int) -> ItemTotals:
        """The totals of one tick: the sum of what its events contribute."""
        require_column(events, "events")
        plain = self._labelled(events)
        if plain is not None:
            # A plain label is one item of weight 1, which no bound touches.
            items, labels = plain
            return _positive(labels, np.bincount(items[items >= 0], minlength=len(labels)))
        lists = self._labelled_bags(events)
        if lists is None:
            return self._one_by_one(as_list(events), tick)
        parts = [_positive(labels, self._counts(bag, items, labels, tick)) for bag, items, labels in lists]
        return parts[0] if len(parts) == 1 else _added(parts)

    def cells(self, events: Any, ticks: Codes) -> ItemCells:
        """The same for many ticks at once, of each event its own: how much each label counts in each tick. Totals may
        be as large as those of `totals`, and are as little clipped."""
        require_column(events, "events")
        plain = self._labelled(events)
        if plain is not None:
            items, labels = plain
            grid = Grid(ticks, items, labels)
            return grid.cells(np.bincount(grid.codes[grid.codes >= 0], minlength=grid.room))
        lists = self._labelled_bags(events)
        if lists is None:
            return self._cells_one_by_one(as_list(events), ticks.tolist())
        parts, first = [], 0
        for bag, items, labels in lists:
            stop = first + len(bag.lengths)
            parts.append(self._cells_of_bag(bag, items, labels, ticks[first:stop]))
            first = stop
        return ItemCells.joined(parts).added_up(_LARGEST_TOTAL)

    def _cells_of_bag(self, bag: Bag, items: Codes, labels: Texts, ticks: Codes) -> ItemCells:
        # Items of one event have one tick: what is merged by (tick, label) is merged by label.
        grid = Grid(np.repeat(ticks, bag.lengths), items, labels)
        counts, starts, code, weight = self._merged(bag, grid.codes, grid.room)
        if len(code):
            tick, number = grid.places(code)
            kept = np.zeros(len(code), np.bool_)
            of_event, lengths = tick[starts[:-1]], np.diff(starts)
            for one in np.unique(of_event).tolist():  # which items of a long event stay follows from the tick, too
                mine, size = tick == one, lengths[of_event == one]
                used, numbers = np.unique(number[mine], return_inverse=True)
                bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
                kept[mine] = self._kept(bounds, numbers, weight[mine], labels.take(used), one)
            self._add_kept(counts, code, weight, kept)
        return grid.cells(counts)

    def _cells_one_by_one(self, events: list[object], ticks: list[int]) -> ItemCells:
        totals: dict[tuple[int, str], int] = {}
        for event, tick in zip(events, ticks, strict=True):
            for label, weight in self.row(event, tick).items():
                totals[tick, label] = totals.get((tick, label), 0) + weight
        weights = np.array([min(total, _LARGEST_TOTAL) for total in totals.values()], dtype=np.int64)
        found = np.array([tick for tick, _ in totals], dtype=np.int64)
        return ItemCells.of(found, Texts.of([label for _, label in totals]), weights)

    def _one_by_one(self, events: list[object], tick: int) -> ItemTotals:
        totals: dict[str, int] = {}
        for event in events:
            for label, weight in self.row(event, tick).items():
                totals[label] = totals.get(label, 0) + weight
        return ItemTotals.of(totals)

    def _labelled(self, column: Any) -> tuple[Codes, Texts] | None:
        """A column of plain values: the distinct labels, and for each value the number of its label, -1 for none. None
        when entries are collections."""
        if isinstance(column, Named | Spelled):
            column = column.compact()
            short = np.append(column.names.lengths <= LONGEST_LABEL, False)
            return np.where(short[column.codes], column.codes, -1), column.names
        found = _distinct(column) if is_arrow(column) else encoded(column) if type(column) is list else None
        if found is not None:
            texts = Texts.of_arrow(found[1])
            if texts is not None:
                return found[0], texts
            plain: tuple[Codes, list[object]] | None = found[0], as_list(found[1])
        else:
            plain = None if is_arrow(column) else coded(column)
        if plain is None:
            return None
        number: dict[str, int] = {}
        numbers = np.full(len(plain[1]) + 1, -1, dtype=np.int64)  # the last entry is where code -1 points
        for i, value in enumerate(plain[1]):
            label = self._item(value)
            if label is not None:
                numbers[i] = number.setdefault(label, len(number))
        return numbers[plain[0]], Texts.of(list(number))

    def _labelled_bags(self, events: Any) -> list[tuple[Bag, Codes, Texts]] | None:
        """Collections and mappings of plain values, the values as `_labelled` gives them; None for other columns."""
        labelled = []
        for bag in self._bags(events) or ():
            plain = self._labelled(bag.values)
            if plain is None:
                return None
            labelled.append((bag, *plain))
        return labelled or None

    def _item(self, value: object) -> str | None:
        label = canonical(value)
        return label if label is not None and len(label_bytes(label)) <= LONGEST_LABEL else None

    def _item_of(self, number: int, name: bytes) -> str:
        return name.decode("utf-8", "surrogatepass")

    def _label_bytes(self, item: str) -> bytes:
        return label_bytes(item)


def _positive(labels: Texts, counts: Codes) -> ItemTotals:
    kept = np.flatnonzero(counts)
    return ItemTotals(labels, counts) if kept.size == len(labels) else ItemTotals(labels.take(kept), counts[kept])


def _added(parts: list[ItemTotals]) -> ItemTotals:
    totals: Counter[str] = Counter()
    for part in parts:
        totals.update(part.mapping())
    return ItemTotals.of(totals)


def _distinct(column: Any) -> tuple[Codes, Any] | None:
    """As `coded_arrow`, and the values are distinct and none is null, whatever dictionary the column came with."""
    import pyarrow as pa

    encoded = coded_arrow(column)
    if encoded is None or not pa.types.is_dictionary(column.type):
        return encoded
    inner = coded_arrow(encoded[1])
    return None if inner is None else (np.append(inner[0], -1)[encoded[0]], inner[1])
