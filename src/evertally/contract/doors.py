"""Doors: one number, a number for each column, values, items. They bound; what a cell means, `encode` says."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evertally.contract.inputs import as_integers
from evertally.contract.labelled import Labels, filled, handed_over, many_by_label, one_column, row_by_label
from evertally.contract.parts import IntArray
from evertally.contract.rounding import Rounder
from evertally.contract.rows import Rows, SparseRows, dense, to_bytes
from evertally.encode import AmountDoor, CategoryDoor, ItemDoor, ItemTotals, ValueDoor, require_column
from evertally.encode.amounts import AmountsByCategory
from evertally.encode.cells import Cells
from evertally.encode.frames import column
from evertally.encode.item_cells import ItemCells
from evertally.encode.labels import as_list, label_bytes
from evertally.encode.numbers import holds_numbers
from evertally.encode.range_door import MOST_COLUMNS
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError
from evertally.integers import whole

Columns = int | Sequence[str]
_PIECE = 1 << 22  # numbers handled at once by run


class RowDoor(ABC):
    """Integer rows. Totals are clipped to `limit`: 1-Lipschitz in every total, hence free, and it keeps the sums far
    from the end of int64. Not used directly."""

    takes_totals = False  # events are all that it reads; otherwise `step` and `run` take totals

    def __init__(self, columns: int, limit: int, signed: bool = False) -> None:
        self.columns = columns
        self._low, self._limit = -limit if signed else 0, limit

    @property
    def bounds(self) -> tuple[int, int]:
        """What totals of a tick are clipped to."""
        return self._low, self._limit

    @abstractmethod
    def row(self, x: Any, tick: int) -> IntArray:
        """One tick's totals, not yet in range; raises TypeError for what is not one."""

    @abstractmethod
    def event_row(self, events: Any, tick: int) -> IntArray:
        """The sum of one tick's events, each of them bounded."""

    def total(self, x: Any, tick: int) -> IntArray:
        return self._in_range(self.row(x, tick))

    def events(self, events: Any, tick: int) -> IntArray:
        return self._in_range(self.event_row(events, tick))

    def many(self, x: Any, first: int) -> Rows:
        """Many ticks' totals, shape (ticks, columns)."""
        rows: Rows = x if type(x) is SparseRows else as_integers(x)
        if len(rows.shape) != 2 or rows.shape[1] != self.columns:
            raise TypeError(f"run takes integers of shape (ticks, {self.columns}), not of shape {rows.shape}")
        return rows

    def pieces(self, many: Rows) -> Iterator[Rows]:
        piece = max(1, _PIECE // self.columns)
        for start in range(0, len(many), piece):
            yield self.clip(many[start : start + piece])

    def batch(self, totals: IntArray) -> IntArray:
        return totals[None, :]

    def last(self, batch: Rows) -> IntArray:
        row: IntArray = dense(batch[len(batch) - 1 :])[0]
        return row

    def digest(self, totals: IntArray) -> bytes:
        return hashlib.sha256(to_bytes(totals)).digest()

    def clip(self, rows: Any) -> Any:
        return rows.clip(self._low, self._limit)

    def _in_range(self, row: IntArray) -> IntArray:
        if row.size and self._low <= row.min() and row.max() <= self._limit:
            return row  # to look takes less than to clip
        clipped: IntArray = self.clip(row[None, :])[0]
        return clipped


class OneAmount(RowDoor):
    """Totals are single integers, events are amounts."""

    takes_totals = True

    def __init__(self, amounts: AmountDoor, limit: int, signed: bool = False) -> None:
        super().__init__(1, limit, signed)
        self._amounts = amounts

    def total(self, x: Any, tick: int) -> IntArray | int:  # type: ignore[override]
        if type(x) is int and self._low <= x <= self._limit:  # Python's own integer in range stays one
            return x
        return super().total(x, tick)

    def batch(self, totals: IntArray | int) -> IntArray:
        return super().batch(_as_row(totals))

    def digest(self, totals: IntArray | int) -> bytes:
        return super().digest(_as_row(totals))

    def row(self, x: Any, tick: int) -> IntArray:
        row = as_integers(x)
        if row.ndim != 0:
            raise TypeError("step takes one integer, the total of the tick; many ticks go to run")
        return row.reshape(1)

    def event_row(self, events: Any, tick: int) -> IntArray:
        return np.array([self._amounts.totals(events, tick)], dtype=np.int64)

    def many(self, x: Any, first: int) -> Rows:
        if type(x) is SparseRows:
            return super().many(x, first)
        rows = as_integers(one_column(x))
        if rows.ndim != 1:
            raise TypeError(f"run takes a sequence of integers, one for each tick, not an array of shape {rows.shape}")
        return rows.reshape(-1, 1)


def _as_row(totals: IntArray | int) -> IntArray:
    return np.array([totals], dtype=np.int64) if isinstance(totals, int) else totals


class EachColumn(RowDoor):
    """Rows, rows with labels and raw events become one integer for each column."""

    takes_totals = True

    def __init__(self, categories: CategoryDoor, limit: int, signed: bool = False) -> None:
        super().__init__(categories.width, limit, signed)
        self.categories = categories
        self.named = Labels.of(categories.names, categories.other, numbered=categories.numbered)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.categories.labels

    def row(self, x: Any, tick: int) -> IntArray:
        x = handed_over(x)
        found = row_by_label(x, self.named)
        if found is not None:
            return filled(found, self.columns, self._limit)
        row = as_integers(column(x))
        if row.shape != (self.columns,):
            raise TypeError(f"step takes {self.columns} integers, one for each column, not shape {row.shape}")
        return row

    def many(self, x: Any, first: int) -> Rows:
        if type(x) is SparseRows:
            return super().many(x, first)
        rows = many_by_label(x, lambda one: self.row(one, first), self.named)
        return super().many(x if rows is None else rows, first)

    def event_row(self, events: Any, tick: int) -> IntArray:
        return self.categories.totals(events, tick)


class AmountsInColumns(EachColumn):
    """Events give amounts to columns, in whole steps: each is rounded by a coin of its own, whose address is the tick,
    the column, the amount and its number among equal ones (additions 12). There is no total to hand over."""

    takes_totals = False
    categories: AmountsByCategory

    def __init__(self, categories: AmountsByCategory, rounder: Rounder, limit: int, signed: bool = False) -> None:
        super().__init__(categories, limit, signed)
        self._rounder = rounder

    def row(self, x: Any, tick: int) -> IntArray:
        # Numbers would be labels of events, and a Series of totals by label would go nowhere.
        if isinstance(x, Mapping) or holds_numbers(x):
            raise TypeError('with a resolution step takes the events of the tick, such as [{"a": 19.99}, {"b": 5}]')
        return self.event_row(x, tick)

    def event_row(self, events: Any, tick: int) -> IntArray:
        columns, amounts = self.categories.amounts(events, tick)
        # A coin knows its column by name; only those that occur are written.
        present, codes = np.unique(columns, return_inverse=True)
        names = Texts.of_bytes([label_bytes(self.categories.names[place]) for place in present.tolist()])
        steps = self._rounder.steps(self.categories.grid.places(amounts), tick, codes, names)
        # In halves that cannot overflow: a step is at most 2^40.
        high, low = (np.zeros(self.columns, dtype=np.int64) for _ in range(2))
        np.add.at(high, columns, steps >> 20)
        np.add.at(low, columns, steps & (2**20 - 1))
        totals = [(h << 20) + rest for h, rest in zip(high.tolist(), low.tolist(), strict=True)]
        return np.array([max(-self._limit, min(self._limit, total)) for total in totals], dtype=np.int64)

    def many(self, x: Any, first: int) -> Rows:
        require_column(x, "the ticks of a run")
        rows = [self.row(events, first + i) for i, events in enumerate(as_list(x))]
        return np.stack(rows) if rows else np.empty((0, self.columns), dtype=np.int64)


class Bins(RowDoor):
    """A tick's values become counts of the cells that they lie in; there is no total to hand over."""

    def __init__(self, cells: Cells, limit: int, columns: int | None = None) -> None:
        super().__init__(cells.count if columns is None else columns, limit)
        self.cells = cells

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.cells.labels())

    def row(self, x: Any, tick: int) -> IntArray:
        return self.cells.counts(x)

    def event_row(self, events: Any, tick: int) -> IntArray:
        return self.row(events, tick)

    def many(self, x: Any, first: int) -> Rows:
        """Ticks as a sequence of sequences of values."""
        if isinstance(x, np.ndarray) and x.ndim != 2:
            raise TypeError("run takes one sequence of values for each tick")
        rows = [self.row(values, first) for values in x]
        return np.stack(rows) if rows else np.empty((0, self.columns), dtype=np.int64)


