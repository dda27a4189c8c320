"""Arrow columns from outside, made safe: whatever is in them, later steps can take them.

Arrow checks the frame of what it reads, not the content: offsets, indices and lengths may lie. A column is validated in
full, but with texts as bytes and days as milliseconds, which have no wrong values: a single record must not decide
whether the others are taken. Forms that few functions know (dictionaries, views, half floats) are resolved
here. A short column may stand for very many bytes then, so what a batch becomes is bounded first. What Arrow made of a
column is validated once more: an array that one of its casts got wrong ends the process where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# With a limit of n, the columns of a batch may become 16 n bytes of text, and lists may have n entries in all.
GROWTH = 16
_SAME_LAYOUT = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
    pa.date64(): pa.timestamp("ms"),
}


class TooLarge(Exception):
    """A column would become larger than its limit."""


class Room:
    """What the columns of one batch may still become, all of them and all of their parts together: a body may come in
    as many parts as it likes, and each of them may be small."""

    def __init__(self, limit: int = 2**56) -> None:
        self._text, self._entries = GROWTH * limit, limit

    def take_text(self, size: int) -> None:
        self._text -= size
        if self._text < 0:
            raise TooLarge

    def take_entries(self, count: int) -> None:
        self._entries -= count
        if self._entries < 0:
            raise TooLarge


def clean(column: Any, room: Room | None = None) -> Any:
    """A column as a valid array of a plain type; ArrowException if it is damaged."""
    room = room or Room()
    if pa.types.is_dictionary(column.type):
        return _decoded(column, room)
    for child in _children(column):
        room.take_entries(len(child))
    return _cast(_measured(_validated(_typed_nulls(column)), room))


def with_common_dictionaries(parts: Sequence[Any]) -> list[Any]:
    """The parts of a column, those in a row that share a dictionary joined: it is read once, not once for each part.

    Arrow must have validated the parts, not in full: indices may still lie.
    """
    runs: list[tuple[Any, list[Any]]] = []
    for part in parts:
        values = part.dictionary
        place = len(values), values.offset, [buffer and buffer.address for buffer in values.buffers()]
        if not runs or runs[-1][0] != place:
            runs.append((place, []))
        runs[-1][1].append(part)
    return [
        pa.DictionaryArray.from_arrays(pa.concat_arrays([part.indices for part in run]), run[0].dictionary, safe=False)
        for _, run in runs
    ]


def is_view(kind: Any) -> bool:
    """Text or bytes in the form of views."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def is_text(kind: Any) -> bool:
    """Text or bytes in any form."""
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    return any(test(kind) for test in tests) or is_view(kind)


def _typed_nulls(column: Any) -> Any:
    """Lists and maps of nulls with nulls that have a type: Arrow's views and casts make those without one as long as
    the column, whatever the lists are."""
    kind = column.type
    own = {"length": len(column), "offset": column.offset}
    if pa.types.is_map(kind) and pa.types.is_null(kind.item_type):
        fields = [pa.field("key", kind.key_type, nullable=False), pa.field("value", pa.bool_())]
        cells = pa.StructArray.from_arrays([column.keys, pa.nulls(len(column.keys), pa.bool_())], fields=fields)
        target = pa.map_(kind.key_type, pa.bool_())
        return pa.Array.from_buffers(target, buffers=column.buffers()[:2], children=[cells], **own)
    if not _is_list(kind) or not pa.types.is_null(kind.value_type):
        return column
    target = _rebuilt(kind, lambda _: pa.bool_())
    buffers = column.buffers()[: 1 if pa.types.is_fixed_size_list(kind) else 2]
    cells = pa.nulls(len(column.values), pa.bool_())
    return pa.Array.from_buffers(target, buffers=buffers, children=[cells], **own)


def _validated(column: Any) -> Any:
    kind = _bytes_for_text(column.type)
    if kind != column.type:
        column = column.view(kind)
    return _checked(column)


def _checked(column: Any) -> Any:
    # Full validation of decimals asks of each value whether it fits: a single record would decide.
    column.validate(full=not pa.types.is_decimal(column.type))
    return column


def _cast(column: Any) -> Any:
    """The column without forms that later steps do not know."""
    kind = _simple(column.type)
    return column if kind == column.type else _checked(column.cast(kind, safe=False))


def _bytes_for_text(kind: Any) -> Any:
    """The type with text as bytes and days as milliseconds, which no value can violate. The layout is the same."""
    return _SAME_LAYOUT[kind] if kind in _SAME_LAYOUT else _rebuilt(kind, _bytes_for_text)


def _simple(kind: Any) -> Any:
    """The type without forms that later steps do not know."""
    if is_view(kind):
        return pa.large_binary()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_float16(kind):
        return pa.float32()
    return _rebuilt(kind, _simple)


def _rebuilt(kind: Any, change: Callable[[Any], Any]) -> Any:
    types = pa.types
    if types.is_list(kind):
        return pa.list_(change(kind.value_type))
    if types.is_large_list(kind):
        return pa.large_list(change(kind.value_type))
    if types.is_fixed_size_list(kind):
        return pa.list_(change(kind.value_type), kind.list_size)
    if types.is_map(kind):
        return pa.map_(change(kind.key_type), change(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([(field.name, change(field.type)) for field in kind])
    return kind


def entries(columns: Iterable[Any]) -> int:
    """How many entries the lists and maps of some columns have in all."""
    return sum(len(child) for column in columns for child in _children(column))


def _children(column: Any) -> list[Any]:
    kind = column.type
    if pa.types.is_map(kind):
        return [column.keys]
    return [column.values] if _is_list(kind) else []


def _is_list(kind: Any) -> bool:
    return any(test(kind) for test in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def _decoded(column: Any, room: Room) -> Any:
    indices, dictionary = column.indices, column.dictionary
    indices.validate(full=True)
    values = _cast(_measured(_validated(dictionary), room))
    ends = pc.min_max(indices).as_py()
    if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < len(values):
        raise pa.ArrowInvalid("an index is out of range")
    if is_text(values.type):
        values = values.cast(pa.large_binary())
        room.take_text(pc.sum(pc.binary_length(values).take(indices)).as_py() or 0)
    return _checked(values.take(indices))


def _measured(column: Any, room: Room) -> Any:
    if is_view(column.type):
        # A view is 16 bytes, the first four of them its length. Several views may show the same bytes.
        views = np.frombuffer(column.buffers()[1] or b"", np.int32)[::4][column.offset : column.offset + len(column)]
        room.take_text(int(np.maximum(views, 0).sum(dtype=np.int64)))
    return column
