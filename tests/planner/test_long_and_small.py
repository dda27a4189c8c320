"""Plans at their edges: very long streams, hardly any noise, selections, and what is said where nothing fits."""

from __future__ import annotations

import math
from typing import Any

import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from evertally.planner import Price, longest_horizon

ZC, PURE = et.ZCDP(0.5), et.PureDP(1.0)


@pytest.mark.parametrize("horizon", [2**30 + 1, 2**38, 2**40])
def test_long_streams_have_bounds_and_no_price(horizon: int) -> None:
    plan = et.plan(et.Counter, guarantee=ZC, horizon=horizon)
    assert plan.price is None
    assert math.isfinite(plan.best.bound)
    made = et.Counter(guarantee=ZC, horizon=horizon, key=ZeroNoise())
    assert made.error_bound() == plan.best.bound > made.error_bound(tick=1)


def test_few_are_built_to_find_a_horizon() -> None:
    asked: list[int] = []

    def bound(ticks: int) -> float:
        asked.append(ticks)
        return 2 * math.log(ticks) if ticks <= 2**24 else 5 * math.log(ticks)

    assert longest_horizon(1000, 50, bound, [2**24]) == 16_700_000
    assert len([ticks for ticks in asked if 10**6 < ticks <= 2**24]) == 1
    asked.clear()
    assert longest_horizon(1000, 32, bound, [2**24]) == 8_880_000
    assert len([ticks for ticks in asked if 10**6 < ticks <= 2**24]) <= 6


@pytest.mark.parametrize(
    ("promise", "horizon"), [(PURE, 1), (PURE, 1040), (ZC, 1), (ZC, 2), (ZC, 2**24 + 1), (et.ZCDP(5), 16)]
)
def test_a_price_is_never_a_gain(promise: Any, horizon: int) -> None:
    price = et.plan(et.Counter, guarantee=promise, horizon=horizon).price
    assert price is None or price.ratio >= 1
    if price is not None and price.not_told_stddev <= price.told_stddev:
        assert "costs nothing" in str(price)


def test_a_price_of_nothing_can_be_read() -> None:
    assert str(Price(1040, "pure-blocks", 14.4, "epoch-blocks", 10.8)) == (
        "not knowing that 1,040 ticks are all costs nothing: worst sd epoch-blocks 10.8, pure-blocks 14.4"
    )


@pytest.mark.parametrize(("rho", "shown"), [(0.125, True), (0.5, True), (0.6, False), (50, False)])
def test_no_floor_where_integer_noise_is_smaller(rho: float, shown: bool) -> None:
    for way in et.plan(et.Counter, guarantee=et.ZCDP(rho), horizon=16).fitting:
        if way.survey is not None:
            assert (way.floor is not None) == shown
            assert way.floor is None or way.above_floor is None or way.above_floor >= 1


@pytest.mark.parametrize("most", [1, 20])
def test_selections_prefer_the_process_with_less_noise(most: int) -> None:
    def first(horizon: int | None) -> list[str]:
        plan = et.plan(et.SumSelect, columns=5, guarantee=ZC, horizon=horizon, max_events_per_tick=most)
        return [way.name for way in plan.fitting]

    without = first(None)
    assert without.index("bank-open") < without.index("epoch-tree")
    told = first(1025)
    assert told.index("bank") < told.index("honaker")
    assert told.index("bank") < told.index("tree")


def test_what_is_suggested_fits_the_budget() -> None:
    def reasons(**options: Any) -> str:
        return "; ".join(et.plan(et.Counter, **options).reasons)

    pure = reasons(guarantee=PURE, horizon=None)
    assert 'mechanism "tree" needs a horizon; without one use "epoch-blocks"' in pure
    assert 'use "bank-open"' not in pure
    assert 'mechanism "bank" takes horizons up to 16777216; use "honaker"' in reasons(guarantee=ZC, horizon=2**24 + 1)
    with pytest.raises(ConfigurationError, match=r'^mechanism "bank" needs \d+ bytes'):
        et.VectorCounter(10**6, guarantee=ZC, horizon=100, memory_limit=100, key=ZeroNoise())


@pytest.mark.parametrize("beta", [None, "0.05", [0.05], True, 0, 1, float("nan"), 1j])
def test_beta_is_a_probability(beta: Any) -> None:
    counter = et.Counter(guarantee=PURE, horizon=10, key=ZeroNoise())
    plan = et.plan(et.Counter, guarantee=PURE, horizon=10)
    for ask in (counter.error_bound, lambda b: plan.guarantee_for(50, b), lambda b: plan.horizon_for(50, b)):
        with pytest.raises(ConfigurationError, match="beta is a probability"):
            ask(beta)
