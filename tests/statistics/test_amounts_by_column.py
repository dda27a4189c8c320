"""`Histogram` and `VectorCounter` with a resolution: amounts with fractions by category, rounded without a bias."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise

COMMON: dict[str, Any] = {"categories": ["a", "b", "c"], "guarantee": et.ZCDP(0.5), "horizon": 9}


def exact(**options: Any) -> et.Histogram:
    """Without noise; coins are there, all of the same value."""
    return et.Histogram(**(COMMON | {"key": ZeroNoise(), "max_weight": 10, "resolution": 0.25} | options))


def rows(seed: int, **options: Any) -> Any:
    """The steps that the door of a histogram makes of a tick's events."""
    histogram = et.Histogram(
        **(COMMON | {"key": et.simulation(seed), "max_weight": 2, "resolution": 1, "max_per_event": 2} | options)
    )
    return lambda events, tick=1: histogram._door.events(events, tick)


EVENTS: list[dict[str, float]] = [
    {"a": 0.5},
    {"a": 0.5, "b": 1.25},
    {"b": 1.25, "c": 9.5},
    {"a": 0.5, "b": 0.5, "c": 2},
]


@pytest.mark.parametrize("seed", range(3))
def test_one_event_moves_few_columns_by_one_amount_each(seed: int) -> None:
    """All ticks of up to four events: additions 12, with (column, amount) as the class."""
    door = rows(seed)
    moved = set()
    for events in (e for n in range(1, 5) for e in combinations_with_replacement(EVENTS, n)):
        row = door(list(events))
        assert door(list(reversed(events))).tolist() == row.tolist(), "the order of events is no part of it"
        for place in range(len(events)):
            change = row - door([*events[:place], *events[place + 1 :]])
            assert ((change >= 0) & (change <= 2)).all()
            assert np.count_nonzero(change) <= 2
            moved.add(tuple(change.tolist()))
    assert max(map(sum, moved)) >= 3, "the claim is nearly reached"


def test_one_item_moves_two_columns_where_items_are_protected() -> None:
    worst = 0
    for seed in range(20):
        door = rows(seed, protects="item", max_per_event=1, max_weight=2)
        for event in ({"a": 1.5, "b": 1.5}, {"a": 2, "b": 0.5, "c": 1.25}):
            for item in event:
                rest = {label: amount for label, amount in event.items() if label != item}
                change = door([event, {"a": 1.5}]) - door([rest, {"a": 1.5}])
                assert np.abs(change).max(initial=0) <= 2
                worst = max(worst, np.count_nonzero(change))
    assert worst == 2


def test_whole_amounts_are_counted_as_without_a_resolution() -> None:
    events = [{"a": 3, "b": 2}, {"c": 99}, "a", ["b", "b", "c"], {"zebra": 4}, {"a": -2}, None, {"b": "7"}]
    for options in ({}, {"other": "rest"}, {"max_per_event": 2}, {"signed": True}, {"protects": "item"}):
        fine = exact(resolution=1, **options)
        coarse = exact(resolution=None, **options)
        assert fine.step_events(events).value == coarse.step_events(events).value
        assert fine.sensitivity == coarse.sensitivity


def test_money_is_not_cut() -> None:
    revenue = exact(max_weight=500, resolution=0.01)
    assert revenue.step([{"a": 19.99}, {"b": 45}, {"a": 700.5}, {"c": 0.01}]).value == {
        "a": 519.99,
        "b": 45.0,
        "c": 0.01,
    }
    vector = et.VectorCounter(["a", "b"], max_weight=500, resolution=0.01, **_without("categories"), key=ZeroNoise())
    assert vector.step([{"a": 19.99}, {"b": 0.5}]).value.tolist() == [19.99, 0.5]
    assert vector.run([[{"a": 1.25}], [], [{"b": 0.25}]]).tolist() == [[21.24, 0.5], [21.24, 0.5], [21.24, 0.75]]


def _without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in COMMON.items() if name not in names}


def test_rounding_has_no_bias() -> None:
    """20,000 amounts of 0.3 steps: 6 standard deviations (less than one run in 10^8)."""
    n = 20_000
    row = rows(5)([{"a": 0.3, "b": 1.7}] * n)
    six = 6 * math.sqrt(n * 0.3 * 0.7)
    assert abs(row[0] - 0.3 * n) < six
    assert abs(row[1] - 1.7 * n) < six
    assert row[0] + row[1] != 2 * n, "columns have coins of their own"


