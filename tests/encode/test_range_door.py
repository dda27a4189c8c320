"""Columns that have only numbers for names: the same rows as by a list of names, and no texts before they are read."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.contract.doors import read_columns
from evertally.encode import CategoryDoor
from evertally.encode.range_door import MOST_COLUMNS, NumberedLabels, RangeDoor
from evertally.errors import ConfigurationError

LABELS = st.one_of(
    st.integers(-2, 14),
    st.sampled_from([2**63, 2**64, 10**500, -(2**70)]),
    st.integers(-2, 14).map(str),
    st.sampled_from(["", "07", "+3", " 3", "3 ", "\u0663", "\uff13", "3.0", "rest", "1e1", "9" * 5000, b"4", b"\xff"]),
    st.sampled_from([3.0, 2.5, -0.0, float("nan"), float("inf"), True, False, None, np.int8(5), np.float32(6)]),
)
EVENTS = st.one_of(
    LABELS,
    st.lists(LABELS, max_size=5),
    st.dictionaries(st.one_of(st.integers(-2, 14), st.text("0123456789r", max_size=3)), st.integers(-3, 9), max_size=4),
)


def order(message: bytes) -> bytes:
    return blake2b(message, key=b"secret").digest()


def doors(count: int, other: Any, **options: Any) -> tuple[CategoryDoor, RangeDoor]:
    return CategoryDoor(range(count), other, order=order, **options), RangeDoor(
        range(count), other, order=order, **options
    )


@given(
    st.integers(1, 12),
    st.sampled_from([None, "rest", "12", 99]),
    st.integers(1, 3),
    st.integers(1, 4),
    st.booleans(),
    st.data(),
)
@settings(deadline=None, max_examples=40, derandomize=True)
def test_the_same_rows(count: int, other: Any, per_event: int, weight: int, signed: bool, data: st.DataObject) -> None:
    named, numbered = doors(count, other, max_per_event=per_event, max_weight=weight, signed=signed)
    assert numbered.labels == named.labels == tuple(numbered.names)
    assert (numbered.width, numbered.other, numbered.may_cut) == (named.width, named.other, named.may_cut)
    events: list[Any] = data.draw(st.lists(EVENTS, max_size=6))
    assert np.array_equal(numbered.totals(events, 3), named.totals(events, 3))
    for event in events:
        assert numbered.row(event, 3) == named.row(event, 3)
    for label in data.draw(st.lists(LABELS, max_size=4)):
        assert numbered.column(label) == named.column(label)
    numbers = data.draw(st.lists(st.integers(-3, 15), max_size=9))
    for column in (
        numbers,
        np.array(numbers, dtype=np.int8),
        np.array([2**64 - 1, *(abs(x) for x in numbers)], dtype=np.uint64),
        np.array(numbers, dtype=np.float64),
        np.array(numbers) > 3,
        pa.array([None, *numbers], pa.int64()),
        pa.chunked_array([numbers, []], pa.int16()),
        pa.array([*map(str, numbers), None]),
    ):
        assert np.array_equal(numbered.totals(column, 3), named.totals(column, 3))


@given(st.integers(1, 120), st.text("0123456789-+\u0663 ", max_size=4), st.sampled_from([None, "rest"]))
@settings(deadline=None, max_examples=80, derandomize=True)
def test_labels_are_those_of_a_tuple(count: int, text: str, other: str | None) -> None:
    plain = (*map(str, range(count)), *([] if other is None else [other]))
    labels = NumberedLabels(count, other)
    assert labels == plain
    assert (len(labels), list(labels), labels[-1], labels[1:9:2]) == (len(plain), list(plain), plain[-1], plain[1:9:2])
    for label in (text, "rest", "0", str(count - 1), str(count)):
        assert (label in labels) == (label in plain)
        assert labels.get(label) == (plain.index(label) if label in plain else None)
    assert labels != plain[1:]
    assert labels != "0"
    with pytest.raises(IndexError):
        labels[len(plain)]


@pytest.mark.parametrize("other", ["0", 4, "4", "no label\ud83d", None])
def test_the_same_is_refused(other: Any) -> None:
    def made(door: Any) -> str:
        try:
            door(range(5), other, order=order)
        except ConfigurationError as refused:
            return str(refused).split(" ", 2)[-1]
        return ""

    assert made(RangeDoor) == made(CategoryDoor)


def test_as_many_columns_as_there_are_addresses() -> None:
    door = RangeDoor(range(MOST_COLUMNS), order=order)
    assert (door.width, door.column(MOST_COLUMNS - 1), door.column(MOST_COLUMNS)) == (2**32, 2**32 - 1, None)
    assert len(read_columns(2**32)) == 2**32
    with pytest.raises(ConfigurationError, match="columns"):
        read_columns(2**32 + 1)
    with pytest.raises(ConfigurationError, match="at most 4294967296 columns"):
        RangeDoor(range(MOST_COLUMNS), "rest", order=order)


def test_no_text_is_made_before_somebody_reads_it() -> None:
    counts = et.VectorCounter(columns=10**5, guarantee=et.ZCDP(0.5), horizon=9, mechanism="tree", key=et.simulation(1))
    counts.step_events(np.array([3, 3, 10**6, -1]))
    counts.step_events([1, 2, 3])
    counts.step_events(pa.array([7, None]))
    counts.step(np.ones(10**5, dtype=np.int64))
    counts.run(np.zeros((2, 10**5), dtype=np.int64))
    made = vars(counts._door.categories)  # type: ignore[attr-defined]
    assert "labels" not in made
    assert "_names" not in made
    again = et.restore(counts.snapshot(), key=et.simulation(1), allow_copy=True)
    assert again.labels[-1] == "99999"
    assert again.columns == again.labels
