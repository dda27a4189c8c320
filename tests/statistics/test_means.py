"""The running mean: exact without noise, intervals that cover, bounds that hold, empty ticks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise


def mean(**options: Any) -> et.RunningMean:
    common: dict[str, Any] = {"lower": 0, "upper": 10, "guarantee": et.ZCDP(0.5), "horizon": 20, "key": ZeroNoise()}
    return et.RunningMean(**(common | options))


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.lists(st.lists(st.floats(-50, 50), max_size=5), min_size=1, max_size=10),
    st.sampled_from([None, 0.5, 1, 3, 10]),
    st.sampled_from([(0, 10), (-3, 4.5), (100, 101)]),
)
def test_without_noise_it_is_the_mean_up_to_half_a_step(ticks: Any, resolution: Any, ends: Any) -> None:
    lower, upper = ends
    resolution = min(resolution, upper - lower) if resolution else None
    m = mean(lower=lower, upper=upper, resolution=resolution)
    step = resolution or (upper - lower) / 2000
    seen: list[float] = []
    for values in ticks:
        seen += [min(upper, max(lower, v)) for v in values]
        release = m.step(values)
        assert release.stddev is None
        if seen:
            assert abs(release.value - sum(seen) / len(seen)) <= step / 2 * (1 + 1e-9)
        assert lower <= release.value <= upper


def test_empty_ticks() -> None:
    m = mean(key=et.simulation(3))
    for tick in range(1, 6):
        release = m.step([])
        assert release.tick == tick
        assert 0 <= release.value <= 10
        low, high = release.interval()
        assert 0 <= low <= release.value <= high <= 10
    assert mean().step([]).value == 5, "no values: the middle of the range"
    assert mean().run([[], [1.0], []]).tolist() == [5, 1, 1]
    assert mean().run(np.empty((0, 4))).shape == (0,)


def test_what_is_no_number_counts_nothing() -> None:
    m = mean()
    assert m.step([2.0, None, float("nan"), "seven", object(), [3]]).value == 2
    assert m.step([float("inf"), float("-inf")]).value == pytest.approx((2 + 10 + 0) / 3)
    assert m.step_events(np.array([2, 2, 2], dtype=np.int8)).value == pytest.approx((2 + 10 + 0 + 6) / 6)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"guarantee": et.PureDP(1)},
        {"guarantee": et.PureDP(1), "resolution": 4},
        {"resolution": 10},
        {"neighbours": "replace"},
        {"horizon": None},
    ],
    ids=repr,
)
def test_intervals_cover(options: dict[str, Any]) -> None:
    """300 runs, 6 ticks: at each tick at most beta of the intervals miss, by Binomial(300, 0.2) plus six deviations
    (false alarms below 1e-6 for all of them). Coarse grids count too: rounding is part of the error."""
    beta, count, ticks = 0.2, 300, 6
    options = dict(options)
    horizon = options.pop("horizon", ticks)
    rng = np.random.default_rng(1)
    data = [rng.beta(0.5, 2, 30) * 10 for _ in range(ticks)]
    truth = [float(np.mean(np.concatenate(data[: t + 1]))) for t in range(ticks)]
    released = []
    for seed in range(count):
        m = mean(key=et.simulation(seed), horizon=horizon, **options)
        released.append([m.step(values).interval(beta) for values in data])
    for t in range(ticks):
        missed = sum(not low <= truth[t] <= high for low, high in (run[t] for run in released))
        assert missed <= beta * count + 6 * math.sqrt(count * beta * (1 - beta))


def test_intervals_cover_when_noise_is_nothing_beside_rounding() -> None:
    m = mean(lower=0, upper=100, resolution=10, key=et.simulation(0))
    low, high = m.step([44.0] * 10**5).interval()
    assert low <= 44 <= high
    assert high - low < 10.5


def test_error_bound_with_a_public_count_holds() -> None:
    """200 runs of 5 ticks with at least 60 values at each: no more than beta of the runs fail (six deviations on
    top, false alarms below 1e-6), in the worst case for the formula, a mean at the end of the range."""
    beta, count, ticks, per_tick = 0.3, 200, 5, 60
    for value in (10.0, 0.0, 7.0):
        failures = 0
        for seed in range(count):
            m = mean(key=et.simulation(seed), horizon=ticks, guarantee=et.PureDP(2))
            values = [m.step([value] * per_tick).value for _ in range(ticks)]
            bound = m.error_bound(beta, count=per_tick)
            failures += any(abs(v - value) > bound for v in values)
        assert failures <= beta * count + 6 * math.sqrt(count * beta * (1 - beta))


def test_error_bound_falls_with_the_count_and_never_leaves_the_range() -> None:
    m = mean(key=et.simulation(0))
    assert m.error_bound(0.05) == m.error_bound(0.05, count=1) == 10
    bounds = [m.error_bound(0.05, count=count) for count in (10, 100, 10**3, 10**4, 10**6)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == pytest.approx(10 / 2000 / 2, rel=0.1), "in the end only the grid is left"
    assert m.error_bound(0.05, t=1, count=100) <= m.error_bound(0.05, count=100)
    unbounded = mean(horizon=None, key=et.simulation(0))
    with pytest.raises(ConfigurationError):
        unbounded.error_bound(0.05, count=100)
    assert unbounded.error_bound(0.05, t=3, count=10**4) < 1


@pytest.mark.parametrize(
    "options",
    [
        {"lower": 10},
        {"lower": float("nan")},
        {"upper": float("inf")},
        {"resolution": 0},
        {"resolution": -1},
        {"resolution": 1e-9},
        {"neighbours": "independent", "guarantee": et.ZCDP(1, adversary="oblivious")},
        {"unit": "user"},
    ],
    ids=repr,
)
def test_refused_before_the_stream_starts(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        mean(**options)


def test_full_run() -> None:
    table = mean(key=et.simulation(1)).run([[1.0] * 50, [], [3.0] * 50], full=True)
    assert table.column_names == ["tick", "value", "lower", "upper"]
    for row in table.to_pylist():
        assert row["lower"] <= row["value"] <= row["upper"]


def test_snapshot_keeps_the_parameters() -> None:
    m = mean(lower=-1.5, upper=2, resolution=0.25, key=et.simulation(2))
    m.step([0.3] * 40)
    again = et.restore(m.snapshot(), key=et.simulation(2))
    assert again.step([1.0] * 10).value == m.step([1.0] * 10).value
