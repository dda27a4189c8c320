"""The events of one tick, joined from batches of any formats.

Two batches may hold the same column in two forms: JSON cells beside Arrow text, 32-bit integers beside 64-bit ones. The
door gets one column in which every event means what it means alone. Which form the joined column has is a matter of
speed: each cell has one meaning in all forms (the tests compare them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evertally.encode.content_order import content_order
from evertally.encode.labels import Coded, as_list
from evertally.encode.numbers import floats
from evertally.encode.owners import owners
from evertally.encode.spelled import Named, Spelled
from evertally.encode.spelled import joined as joined_labels
from evertally.runtime.input.common_lists import as_lists
from evertally.runtime.input.sources import ROWS, Batch
from evertally.runtime.input.times import Instants, Valid, as_arrow, instants, is_text
from evertally.runtime.input.tokens import begins_with_list, cells_of, floats_of, is_tokens, lists_of, named, spelled
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.secret import Secret

_SHORT_LIMIT = 2**31  # bytes that positions of 32 bits reach


class TickEvents(Secret):
    """What the doors of one tick get: the events of all its batches, in the order of the batches.

    >>> from fractions import Fraction
    >>> from types import SimpleNamespace
    >>> spec = SimpleNamespace(user_column=None)
    >>> lines = {"ward": np.array(["north", None, 7], object)}
    >>> table = {"ward": pa.array(["north", "south"])}
    >>> events = TickEvents(spec, [lines, table])
    >>> by_ward = QuerySpec("by-ward", "histogram", Fraction(1), "ward", {}, line=1)
    >>> len(events), as_list(events.events(by_ward))
    (5, ['north', None, 7, 'north', 'south'])
    """

    def __init__(self, spec: StreamSpec, batches: Sequence[Batch]) -> None:
        self._spec = spec
        self._batches = [batch for batch in batches if length(batch)]
        self._length = sum(map(length, self._batches))
        self._made: dict[tuple[str, str, bool], Any] = {}
        self._order: tuple[bytes, NDArray[np.int64]] | None = None  # by content: the key, and the permutation

    def __len__(self) -> int:
        return self._length

    def events(self, query: QuerySpec) -> Any:
        """The events as the query's mechanism takes them."""
        return events_of(query, self._length, self._column)

    def users(self) -> Any:
        """The user of each event, where users are the protected unit."""
        return [] if self._spec.user_column is None else self._column(self._spec.user_column, "users")

    def only(self, kept: NDArray[np.bool_]) -> TickEvents:
        """Some of them, in the same order."""
        if self._order is not None:
            key, order = self._order
            arrived = np.empty_like(kept)
            arrived[order] = kept
            return TickEvents(self._spec, self._batches).only(arrived).ordered(key)
        edges = np.cumsum([0, *map(length, self._batches)])
        some = [np.flatnonzero(kept[start:stop]) for start, stop in pairwise(edges)]
        taken = [_taken(batch, list(batch), rows) for batch, rows in zip(self._batches, some, strict=True)]
        return TickEvents(self._spec, taken)

    def ordered(self, key: bytes) -> TickEvents:
        """The same events in the order of their content, whatever batches they came in."""
        columns = [(self._column(name, use), use) for name, use in self._spec.uses()]
        if not self._length or not columns:
            return self
        found = TickEvents(self._spec, self._batches)
        order = content_order(columns, key)
        found._order = key, order
        found._made = {made: in_order(column, order) for made, column in self._made.items()}
        return found

    def _column(self, name: str, use: str, door: bool = False) -> Any:
        if (name, use, door) not in self._made:
            # Many small batches of one form are joined first: preparing a column costs more than its cells do.
            runs = [joined(list(run)) for _, run in groupby((batch[name] for batch in self._batches), _kind)]
            parts: Sequence[Any] = [prepared(run, use) for run in runs]
            column = joined(as_lists(parts) if door and use in ("labels", "items") else parts)
            column = readable(column) if use == "items" else column
            column = column if self._order is None else in_order(column, self._order[1])
            for other in (False, True) if len(parts) < 2 else (door,):
                self._made[name, use, other] = column
        return self._made[name, use, door]