class Values(RowDoor):
    """A tick's values become their sum and their count; there is no total to hand over."""

    def __init__(self, values: ValueDoor, limit: int) -> None:
        super().__init__(2, limit, signed=True)
        self._values = values

    def row(self, x: Any, tick: int) -> IntArray:
        return self._values.totals(x, tick)

    def event_row(self, events: Any, tick: int) -> IntArray:
        return self.row(events, tick)

    def many(self, x: Any, first: int) -> Rows:
        """Ticks as a sequence of sequences of values."""
        if isinstance(x, np.ndarray) and x.ndim != 2:
            raise TypeError("run takes one sequence of values for each tick")
        rows = [self.row(values, first) for values in x]
        return np.stack(rows) if rows else np.empty((0, 2), dtype=np.int64)


class Items:
    """Events that name items of an unknown domain. There are no totals to hand over: what `step` is given is bounded as
    `step_events` does it."""

    def __init__(self, items: ItemDoor, limit: int) -> None:
        self._items = items
        self._limit = limit

    def total(self, x: Any, tick: int) -> ItemTotals:
        return self.events(x, tick)

    def events(self, events: Any, tick: int) -> ItemTotals:
        return self.in_range(self._items.totals(events, tick))

    def cells(self, events: Any, ticks: IntArray) -> ItemCells:
        """Bounded events of many ticks, not yet in range (contract/item_cells.py)."""
        return self._items.cells(events, ticks)

    def in_range(self, totals: ItemTotals) -> ItemTotals:
        # 1-Lipschitz in every total, hence free; keeps the sums far from the end of int64.
        return ItemTotals(totals.labels, np.minimum(totals.counts, self._limit))

    def many(self, x: Any, first: int) -> list[tuple[Any, int]]:
        require_column(x, "the ticks of a run")
        ticks = as_list(x)
        for events in ticks:
            require_column(events, "the events of a tick")
        return [(events, first + i) for i, events in enumerate(ticks)]

    def pieces(self, many: list[tuple[Any, int]]) -> Iterator[list[ItemTotals]]:
        for events, tick in many:
            yield [self.events(events, tick)]

    def batch(self, totals: ItemTotals) -> list[ItemTotals]:
        return [totals]

    def last(self, batch: list[ItemTotals]) -> ItemTotals:
        return batch[-1]

    def digest(self, totals: ItemTotals) -> bytes:
        # In the order of the labels: the order in which they came is no part of the input.
        names = totals.labels.names()
        order = sorted(range(len(names)), key=names.__getitem__)
        ordered = Texts.of_bytes([names[i] for i in order])
        parts = to_bytes(totals.counts[order]), to_bytes(ordered.offsets), ordered.data.tobytes()
        return hashlib.sha256(b"".join(parts)).digest()


