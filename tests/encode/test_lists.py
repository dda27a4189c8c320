"""Long lists of Python's own are read in a few calls, and count what they count when each event is looked at."""

from __future__ import annotations

import sys
from collections import Counter
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.encode import CategoryDoor, ItemDoor
from evertally.encode.bags import whole_weights
from evertally.encode.labels import coded
from evertally.encode.lists import encoded, small_numbers
from evertally.encode.plain import pairs, whole


def order(message: bytes) -> bytes:
    return blake2b(message, key=b"lists", digest_size=16).digest()


class Text(str):
    """Says that it is short, and like every other text."""

    def __len__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7

    __str__ = __repr__ = lambda self: "somebody else"


class Number(int):
    def __index__(self) -> int:
        return 1

    __int__ = __index__


class Index:
    def __index__(self) -> int:
        raise AssertionError("no method of an object is called")

    __len__ = __str__ = __hash__ = __index__  # type: ignore[assignment]


ASCII = st.sampled_from(["", "a", "b", "fig", "pear", "7", "-0", "true", " a", "x" * 1025])
ANY_TEXT = st.sampled_from(
    ["caf\u00e9", "cafe\u0301", "\ud83d", "\ud83d\ude00", "\U0001f600", "a\x1fb", "\x1f", "\x00", "\ufeffa"]
)
ANY_NUMBER = st.sampled_from([7, 0, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63, 10**400])
ODDS: list[Any] = [True, False, None, 7.0, float("nan"), float("inf"), b"a", b"\xff", bytearray(b"a"), Text("fig")]
ODDS += [np.array([1], "<i4"), Number(7), np.str_("fig"), np.int64(7), np.float64(7), 2 + 0j, ..., ("a",), ["a"]]
ODDS += [[["a"]], {"a": 1}, Index(), str]
ODD = st.integers(0, len(ODDS) - 1).map(ODDS.__getitem__)  # not sampled from, which asks some of them for a hash
LABEL = st.one_of(ASCII, ASCII, ANY_TEXT, ANY_NUMBER, ODD)
KEY = st.one_of(ASCII, ANY_TEXT, ANY_NUMBER, st.sampled_from([None, 7.0, b"a", Number(7), np.str_("fig")]))
# One kind of events, of labels that are alike but for one: otherwise hardly a column would be all of one kind.
LIKE = st.sampled_from([ASCII, st.one_of(ASCII, ANY_TEXT), st.integers(-9, 9), ANY_NUMBER, LABEL])
WEIGHTS = st.sampled_from([st.integers(-2, 5), st.one_of(ANY_NUMBER, ODD)])


@st.composite
def columns(draw: Any) -> list[Any]:
    label, weight = draw(LIKE), draw(WEIGHTS)
    keys = st.one_of(ASCII, st.integers(-9, 9)) if label is LABEL else label
    kinds = {
        "labels": label,
        "lists": st.lists(label, max_size=6),
        "tuples": st.lists(label, max_size=6).map(tuple),
        "mappings": st.dictionaries(keys, weight, max_size=6),
    }
    kind = draw(st.sampled_from([*kinds]))
    events = draw(st.lists(kinds[kind], min_size=1, max_size=12))
    if draw(st.booleans()):  # one that is not like the others
        events.append(draw(st.one_of(LABEL, st.lists(LABEL, max_size=3), st.dictionaries(KEY, weight, max_size=3))))
    return (events * (512 // len(events) + 1))[: draw(st.sampled_from([8, 520]))]


@settings(max_examples=40, deadline=None)
@given(columns(), st.sampled_from([(1, 1), (2, 3), (9, 2)]))
def test_columns_count_what_their_events_count(events: list[Any], bounds: tuple[int, int]) -> None:
    items = ItemDoor(*bounds, order=order)
    assert items.totals(events, 3).mapping() == dict(added_up(items, events))
    for other in (None, "rest"):
        door = CategoryDoor(["a", "fig", "caf\u00e9", 7, "true"], other, *bounds, order=order)
        row = added_up(door, events)
        assert door.totals(events, 3).tolist() == [row[i] for i in range(door.width)]


def added_up(door: Any, events: list[Any]) -> Counter[Any]:
    """The rows of all events, each looked at by itself."""
    rows = {id(event): door.row(event, 3) for event in {id(event): event for event in events}.values()}
    total = Counter[Any]()
    for event in events:
        total.update(rows[id(event)])
    return total


@pytest.mark.parametrize(
    "odd", ["a\x1fb", "\ud83d", None, b"a", 7, True, Index(), Text("b")], ids=lambda odd: type(odd).__name__
)
def test_one_odd_entry_in_a_long_list(odd: Any) -> None:
    found = encoded(["a", "b"] * 200 + [odd])
    assert found is None or type(odd) is Text  # which is a text, by what it holds
    if found is not None:
        assert found[1].to_pylist() == ["a", "b"]
        assert found[0][-1] == 1


def test_numbers_are_taken_by_their_exact_type() -> None:
    assert small_numbers([3, -(2**31)]).tolist() == [3, -(2**31)]  # type: ignore[union-attr]
    for odd in (True, 2.0, 2**31, Number(2), np.int32(2), bytearray(b"i\0\0\0\0"), None, "i", [2], Index()):
        assert small_numbers([1, odd, 1]) is None
        if not isinstance(odd, list | bytearray | Index):
            assert whole_weights([1, odd, 1]).tolist() == [1, whole(odd, 2**62), 1]


def test_without_arrow_lists_are_read_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert encoded(["a"] * 300) is None
    codes, values = coded(["a", "b"] * 200)  # type: ignore[misc]
    assert values == ["a", "b"]
    assert codes[:2].tolist() == [0, 1]


def test_an_array_of_labels_counts_as_a_list_of_them() -> None:
    assert pairs(np.array(["a", "b"])) == pairs(["a", "b"]) == [("a", 1), ("b", 1)]
