"""One table for every class: what "auto" takes, what is predicted and promised, and the inverse questions."""

from __future__ import annotations

import math
from typing import Any

import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from evertally.planner import longest_horizon, ranking_of, smallest_guarantee
from evertally.ranking import Ranking, Way

PURE, ZC, APPROX = et.PureDP(1.0), et.ZCDP(0.5), et.ApproxDP(1.0, 1e-6)

# Each class, its arguments, and what else an error depends on.
CLASSES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "counter": (et.Counter, {}, {}),
    "vector": (et.VectorCounter, {"columns": 5}, {}),
    "histogram": (et.Histogram, {"categories": ["a", "b"]}, {}),
    "mean": (et.RunningMean, {"lower": 0, "upper": 10}, {"count": 10**4}),
    "sum": (et.RunningSum, {"upper": 10, "resolution": 0.5}, {}),
    "variance": (et.RunningVariance, {"lower": 0, "upper": 10}, {"count": 10**4}),
    "max": (et.MaxSum, {"columns": 5, "largest": 200, "max_events_per_tick": 2}, {}),
    "min": (et.MinSum, {"columns": 5, "largest": 200}, {}),
    "quantile": (et.SumQuantile, {"q": "1/2", "columns": 5, "largest": 200}, {}),
    "top": (et.TopK, {"k": 2, "columns": 5, "largest": 200, "max_events_per_tick": 2}, {}),
    "leader": (et.SumSelect, {"columns": 5, "largest": 200, "max_events_per_tick": 2}, {}),
    "leaders": (et.TopKSelect, {"k": 2, "columns": 5, "largest": 200}, {}),
    "query": (et.MonotoneQuery, {"query": et.expressions.mean, "columns": 3}, {}),
    "sparse counter": (et.Counter, {"largest": 100, "mechanism": "sparse"}, {}),
    "streaming top": (et.StreamingTopK, {"k": 2, "switches": 2, "columns": 5}, {}),
    "unknown": (et.UnknownHistogram, {}, {"items": 3}),
    "unknown top": (et.UnknownTopK, {"k": 3}, {}),
}
BY_NAME = ("streaming top", "unknown", "unknown top")


def asked(name: str, guarantee: Any = APPROX, horizon: int | None = 1000, **more: Any) -> Any:
    make, options, further = CLASSES[name]
    return et.plan(make, guarantee=guarantee, horizon=horizon, **options, **further, **more)


@pytest.mark.parametrize("name", CLASSES)
def test_the_best_row_is_what_the_class_takes(name: str) -> None:
    make, options, further = CLASSES[name]
    for guarantee, horizon in ((APPROX, 1000), (ZC, 1000), (PURE, 1000), (ZC, None), (PURE, None)):
        if name in BY_NAME and guarantee is not APPROX:
            continue
        made = make(guarantee=guarantee, horizon=horizon, key=ZeroNoise(), **options)
        plan = asked(name, guarantee, horizon)
        if name != "sparse counter":  # a class that is one of its ways
            assert (plan.best.name, plan.best.charge) == (made.mechanism, made.charge)
        assert math.isfinite(plan.best.bound)
        tick = 2**16 if horizon is None else None
        if name in ("counter", "vector", "histogram", "mean", *BY_NAME):
            assert plan.best.bound == pytest.approx(made.error_bound(0.05, tick, **further))
        for way in plan.fitting:
            assert way.tier == "exact"
            assert way.guessed <= way.bound
            assert math.isfinite(way.bound) or way.open
            # without a horizon the bound is for one tick, and the prediction for all before it
            assert horizon is None or way.predicted <= way.bound or way.name in ("doubling", "two-level")
        assert all(way.refused and math.isinf(way.predicted) for way in plan if way not in plan.fitting)


def test_what_auto_takes_is_the_first_that_needs_no_name() -> None:
    plan = asked("counter", ZC)
    assert [way.name for way in plan.fitting] == ["bank", "sqrt", "honaker", "tree", "sparse"]
    assert plan[4].by_name
    assert [way.by_name for way in plan][:4] == [False] * 4
    assert any("epoch-tree" in reason for reason in plan.reasons)
    assert plan.best.memory == 8 * 4
    assert [way.name for way in asked("counter", ZC, mechanism="tree")] == ["tree"]
    assert [way.name for way in asked("counter", ZC, mechanism="sparse")] == ["sparse"]
    assert [way.name for way in asked("unknown").fitting] == ["tree", "meta"]


def test_a_plan_can_be_read() -> None:
    plan = et.plan(et.MaxSum, 100, guarantee=et.PureDP(0.1), horizon=10**5, largest=5000)
    assert len(plan.fitting) >= 8
    assert plan.floor is not None
    assert plan.floor > 1
    assert plan.constant == 5000
    lines = repr(plan).splitlines()
    assert lines[0].split()[:4] == ["mechanism", "pays", "predicted", "bound"]
    assert lines[1].startswith(plan.best.name)
    assert lines[len(plan.fitting) + 1].startswith("constant 0")
    assert lines[len(plan.fitting) + 2].startswith("floor")
    assert sum('mechanism "sqrt" has Gaussian noise' in line for line in lines) == 1
    assert repr(plan).count("declare max_events_per_tick") >= 1
    assert "switches" in repr(et.plan(et.StreamingTopK, 2, columns=5, guarantee=APPROX, horizon=100))