class RecordsOfTicks:
    """Ticks of records in; there are no totals to hand over. `step` takes records, `run` a list of ticks of records.

    `read` makes of the records of a tick what the engine takes, something with a `digest`.
    """

    def __init__(self, read: Callable[[Any], Any], width: int) -> None:
        self._read_tick = read
        self._piece = max(1, min(1024, _PIECE // max(1, width)))  # ticks

    def total(self, x: Any, tick: int) -> Any:
        return self._read_tick(x)

    def events(self, events: Any, tick: int) -> Any:
        return self._read_tick(events)

    def many(self, x: Any, first: int) -> list[Any]:
        require_column(x, "the ticks of a run")
        ticks = as_list(x)
        for records in ticks:
            require_column(records, "the records of a tick")
        return ticks

    def pieces(self, many: list[Any]) -> Iterator[list[Any]]:
        for start in range(0, len(many), self._piece):
            yield [self._read_tick(records) for records in many[start : start + self._piece]]

    def batch(self, totals: Any) -> list[Any]:
        return [totals]

    def last(self, batch: list[Any]) -> Any:
        return batch[-1]

    def digest(self, totals: Any) -> bytes:
        found: bytes = totals.digest()
        return found


def read_columns(columns: Any) -> Sequence[Any]:
    """The names of columns, or the numbers that stand for them. Read once: a list of the caller's own making may say
    something else the next time."""
    if isinstance(columns, bool | str) or not isinstance(columns, int | np.integer | Sequence):
        raise ConfigurationError(f"columns are a number or a list of names, not {type(columns).__name__}")
    if isinstance(columns, int | np.integer):
        return range(whole("columns", columns, 1, MOST_COLUMNS))
    return list(columns)


def by_column(mechanism: Any) -> bool:
    """Whether a mechanism takes one number for each of its columns, or events that name them."""
    return isinstance(getattr(mechanism, "_door", None), EachColumn)
