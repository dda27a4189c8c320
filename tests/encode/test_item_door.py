"""The door of an unknown domain: a sum of bounded functions of single events, on the fast and on the slow path."""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.encode import ItemDoor, ItemTotals
from evertally.encode.texts import LONGEST_LABEL, Texts
from evertally.errors import ConfigurationError


def secret_order(message: bytes) -> bytes:
    return blake2b(message, key=b"only for tests", digest_size=16).digest()


class Hostile:
    """A record that misbehaves whenever it is touched."""

    def _refuse(self, *_: object) -> Any:
        raise RuntimeError("secret content")

    __hash__ = __eq__ = __str__ = __iter__ = __len__ = __index__ = __float__ = __lt__ = __ge__ = _refuse


def door(max_per_event: int = 2, max_weight: int = 1) -> ItemDoor:
    return ItemDoor(max_per_event, max_weight, order=secret_order)


def totals(of: ItemDoor, events: Any, tick: int = 1) -> dict[str, int]:
    found = of.totals(events, tick)
    assert found.counts.dtype == np.int64
    assert (found.counts > 0).all()
    assert len(set(found.labels.list())) == len(found.labels)
    return found.mapping()


def added(parts: list[dict[str, int]]) -> dict[str, int]:
    return {label: sum(part.get(label, 0) for part in parts) for part in parts for label in part}


texts = st.sampled_from(["a", "b", "c", "7", "é", "e\u0301", "\u212a", "K", "", "x" * 1025, "\u65e5\u672c"])
labels = st.one_of(texts, st.sampled_from([7, 7.0, True, b"a", b"\xff", "\ud800", np.int8(3)]))
junk = st.one_of(st.none(), st.floats(), st.complex_numbers(), st.builds(Hostile), st.just(10**5000))
events = st.one_of(
    labels,
    junk,
    st.lists(st.one_of(labels, junk), max_size=6),
    st.lists(labels, max_size=6).map(tuple),
    st.sets(texts, max_size=5),
    st.dictionaries(labels, st.one_of(st.integers(-2, 9), junk), max_size=6),
    st.lists(st.lists(labels, max_size=2), max_size=2),
)
doors = st.builds(door, st.integers(1, 4), st.integers(1, 4))


@given(doors, st.lists(events, max_size=6), st.integers(1, 10**9))
def test_totals_are_the_sum_of_the_events_own_bounded_parts(of: ItemDoor, batch: list[object], tick: int) -> None:
    alone = [totals(of, [event], tick) for event in batch]
    for part in alone:
        assert len(part) <= of.max_per_event
        assert all(1 <= weight <= of.max_weight for weight in part.values())
    assert totals(of, batch, tick) == added(alone)


@given(doors, st.lists(events, min_size=1, max_size=6), st.data())
def test_removing_or_moving_an_event_leaves_the_others_alone(
    of: ItemDoor, batch: list[object], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(batch) - 1))
    rest = batch[:index] + batch[index + 1 :]
    assert totals(of, batch) == added([totals(of, rest), totals(of, [batch[index]])])
    assert totals(of, data.draw(st.permutations(batch))) == totals(of, batch)


lists = st.lists(st.one_of(st.none(), st.lists(st.one_of(st.none(), texts), max_size=6)), max_size=12)


@given(doors, lists, st.integers(0, 12))
def test_columns_of_lists_equal_their_events_one_by_one(of: ItemDoor, column: list[Any], cut: int) -> None:
    expected = of._one_by_one(list(column), 1).mapping()
    plain = pa.array(column, pa.list_(pa.string()))
    words = pa.array([None if e is None else [w if w is None else w.encode() for w in e] for e in column])
    forms = [
        column,
        [e for e in column if e is not None],
        plain,
        plain.cast(pa.large_list(pa.large_string())),
        pa.chunked_array([plain[:cut], plain[cut:]]),
        pa.chunked_array([], pa.list_(pa.string())) if not column else plain,
        pa.concat_arrays([pa.array([["before"]], plain.type), plain])[1:],
        pa.ListArray.from_arrays(
            plain.offsets, plain.values.dictionary_encode(), mask=pa.array([e is None for e in column], pa.bool_())
        ),
        words if pa.types.is_list(words.type) and pa.types.is_binary(words.type.value_type) else plain,
    ]
    for form in forms:
        assert totals(of, form) == expected


@given(doors, st.lists(st.one_of(st.none(), texts), max_size=20))
def test_columns_of_labels_equal_their_events_one_by_one(of: ItemDoor, column: list[Any]) -> None:
    expected = of._one_by_one(list(column), 1).mapping()
    plain = pa.array(column, pa.string())
    halves = [plain[:5].dictionary_encode(), plain[5:].dictionary_encode()]
    for form in (
        column,
        tuple(column),
        np.array(column, object),
        plain,
        plain.cast(pa.large_string()),
        plain.cast(pa.binary()),
        plain.dictionary_encode(),
        pa.chunked_array([plain, plain[:0]]),
        pa.chunked_array(halves),
    ):
        assert totals(of, form) == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([7, None, 8, 7], pa.int16()), {"7": 2, "8": 1}),
        (pa.array([2**63, 1], pa.uint64()), {str(2**63): 1, "1": 1}),
        (pa.array([7.0, None, math.nan, 7.5]), {"7": 1}),
        (pa.array([True, None]), {"true": 1}),
        (pa.array([None, None]), {}),
        (pa.array([], pa.string()), {}),
        (pa.chunked_array([], pa.string()), {}),
        (pa.array([1], pa.timestamp("ns")), {}),
        (pa.array([[1, 2, 2], None, []]), {"1": 1, "2": 1}),
        (pa.array([[1, 2], None, [3, None]], pa.list_(pa.int64(), 2)), {"1": 1, "2": 1, "3": 1}),
        (pa.array([[["a"], ["b"]]]), {}),
        (pa.array([{"a": 3, "b": None}, None]), {"a": 1}),
        (pa.array([[("a", 2), ("b", -1)], None], pa.map_(pa.string(), pa.int64())), {"a": 1}),
        (np.array([7, 7, -1]), {"7": 2, "-1": 1}),
        (np.array(["a", "é", ""]), {"a": 1, "é": 1, "": 1}),
        ([{"a": 3}, "a", ["a", "b"], ("b",), {"c"}, frozenset("c"), None], {"a": 3, "b": 2, "c": 2}),
    ],
    ids=str,
)
def test_every_kind_of_column(column: Any, expected: dict[str, int]) -> None:
    assert totals(door(), column) == expected


