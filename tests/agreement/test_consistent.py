"""et.consistent: sums that agree, nothing below 0, totals that never fall, with the raw numbers beside them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import evertally as et

PROMISE: dict[str, Any] = {"guarantee": et.ZCDP(0.05), "horizon": 40}


def three_levels(seed: int, rows: int = 1) -> dict[str, Any]:
    airports, regions = ["JFK", "LGA", "SFO"], ["east", "west"]
    made = {
        "all": et.Counter(**PROMISE, key=et.simulation(seed)),
        "region": et.Histogram(categories=regions, **PROMISE, key=et.simulation(seed + 1000)),
        "airport": et.Histogram(categories=airports, **PROMISE, key=et.simulation(seed + 2000)),
    }
    amounts = {"all": 9, "region": [7, 2], "airport": [4, 3, 2]}
    steps = {name: [mechanism.step(amounts[name]) for _ in range(rows)] for name, mechanism in made.items()}
    return {"made": made, "steps": steps}


SUMS = {
    "all": "region",
    ("region", "east"): [("airport", "JFK"), ("airport", "LGA")],
    ("region", "west"): ("airport", "SFO"),
}


def agree(value: dict[str, Any]) -> None:
    assert value["all"] == pytest.approx(sum(value["region"].values()), abs=1e-8)
    assert value["region"]["east"] == pytest.approx(value["airport"]["JFK"] + value["airport"]["LGA"], abs=1e-8)
    assert value["region"]["west"] == pytest.approx(value["airport"]["SFO"], abs=1e-8)


def test_levels_agree_and_the_raw_numbers_stay() -> None:
    released = {name: steps[0] for name, steps in three_levels(1)["steps"].items()}
    fit = et.consistent(released, sums=SUMS)
    agree(fit.value)
    assert fit.raw == {name: release.value for name, release in released.items()}
    for name, release in released.items():
        after = fit.stddev[name]
        assert all(one < release.stddev for one in (after.values() if isinstance(after, dict) else [after]))
        assert fit.interval(name) == release.interval()
    # SFO is measured twice, and a little more by what the other numbers leave for it
    one = released["all"].stddev
    assert fit.stddev["airport"]["SFO"] < one / np.sqrt(2)


def test_stated_deviations_are_those_of_many_runs_and_smaller() -> None:
    errors: dict[str, list[float]] = {"all": [], "SFO": []}
    for seed in range(80):
        fit = et.consistent({name: steps[0] for name, steps in three_levels(seed)["steps"].items()}, sums=SUMS)
        errors["all"].append(fit.value["all"] - 9)
        errors["SFO"].append(fit.value["airport"]["SFO"] - 2)
    for found, stated in ((errors["all"], fit.stddev["all"]), (errors["SFO"], fit.stddev["airport"]["SFO"])):
        # a deviation from 80 runs has one of 8 % itself
        assert np.std(found) == pytest.approx(stated, rel=0.4)
        assert abs(np.mean(found)) < 6 * stated / np.sqrt(80)


def test_lists_agree_at_every_tick_and_never_fall() -> None:
    levels = three_levels(5, rows=12)
    fit = et.consistent(levels["steps"], of=levels["made"], sums=SUMS, nonnegative=True, monotone=True)
    for j in range(12):
        agree({name: values[j] for name, values in fit.value.items()})
    path = np.array([fit.value["all"], *([row[label] for row in fit.value["airport"]] for label in ("JFK", "SFO"))])
    assert path.min() > -1e-8
    assert np.diff(path, axis=1).min() > -1e-8
    lower, upper = fit.interval("airport")
    assert len(lower) == 12
    assert min(min(row.values()) for row in [*lower, *upper]) >= 0


def test_what_was_asked_for_holds_without_roundings() -> None:
    """Solving leaves -1e-14 where 0 is meant, and steps down as small."""
    counter = et.Counter(**PROMISE, key=et.simulation(3))
    days = [counter.step(0) for _ in range(40)]
    for form in (days, et.Counter(**PROMISE, key=et.simulation(3)).run([0] * 40)):
        totals = et.consistent({"a": form}, of=counter, monotone=True, nonnegative=True).value["a"]
        assert np.min(totals) >= 0
        assert np.diff(totals).min() >= 0
    each = [counter.between(earlier, later) for earlier, later in pairwise([None, *days])]
    assert min(et.consistent({"a": each}, of=counter, nonnegative=True).value["a"]) >= 0


@pytest.mark.parametrize("mechanism", ["bank", "honaker"])
def test_totals_that_never_fall_are_nearer_to_the_truth(mechanism: str) -> None:
    runs, ticks = 120, 40
    counter = et.VectorCounter(runs, **PROMISE, mechanism=mechanism, max_per_event=1, key=et.simulation(7))
    inputs = np.zeros((ticks, runs), dtype=np.int64)
    inputs[::4] = 3
    truth = np.cumsum(inputs, axis=0)
    released = counter.run(inputs)
    fit = et.consistent({"a": released}, of=counter, monotone=True, nonnegative=True).value["a"]
    assert fit.shape == released.shape
    assert np.diff(fit, axis=0).min() > -1e-8
    before, after = released - truth, fit - truth
    assert np.mean(after**2) < 0.9 * np.mean(before**2)
    weights = np.linalg.inv(counter.covariance(range(1, ticks + 1)))
    worse = np.einsum("ti,ts,si->i", after, weights, after) - np.einsum("ti,ts,si->i", before, weights, before)
    assert worse.max() < 1e-6, "not for a single noise"


def test_days_make_up_their_week() -> None:
    counter = et.Counter(**PROMISE, key=et.simulation(3))
    steps = [counter.step(0) for _ in range(14)]
    days = [counter.between(steps[i - 1] if i else None, steps[i]) for i in range(14)]
    weeks = [counter.between(None, steps[6]), counter.between(steps[6], steps[13])]
    released = {"week": weeks, "day": days}
    fit = et.consistent(released, of=counter, sums={"week": "day"}, nonnegative=True)
    assert min(*fit.value["day"], *fit.value["week"]) > -1e-8
    assert fit.value["week"] == pytest.approx([sum(fit.value["day"][:7]), sum(fit.value["day"][7:])], abs=1e-8)
    # they are differences of the same releases: without a bound there is nothing to gain
    plain = et.consistent(released, of=counter, sums={"week": "day"})
    assert plain.value["day"] == pytest.approx([day.value for day in days])
    assert plain.stddev["week"] == pytest.approx([week.stddev for week in weeks])


def test_a_table_of_weeks_is_the_sum_of_its_days_label_by_label() -> None:
    promise = {**PROMISE, "categories": ["a", "b"]}
    daily, weekly = (et.Histogram(**promise, key=et.simulation(seed)) for seed in (1, 2))
    days = [daily.step([5, 1]) for _ in range(7)]
    for _ in range(7):
        week = weekly.step([5, 1])
    windows = [daily.between(days[i - 1] if i else None, days[i]) for i in range(7)]
    fit = et.consistent({"week": week, "day": windows}, of={"day": daily}, sums={"week": "day"})
    for label in ("a", "b"):
        assert fit.value["week"][label] == pytest.approx(sum(day[label] for day in fit.value["day"]), abs=1e-8)
        assert fit.stddev["week"][label] == pytest.approx(week.stddev / np.sqrt(2), rel=1e-6)


def test_ten_thousand_labels_and_their_total() -> None:
    labels = [f"n{i}" for i in range(10_000)]
    amounts = np.zeros(10_000, dtype=np.int64)
    amounts[:50] = 200
    many = et.Histogram(categories=labels, **PROMISE, key=et.simulation(1)).step(amounts)
    total = et.Counter(**PROMISE, key=et.simulation(2)).step(int(amounts.sum()))
    fit = et.consistent({"all": total, "label": many}, sums={"all": "label"}, nonnegative=True)
    found = np.array(list(fit.value["label"].values()))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(fit.value["all"], abs=1e-4)
    assert np.mean((found - amounts) ** 2) < 0.5 * np.mean((np.array(list(many.value.values())) - amounts) ** 2)
    fine = et.VectorCounter(2, guarantee=et.ZCDP(1), horizon=3000, mechanism="tree", key=et.simulation(3))
    with pytest.raises(et.ConfigurationError, match="fitted together"):
        et.consistent({"a": np.zeros((2049, 2))}, of=fine)


def test_what_cannot_be_made_consistent_says_why() -> None:
    counter = et.Counter(**PROMISE, key=et.simulation(3))
    steps = [counter.step(1) for _ in range(3)]
    windows = [counter.between(steps[0], steps[1]), counter.between(steps[1], steps[2])]
    signed = et.Counter(**PROMISE, signed=True, key=et.simulation(3))
    mean = et.RunningMean(lower=0, upper=9, **PROMISE, key=et.simulation(1)).step([3.0])
    top = et.Histogram(categories=["a"], **PROMISE, key=et.simulation(1)).step([3])
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({}, {}, "by name"),
        ({"a": steps}, {}, "which mechanism"),
        ({"a": steps[::-1]}, {"of": counter}, "order of time"),
        ({"a": windows}, {"of": counter, "monotone": True}, "windows"),
        ({"a": [signed.step(-1), signed.step(1)]}, {"of": signed, "nonnegative": True}, "negative"),
        ({"a": mean}, {}, "no standard deviation"),
        ({"a": steps[0]}, {"sums": {"a": "b"}}, "'b'"),
        ({"a": steps[0], "b": top}, {"sums": {"a": ("b", "z")}}, "no label"),
        ({"a": steps[0], "b": steps[1]}, {"sums": {"a": "b"}}, "ticks"),
        ({"a": steps[0]}, {"sums": {"a": "a"}}, "twice"),
        ({"a": ["x"]}, {"of": counter}, "neither"),
        ({"a": steps}, {"of": 3}, "mechanism"),
    ]
    for releases, options, words in cases:
        with pytest.raises(et.ConfigurationError, match=words):
            et.consistent(releases, **options)


def test_covariances_are_those_of_windows() -> None:
    ticks = [1, 2, 7, 8, 23, 40]
    for name in ("bank", "sqrt", "honaker", "tree"):
        counter = et.Counter(**PROMISE, mechanism=name, key=et.simulation(3))
        found = counter.covariance(ticks)
        for i, s in enumerate(ticks):
            assert found[i, i] == pytest.approx(counter.stddev(s) ** 2)
            for j, t in enumerate(ticks[i + 1 :], i + 1):
                difference = found[i, i] + found[j, j] - 2 * found[i, j]
                assert difference == pytest.approx(counter.stddev(t, since=s) ** 2)
    money = et.RunningSum(upper=10, resolution=0.01, **PROMISE, key=et.simulation(3))
    assert money.covariance([5])[0, 0] == pytest.approx(money.stddev(5) ** 2)
    with pytest.raises(et.ConfigurationError, match="increasing"):
        counter.covariance([3, 2])