def test_error_is_that_of_a_histogram_in_the_unit_of_amounts() -> None:
    options = COMMON | {"key": et.simulation(1), "max_window": 3}
    fine = et.Histogram(max_weight=500, resolution=0.01, **options)
    steps = et.Histogram(max_weight=50_000, **options)
    assert fine.sensitivity == steps.sensitivity
    assert fine.stddev(9) == pytest.approx(steps.stddev(9) / 100)
    assert fine.worst_stddev() == pytest.approx(steps.worst_stddev() / 100)
    assert fine.error_bound() == pytest.approx(steps.error_bound() / 100)
    assert fine.ways().best.bound == pytest.approx(steps.ways().best.bound / 100)
    release = fine.step([{"a": 2.5}])
    lower, upper = release.interval()
    assert lower["a"] < release.value["a"] < upper["a"]
    assert release.about.endswith("rounded to multiples of 0.01")
    assert fine.last(1).value["a"] == release.value["a"]
    table = et.Histogram(max_weight=500, resolution=0.01, **options).run([[{"a": 2.5}]], full=True)
    assert table["value"].type == pa.float64()


def test_every_declared_number_is_in_the_address() -> None:
    options = COMMON | {"key": et.simulation(1), "name": "x"}
    given: Sequence[dict[str, Any]] = [{"max_weight": 5}, {"max_weight": 5, "resolution": 1}]
    given = [*given, {"max_weight": 5, "resolution": 0.5}, {"max_weight": 4.5, "resolution": 0.5}]
    found = {et.Histogram(**one, **options).noise_fingerprint for one in given}
    assert len(found) == len(given)
    same = et.Histogram(max_weight=np.float64(5), resolution=1.0, **options)
    assert same.noise_fingerprint in found


def test_a_snapshot_goes_on_bit_for_bit() -> None:
    key = et.Key.generate()
    revenue = et.Histogram(max_weight=4.5, resolution=0.25, **COMMON, key=key)
    revenue.step([{"a": 1.3}])
    twin = et.restore(revenue.snapshot(), key=key, allow_copy=True)
    assert twin.step([{"b": 1.3}] * 7).value == revenue.step([{"b": 1.3}] * 7).value
    assert revenue.step([{"b": 1.3}] * 7, tick=2).tick == 2, "the coins of a tick are the same again"


@pytest.mark.parametrize("unit", ["event", "user"])
def test_nothing_in_a_record_raises(unit: str) -> None:
    inf, nan = float("inf"), float("nan")
    events = [
        {"a": nan},
        {"a": inf},
        {"b": -inf},
        {"a": "x"},
        {"a": None},
        {"a": 1e300, "é": 3},
        {},
        [],
        7,
        nan,
        {1: {}},
    ]
    cap = {"unit": "user", "max_events_per_user": 99} if unit == "user" else {}
    signed = exact(signed=True, max_per_event=2, **cap)
    whose = {"users": ["ann"] * len(events)} if cap else {}
    assert signed.step_events(events, **whose).value == {"a": 20.0, "b": -10.0, "c": 0.0}
    assert signed.step_events([{"a": [inf]}, {b"a": 0.25}], **({"users": ["bob"] * 2} if cap else {})).tick == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"resolution": 0}, "above 0"),
        ({"resolution": "fine"}, "resolution is a finite number"),
        ({"resolution": 11}, "choose a finer one"),
        ({"resolution": 1e-12, "max_weight": 1000}, "2\\^40 steps"),
        ({"mechanism": "sparse"}, "resolution belongs to linear noise"),
        ({"workload": et.workloads.Window(3)}, "running totals"),
        ({"categories": None, "edges": [0, 1], "max_weight": 1}, "resolution belongs to categories"),
        ({"max_weight": -3}, "lower < upper"),
    ],
)
def test_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        exact(**options)


@pytest.mark.parametrize("totals", [{"a": 1.5}, np.array([1.5, 2, 3])])
def test_totals_are_not_events(totals: Any) -> None:
    with pytest.raises(TypeError, match="takes the events of the tick"):
        exact().step(totals)


# -- frames ------------------------------------------------------------------------------------------------------------

LONG = {"label": ["a", "b", None, "zebra", "a"], "amount": [2.5, 0.25, 3.0, 1.0, None]}
TABLES: list[Callable[[dict[str, Any]], Any]] = [
    pd.DataFrame,
    lambda columns: pd.DataFrame(columns)[list(columns)[::-1]],
    lambda columns: pd.DataFrame(columns).convert_dtypes(),
    lambda columns: pd.DataFrame(columns, index=list("vwxyz")[: len(columns["amount"])]),
    pa.table,
    pl.DataFrame,
]