def test_a_plan_needs_a_promise() -> None:
    with pytest.raises(ConfigurationError, match="guarantee and a horizon"):
        et.plan(et.Counter, guarantee=PURE)
    with pytest.raises(TypeError):
        et.plan(et.Counter, guarantee=PURE, horizon=10, no_option=1)
    with pytest.raises(ConfigurationError, match="no delta"):
        et.plan(et.UnknownHistogram, guarantee=PURE, horizon=10).best  # noqa: B018


def test_the_table_behind_a_mechanism() -> None:
    counter = et.Counter(guarantee=ZC, horizon=100, key=ZeroNoise())
    assert ranking_of(counter).best.name == counter.mechanism
    top = et.UnknownTopK(2, guarantee=APPROX, horizon=100, key=ZeroNoise())
    (row,) = ranking_of(top)
    assert (row.name, row.bound) == (top.mechanism, top.error_bound())


# -- the other way round -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSES)
def test_the_least_guarantee_is_enough_and_the_next_is_not(name: str) -> None:
    make, options, further = CLASSES[name]
    wanted = {"mean": 0.05, "variance": 2}.get(name, 100)
    found = asked(name, horizon=200).guarantee_for(wanted, beta=0.01)
    assert (type(found), found.delta) == (et.ApproxDP, 1e-6)

    def bound(epsilon: float) -> float:
        promise = et.ApproxDP(epsilon, 1e-6)
        made = make(guarantee=promise, horizon=200, key=ZeroNoise(), **options)
        return float(made.error_bound(0.01, None, **further))

    digit = 10.0 ** (math.floor(math.log10(found.epsilon)) - 2)
    assert bound(found.epsilon) <= wanted < bound(found.epsilon - digit)


@pytest.mark.parametrize("name", ["counter", "histogram", "max", "unknown top"])
def test_the_longest_horizon_is_enough_and_the_next_is_not(name: str) -> None:
    make, options, further = CLASSES[name]
    here = asked(name, horizon=50)
    wanted = 1.3 * here.best.bound
    found = here.horizon_for(wanted)

    def bound(ticks: int) -> float:
        made = make(guarantee=APPROX, horizon=ticks, key=ZeroNoise(), **options)
        return float(made.error_bound(0.05, None, **further))

    digit = max(1, 10 ** (math.floor(math.log10(found)) - 2))
    assert bound(found) <= wanted < bound(found + digit)


def test_what_cannot_be_had_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigurationError, match=r"no epsilon brings the error bound down to 0.01: it is .* at best"):
        asked("counter", PURE, mechanism="tree").guarantee_for(0.01)
    # Real noise rounds to 0 where epsilon is large enough: then counts are exact.
    assert asked("counter", PURE).guarantee_for(0.01) == asked("counter", PURE).guarantee_for(0.99)
    with pytest.raises(ConfigurationError, match=r"no horizon has an error bound of 1 or less: it is .* at best"):
        asked("counter", PURE).horizon_for(1)
    with pytest.raises(ConfigurationError, match="above 0"):
        asked("counter", PURE).guarantee_for(0)
    unbounded = et.plan(et.MaxSum, 5, guarantee=PURE, horizon=100, mechanism="two-level")
    with pytest.raises(ConfigurationError, match="nothing that was declared bounds the error"):
        unbounded.guarantee_for(50)


def test_a_search_stays_where_noise_can_be_drawn() -> None:
    def bound(promise: Any) -> float:
        if promise.epsilon > 3:
            raise ConfigurationError("too little noise to draw")
        return 12 / float(promise.epsilon)

    assert smallest_guarantee(et.PureDP(0.1), 4.5, bound) == et.PureDP(2.67)
    with pytest.raises(ConfigurationError, match=r"it is 4.0 at best"):
        smallest_guarantee(et.PureDP(0.1), 3.5, bound)
    with pytest.raises(ConfigurationError, match="too little noise"):
        smallest_guarantee(et.PureDP(50), 3.5, lambda promise: bound(et.PureDP(50)))
    assert longest_horizon(10**6, 50, lambda ticks: float(ticks)) == 50
    assert longest_horizon(None, 5000.5, lambda ticks: float(ticks)) == 5000
    assert longest_horizon(None, 5, lambda ticks: 1.0) == 10**12


def test_rows_without_a_bound_come_after_all_others() -> None:
    rows = [
        Way(name="named", charge=None, score=0.0, by_name=True),
        Way(name="no bound", charge=None, score=1.0, open="declare it"),
        Way(name="no fit", charge=None, refused="too long"),
        Way(name="worse", charge=None, score=3.0),
        Way(name="better", charge=None, score=2.0),
    ]
    assert [way.name for way in Ranking(rows)] == ["better", "worse", "no bound", "named", "no fit"]
    with pytest.raises(ConfigurationError, match="too long"):
        Ranking(rows[2:3]).best  # noqa: B018


def test_the_least_guarantee_for_a_window() -> None:
    asked = et.plan(et.Counter, guarantee=et.ZCDP(0.5), horizon=60)
    found = asked.guarantee_for(5, window=7)

    def radius(rho: float) -> float:
        return et.accuracy(et.Counter, guarantee=et.ZCDP(rho), horizon=60, windows=[7]).windows[0].radius

    assert radius(float(found.rho)) <= 5 < radius(float(found.rho) * 0.99)
    for window in (0, 61, 1.5):
        with pytest.raises((et.ConfigurationError, TypeError), match="window must be"):
            asked.guarantee_for(5, window=window)
    mean = et.plan(et.RunningMean, lower=0, upper=1, guarantee=et.ZCDP(0.5), horizon=9, count=9)
    with pytest.raises(et.ConfigurationError, match="no sums with a known error"):
        mean.guarantee_for(0.1, window=2)
