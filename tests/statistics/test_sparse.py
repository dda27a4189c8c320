"""Counts and histograms whose error grows with the count: what they release, promise, refuse and bring back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.audit.game import take
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from long import LONG

PURE, APPROX = et.PureDP(1.0), et.ApproxDP(1.0, 1e-6)


def counter(**options: Any) -> Any:
    return et.Counter(**({"mechanism": "sparse", "guarantee": PURE, "horizon": 1000, "key": ZeroNoise()} | options))


def histogram(**options: Any) -> Any:
    common: dict[str, Any] = {"mechanism": "sparse", "categories": ["b", "a"], "guarantee": PURE, "horizon": 1000}
    return et.Histogram(**(common | {"key": ZeroNoise()} | options))


def test_they_are_mechanisms_of_counter_and_histogram() -> None:
    rare, visits = counter(largest=100), histogram(largest=100)
    assert (type(rare), type(visits)) == (et.Counter, et.Histogram)
    assert rare.mechanism == visits.mechanism == "sparse", "a name that the constructor takes"
    for other in (et.Counter(guarantee=PURE, horizon=9), et.Histogram(categories=["a"], guarantee=PURE, horizon=9)):
        assert other.mechanism == "pure-blocks", "nobody gets one without asking"
    with pytest.raises(ConfigurationError, match="sparse"):
        et.VectorCounter(3, mechanism="sparse", guarantee=PURE, horizon=9)


def test_forms() -> None:
    rare, visits = counter(key=et.simulation(2)), histogram(key=et.simulation(2), other="rest")
    release = rare.step(3)
    assert (type(release.value), release.stddev, release.tick) == (int, None, 1)
    assert rare.run([1, 0, 2]).shape == (3,)
    assert rare.run([1], full=True).column_names == ["tick", "value", "lower", "upper"]
    release = visits.step({"a": 2, "zebra": 1})
    assert list(release.value) == ["b", "a", "rest"] == list(visits.categories) == list(visits.columns)
    assert all(type(value) is int for value in release.value.values())
    lower, upper = release.interval(0.1)
    assert list(lower) == list(upper) == list(release.value)
    assert visits.run([[1, 0, 2]] * 3).shape == (3, 3)
    assert visits.run([[0, 0, 0]], full=True)["column"].to_pylist() == ["b", "a", "rest"]


@pytest.mark.parametrize("x", ["7", 1.5, [1, 2], None, {"a": 1}], ids=repr)
def test_a_counter_takes_one_integer(x: Any) -> None:
    rare = counter()
    with pytest.raises(TypeError):
        rare.step(x)
    with pytest.raises(TypeError):
        rare.run([x, x])
    with pytest.raises(TypeError):
        rare.run(et.SparseRows([0], [1], length=3, width=2))
    assert rare.tick == 0


def test_rare_events_are_given_by_their_ticks() -> None:
    ticks = [3, 40, 41, 41, 600]
    totals = np.bincount(ticks, minlength=1000)
    dense, sparse = (counter(guarantee=et.PureDP(20.0), key=et.simulation(3)) for _ in range(2))
    rows = et.SparseRows(ticks, [0] * 5, length=1000, width=1)
    assert np.array_equal(sparse.run(rows), dense.run(totals))
    assert sparse.snapshot() == dense.snapshot()


def test_events_go_through_the_same_doors() -> None:
    rare, amounts = counter(max_weight=5), counter(max_weight=5)
    rare.step_events([1, 9, -3, None, "x", float("nan"), 2])
    amounts.step(1 + 5 + 0 + 2)
    assert rare.snapshot() == amounts.snapshot()
    visits, rows = histogram(max_per_event=2, other="rest"), histogram(max_per_event=2, other="rest")
    visits.step_events(["a", ["a", "b"], "zebra", None, {"b": 7}])
    rows.step([2, 2, 1])
    assert visits.snapshot() == rows.snapshot()


@settings(deadline=None, max_examples=20, derandomize=True)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=60), st.sampled_from([None, 100]), st.booleans())
def test_without_noise_the_count_is_late_and_never_wrong(totals: list[int], horizon: int | None, pure: bool) -> None:
    guarantee = et.PureDP(20.0) if pure else et.ApproxDP(20.0, 1e-6)
    rare = counter(guarantee=guarantee, horizon=horizon, largest=3600, max_events_per_tick=60)
    truth = 0
    for t, total in enumerate(totals, start=1):
        truth += total
        value = rare.step(total).value
        assert value in np.cumsum([0, *totals])
        assert value <= truth
        assert truth - value <= rare.error_bound(0.1, t)


@pytest.mark.parametrize(
    "options",
    [
        {"largest": 400},
        {"largest": 400, "guarantee": APPROX},
        {"horizon": None},
        {"largest": 400, "max_weight": 3},
        {"largest": 400, "unit": "user", "max_events_per_user": 2, "guarantee": et.PureDP(2.0)},
    ],
    ids=repr,
)
def test_the_bound_holds_at_all_ticks(options: dict[str, Any]) -> None:
    """60 runs, beta = 0.1: Binomial(60, 0.1) is above 19 with probability 8e-7."""
    n = 300 if "unit" in options and not LONG else 1000  # step by step, which takes long
    totals = (np.arange(n) % 5 == 0).astype(np.int64) * (np.arange(n) < 600) * 3
    truth = np.cumsum(totals)
    bound = np.array([counter(**options).error_bound(0.1, t) for t in (1, 10, 100, n)])
    assert (np.diff(bound) >= 0).all() or options.get("horizon", 1) is not None
    at = [1, 10, 100, n]
    failures = 0
    for seed in range(60):
        made = counter(**options, key=et.simulation(seed))
        if "unit" in options:  # no run where users are protected
            values = np.array([take(made, int(x)).value for x in totals])[np.array(at) - 1]
        else:
            values = made.run(totals, at=at)
        failures += bool((np.abs(values - truth[np.array(at) - 1]) > bound).any())
    assert failures <= 19


def test_the_error_grows_with_the_count_and_hardly_with_the_stream() -> None:
    """parameterized-histograms 4.5: O((log^2 n + log T)/eps). A tree pays log^1.5 T for every tick, empty or not."""
    horizons, split = [10**4, 10**6, 10**8], ("1/4", "1/4", "1/2")

    def rare_bound(horizon: int, largest: int) -> float:
        return counter(horizon=horizon, largest=largest, split=split).error_bound(0.05, trust_largest=True)

    rare = [rare_bound(T, 50) for T in horizons]
    tree = [et.Counter(guarantee=PURE, horizon=T, mechanism="tree").error_bound(0.05) for T in horizons]
    assert rare[2] - rare[0] < tree[2] - tree[0]
    by_count = [rare_bound(10**6, n) for n in (10, 1000, 10**5)]
    assert by_count == sorted(by_count)


def test_many_columns_share_one_test() -> None:
    """The tests of a histogram cost what those of a counter cost; H alone pays for an event in several columns."""
    split = ("1/4", "1/4", "1/2")
    one = histogram(categories=["a"], largest=100, split=split)
    many = histogram(categories=[str(j) for j in range(50)], largest=100, split=split)
    for law in ("tau", "mu"):
        assert getattr(one._engine.worker._formula.noise, law) == getattr(many._engine.worker._formula.noise, law)
    assert one._engine.worker._formula.noise.histogram == many._engine.worker._formula.noise.histogram
    assert many.sensitivity == one.sensitivity
    assert many.error_bound(0.1) > one.error_bound(0.1), "more columns, a larger union bound"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"signed": True}, ConfigurationError, "only grow"),
        (
            {"neighbours": "independent", "guarantee": et.PureDP(1, adversary="oblivious")},
            ConfigurationError,
            "counters",
        ),
        ({"largest": 0}, ConfigurationError, "largest"),
        ({"max_weight": 0}, ConfigurationError, "max_weight"),
        ({"radix": 2}, ConfigurationError, "radix"),
        ({"columns": 3}, TypeError, "columns"),
        ({"other": "x"}, TypeError, "other"),
        ({"max_per_event": 2}, TypeError, "max_per_event"),
    ],
)
def test_what_a_counter_refuses(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        counter(**options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"signed": True}, ConfigurationError),
        ({"categories": "abc"}, ConfigurationError),
        ({"categories": 3}, ConfigurationError),
        ({"categories": []}, ConfigurationError),
        ({"categories": ["a", "a"]}, ConfigurationError),
        ({"max_per_event": 0}, ConfigurationError),
        ({"protects": "item"}, ConfigurationError),
    ],
    ids=repr,
)
def test_what_a_histogram_refuses(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        histogram(**options)


def test_another_partition_may_be_asked_for() -> None:
    for mechanism in ("rebased", "noisy-ladders", "doubling", "two-level", "recompute"):
        visits = et.Histogram(
            categories=["a", "b"],
            guarantee=et.PureDP(8.0),
            horizon=50,
            largest=5000,
            max_events_per_tick=100,
            mechanism=mechanism,
            key=ZeroNoise(),
        )
        values = visits.run([[100, 3]] * 50)
        assert values.shape == (50, 2)
        assert abs(values[-1] - [5000, 150]).max() <= visits.error_bound(0.1)
        assert et.restore(visits.snapshot(), key=ZeroNoise()).mechanism == visits.mechanism
    rare = et.Counter(guarantee=PURE, horizon=50, mechanism="recompute", key=ZeroNoise())
    assert rare.run([1] * 9).shape == (9,)


@pytest.mark.parametrize("make", [counter, histogram])
def test_snapshots(make: Any) -> None:
    options: dict[str, Any] = {"key": et.simulation(6), "largest": 500, "guarantee": et.PureDP(20.0), "beta": 0.2}
    options |= {"unit": "user", "max_events_per_user": 3, "neighbours": "replace", "max_weight": 2}
    m = make(**options)
    wide = make is histogram
    for _ in range(20):
        take(m, [30, 4] if wide else 30)
    again = et.restore(m.snapshot(), key=et.simulation(6))
    assert type(again) is type(m)
    assert again.snapshot() == m.snapshot()
    assert not wide or again.categories == m.categories == ("b", "a")
    assert again.step_events(["a"], users=["u"]).value == m.step_events(["a"], users=["u"]).value
    assert m._engine.worker.partition.closes > 1


def test_a_stream_pays_for_them_by_share() -> None:
    s = et.Stream("s", guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(0))
    rare = s.add(et.Counter, share=0.5, mechanism="sparse")
    visits = s.add(et.Histogram, share=0.5, mechanism="sparse", categories=["a"], largest=10)
    for m in (rare, visits):
        assert m.guarantee == et.ZCDP(0.25)
        assert isinstance(m.charge, et.PureDP)
        assert math.isclose(m.charge.epsilon, math.sqrt(0.5), rel_tol=1e-9)
        assert m.guarantee.covers(m.charge)