def test_a_dictionary_with_repeated_values_and_nulls_names_each_item_once() -> None:
    codes, words = pa.array([0, 1, 2, 3, None, 1], pa.int8()), pa.array(["a", "a", "b", None])
    column = pa.DictionaryArray.from_arrays(codes, words)
    assert totals(door(), column) == {"a": 3, "b": 1}
    events = pa.ListArray.from_arrays(pa.array([0, 2, 4, 6], pa.int32()), column)
    assert totals(door(), events) == {"a": 2, "b": 1}  # two copies of an item count once


def test_what_lies_under_a_null_event_is_not_counted() -> None:
    values = pa.array(["a", "b", "c"])
    column = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), values, mask=pa.array([False, True, False]))
    assert column[1].as_py() is None
    assert totals(door(), column) == {"a": 1, "c": 1}


def test_order_of_the_steps() -> None:
    of = door(max_per_event=2, max_weight=2)
    assert of.row(["a", "a", "a", "b", None], 1) == {"a": 2, "b": 1}  # merged, then clipped
    assert of.row({"a": 0, "b": -1, "c": math.nan}, 1) == {}
    # What weighs nothing is dropped before the cut, and takes nobody's place.
    assert of.row({"z1": 0, "z2": -5, "z3": None, "a": 1, "b": 9}, 1) == {"a": 1, "b": 2}
    # Two spellings are one item before anything is cut or clipped.
    assert of.row(["é", "e\u0301", "a"], 1) == {"é": 2, "a": 1}
    assert of.row(["\u212a", "K", 7, "7", b"7"], 1) == {"K": 2, "7": 2}


def test_what_is_cut_away_leaves_no_trace() -> None:
    of = door(max_per_event=1)
    for column in ([["a", "b", "c"]], pa.array([["a", "b", "c"]]), [{"a": 1, "b": 1, "c": 1}]):
        found = of.totals(column, 3)
        assert len(found.labels) == 1
        assert found.labels.data.size == 1
    kept = [next(iter(totals(of, [["a", "b", "c"]], tick))) for tick in range(300)]
    assert min(kept.count(label) for label in "abc") > 50  # mean 100, six standard deviations


def test_the_cut_is_a_function_of_tick_and_content_alone() -> None:
    of, event = door(max_per_event=2), ["n0", "n1", "n2", "n3"]
    alone = totals(of, [event], 5)
    for order in (event, event[::-1], event * 3, set(event), dict.fromkeys(event, 1)):
        assert totals(of, [order], 5) == alone
    crowd = [["n0"], event, ["n1", "n9"], "n2"] * 20
    without = [other for other in crowd if other is not event]
    both = totals(of, pa.array([[e] if isinstance(e, str) else e for e in crowd]), 5)
    assert both == added([totals(of, without, 5)] + [alone] * 20)


def test_labels_have_a_longest_length_in_bytes() -> None:
    fits, longer = "é" * (LONGEST_LABEL // 2), "é" * (LONGEST_LABEL // 2) + "x"
    for column in ([fits, longer], pa.array([fits, longer]), [[fits, longer]], pa.array([[fits, longer]])):
        assert totals(door(), column) == {fits: 1}


def test_totals_are_not_shown() -> None:
    found = door().totals(["a secret"], 1)
    for text in (repr(found), str(found), repr(found.labels), repr(door())):
        assert "secret" not in text
        assert "1" not in text.partition(" at 0x")[0]


def test_huge_totals_fit() -> None:
    heavy = ItemDoor(1, 2**40, order=secret_order)
    assert totals(heavy, [{"a": 10**30}] * 3) == {"a": 3 * 2**40}
    assert ItemTotals.of({"a": 10**30}).counts.tolist() == [2**62]


@given(st.lists(st.text(max_size=5), max_size=12), st.data())
def test_packed_texts(words: list[str], data: st.DataObject) -> None:
    packed = Texts.of(words)
    assert len(packed) == len(words)
    assert packed.list() == words
    assert [packed[i] for i in range(len(words))] == words
    chosen = data.draw(st.lists(st.integers(0, len(words) - 1), max_size=8)) if words else []
    part = packed.take(np.array(chosen, dtype=np.int64))
    assert part.list() == [words[i] for i in chosen]
    assert part.lengths.tolist() == [len(words[i].encode("utf-8", "surrogatepass")) for i in chosen]


@pytest.mark.parametrize("wrong", [5, "abc", b"abc", {"a": 1}, {"a"}, None, iter([1]), np.zeros((2, 2))])
def test_wrong_containers_are_call_mistakes(wrong: object) -> None:
    with pytest.raises(TypeError):
        door().totals(wrong, 1)


@pytest.mark.parametrize("options", [{"max_per_event": 0}, {"max_weight": 1.5}, {"max_weight": True}], ids=str)
def test_bad_parameters_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ItemDoor(**options, order=secret_order)
