"""Amounts by category: events that name categories, each with a number that need not be whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.cutting import CUTTING
from evertally.encode.door import CategoryDoor, Order
from evertally.encode.frames import Table
from evertally.encode.labels import as_list, canonical, coded, require_column
from evertally.encode.plain import UNREADABLE, pairs, real
from evertally.encode.range_door import RangeDoor
from evertally.encode.values import AmountGrid

_AMOUNT = "amount"


def by_label(labels: Iterable[object], amounts: Iterable[object]) -> list[dict[str, object]]:
    """Events of two cells, a label and an amount; one without a label gives nothing.

    >>> by_label(["DE", None, ["FR"]], [19.99, 5.0, 7.0])
    [{'DE': 19.99}, {}, {}]
    """
    spelled = map(canonical, labels)  # a cell may be anything, and a key may not
    return [{} if label is None else {label: amount} for label, amount in zip(spelled, amounts, strict=True)]


def rows_by_label(found: Table, declared: Sequence[str]) -> list[dict[str, object]]:
    """The rows of a table as events: amounts are in the column of that name, labels in the only other one. A table with
    a column for each label has totals, which nobody could round one by one."""
    others = [place for place, name in enumerate(found.names) if name != _AMOUNT]
    wide = any(canonical(found.names[place]) in declared for place in others)
    if len(found.names) != 2 or len(others) != 1 or wide:
        raise TypeError(
            "with a resolution a table has a row for each event and two columns: one called 'amount', and one of "
            'labels, e.g. frame[["country", "amount"]]. Totals in a column for each label are not taken: amounts are '
            "bounded and rounded one by one"
        )
    return by_label(as_list(found.read(others[0])), as_list(found.read(1 - others[0])))


class AmountsByCategory(CategoryDoor):
    """What each event gives to each category, bounded as `CategoryDoor` does it: labels canonicalised, duplicates
    merged by adding, amounts clipped, the event cut to `max_per_event` categories. All of it by the event alone; not
    yet rounded to steps.

    >>> door = AmountsByCategory(["a", "b"], AmountGrid(0, 50, 0.01), max_per_event=2, order=lambda message: message)
    >>> [part.tolist() for part in door.amounts([{"a": 19.99, "b": 700}, "b", {"c": 3.5}, {"a": -2}], tick=1)]
    [[0, 1, 1], [19.99, 50.0, 1.0]]
    """

    def __init__(
        self,
        categories: Iterable[object],
        grid: AmountGrid,
        other: object | None = None,
        max_per_event: int = 1,
        *,
        order: Order,
        rank_by_label: bool = False,
        cutting: int = CUTTING,
    ) -> None:
        bounds = max_per_event, grid.most, grid.signed
        super().__init__(categories, other, *bounds, order=order, rank_by_label=rank_by_label, cutting=cutting)
        self.grid = grid
        self._ends = tuple(float(grid.shown(np.asarray(end))) for end in (grid.low, grid.high))

    def amounts(self, events: Any, tick: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The category and the amount of everything that the events of a tick give."""
        require_column(events, "events")
        plain = coded(events)
        if plain is not None:
            codes, values = plain
            columns = [self.column(value) for value in values]
            found = np.array([-1 if column is None else column for column in columns] + [-1], dtype=np.int64)[codes]
            found = found[found >= 0]
            return found, np.ones(found.size)
        known: dict[str, int | None] = {}
        given = [item for event in as_list(events) for item in self._of_event(event, tick, known)]
        return np.array([c for c, _ in given], dtype=np.int64), np.array([a for _, a in given], dtype=np.float64)

    def _of_event(self, event: Any, tick: int, known: dict[str, int | None]) -> Iterable[tuple[int, float]]:
        """What an event gives; `known`: the categories of labels that were met. Most events have one label and one
        float, and mean the same here as below; this is the shorter way."""
        if type(event) is dict and len(event) == 1:
            ((label, amount),) = event.items()
            if type(label) is str and type(amount) is float:
                column = known[label] if label in known else known.setdefault(label, self.column(label))
                counts = amount > 0 or (self.signed and amount < 0)  # not NaN
                low, high = self._ends
                return () if column is None or not counts else ((column, min(high, max(low, amount))),)
        return self._given(event, tick).items()

    def _given(self, event: object, tick: int) -> dict[int, float]:
        items: dict[int, float] = {}
        try:
            for value, amount in pairs(event):
                item, number = self.column(value), real(amount)
                if item is not None and (number > 0 or (self.signed and not math.isnan(number))):
                    items[item] = items.get(item, 0.0) + number
        except UNREADABLE:
            return {}
        low, high = self._ends
        # Infinities of both signs add up to no number.
        return self._cut({i: min(high, max(low, a)) for i, a in items.items() if a and not math.isnan(a)}, tick)


class AmountsByNumber(AmountsByCategory, RangeDoor):
    """The same for the columns 0 to n - 1, which nobody gave a name: none of them has a text before it is read.

    >>> door = AmountsByNumber(range(10**9), AmountGrid(0, 50, 0.01), order=lambda message: message)
    >>> [part.tolist() for part in door.amounts([{"7": 19.99}, {999_999_999: 700}, {"07": 3.5}], tick=1)]
    [[7, 999999999], [19.99, 50.0]]
    """