def events_of(query: QuerySpec, count: int, column: Callable[[str, str, bool], Any]) -> Any:
    """What a query's mechanism gets of `count` events: the column that it reads, ones if there is none, or records made
    of several. `column` gives a prepared column by name and use, and whether a door reads it as it stands."""
    columns = query.columns
    records = query.record.records_of(query.parameters)
    if records is None:
        one = next(iter(columns), None)
        return np.broadcast_to(np.int64(1), count) if one is None else column(one.name, one.reads.use, True)
    cells: dict[str, Any] = {}
    for read in columns:
        found = _listed(column(read.name, read.reads.use, False))
        if isinstance(query.parameters.get(read.option), list | dict):
            cells.setdefault(read.option, []).append(found)
        else:
            cells[read.option] = found
    return records.made(count, cells, query.parameters)


def in_order(column: Any, order: NDArray[np.int64]) -> Any:
    """The cells of a prepared column in another order."""
    return column[order] if isinstance(column, np.ndarray | Coded) else column.take(pa.array(order))


def length(batch: Batch) -> int:
    """The number of events of a batch."""
    return len(next(iter(batch.values())))


def prepared(column: Any, use: str) -> Any:
    """A column in the form that its door reads fastest. What its cells mean is the door's business alone."""
    if is_tokens(column):
        if use == "amounts":
            return floats_of(column)
        if use == "users":
            return named(column)
        if use == "values":
            return cells_of(column)
        lists = lists_of(column)
        if lists is not None:
            return lists
        labels = spelled(column)
        return cells_of(column) if labels is None else labels
    if use == "amounts":
        return floats(column)
    if isinstance(column, np.ndarray):
        return column
    if use in ("items", "names", "values"):
        # Not coded: there may be as many labels as events, and a door that gets a tick of them would read the labels of
        # all ticks. Offsets of 64 bits: a file of long labels is one array in the end.
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_string(column.type):
            return column.cast(pa.large_string())
        return column.cast(pa.large_binary()) if pa.types.is_binary(column.type) else column
    # Text coded by its distinct values: small, and quick to slice.
    return column.dictionary_encode() if is_text(column) else column


def joined(parts: Sequence[Any]) -> Any:
    """One column of several prepared ones; a list if there are none."""
    if not parts:
        return []
    if len(parts) == 1:
        return parts[0]
    if any(isinstance(part, Coded) for part in parts):
        labels = [part for part in map(_labels, parts) if part is not None]
        if len(labels) == len(parts):
            return joined_labels(labels)
        parts = [_cells(part) for part in parts]
    if not _can_be_chained(parts):
        parts = [_common_form(part) for part in parts]
    if not _can_be_chained(parts):
        parts = [_cells(part) for part in parts]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    whole = pa.chunked_array(parts)
    if pa.types.is_dictionary(whole.type):
        whole = whole.unify_dictionaries()
    return whole.combine_chunks()


def _form(part: Any) -> Any:
    if isinstance(part, Coded):
        return Coded
    return (np.ndarray, part.dtype) if isinstance(part, np.ndarray) else (pa.Array, part.type)


def _kind(part: Any) -> Any:
    """What batches have in common that are prepared together: those with lists of labels are not prepared as those
    with labels are."""
    return _form(part), is_tokens(part) and begins_with_list(part)


def _can_be_chained(parts: Sequence[Any]) -> bool:
    if any(_form(part) != _form(parts[0]) for part in parts):
        return False
    return isinstance(parts[0], np.ndarray) or not _short(parts[0].type) or sum(p.nbytes for p in parts) < _SHORT_LIMIT


