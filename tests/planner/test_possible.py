"""What is possible beside what is predicted: standard deviations, the certified floor, the price of not knowing T."""

from __future__ import annotations

import math
from typing import Any

import pytest

import evertally as et
from evertally.noise import ZeroNoise
from evertally.planner import Price, ranking_of
from evertally.theory.count_floors import count_floor

ZC, PURE, APPROX = et.ZCDP(0.5), et.PureDP(1.0), et.ApproxDP(1.0, 1e-6)
COUNTS: list[tuple[Any, dict[str, Any]]] = [
    (et.Counter, {}),
    (et.VectorCounter, {"columns": 4, "max_per_event": 3, "neighbours": "replace"}),
    (et.Histogram, {"categories": ["a", "b"], "unit": "user", "max_events_per_user": 5, "neighbours": "replace"}),
    (et.Counter, {"signed": True, "max_weight": 7, "neighbours": "replace"}),
]


@pytest.mark.parametrize(
    ("promise", "horizon", "make", "options"),
    [
        (APPROX, 200, *COUNTS[0]),
        (PURE, None, *COUNTS[0]),
        *((ZC, 200, *each) for each in COUNTS),
        (ZC, None, *COUNTS[1]),
    ],
)
def test_rows_of_counts(make: Any, options: dict[str, Any], promise: Any, horizon: int | None) -> None:
    plan = et.plan(make, guarantee=promise, horizon=horizon, **options)
    counted = 0
    for way in plan.fitting:
        if way.name == "sparse":
            assert (way.worst_stddev, way.rms_stddev, way.floor, way.above_floor) == (None,) * 4
            continue
        counted += 1
        assert way.worst_stddev is not None
        assert way.rms_stddev is not None
        assert way.rms_stddev <= way.worst_stddev
        assert (way.floor is None) == isinstance(way.charge, et.PureDP)
        if way.floor is not None:
            assert way.floor <= way.rms_stddev * 1.02
            assert way.above_floor == way.worst_stddev / way.floor >= 1
    assert counted
    best = plan.best
    made = make(guarantee=promise, horizon=horizon, key=ZeroNoise(), **options)
    assert best.worst_stddev == pytest.approx(made.worst_stddev(tick=horizon or 2**16))


def test_a_floor_is_about_what_is_surely_possible() -> None:
    def floor(**options: Any) -> float:
        found = et.plan(et.Counter, guarantee=ZC, horizon=64, mechanism="tree", **options).best.floor
        assert found is not None
        return found

    one = count_floor(64, ZC)
    assert one is not None
    assert floor() == floor(neighbours="replace") == one
    assert floor(max_weight=3) == pytest.approx(3 * one)
    assert floor(max_weight=3, signed=True, neighbours="replace") == pytest.approx(6 * one)
    user = {"unit": "user", "max_events_per_user": 4}
    assert floor(**user) == pytest.approx(4 * one)
    # What a user takes away in one tick comes back in another: the charge is for 8, the floor for 4.
    assert floor(**user, neighbours="replace") == pytest.approx(4 * one)
    columns = et.plan(et.VectorCounter, columns=9, max_per_event=9, guarantee=ZC, horizon=64, mechanism="tree").best
    assert columns.floor == one


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (et.RunningMean, {"lower": 0, "upper": 1, "count": 100}),
        (et.MaxSum, {"columns": 3, "largest": 20}),
        (et.Counter, {"workload": et.workloads.Window(24)}),
        (et.Counter, {"workload": et.workloads.Weights(beta=[1] * 50, alpha=list(range(1, 51)))}),
    ],
)
def test_what_is_no_count_has_no_floor(make: Any, options: dict[str, Any]) -> None:
    plan = et.plan(make, guarantee=ZC, horizon=50, **options)
    assert all(way.floor is None for way in plan)
    assert plan.price is None
    assert plan.notes == []


@pytest.mark.parametrize("horizon", [300, None])
def test_the_price_of_not_knowing(horizon: int | None) -> None:
    gaussian = et.plan(et.Counter, guarantee=ZC, horizon=horizon).price
    assert gaussian is not None
    assert (gaussian.told, gaussian.not_told, gaussian.ticks) == ("bank", "bank-open", horizon or 2**16)
    told = et.Counter(guarantee=ZC, horizon=horizon or 2**16, mechanism="bank", key=ZeroNoise())
    not_told = et.Counter(guarantee=ZC, horizon=None, mechanism="bank-open", key=ZeroNoise())
    assert gaussian.told_stddev == told.worst_stddev()
    assert gaussian.not_told_stddev == not_told.worst_stddev(tick=gaussian.ticks)
    assert gaussian.least is not None
    assert 1.5 < gaussian.least < gaussian.variance_ratio < 1.65
    pure = et.plan(et.Counter, guarantee=PURE, horizon=horizon).price
    assert pure is not None
    assert (pure.told, pure.least) == ("pure-blocks", None)
    assert pure.not_told == "epoch-blocks"
    assert pure.ratio == pytest.approx({300: 1.25, None: 1.55}[horizon], abs=0.005)
    # An (epsilon, delta) promise is kept by the better of both.
    both = et.plan(et.Counter, guarantee=APPROX, horizon=horizon).price
    assert both is not None
    assert both.told_stddev <= pure.told_stddev
    assert both.not_told_stddev <= pure.not_told_stddev


def test_the_price_can_be_read() -> None:
    assert str(Price(1000, "bank", 4.0, "bank-open", 5.0, 1.53)) == (
        "not knowing that 1,000 ticks are all costs 1.25 times the worst sd: bank-open 5, bank 4 "
        "(variance 1.56 times; any Gaussian noise pays about 1.53 at some tick)"
    )


def test_the_table_shows_it() -> None:
    lines = repr(et.plan(et.Counter, guarantee=APPROX, horizon=300)).splitlines()
    assert lines[0].split()[4:] == ["worst", "sd", "rms", "sd", "floor", "memory", "tier"]
    text = "\n".join(lines)
    assert "floor: no Gaussian noise" in text
    assert "under a pure budget no floor is shown" in text
    assert "not knowing that 300 ticks are all" in text
    pure = repr(et.plan(et.Counter, guarantee=PURE, horizon=300))
    assert " floor " not in pure.splitlines()[0]
    assert "no floor is shown" in pure


def test_a_process_that_must_be_named_has_its_row() -> None:
    plan = et.plan(et.Counter, guarantee=ZC, horizon=300, mechanism="bank")
    assert [way.name for way in plan] == ["bank"]
    made = et.Counter(guarantee=ZC, horizon=300, mechanism="bank", key=ZeroNoise())
    assert plan.best.worst_stddev == made.worst_stddev()
    assert plan.best.bound == pytest.approx(made.error_bound(0.05))
    assert plan.best.above_floor is not None
    assert plan.best.above_floor < 1.02
    assert math.isfinite(plan.best.predicted)


def test_the_table_behind_a_counter_has_floors_too() -> None:
    ranking = ranking_of(et.Counter(guarantee=ZC, horizon=300, key=ZeroNoise()))
    assert ranking.best.floor == count_floor(300, ZC)
    assert "not knowing" in repr(ranking)
