"""The door is a sum of bounded functions of single events, whatever they hold, on the fast and slow path."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.encode import AmountDoor, CategoryDoor
from evertally.encode.labels import canonical, coded
from evertally.errors import ConfigurationError

CATEGORIES = ["a", "b", "c", "é", 7]


def secret_order(message: bytes) -> bytes:
    return blake2b(message, key=b"only for tests", digest_size=16).digest()


class Hostile:
    """A record that misbehaves whenever it is touched."""

    def _refuse(self, *_: object) -> Any:
        raise RuntimeError("secret content")

    __hash__ = __eq__ = __str__ = __iter__ = __len__ = __index__ = __float__ = __lt__ = __ge__ = _refuse


class HostileNumber(Fraction):
    def __ge__(self, other: object) -> bool:
        raise RuntimeError("secret content")


labels = st.sampled_from(["a", "b", "c", "é", "e\u0301", "7", 7, 7.0, "zebra", "A", b"a", b"\xff", True, "", 8])
junk = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.booleans(),
    st.complex_numbers(),
    st.decimals(),
    st.dates(),
    st.sampled_from(
        [Decimal("sNaN"), Decimal("1e999999"), Fraction(7, 2), 10**5000, "\ud800", np.float32(7), np.int8(-3)]
    ),
    st.builds(Hostile),
    st.builds(HostileNumber),
)
weights = st.one_of(st.integers(-5, 9), junk)
events = st.one_of(
    labels,
    junk,
    st.lists(st.one_of(labels, junk), max_size=6),
    st.lists(labels, max_size=6).map(tuple),
    st.sets(st.text(max_size=2), max_size=4),
    st.dictionaries(labels, weights, max_size=6),
    st.lists(st.lists(labels, max_size=2), max_size=2),
)
doors = st.builds(
    CategoryDoor,
    st.just(CATEGORIES),
    other=st.sampled_from([None, "rest"]),
    max_per_event=st.integers(1, 4),
    max_weight=st.integers(1, 4),
    signed=st.booleans(),
    order=st.just(secret_order),
)


@given(doors, st.lists(events, max_size=6), st.integers(1, 10**9))
def test_totals_are_the_sum_of_the_events_own_bounded_rows(door: CategoryDoor, batch: list[object], tick: int) -> None:
    alone = [door.totals([event], tick) for event in batch]
    for row in alone:
        assert row.dtype == np.int64
        assert row.shape == (door.width,)
        assert np.count_nonzero(row) <= door.max_per_event
        assert np.abs(row).max() <= door.max_weight
        assert door.signed or row.min() >= 0
    assert door.totals(batch, tick).tolist() == sum(alone, np.zeros(door.width, np.int64)).tolist()


@given(doors, st.lists(events, min_size=1, max_size=6), st.data())
def test_removing_or_moving_an_event_leaves_the_others_alone(
    door: CategoryDoor, batch: list[object], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(batch) - 1))
    rest = batch[:index] + batch[index + 1 :]
    change = door.totals(batch, 3) - door.totals(rest, 3)
    assert change.tolist() == door.totals([batch[index]], 3).tolist()
    assert door.totals(data.draw(st.permutations(batch)), 3).tolist() == door.totals(batch, 3).tolist()


@given(doors, st.lists(st.one_of(labels, st.none()), max_size=30))
def test_fast_path_agrees_with_event_by_event(door: CategoryDoor, column: list[object]) -> None:
    expected = np.zeros(door.width, np.int64)
    for event in column:
        for index, weight in door.row(event, 1).items():
            expected[index] += weight
    texts = [None if value is None else str(canonical(value)) for value in column]
    arrow = pa.array([t if t is None or t.isprintable() else None for t in texts], pa.string())
    assert door.totals(column, 1).tolist() == expected.tolist()
    by_text = door.totals([[t] for t in arrow.to_pylist()], 1)  # nested: the slow path
    for form in (
        arrow,
        arrow.dictionary_encode(),
        pa.chunked_array([arrow, arrow.slice(len(arrow))]),
        pa.chunked_array([arrow[:5].dictionary_encode(), arrow[5:].dictionary_encode()]),
        arrow.cast(pa.large_string()),
        arrow.cast(pa.binary()),
        np.array(arrow.to_pylist(), object),
        tuple(arrow.to_pylist()),
    ):
        assert door.totals(form, 1).tolist() == by_text.tolist()


@pytest.mark.parametrize(
    "column",
    [
        np.array([7, 7, 8, -1]),
        np.array([7, 7, 8], np.uint64),
        np.array([7.0, np.nan, np.inf, 7.5, 7.0]),
        np.array(["a", "b", "zebra", ""]),
        np.array([True, False]),
        np.array([b"a", b"\xff"]),
        np.array(["2013-01-01"], "M8[ns]"),
        pa.array([7, None, 8], pa.int16()),
        pa.array([7.0, None, float("nan")]),
        pa.array([None, None]),
        pa.array([], pa.string()),
        pa.chunked_array([], pa.string()),
        pa.array([True, None]),
        pa.array([Decimal("7.00")]),
        pa.array([1], pa.timestamp("ns")),
        pa.array([["a", "zebra", "a"], None, []]),
        pa.array([{"a": 3, "b": None}, None]),
        pa.array([[("a", 2), ("b", -1)], None], pa.map_(pa.string(), pa.int64())),
    ],
    ids=str,
)
def test_every_kind_of_column_equals_its_python_values(column: Any) -> None:
    door = CategoryDoor(CATEGORIES, other="rest", max_per_event=2, max_weight=3, order=secret_order)
    if isinstance(column, np.ndarray):
        values = [None] if column.dtype.kind == "M" else column.tolist()  # a moment is not a label
    elif pa.types.is_map(column.type):
        values = [None if v is None else dict(v) for v in column.to_pylist()]
    elif pa.types.is_timestamp(column.type):
        values = [None]
    else:
        values = column.to_pylist()
    expected = sum((door.totals([[v] if isinstance(v, str) else v], 1) for v in values), np.zeros(6, np.int64))
    assert door.totals(column, 1).tolist() == np.asarray(expected).tolist()


def test_a_slice_is_not_charged_for_the_dictionary_of_the_whole_column() -> None:
    long = pa.array([f"label {i}" for i in range(5000)] + [None]).dictionary_encode()
    fast = coded(long[4999:])
    assert fast is not None
    codes, values = fast
    assert codes.tolist() == [0, -1]
    assert values == ["label 4999"]


def test_order_of_the_steps() -> None:
    door = CategoryDoor(["a", "b"], max_per_event=2, max_weight=2, order=secret_order)
    assert door.row(["a", "a", "a", "b", "zebra", None], 1) == {0: 2, 1: 1}  # merged, then clipped
    assert door.row({"a": 0, "b": -1}, 1) == {}
    assert door.row({"a": math.nan, "b": 1.9}, 1) == {1: 1}
    signed = CategoryDoor(["a", "b"], max_per_event=2, max_weight=2, signed=True, order=secret_order)
    assert signed.row({"a": 5, b"a": -4, "b": -9}, 1) == {0: 1, 1: -2}
    assert signed.row({"7": 1, "a": 1, b"a": -1}, 1) == {}
    narrow = CategoryDoor(["a", "b"], max_per_event=1, order=secret_order)
    assert narrow.row(["zebra", "yak", "b"], 1) == {1: 1}  # undeclared labels go before the cut, not in place of others


def test_the_cut_depends_on_tick_and_content_and_spreads_over_items() -> None:
    names = [f"n{i}" for i in range(4)]
    door = CategoryDoor(names, max_per_event=1, order=secret_order)
    kept = [next(iter(door.row(names, tick))) for tick in range(400)]
    counts = np.bincount(kept, minlength=4)
    assert counts.min() > 55  # mean 100, about 5 standard deviations
    assert door.row(names, 5) == door.row(names[::-1], 5)
    by_content = {next(iter(door.row(["n0", "n1", "n2", f"x{i}"], 5))) for i in range(9)}
    assert len(by_content) == 1  # what is dropped before the cut does not steer it
    weighted = CategoryDoor(names, max_per_event=1, max_weight=20, order=secret_order)
    assert len({next(iter(weighted.row({"n0": w, "n1": 1}, 5))) for w in range(1, 21)}) == 2  # what is counted does


@given(st.lists(junk, max_size=8), st.integers(1, 2**40), st.booleans())
def test_amounts_are_bounded_one_by_one(batch: list[object], max_weight: int, signed: bool) -> None:
    door = AmountDoor(max_weight, signed)
    alone = [door.totals([amount], 1) for amount in batch]
    low = -max_weight if signed else 0
    assert all(low <= amount <= max_weight for amount in alone)
    assert door.totals(batch, 1) == sum(alone)


@given(
    st.lists(st.one_of(st.none(), st.floats(), st.integers(-(2**53), 2**53)), max_size=20),
    st.integers(1, 2**40),
    st.booleans(),
)
def test_amount_columns_equal_their_values(values: list[Any], max_weight: int, signed: bool) -> None:
    door = AmountDoor(max_weight, signed)
    expected = sum(door.totals([v], 1) for v in values)
    arrow = pa.array([None if v is None else float(v) for v in values], pa.float64())
    assert door.totals(arrow, 1) == expected
    assert door.totals(pa.chunked_array([arrow[:3], arrow[3:]]), 1) == expected
    assert door.totals(arrow.to_numpy(zero_copy_only=False), 1) == expected
    whole = [v for v in values if isinstance(v, int)]
    assert (
        door.totals(np.array(whole, np.int64), 1)
        == door.totals(pa.array(whole, pa.int64()), 1)
        == door.totals(whole, 1)
    )


def test_amounts_of_other_machine_types() -> None:
    door = AmountDoor(10)
    assert door.totals(np.array([2**64 - 1, 3], np.uint64), 1) == 13
    assert door.totals(np.array([True, False, True]), 1) == 2
    assert door.totals(pa.array([True, None]), 1) == 1
    assert door.totals(pa.array([2.5, None], pa.float16()), 1) == 2
    assert door.totals(np.array([np.inf, -1.0, 2.5], np.longdouble), 1) == 2
    assert door.totals(pa.array([Decimal("3.7"), None]), 1) == 3
    assert door.totals(pa.array(["3", " 2.9 ", "three", None]), 1) == 5
    assert door.totals(np.array(["3"]), 1) == 3
    assert AmountDoor(2**40).totals(np.full(5, 2**50), 1) == 5 * 2**40


@pytest.mark.parametrize("wrong", [5, "abc", b"abc", {"a": 1}, {"a"}, None, iter([1]), np.zeros((2, 2)), np.int64(3)])
def test_wrong_containers_are_call_mistakes(wrong: object) -> None:
    with pytest.raises(TypeError):
        AmountDoor().totals(wrong, 1)
    with pytest.raises(TypeError):
        CategoryDoor(["a"], order=secret_order).totals(wrong, 1)


@pytest.mark.parametrize(
    "parameters",
    [
        {"categories": []},
        {"categories": "abc"},
        {"categories": ["a", "a"]},
        {"categories": ["é", "e\u0301"]},
        {"categories": [7, "7"]},
        {"categories": ["a", None]},
        {"categories": ["a"], "other": "a"},
        {"categories": ["a"], "max_per_event": 0},
        {"categories": ["a"], "max_weight": 1.5},
        {"categories": ["a"], "max_weight": True},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        CategoryDoor(**parameters, order=secret_order)


def test_a_map_with_a_repeated_key_is_read_in_silence(recwarn):
    import pyarrow as pa

    from evertally.encode.labels import as_list

    column = pa.array([[("a secret", 1), ("a secret", 2)], [("b", 3)], None], type=pa.map_(pa.string(), pa.int64()))
    assert as_list(column) == [{"a secret": 2}, {"b": 3}, None]
    assert not recwarn.list, "a warning would quote the key"
