"""What travels from the doors to the parts, as bytes: cells of counts, totals of items, records.

A door task gives one row for each part and Arrow batch, so Spark sorts and copies a few hundred rows in place of
millions, and the number of rows that it sees follows from no event.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evertally.encode.item_cells import ItemCells
from evertally.encode.texts import Texts
from evertally.errors import StateError
from evertally.secret import Secret

IntArray = NDArray[np.int64]

_CELLS = struct.Struct("<cqqBBB")  # "C", first tick, number of cells, bytes of a tick, of a column, of a weight
_ITEMS = struct.Struct("<cqqqBBBB")  # "J", first tick, cells, labels, bytes of a tick, a number, a weight, a length
_OLD_ITEMS = struct.Struct("<cqqq")  # "I", number of cells, of labels, bytes of labels; all numbers in 8 bytes
_SCHEMA = b"evertally_schema"  # of a table before its integers were narrowed
_SIGNED = tuple((kind, 2 ** (kind.bit_width - 1)) for kind in (pa.int8(), pa.int16(), pa.int32()))
_SIZES = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<i8"}


@dataclass(frozen=True, repr=False)
class CellsOf(Secret):
    """So much for this column at that tick. Without weights, one each. Secret."""

    ticks: IntArray
    columns: IntArray
    weights: IntArray | None = None

    def __len__(self) -> int:
        return len(self.ticks)

    def weight(self) -> IntArray:
        return np.ones(len(self.ticks), np.int64) if self.weights is None else self.weights


def pack_cells(cells: CellsOf) -> bytes:
    """In as few bytes as they fit into.

    >>> cells = CellsOf(np.array([7, 9]), np.array([0, 70_000]))
    >>> len(pack_cells(cells)) - _CELLS.size, unpack_cells(pack_cells(cells)).columns.tolist()
    (10, [0, 70000])
    """
    if not len(cells):
        return b""
    first = int(cells.ticks.min())
    ticks, at = _small(cells.ticks - first)
    columns, of = _small(cells.columns)
    weights, each = (b"", 0) if cells.weights is None else _small(cells.weights)
    return _CELLS.pack(b"C", first, len(cells), at, of, each) + ticks + columns + weights


def unpack_cells(data: bytes) -> CellsOf:
    if not data:
        return CellsOf(*(np.empty(0, np.int64) for _ in range(3)))
    _, first, count, at, of, each = _CELLS.unpack_from(data)
    place = _CELLS.size
    ticks = np.frombuffer(data, _SIZES[at], count, place).astype(np.int64) + first
    columns = np.frombuffer(data, _SIZES[of], count, place + at * count).astype(np.int64)
    if not each:
        return CellsOf(ticks, columns)
    return CellsOf(ticks, columns, np.frombuffer(data, _SIZES[each], count, place + (at + of) * count).astype(np.int64))


def cut_cells(cells: CellsOf, width: int, pieces: int) -> list[CellsOf]:
    """The cells of each range of `width` columns, by their place in it."""
    if pieces == 1:
        return [cells]
    piece = (cells.columns // width).astype(np.uint16 if pieces <= 2**16 else np.int64)
    order = np.argsort(piece, kind="stable")  # of 16 bits: a radix sort
    edges = np.searchsorted(piece[order], np.arange(pieces + 1))
    ticks, columns = cells.ticks[order], cells.columns[order] - piece[order].astype(np.int64) * width
    weights = None if cells.weights is None else cells.weights[order]
    return [
        CellsOf(ticks[a:b], columns[a:b], None if weights is None else weights[a:b])
        for a, b in zip(edges.tolist(), edges[1:].tolist(), strict=False)
    ]


def joined_cells(parts: Iterable[CellsOf]) -> CellsOf:
    found = [part for part in parts if len(part)]
    if not found:
        return unpack_cells(b"")
    weights = None if all(part.weights is None for part in found) else np.concatenate([p.weight() for p in found])
    return CellsOf(np.concatenate([p.ticks for p in found]), np.concatenate([p.columns for p in found]), weights)


def pack_items(items: ItemCells) -> bytes:
    """In as few bytes as they fit into: what travels is copied by Java some six times."""
    if not len(items):
        return b""
    labels, first = items.names, int(items.ticks.min())
    numbers = items.ticks - first, items.numbers, items.weights, labels.lengths
    packed, sizes = zip(*map(_small, numbers), strict=True)
    text = labels.data[labels.offsets[0] : labels.offsets[-1]].tobytes()
    return _ITEMS.pack(b"J", first, len(items), len(labels), *sizes) + b"".join(packed) + text


def unpack_items(data: bytes) -> ItemCells:
    """
    >>> packed = pack_items(ItemCells.of(np.array([3]), Texts.of(["tea"]), np.array([5])))
    >>> unpack_items(packed).labels().list(), unpack_items(packed).weights.tolist(), len(packed) - _ITEMS.size
    (['tea'], [5], 7)
    """
    if not data:
        return ItemCells.none()
    if data[:1] == b"I":  # in states of before
        return _unpack_old_items(data)
    _, first, count, labels, *sizes = _ITEMS.unpack_from(data)
    found, place = [], _ITEMS.size
    for size, many in zip(sizes, (count, count, count, labels), strict=True):
        found.append(np.frombuffer(data, _SIZES[size], many, place).astype(np.int64))
        place += size * many
    ticks, at, weights, lengths = found
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return ItemCells(ticks + first, at, weights, Texts(np.frombuffer(data, np.uint8, offset=place), offsets))


def _unpack_old_items(data: bytes) -> ItemCells:
    _, count, labels, _ = _OLD_ITEMS.unpack_from(data)
    numbers = np.frombuffer(data, "<i8", 3 * count + labels + 1, _OLD_ITEMS.size).astype(np.int64)
    text = np.frombuffer(data, np.uint8, offset=_OLD_ITEMS.size + 8 * numbers.size)
    ticks, at, weights = numbers[: 3 * count].reshape(3, count)
    return ItemCells(ticks, at, weights, Texts(text, numbers[3 * count :]))


def pack_table(table: pa.Table) -> bytes:
    """Records, as an Arrow stream; integers in as few bytes as they fit into.

    >>> table = pa.table({"n": [7, None, -300]})
    >>> len(pack_table(table)) < 500, unpack_table(pack_table(table)).equals(table)
    (True, True)
    """
    if not table.num_rows:
        return b""
    schema = table.schema
    for place, field in enumerate(schema):
        kind = _narrowest(table.column(place))
        if kind != field.type:
            table = table.set_column(place, field.with_type(kind), table.column(place).cast(kind))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.with_metadata({_SCHEMA: schema.serialize().to_pybytes()})) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack_table(data: bytes) -> pa.Table | None:
    if not data:
        return None
    table = pa.ipc.open_stream(data).read_all()
    known = (table.schema.metadata or {}).get(_SCHEMA)  # None in states of before
    return table if known is None else table.cast(pa.ipc.read_schema(pa.py_buffer(known)))


def _narrowest(column: pa.ChunkedArray) -> pa.DataType:
    """Of signed integers the type that holds them all, of everything else the one that it has."""
    if not pa.types.is_signed_integer(column.type):
        return column.type
    ends = pc.min_max(column).as_py()
    if ends["min"] is None:
        return column.type
    fits = (kind for kind, most in _SIGNED if -most <= ends["min"] and ends["max"] < most)
    found = next(fits, column.type)
    return found if found.bit_width < column.type.bit_width else column.type


def joined_tables(parts: Iterable[bytes]) -> pa.Table | None:
    """Records of several payloads, None if there are none. What waited may be of narrower integers or shorter texts
    than what comes now; other types would have to be guessed at, and a user that is read otherwise has two caps.

    >>> joined_tables([pack_table(pa.table({"n": pa.array([7], kind)})) for kind in (pa.int32(), pa.int64())])["n"].type
    DataType(int64)
    """
    tables = [table for table in map(unpack_table, parts) if table is not None]
    if not tables:
        return None
    first = tables[0].schema
    if any(not _alike(field.type, first.field(field.name).type) for table in tables for field in table.schema):
        raise StateError(
            "a column has another type than in the batch before, and events of that batch are waiting: give it the "
            "type that it had"
        )
    return pa.concat_tables(tables, promote_options="permissive")


def _alike(one: pa.DataType, other: pa.DataType) -> bool:
    texts = (pa.string(), pa.large_string())
    return one == other or (one in texts and other in texts) or all(map(pa.types.is_signed_integer, (one, other)))


def _small(numbers: IntArray) -> tuple[bytes, int]:
    low, high = int(numbers.min()), int(numbers.max())
    size = 8 if low < 0 else next(size for size in (1, 2, 4, 8) if high < 256**size)
    return numbers.astype(_SIZES[size]).tobytes(), size
