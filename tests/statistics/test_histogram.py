"""The histogram over known categories: labels, `other`, zeros, order, truncation, and what one event can move."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise


def histogram(**options: Any) -> et.Histogram:
    common: dict[str, Any] = {"categories": ["b", "a", "c"], "guarantee": et.PureDP(1.0), "horizon": 10}
    return et.Histogram(**(common | {"key": ZeroNoise()} | options))


def test_every_category_is_there_at_every_tick_in_the_declared_order() -> None:
    for key in (ZeroNoise(), et.simulation(1)):
        h = histogram(key=key, other="rest")
        for tick in ({}, {"c": 1}, {"zebra": 2, "a": 1}, [0, 0, 0, 5]):
            release = h.step(tick)
            assert list(release.value) == ["b", "a", "c", "rest"]
            assert all(type(v) is int for v in release.value.values())
            low, high = release.interval()
            assert list(low) == list(high) == list(release.value)
            assert all(low[k] <= release.value[k] <= high[k] for k in low)
    assert h.columns == h.categories == ("b", "a", "c", "rest")


def test_zero_categories_carry_noise_like_any_other() -> None:
    h = et.Histogram(categories=range(500), guarantee=et.PureDP(1.0), horizon=4, key=et.simulation(3))
    values = np.array(list(h.step({"0": 10}).value.values()))
    assert np.count_nonzero(values[1:]) > 290  # 377 expected, deviation 10


@pytest.mark.parametrize(
    ("tick", "counts"),
    [
        ({}, [0, 0, 0, 0]),
        ({"a": 3}, [0, 3, 0, 0]),
        ({"a": 3, "zebra": 2, "yak": 4}, [0, 3, 0, 6]),
        ({"a": 3, "zebra": -2}, [0, 3, 0, 0]),
        ({None: 5, "c": 1}, [0, 0, 1, 0]),
        ({"a": -3}, [0, 0, 0, 0]),
        ({"a": 10**40, "b": True}, [1, 2**61 // 10, 0, 0]),
        ({"a": 2**63, "b": -1}, [0, 2**61 // 10, 0, 0]),
        ([1, 2, 3, 4], [1, 2, 3, 4]),
        (np.array([1, 2, 3, 4], dtype=np.uint8), [1, 2, 3, 4]),
    ],
    ids=repr,
)
def test_totals_by_label(tick: Any, counts: list[int]) -> None:
    assert list(histogram(other="rest").step(tick).value.values()) == counts
    if isinstance(tick, dict):
        assert list(histogram().step(tick).value.values()) == counts[:3], "without `other`: dropped silently"


def test_labels_in_several_spellings_are_one_label() -> None:
    h = histogram(categories=["caf\u00e9", "7"], other="rest")
    assert h.step({"cafe\u0301": 2, "caf\u00e9": 3, 7: 1, "7": 1, "Cafe": 1}).value == {
        "caf\u00e9": 5,
        "7": 2,
        "rest": 1,
    }
    assert h.step_events(["cafe\u0301", 7, np.int64(7), b"7"]).value == {"caf\u00e9": 6, "7": 5, "rest": 1}


@pytest.mark.parametrize(
    "categories", ["abc", 5, [], ["a", "a"], [None], ["a", 1.5], ["caf\u00e9", "cafe\u0301"]], ids=repr
)
def test_bad_categories_are_refused(categories: Any) -> None:
    with pytest.raises(ConfigurationError):
        histogram(categories=categories)


def test_noise_goes_with_the_label_list() -> None:
    """Another order of labels is another histogram: nothing may be compared across."""
    paths = []
    for order in permutations(["a", "b", "c"]):
        h = histogram(categories=list(order), key=et.simulation(5))
        paths.append(tuple(h.run(np.zeros((10, 3), dtype=int)).ravel().tolist()))
    assert len(set(paths)) == 6


def test_rows_dicts_and_events_agree() -> None:
    events = [["a", "b", "a"], [], ["c", "zebra", None, "b"]]
    tables = []
    for feed in (
        lambda h, e: h.step_events(e),
        lambda h, e: h.step_events(np.array(e, dtype=object)),
        lambda h, e: h.step_events(pa.array(e, type=pa.string())),
        lambda h, e: h.step({label: e.count(label) for label in ("a", "b", "c", "zebra")}),
        lambda h, e: h.step([e.count(label) for label in ("b", "a", "c", "zebra")]),
    ):
        h = histogram(other="rest", key=et.simulation(7))
        tables.append([tuple(feed(h, e).value.items()) for e in events])
        tables[-1].append(h.snapshot())
    assert all(table == tables[0] for table in tables)


# -- what one event can move -------------------------------------------------------------------------------------------

Event = st.lists(st.sampled_from(["a", "b", "c", "d", "zebra", "yak"]), max_size=6)


def rows(ticks: list[list[Any]], **options: Any) -> np.ndarray:
    h = histogram(categories=["a", "b", "c", "d"], other="rest", **options)
    sums = [list(h.step_events(tick).value.values()) for tick in ticks]
    return np.diff(np.array([[0] * 5, *sums]), axis=0)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(st.lists(Event, max_size=4), min_size=1, max_size=4), st.integers(1, 3), st.data())
def test_removing_or_replacing_an_event_moves_what_is_charged(ticks: Any, b: int, data: st.DataObject) -> None:
    t = data.draw(st.integers(0, len(ticks) - 1))
    if not ticks[t]:
        return
    i = data.draw(st.integers(0, len(ticks[t]) - 1))
    base = rows(ticks, max_per_event=b)
    removed = [list(tick) for tick in ticks]
    del removed[t][i]
    difference = base - rows(removed, max_per_event=b)
    charge = histogram(categories=["a", "b", "c", "d"], other="rest", max_per_event=b).sensitivity
    assert np.count_nonzero(difference.any(axis=1)) <= 1, "one event, one tick"
    assert np.abs(difference).sum() <= charge.l1 == b
    assert (difference**2).sum() <= charge.l2_squared
    replaced = [list(tick) for tick in ticks]
    replaced[t][i] = data.draw(Event)
    difference = base - rows(replaced, max_per_event=b)
    charge = histogram(categories=["a", "b", "c", "d"], other="rest", max_per_event=b, neighbours="replace").sensitivity
    assert np.abs(difference).sum() <= charge.l1 == min(2 * b, 5)
    assert (difference**2).sum() <= charge.l2_squared


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(Event, min_size=1, max_size=4), st.integers(1, 3), st.data())
def test_removing_one_item_of_a_cut_event_moves_what_is_charged(events: Any, b: int, data: st.DataObject) -> None:
    j = data.draw(st.integers(0, len(events) - 1))
    if not events[j]:
        return
    removed = [list(event) for event in events]
    del removed[j][data.draw(st.integers(0, len(events[j]) - 1))]
    options: dict[str, Any] = {"max_per_event": b, "protects": "item"}
    difference = rows([events], **options) - rows([removed], **options)
    charge = histogram(categories=["a", "b", "c", "d"], other="rest", **options).sensitivity
    assert np.abs(difference).sum() <= charge.l1
    assert (difference**2).sum() <= charge.l2_squared == 2


def test_truncation_is_secret_fixed_and_blind_to_order() -> None:
    event = ["a", "b", "c", "d"]
    kept = set()
    for seed in range(20):
        h = histogram(categories=event, key=et.simulation(seed), max_per_event=1, guarantee=et.PureDP(9.0))
        rows_ = {tuple(h._door.categories.row(list(order), 1)) for order in permutations(event)}
        assert len(rows_) == 1, "the order inside of an event must not matter"
        kept |= rows_
        assert len({tuple(h._door.categories.row(event, tick)) for tick in range(1, 40)}) > 1, "the tick salts the cut"
    assert len(kept) > 1, "the cut depends on the key"


# -- accuracy ----------------------------------------------------------------------------------------------------------


def test_error_bound_covers_all_categories_at_once() -> None:
    """300 runs, beta = 0.2: Binomial(300, 0.2) above its mean by six deviations has probability below 1e-6."""
    beta, count = 0.2, 300
    failures = 0
    for seed in range(count):
        h = histogram(guarantee=et.ZCDP(0.5), key=et.simulation(seed))
        failures += bool(np.any(np.abs(h.run(np.zeros((10, 3), dtype=int))) > h.error_bound(beta)))
    assert failures <= beta * count + 6 * math.sqrt(count * beta * (1 - beta))
    one = histogram(categories=["a"], guarantee=et.ZCDP(0.05))
    assert histogram(guarantee=et.ZCDP(0.05)).error_bound(beta) > one.error_bound(beta)


def test_full_run_is_one_line_for_each_label() -> None:
    table = histogram(other="rest", key=et.simulation(1)).run([[1, 2, 3, 4]] * 3, full=True)
    assert table.column_names == ["tick", "column", "value", "lower", "upper"]
    assert table["column"].to_pylist() == ["b", "a", "c", "rest"] * 3
    assert table["tick"].to_pylist() == [1] * 4 + [2] * 4 + [3] * 4


def test_snapshot_keeps_labels_and_other() -> None:
    h = histogram(other="rest", key=et.simulation(4), max_window=2)
    h.step({"a": 1})
    again = et.restore(h.snapshot(), key=et.simulation(4))
    assert isinstance(again, et.Histogram)
    assert again.categories == h.categories
    assert again.step({"zebra": 3}).value == h.step({"zebra": 3}).value
    assert again.last(2).value == h.last(2).value