@pytest.mark.parametrize("make", TABLES)
def test_a_table_of_events_is_read_by_name(make: Callable[[dict[str, Any]], Any]) -> None:
    expected = {"a": 2.5, "b": 0.25, "c": 0.0}
    assert exact().step(make(LONG)).value == expected
    assert exact().step_events(make({"country": LONG["label"], "amount": LONG["amount"]})).value == expected
    assert exact(other="rest").step(make(LONG)).value == expected | {"rest": 1.0}
    assert exact().run([make(LONG), [{"c": 1}]]).tolist() == [[2.5, 0.25, 0.0], [2.5, 0.25, 1.0]]


def test_users_of_a_table() -> None:
    frame = pd.DataFrame(LONG | {"who": ["ann", "ann", "bob", "bob", "cid"]})
    capped = exact(unit="user", max_events_per_user=1)
    assert capped.step_events(frame[["amount", "label"]], users=frame["who"]).value == {"a": 2.5, "b": 0.0, "c": 0.0}
    with pytest.raises(TypeError, match="different indices"):
        exact(unit="user", max_events_per_user=1).step_events(frame[["amount", "label"]], users=frame["who"][::-1])


WIDE: list[dict[str, Any]] = [
    {"a": [2.5], "b": [0.25]},
    {"a": [2.5], "b": [0.25], "c": [1.0]},
    {"a": [2.5], "amount": [0.25]},
    {"amount": [0.25]},
    {"label": ["a"], "price": [2.5]},
    {"label": ["a"], "amount": [2.5], "day": [1]},
]


@pytest.mark.parametrize("columns", WIDE, ids=lambda columns: "-".join(columns))
@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, pl.DataFrame])
def test_totals_in_columns_are_refused(columns: dict[str, Any], make: Callable[[dict[str, Any]], Any]) -> None:
    revenue = exact(categories=["a", "b", "c", "amount"])
    for call in (revenue.step, revenue.step_events, lambda table: revenue.run([table])):
        with pytest.raises(TypeError, match="a row for each event and two columns: one called 'amount'"):
            call(make(columns))
    with pytest.raises(TypeError, match="the events of each tick"):
        revenue.run(make(columns))
    assert revenue.tick == 0


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="two columns"):
        exact().step(pd.DataFrame([[1.5, 2.5]], columns=["amount", "amount"]))


def test_a_series_of_totals_is_refused() -> None:
    """By its type: with labels for its index it would be read by position, or not at all."""
    totals = pd.Series([2.5, 0.25], index=["a", "b"])
    for series in (totals, pl.Series([2.5, 0.25]), pa.array([2.5, 0.25]), totals.convert_dtypes()):
        with pytest.raises(TypeError, match="takes the events of the tick"):
            exact().step(series)
    assert exact().step(pd.Series(["a", "b", "a"])).value == {"a": 2.0, "b": 1.0, "c": 0.0}, "labels count one each"
    assert exact().step(pa.array([{"a": 2.5}, {"a": 0.5}])).value["a"] == 3.0, "structures are mappings"


def test_without_a_resolution_tables_are_totals_as_ever() -> None:
    assert exact(resolution=None).step(pd.DataFrame({"b": [2], "a": [3]})).value == {"a": 3, "b": 2, "c": 0}
    with pytest.raises(TypeError, match="an event is one entry here"):
        exact(resolution=None).step_events(pd.DataFrame(LONG))


@pytest.mark.parametrize("options", [{}, {"signed": True}, {"other": "rest"}, {"max_per_event": 2, "signed": True}])
def test_events_of_one_label_mean_what_all_others_mean(options: dict[str, Any]) -> None:
    """They are read on a way of their own, which is shorter."""
    amounts = [2.5, -2.5, 0.0, -0.0, 1e300, -1e300, 5e-324, float("inf"), float("-inf"), float("nan")]
    for label in ("a", "zebra", "\ud800", "cafe\u0301"):
        for amount in amounts:
            short, long = ({label: value} for value in (amount, np.float64(amount)))
            found = [exact(**options)._door.categories.amounts([event], 1) for event in (short, long)]
            assert found[0][0].tolist() == found[1][0].tolist()
            assert found[0][1].tolist() == found[1][1].tolist()
