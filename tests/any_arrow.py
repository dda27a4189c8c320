"""Arrow columns of every type, nested and null, sliced, coded and empty, from a seed; not a test."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa

_TEXTS = ("north", "south", "", "x" * 30, "7", "é", "2013-01-01T00:30:00Z")
_MOMENT = dt.datetime(2013, 1, 1, 0, 30)


def _numbers(rng: random.Random) -> int:
    return rng.choice((0, 1, 7, 100))


# Each with values that its type can hold.
FLAT: tuple[tuple[Any, Callable[[random.Random], Any]], ...] = (
    (pa.null(), lambda rng: None),
    (pa.bool_(), lambda rng: rng.random() < 0.5),
    *((kind, _numbers) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((kind, _numbers) for kind in (pa.uint8(), pa.uint16(), pa.uint32())),
    (pa.uint64(), lambda rng: rng.choice((0, 7, 2**64 - 1))),
    *((kind, lambda rng: rng.choice((0.0, 1.5, float("nan"), float("inf")))) for kind in (pa.float32(), pa.float64())),
    (pa.float16(), lambda rng: rng.choice((0.0, 1.5))),
    *((kind, lambda rng: rng.choice(_TEXTS)) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, lambda rng: rng.choice((*map(str.encode, _TEXTS), b"\xff"))) for kind in (pa.binary(), pa.large_binary())),
    (pa.binary_view(), lambda rng: rng.choice((b"a", b"\xff" * 20))),
    (pa.binary(2), lambda rng: rng.choice((b"ab", b"\xff\0"))),
    *((kind, lambda rng: Decimal(_numbers(rng))) for kind in (pa.decimal128(9, 2), pa.decimal256(50, 3))),
    *((kind, lambda rng: Decimal(_numbers(rng))) for kind in (pa.decimal32(9, 2), pa.decimal64(18, 3))),
    *((kind, lambda rng: dt.date(2013, 1, rng.randint(1, 2))) for kind in (pa.date32(), pa.date64())),
    *((pa.timestamp(unit), lambda rng: _MOMENT) for unit in ("s", "ms", "us", "ns")),
    (pa.timestamp("us", "Europe/Berlin"), lambda rng: _MOMENT.replace(tzinfo=dt.UTC)),
    *((kind, lambda rng: dt.time(rng.randint(0, 23))) for kind in (pa.time32("s"), pa.time64("us"))),
    (pa.duration("s"), lambda rng: dt.timedelta(seconds=_numbers(rng))),
    (pa.month_day_nano_interval(), lambda rng: (1, _numbers(rng), 3)),
)
_KEYS = tuple(one for one in FLAT if one[0] in (pa.string(), pa.int64(), pa.binary(2), pa.large_string(), pa.date32()))


def column(rng: random.Random, length: int, depth: int = 2) -> Any:
    """A column of any type, with nulls in it, often a slice of a longer one."""
    before, after = rng.choice((0, 0, 1, 3)), rng.choice((0, 0, 2))
    whole = _column(rng, before + length + after, depth)
    return whole.slice(before, length)


def _column(rng: random.Random, length: int, depth: int) -> Any:
    makers = [_flat, _flat, _null]
    if depth:
        makers += [_list, _list, _fixed, _map, _struct, _coded, _runs, _union, _list_view, _extension]
    return rng.choice(makers)(rng, length, depth)


def _missing(rng: random.Random) -> float:
    return rng.choice((0.0, 0.3, 1.0))


def _mask(rng: random.Random, length: int) -> Any:
    some = pa.array([rng.random() < 0.2 for _ in range(length)], pa.bool_())
    return rng.choice((None, some)) if length else None


def _flat(rng: random.Random, length: int, depth: int) -> Any:
    kind, value = rng.choice(FLAT)
    missing = _missing(rng)
    return pa.array([None if rng.random() < missing else value(rng) for _ in range(length)], kind)


def _null(rng: random.Random, length: int, depth: int) -> Any:
    return pa.nulls(length)


def _offsets(rng: random.Random, length: int) -> list[int]:
    ends = [0]
    for _ in range(length):
        ends.append(ends[-1] + rng.choice((0, 0, 1, 2, 5)))
    return ends


def _list(rng: random.Random, length: int, depth: int) -> Any:
    ends = _offsets(rng, length)
    items = _column(rng, ends[-1] + rng.choice((0, 3)), depth - 1)
    if rng.random() < 0.7:
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, mask=_mask(rng, length))
    return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), items, mask=_mask(rng, length))


def _fixed(rng: random.Random, length: int, depth: int) -> Any:
    size = rng.choice((0, 1, 2, 3))
    if size == 0:
        return pa.array([[]] * length, pa.list_(pa.string(), 0))
    return pa.FixedSizeListArray.from_arrays(_column(rng, size * length, depth - 1), size, mask=_mask(rng, length))


def _list_view(rng: random.Random, length: int, depth: int) -> Any:
    ends = _offsets(rng, length)
    sizes = [end - start for start, end in pairwise(ends)]
    items = _column(rng, ends[-1], depth - 1)
    return pa.ListViewArray.from_arrays(pa.array(ends[:-1], pa.int32()), pa.array(sizes, pa.int32()), items)


def _map(rng: random.Random, length: int, depth: int) -> Any:
    ends = _offsets(rng, length)
    kind, value = rng.choice(_KEYS)
    keys = pa.array([value(rng) for _ in range(ends[-1])], kind)
    return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), keys, _column(rng, ends[-1], depth - 1))


def _struct(rng: random.Random, length: int, depth: int) -> Any:
    names = rng.choice((["north"], ["north", "7"], ["", "é", "south"]))
    return pa.StructArray.from_arrays([_column(rng, length, depth - 1) for _ in names], names, mask=_mask(rng, length))


def _coded(rng: random.Random, length: int, depth: int) -> Any:
    kind, value = rng.choice([one for one in FLAT if one[0] != pa.null()])
    values = pa.array([value(rng) for _ in range(3)], kind)
    codes = pa.array(
        [rng.choice((None, 0, 1, 2)) for _ in range(length)], rng.choice((pa.int8(), pa.int32(), pa.uint16()))
    )
    return pa.DictionaryArray.from_arrays(codes, values)


def _runs(rng: random.Random, length: int, depth: int) -> Any:
    ends = sorted({*(rng.randint(1, length) for _ in range(3)), length}) if length else []
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), _flat(rng, len(ends), 0))


def _union(rng: random.Random, length: int, depth: int) -> Any:
    children = [_column(rng, length, 0), _column(rng, length, 0)]
    codes = pa.array([rng.randint(0, 1) for _ in range(length)], pa.int8())
    if rng.random() < 0.5:
        return pa.UnionArray.from_sparse(codes, children)
    return pa.UnionArray.from_dense(codes, pa.array(range(length), pa.int32()), children)


def _extension(rng: random.Random, length: int, depth: int) -> Any:
    if rng.random() < 0.5:
        storage = pa.array([bytes(16)] * length, pa.binary(16))
        return pa.ExtensionArray.from_storage(pa.uuid(), storage)
    storage = pa.array([rng.choice((None, '{"a": 1}', "[]")) for _ in range(length)], pa.string())
    return pa.ExtensionArray.from_storage(pa.json_(), storage)


def body(columns: dict[str, Any], **options: Any) -> bytes:
    """An Arrow stream of one batch."""
    sink = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_pydict(columns)
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