def _short(kind: Any) -> bool:
    """Whether positions in a column of this type are numbers of 32 bits."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_binary, pa.types.is_list, pa.types.is_map)
    return any(test(kind) for test in tests)


def _common_form(part: Any) -> Any:
    """Text in one form, wherever it came from; everything else as it is."""
    if isinstance(part, np.ndarray):
        typed = as_arrow(part)
        if typed is None:
            return part
        part = typed
    if pa.types.is_dictionary(part.type):
        return pa.DictionaryArray.from_arrays(part.indices, _common_form(part.dictionary))
    return part.cast(pa.large_binary()) if is_text(part) else part


def _labels(part: Any) -> Named | Spelled | None:
    """A prepared column as labels in their one spelling; None if there are collections in it."""
    if isinstance(part, Named | Spelled):
        return part
    if isinstance(part, np.ndarray):
        nested = any(isinstance(cell, list | dict) for cell in part)
    else:
        nested = pa.types.is_nested(part.type)
    return None if nested else Spelled(*owners(part))


def _cells(part: Any) -> NDArray[Any]:
    """A column as Python objects, bytes that are text as str: the doors count repeated texts and integers at once."""
    if isinstance(part, np.ndarray):
        return part
    if isinstance(part, Coded):
        return np.fromiter(part, object, len(part))
    if not pa.types.is_dictionary(part.type):
        return np.fromiter(map(_word, as_list(part)), object, len(part))
    codes = part.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    cells: NDArray[Any] = np.empty(len(part.dictionary) + 1, object)  # the last one is where code -1 points
    cells[:-1] = _cells(part.dictionary)
    return np.asarray(cells[codes], object)


def _listed(column: Any) -> list[Any]:
    """The cells of a column one by one."""
    if isinstance(column, list):
        return column
    if isinstance(column, pa.DictionaryArray) and len(column.dictionary) > len(column):
        column = column.dictionary_decode()  # a slice of a long file carries the labels of the whole file
    return as_list(_cells(column))


def _word(cell: object) -> object:
    try:
        return cell.decode() if isinstance(cell, bytes) else cell
    except UnicodeDecodeError:
        return cell


def readable(items: Any) -> Any:
    """Items in bytes as text, if all of them are: the door of unknown items reads whole columns of text at once."""
    if isinstance(items, np.ndarray | list | Coded):
        return items
    kind = items.type
    try:
        if pa.types.is_large_binary(kind):
            return items.cast(pa.large_string())
        if pa.types.is_list(kind) and pa.types.is_binary(kind.value_type):
            return items.cast(pa.list_(pa.string()))
    except pa.ArrowInvalid:
        pass
    return items


def own_ticks(batch: Batch, spec: StreamSpec) -> tuple[Instants, Valid]:
    """The tick of each event's own time stamp, and which time stamps could be read."""
    moments, readable = instants(batch[str(spec.clock.column)], spec.clock)
    return spec.clock.ticks_of(moments), readable


def ticks_of(batch: Batch, spec: StreamSpec, first: int, last: int | None) -> tuple[Instants, Valid]:
    """The tick that each event enters, and which events enter any: its own time stamp and public bounds decide."""
    own, readable = own_ticks(batch, spec)
    return np.maximum(own, first), readable if last is None else readable & (own <= last)


def split_by_tick(batch: Batch, spec: StreamSpec, first: int, last: int | None) -> list[tuple[int, Batch]]:
    """A batch cut into ticks by the time stamps of its events, in the order of ticks.

    A late event enters `first`, the open tick; one after `last`, or without a readable time stamp, enters none. The
    parts leave out the time column, which has done its work, unless a query reads it.
    """
    if not length(batch):
        return []
    entered, kept = ticks_of(batch, spec, first, last)
    used = spec.wanted(spec.user_column)
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(entered[rows], kind="stable")]
    found, starts = np.unique(entered[rows], return_index=True)
    return [
        (tick, _taken(batch, used, part))
        for tick, part in zip(found.tolist(), np.split(rows, starts[1:]), strict=False)
    ]


def _taken(batch: Batch, names: Sequence[str], rows: NDArray[np.intp]) -> Batch:
    part = {
        name: column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))
        for name, column in batch.items()
        if name in names
    }
    return part or {ROWS: pa.nulls(len(rows))}
