"""`worst_stddev` is the largest `stddev` of all ticks, of every mechanism, workload, mean and stack; or it is None."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

import evertally as et
from conformance import MECHANISMS
from conformance.column_mechanisms import COLUMN_MECHANISMS
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise

ZC, PURE = et.ZCDP(0.5), et.PureDP(1.0)


def one_by_one(mechanism: Any, last: int) -> float | None:
    found = [mechanism.stddev(t) for t in range(1, last + 1)]
    return None if None in found else max(found)


# Partitions take long to build, and have none; one is asked below.
@pytest.mark.parametrize(
    "subject", [one for one in MECHANISMS if one not in COLUMN_MECHANISMS], ids=lambda subject: subject.name
)
def test_every_mechanism(subject: Any) -> None:
    mechanism = subject.make(et.simulation(0))
    horizon = mechanism.horizon
    assert horizon is None or horizon < 2**12 or mechanism.stddev(1) is None
    for last in sorted({1, 7, 20} if horizon is None else {1, (horizon + 1) // 2, horizon}):
        expected = one_by_one(mechanism, last)
        assert mechanism.worst_stddev(tick=last) == (None if expected is None else pytest.approx(expected, rel=1e-6))
    if horizon is not None:
        assert mechanism.worst_stddev() == mechanism.worst_stddev(t=horizon)


WORKLOADS = {
    "decay": et.workloads.Decay("9/10"),
    "window": et.workloads.Window(24),
    "weights": et.workloads.Weights(beta=[1, 3] * 150, alpha=[1 + (7 * t) % 50 for t in range(300)]),
    "rising": et.workloads.Weights(beta=[1] * 300, alpha=list(range(1, 301))),
    "even": et.workloads.Weights(beta=[1, 2] * 150),
    "average": et.workloads.Average(),
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("promise", [ZC, PURE], ids=["gaussian", "pure"])
def test_workloads(name: str, promise: Any) -> None:
    counter = et.Counter(workload=WORKLOADS[name], guarantee=promise, horizon=300, key=ZeroNoise())
    for last in (1, 30, 299, 300):
        assert counter.worst_stddev(tick=last) == pytest.approx(one_by_one(counter, last), rel=1e-9)


def test_where_there_is_none() -> None:
    mean = et.RunningMean(lower=0, upper=1, guarantee=ZC, horizon=100, key=ZeroNoise())
    largest = et.MaxSum(5, guarantee=PURE, horizon=100, largest=50, key=ZeroNoise())
    rare = et.Counter(mechanism="sparse", guarantee=PURE, horizon=100, largest=10, key=ZeroNoise())
    assert [made.worst_stddev() for made in (mean, largest, rare)] == [None] * 3
    window = et.Counter(
        workload=et.workloads.Window(24), mechanism="tree", guarantee=PURE, horizon=10**5, key=ZeroNoise()
    )
    assert window.stddev(10**5) is not None
    assert window.worst_stddev() is None  # no formula, and too many ticks to ask them all
    assert window.worst_stddev(tick=1000) == one_by_one(window, 1000)


def test_without_a_horizon_a_tick_is_needed() -> None:
    counter = et.Counter(guarantee=ZC, horizon=None, mechanism="bank-open", key=ZeroNoise())
    with pytest.raises(ConfigurationError, match=r"worst_stddev\(tick="):
        counter.worst_stddev()
    assert counter.worst_stddev(tick=1000) == pytest.approx(one_by_one(counter, 1000), rel=1e-6)
    for wrong in (0, -1, 101):
        with pytest.raises(ConfigurationError):
            et.Counter(guarantee=ZC, horizon=100, key=ZeroNoise()).worst_stddev(tick=wrong)


def test_many_columns_cost_nothing() -> None:
    totals = et.VectorCounter(columns=10**5, horizon=2**16, guarantee=ZC, mechanism="bank", key=ZeroNoise())
    one = et.Counter(horizon=2**16, guarantee=ZC, mechanism="bank", key=ZeroNoise())
    tracemalloc.start()
    try:
        assert totals.worst_stddev() == one.worst_stddev() == pytest.approx(4.28, abs=0.01)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
