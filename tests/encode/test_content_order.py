"""The order by content: a function of what cells mean, the same for whoever wrote them how."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import any_arrow
from evertally.encode.content_kernels import digests_of_rows, digests_of_texts
from evertally.encode.content_order import content_keys, content_order, order_key, sorted_places, user_buckets
from evertally.encode.labels import as_list, canonical
from evertally.encode.siphash import siphash
from evertally.encode.spelled import Named, Spelled, places
from evertally.encode.texts import Texts
from evertally.noise import Key

KEY = b"sixteen bytes..."
USES = ("labels", "items", "names", "users", "amounts")
MANY = 300  # rows; from 256 on whole columns are read at once

words = st.one_of(st.text(max_size=12), st.sampled_from(["7", "north", "cafe\u0301", "caf\u00e9", "true", ""]))
cells = st.one_of(st.none(), words, st.integers(-(2**40), 2**40))


def repeated(column: list[Any]) -> list[Any]:
    return (column * (MANY // len(column) + 1))[: max(MANY, len(column))]


def keys(column: Any, use: str) -> list[list[int]]:
    return [list(map(int, row)) for row in content_keys([(column, use)], KEY)]


@pytest.mark.parametrize("count", [0, 1, 100, MANY])
def test_hashes_of_many_are_those_of_the_definition(count: int) -> None:
    draws = random.Random(count)
    names = [draws.randbytes(draws.randrange(40)) for _ in range(count)]
    found = digests_of_texts(Texts.of_bytes(names), KEY)
    assert [found[:, i].tobytes() for i in range(count)] == [siphash(KEY, name, 16) for name in names]
    rows = np.random.default_rng(count).integers(0, 2**64, (5, count), np.uint64)
    found = digests_of_rows(rows, KEY)
    assert [found[:, i].tobytes() for i in range(count)] == [
        siphash(KEY, rows[:, i].tobytes(), 16) for i in range(count)
    ]


def test_a_long_text_and_one_at_the_end_of_its_memory_hash_as_defined() -> None:
    names = [b"x" * 100_000, b"", b"12345678", b"1234567"]
    found = digests_of_texts(Texts.of_bytes(names), KEY)
    assert [found[:, i].tobytes() for i in range(4)] == [siphash(KEY, name, 16) for name in names]


def forms(column: list[Any]) -> list[Any]:
    """The same labels as objects, texts, bytes, coded, and as the doors keep them."""
    names = [canonical(cell) for cell in column]
    here = np.array([name is not None for name in names], np.bool_)
    texts = Texts.of([name for name in names if name is not None])
    found = [column, np.fromiter(column, object, len(column)), names]
    found += [Named(texts, places(here)), Spelled(places(here), texts)]
    try:
        arrow = pa.array(names, pa.string())
        found += [arrow, pa.array(names, pa.large_string()), arrow.dictionary_encode(), arrow.cast(pa.binary())]
        found += [pa.chunked_array([arrow[:2], arrow[2:]]), pa.concat_arrays([arrow[:1], arrow])[1:]]
    except UnicodeEncodeError:  # half a surrogate pair
        pass
    return found


@given(st.lists(cells, min_size=1, max_size=8), st.booleans(), st.sampled_from(["labels", "items", "names", "users"]))
@settings(deadline=None)
def test_a_label_has_one_key_and_one_bucket_in_all_forms(column: list[Any], many: bool, use: str) -> None:
    column = repeated(column) if many else column
    for other in forms(column):
        assert keys(other, use) == keys(column, use)
        assert user_buckets(other, KEY, 7).tolist() == user_buckets(column, KEY, 7).tolist()
    names = [canonical(cell) for cell in column]
    by_key = dict(zip(map(tuple, keys(column, use)), names, strict=True))
    assert len(by_key) == len(set(names)), "different labels have different keys"
    assert [bucket < 0 for bucket in user_buckets(column, KEY, 7)] == [name is None for name in names]


@pytest.mark.parametrize("times", [1, 100])
def test_whole_numbers_are_the_labels_that_they_write(times: int) -> None:
    numbers = np.array([7, 0, -12] * times)
    for kind in (np.int8, np.int32, np.int64, np.float32, np.float64, object):
        assert keys(numbers.astype(kind), "names") == keys([str(number) for number in numbers], "names")
    as_arrow = pa.array(numbers)
    for arrow in (as_arrow, as_arrow.cast(pa.float64()), as_arrow.cast(pa.decimal128(21, 2)), as_arrow.cast(pa.int8())):
        assert keys(arrow, "users") == keys(numbers, "users")


@pytest.mark.parametrize("times", [1, 100])
def test_an_amount_has_one_key_in_all_forms(times: int) -> None:
    numbers = [3, 0, -2, 2**20] * times
    expected = keys(numbers, "amounts")
    for kind in (np.int32, np.int64, np.float32, np.float64, object):
        assert keys(np.array(numbers, kind), "amounts") == expected
    for column in ([str(number) for number in numbers], pa.array(numbers), pa.array(numbers, pa.float32())):
        assert keys(column, "amounts") == expected
    assert keys([0.0, None], "amounts") == keys([-0.0, float("nan")], "amounts")
    assert len({*map(tuple, keys([0.0, None, 0.5, float("inf")], "amounts"))}) == 4


entries = st.one_of(cells, st.lists(cells, max_size=4), st.dictionaries(words, st.integers(-3, 3), max_size=4))


@given(st.lists(entries, min_size=1, max_size=6), st.booleans(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_collections_are_hashed_as_what_they_hold(column: list[Any], many: bool, draws: random.Random) -> None:
    column = repeated(column) if many else column

    def otherwise(cell: Any) -> Any:
        if isinstance(cell, dict):
            items = [(canonical(label), float(weight)) for label, weight in cell.items()]
            return dict(draws.sample(items, len(items))) if len({label for label, _ in items}) == len(items) else cell
        if isinstance(cell, list):
            return draws.choice([tuple, list])(draws.sample([canonical(label) for label in cell], len(cell)))
        return draws.choice([[cell], canonical(cell)])

    for use in ("labels", "items"):
        assert keys(np.fromiter(map(otherwise, column), object, len(column)), use) == keys(column, use)


def test_lists_and_maps_of_arrow_are_those_of_python() -> None:
    lists = [["fig", "pear"], None, [], ["7", "7"], ["fig"]] * 2
    expected = keys(lists, "labels")
    kinds = pa.list_(pa.string()), pa.large_list(pa.large_binary()), pa.list_(pa.dictionary(pa.int32(), pa.string()))
    for kind in kinds:
        assert keys(pa.array(lists, kind), "labels") == expected
    two = pa.chunked_array([pa.array(lists[:3]), pa.array(lists[3:])])
    assert keys(two, "labels") == expected
    assert expected[1] == expected[2] == keys([None], "labels")[0]
    assert expected[4] == keys(["fig"], "labels")[0] == keys([{"fig": 1}], "labels")[0] != expected[0] != expected[3]
    maps: list[dict[str, Any]] = [{"fig": 2, "pear": 1}, {}, {"fig": 2}, {"fig": 0.5}]
    assert keys(pa.array([list(each.items()) for each in maps], pa.map_(pa.string(), pa.float64())), "items") == keys(
        maps, "items"
    )
    assert len({*map(tuple, keys([*maps, {"fig": 3}, {"fig": 2**60}, {"fig": 2**60 + 1}], "items"))}) == 7


def test_weights_that_count_nothing_leave_no_trace() -> None:
    for nothing in ({"fig": 0}, {"fig": None}, {"fig": "heavy"}, {None: 3}, [None, 3.5], object(), [["fig"]]):
        assert keys([nothing], "labels") == keys([None], "labels")


@pytest.mark.parametrize("seed", range(300))
def test_any_column_of_arrow_is_hashed_as_its_cells_are(seed: int) -> None:
    draws = random.Random(seed)
    column = any_arrow.column(draws, draws.choice((0, 1, 7, MANY)))
    # An interval is no label; as an object of Python it would be a tuple of numbers.
    as_cells = [None] * len(column) if pa.types.is_interval(column.type) else as_list(column)
    for use in USES:
        assert keys(column, use) == keys(as_cells, use)


def test_equal_columns_of_other_uses_or_keys_have_other_keys() -> None:
    rows = [(["ann", "7"], "users"), (["fig", "8"], "items")]
    found = content_keys(rows, KEY)
    assert not (content_keys(rows[::-1], KEY) == found).any()
    assert not (content_keys(rows, bytes(16)) == found).any()
    assert (user_buckets(["ann"] * 9, KEY, 10**6) == user_buckets(["ann"], KEY, 10**6)).all()
    assert user_buckets(["ann"], KEY, 10**6) != user_buckets(["ann"], bytes(16), 10**6)


@given(st.lists(st.tuples(cells, cells, st.floats()), min_size=1, max_size=20), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_does_not_know_how_rows_came(rows: list[tuple[Any, ...]], draws: random.Random) -> None:
    def ordered(some: list[tuple[Any, ...]]) -> list[list[int]]:
        columns = list(zip(map(list, zip(*some, strict=True)), ("users", "labels", "amounts"), strict=True))
        order = content_order(columns, KEY)
        assert sorted(order.tolist()) == list(range(len(some)))
        return [list(map(int, row)) for row in content_keys(columns, KEY)[order]]

    assert ordered(draws.sample(rows, len(rows))) == ordered(rows) == sorted(ordered(rows))


def test_keys_that_agree_in_many_bits_are_sorted_by_the_others() -> None:
    draws = np.random.default_rng(3)
    found = draws.integers(0, 5, (1000, 2)).astype(np.uint64) + np.uint64(2**63)
    order = sorted_places(found)
    assert found[order].tolist() == sorted(found.tolist())
    assert sorted(order.tolist()) == list(range(1000))


def test_users_are_spread_over_buckets() -> None:
    found = user_buckets(np.arange(20_000), KEY, 8)
    assert np.bincount(found, minlength=8).min() > 2_200  # 2,500 each, with a standard deviation of 47
    assert found.dtype == np.int32


def test_what_is_no_key_no_count_or_no_column_of_users_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        content_keys([(["a"], "labels")], b"short")
    with pytest.raises(ValueError, match="without columns"):
        content_keys([], KEY)
    with pytest.raises(ValueError, match="one length"):
        content_keys([(["a"], "labels"), ([], "users")], KEY)
    with pytest.raises(ValueError, match="buckets"):
        user_buckets(["ann"], KEY, 0)
    with pytest.raises(TypeError, match="one user per event"):
        user_buckets(pa.array([["ann", "bob"]]), KEY, 8)


def test_the_order_of_streams_that_run_stays_what_it_is() -> None:
    rows = [
        (["ann", None], "users"),
        ([["fig", 7], {"fig": 2.5}], "items"),
        (["north", 3.5], "names"),
        ([2, None], "amounts"),
    ]
    assert content_keys(rows, KEY).tobytes().hex() == FROZEN
    assert user_buckets(["ann", 7], KEY, 1000).tolist() == BUCKETS


FROZEN = "710929d445693eec2c8d8c94cc70d32d6e74ff2490b5c14cac81a8a5b854e36f"
BUCKETS = [3, 328]


def test_the_key_of_an_order_follows_from_that_of_the_stream() -> None:
    key = Key.generate()
    assert order_key(key) == key.mac("content order", b"")[:16]
