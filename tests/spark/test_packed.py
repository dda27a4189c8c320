"""What travels between tasks, and what waits in sealed states: every number comes back, also from forms of before."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from evertally.encode.item_cells import ItemCells
from evertally.encode.texts import Texts
from evertally.spark.packing import joined_tables, pack_items, pack_table, unpack_items, unpack_table

NUMBERS = [-(2**63), -(2**31) - 1, -(2**31), -(2**15), -129, -128, 0, 127, 128, 2**15, 2**31 - 1, 2**31, 2**63 - 1]

KINDS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


def items(first: int, weight: int) -> ItemCells:
    ticks = np.array([first, first + 300, first, first + 70_000])
    labels = Texts.of(["fig", "", "\ud800" + "x" * 300, "fig"])
    return ItemCells.of(ticks, labels, np.array([1, weight, 7, 2]))


def contents(cells: ItemCells) -> list[tuple[int, str, int]]:
    return list(zip(cells.ticks.tolist(), cells.labels().list(), cells.weights.tolist(), strict=True))


@pytest.mark.parametrize("weight", [1, 255, 256, 2**40, 2**62])
@pytest.mark.parametrize("first", [1, 2**40])
def test_items_come_back(first: int, weight: int) -> None:
    cells = items(first, weight)
    assert contents(unpack_items(pack_items(cells))) == contents(cells)
    assert len(unpack_items(pack_items(ItemCells.none()))) == 0


def test_items_of_states_of_before() -> None:
    cells = items(3, 2**40)
    numbers = np.concatenate([cells.ticks, cells.numbers, cells.weights, cells.names.offsets]).astype("<i8").tobytes()
    text = cells.names.data.tobytes()
    old = struct.pack("<cqqq", b"I", len(cells), len(cells.names), len(text)) + numbers + text
    assert contents(unpack_items(old)) == contents(cells)


@pytest.mark.parametrize(
    ("kind", "number"),
    [(kind, number) for kind in KINDS for number in NUMBERS if -1 <= number >> (kind.bit_width - 1) <= 0],
)
def test_tables_come_back_in_their_types(kind: pa.DataType, number: int) -> None:
    table = pa.table({"n": pa.array([0, None, number], kind), "none": pa.nulls(3, kind), "text": ["", None, "a"]})
    assert unpack_table(pack_table(table)) == table
    small = pack_table(pa.table({"n": pa.array([number] * 1000, kind)}))
    assert len(small) < 1000 * max(1, (number if number >= 0 else ~number).bit_length() // 8 * 2) + 1000


def test_other_types_are_left_alone() -> None:
    table = pa.table({"u": pa.array([1, None], pa.uint64()), "f": [1.0, None], "l": pa.array([[1], None])})
    table = table.append_column("moment", pa.array([1, 2], pa.timestamp("us", "UTC")))
    assert unpack_table(pack_table(table)) == table


def test_tables_of_states_of_before() -> None:
    table, sink = pa.table({"n": [1, 2**40]}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    old = sink.getvalue().to_pybytes()
    assert unpack_table(old) == table
    joined = joined_tables([old, pack_table(pa.table({"n": [3]}))])
    assert joined is not None
    assert joined["n"].to_pylist() == [1, 2**40, 3]
    assert joined["n"].type == pa.int64()
