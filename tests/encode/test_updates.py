"""The door of insertions and deletions: a fixed function of each record, whatever records are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.hostile import GARBAGE, liars
from evertally.encode.labels import canonical
from evertally.encode.updates import LONGEST_NAME, UpdateDoor, records

CELLS = {"a": 0, "b": 1}


def cell(value: Any) -> int | None:
    label = canonical(value)
    return None if label is None else CELLS.get(label)


NAMED = UpdateDoor(cell, by_name=True, named=True)
MINTED = UpdateDoor(cell, by_name=True, named=False)
VALUED = UpdateDoor(cell, by_name=False, named=False)
ALONE = UpdateDoor(lambda value: 0, by_name=True, named=True, single=True)
DOORS = {"names": NAMED, "tokens": MINTED, "values": VALUED, "one cell": ALONE}


def read(door: UpdateDoor, events: Any) -> list[tuple[int, int, str | None]]:
    found = door.arrivals(events)
    return list(zip(found.cells.tolist(), found.signs.tolist(), found.names, strict=True))


@pytest.mark.parametrize("insert", ["insert", True, 1, "+1", "1", 1.0, np.int8(1), np.bool_(True), b"insert"])
@pytest.mark.parametrize("delete", ["delete", False, -1, "-1", -1.0, np.int64(-1)])
def test_actions(insert: Any, delete: Any) -> None:
    assert read(NAMED, [(insert, "a", 7), (delete, None, 7)]) == [(0, 1, "7"), (-1, -1, "7")]
    assert read(VALUED, [(insert, "a"), (delete, "b")]) == [(0, 1, None), (1, -1, None)]


def test_the_forms_of_a_record() -> None:
    as_table = [{"action": "insert", "value": "b", "id": 3}, ["delete", "ignored", 3]]
    assert read(NAMED, as_table) == [(1, 1, "3"), (-1, -1, "3")]
    assert read(MINTED, [("insert", "a"), ("insert", "x"), "b", ("delete", None, "t")]) == [
        (0, 1, None),
        (-1, 1, None),  # of nothing that counts; it has a token all the same, so that tokens keep their order
        (1, 1, None),
        (-1, -1, "t"),
    ]
    assert read(VALUED, ["a", ("insert", "x"), ("delete", "x"), "x"]) == [(0, 1, None)]
    assert read(ALONE, ["ann", ("delete", None, "ann"), ("insert", 5, "bob")]) == [
        (0, 1, "ann"),
        (-1, -1, "ann"),
        (0, 1, "bob"),
    ]
    assert read(NAMED, ["a"]) == [], "a value alone is not an item with a name"


@pytest.mark.parametrize(
    "record",
    [
        ("insert", "a", None),
        ("insert", "x", 1),
        ("delete", "a", None),
        ("insert", "a", "n" * (LONGEST_NAME + 1)),
        ("insert", "a", 1, "more"),
        (),
        ("keep", "a", 1),
        (0, "a", 1),
        (2, "a", 1),
        (None, "a", 1),
        {"value": "a", "id": 1},
        {1, 2},
    ],
)
def test_what_cannot_be_used_is_dropped(record: Any) -> None:
    assert read(NAMED, [record]) == []


@pytest.mark.parametrize("name", DOORS)
def test_hostile_records(name: str) -> None:
    door = DOORS[name]
    for events in GARBAGE:
        door.arrivals(events)
    for liar in liars():
        for record in ((liar, "a", 1), ("insert", liar, 1), ("insert", "a", liar), ("delete", None, liar)):
            found = door.arrivals([record])
            assert len(found) <= 1
            assert set(found.signs.tolist()) <= {1, -1}
            assert all(type(one) in (str, type(None)) for one in found.names)


RECORD = st.tuples(
    st.sampled_from(["insert", "delete", True, -1, "x", None]),
    st.sampled_from(["a", "b", "c", None, 1]),
    st.sampled_from([1, "1", "x", None, 2.5]),
)


@pytest.mark.parametrize("name", DOORS)
@given(events=st.lists(RECORD, max_size=8))
def test_a_record_is_read_by_itself(name: str, events: list[Any]) -> None:
    door = DOORS[name]
    assert read(door, events) == [found for event in events for found in read(door, [event])]
    assert door.arrivals(events).digest() == door.arrivals(list(events)).digest()


def test_digests_tell_inputs_apart() -> None:
    ticks: list[Any] = [
        [],
        [("insert", "a", 1)],
        [("insert", "b", 1)],
        [("insert", "a", 2)],
        [("delete", None, 1)],
        [("insert", "a", 1), ("delete", None, 1)],
        [("delete", None, 1), ("insert", "a", 1)],  # the order decides what is found
        [("insert", "a", "1")] * 2,
        [("insert", "a", "11")],
    ]
    assert len({NAMED.arrivals(events).digest() for events in ticks}) == len(ticks)
    assert VALUED.arrivals(["a"]).digest() != MINTED.arrivals([("insert", "x")]).digest()


@pytest.mark.parametrize("wrong", ["abc", 7, None, {"insert": 1}, {1}, np.zeros((2, 3))])
def test_mistakes_in_the_call(wrong: Any) -> None:
    with pytest.raises(TypeError):
        NAMED.arrivals(wrong)
    with pytest.raises(TypeError):
        records([], wrong, pairs=True, by_name=True, named=True)


def test_two_columns_as_records() -> None:
    made = records([("a", 1), "no pair", ("a", 1, 2)], [1, 2], pairs=True, by_name=True, named=True)
    assert read(NAMED, made) == [(0, 1, "1"), (-1, -1, "1"), (-1, -1, "2")]
    made = records(np.array(["a", "b"]), ["b"], pairs=False, by_name=False, named=False)
    assert read(VALUED, made) == [(0, 1, None), (1, 1, None), (1, -1, None)]


def test_arrow_records() -> None:
    column = pa.array([{"action": "insert", "value": "a", "id": 5}, None, {"action": "delete", "value": None, "id": 5}])
    assert read(NAMED, column) == [(0, 1, "5"), (-1, -1, "5")]


def test_without_deletions_they_are_dropped() -> None:
    door = UpdateDoor(cell, by_name=False, named=False, deletions=False)
    assert read(door, [("insert", "a"), ("delete", "a")]) == [(0, 1, None)]


def test_a_name_of_a_kibibyte_is_a_name() -> None:
    assert len(read(NAMED, [("insert", "a", "n" * 1024)])) == 1
    assert read(NAMED, [("insert", "a", "n" * 1025)]) == []
