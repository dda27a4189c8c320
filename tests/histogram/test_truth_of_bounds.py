"""Guesses and undeclared numbers carry no bound: every statement about errors holds on every stream that is declared.

A statement is `error_bound`, the interval of a release, `status`. Streams: one burst or several, at the worst moments,
as large as the declaration allows, or if nothing is declared as large as one likes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.counting.choose import KINDS
from evertally.histogram.ways import NAMES
from evertally.partition.intervals import NO_BOUND

TICKS, RUNS, BETA = 40, 8, 0.01
MOST_FAILURES = 3  # Binomial(8, 0.01) is above 3 with probability 7e-7

LABELS = ["a", "b", "c"]
Row = Any


def bursts(height: int) -> dict[str, Row]:
    """Streams of three columns with at most `height` events in a tick."""
    streams = {
        name: np.zeros((TICKS, 3), dtype=np.int64) for name in ("second tick", "again and again", "all the time")
    }
    streams["second tick"][1, 1] = height
    streams["again and again"][1::6, 1] = height
    streams["again and again"][3::6, 2] = height
    streams["all the time"][:, 0] = height
    return streams


# How an answer is judged: the truth about exact sums that its interval speaks about.
QUESTIONS: dict[str, tuple[Callable[..., Any], Callable[[Any, Row], Any]]] = {
    "MaxSum": (lambda **options: et.MaxSum(LABELS, **options), lambda value, sums: sums.max()),
    "MinSum": (lambda **options: et.MinSum(LABELS, **options), lambda value, sums: sums.min()),
    "TopK": (lambda **options: et.TopK(2, LABELS, **options), lambda value, sums: np.sort(sums)[:0:-1]),
    "SumSelect": (
        lambda **options: et.SumSelect(LABELS, **options),
        lambda value, sums: sums.max() - sums[LABELS.index(value)],  # of a label: its deficit
    ),
    "Histogram": (
        lambda **options: et.Histogram(mechanism="sparse", categories=LABELS, **options),
        lambda value, sums: dict(zip(LABELS, sums.tolist(), strict=True)),
    ),
}


def flat(value: Any) -> Any:
    return np.atleast_1d(list(value.values()) if isinstance(value, dict) else value)


def judged(make: Callable[..., Any], truth: Callable[[Any, Row], Any], rows: Row, options: Any) -> tuple[int, int]:
    """In how many runs the bound of all ticks failed, and some interval."""
    sums = rows.cumsum(axis=0)
    bounds = intervals = 0
    settled: dict[str, Any] = {}
    for seed in range(RUNS):
        made = make(guarantee=et.PureDP(8.0), key=et.simulation(seed), **(options | settled))
        settled = {"mechanism": made.mechanism, "calibration": made._options["calibration"]}
        bound = made.error_bound(BETA, None if made.horizon else TICKS)
        failed = missed = False
        for row, exact in zip(rows, sums, strict=True):
            release = made.step(dict(zip(LABELS, row.tolist(), strict=True)))
            right = flat(truth(release.value, exact))
            error = right if isinstance(release.value, str) else right - flat(release.value)
            failed |= bool(np.abs(error).max() > bound)
            low, high = release.interval(BETA)
            missed |= not (np.all(flat(low) <= right) and np.all(right <= flat(high)))
            if made.status != "ok":
                assert np.all(flat(high) >= NO_BOUND / 2) or (made.status == "unbounded" and np.all(flat(high) < 2**40))
        bounds, intervals = bounds + failed, intervals + missed
    return bounds, intervals


# Counters are the same noise whatever the answer: one of each kind stands for them.
WAYS = [name for name in NAMES if name not in KINDS or name in ("tree", "epoch-tree")]


@pytest.mark.parametrize("declared", [None, 500], ids=["undeclared", "declared"])
@pytest.mark.parametrize("mechanism", [*WAYS, "auto"])
def test_every_statement_is_true(mechanism: str, declared: int | None) -> None:
    """A largest answer of 20 is guessed, and thousands come."""
    tried = 0
    for name, (make, truth) in QUESTIONS.items():
        for horizon in (TICKS, None) if name == "MaxSum" else (TICKS,):
            options: dict[str, Any] = {"mechanism": mechanism, "largest": 20, "horizon": horizon}
            options |= {} if declared is None else {"max_events_per_tick": declared}
            try:
                make(guarantee=et.PureDP(8.0), key=et.simulation(0), **options)
            except et.ConfigurationError:
                continue
            for stream, rows in bursts(declared or 7000).items():
                found = judged(make, truth, rows, options)
                said = f"{name}, horizon {horizon}, {stream}: bound and intervals failed in {found} of {RUNS} runs"
                assert max(found) <= MOST_FAILURES, said
            tried += 1
    assert tried


def test_the_example_of_the_documentation() -> None:
    """4,900 events of one tick in one column. Within its numbers nothing was declared about a tick."""
    rows = np.zeros((2, 200), dtype=np.int64)
    rows[1, 7] = 4900
    for mechanism in ("auto", "recompute"):
        missed = 0
        for seed in range(6):
            top = et.MaxSum(
                columns=200,
                guarantee=et.PureDP(1.0),
                horizon=20_000,
                largest=5_000,
                mechanism=mechanism,
                key=et.simulation(seed),
            )
            release = [top.step(row) for row in rows][-1]
            low, high = release.interval(BETA)
            missed += not low <= 4900 <= high or abs(release.value - 4900) > top.error_bound(BETA)
        assert missed <= 1
        assert math.isfinite(top.error_bound()) == (mechanism == "auto")
        assert top.status == ("ok" if mechanism == "auto" else "unbounded")
        assert (top.unbounded_because is None) == (mechanism == "auto")
        assert mechanism == "auto" or "max_events_per_tick" in top.unbounded_because


def test_no_constant_on_a_guess() -> None:
    """20 was guessed, 2,000 come: whatever is taken looks at the data, and what it says is true."""
    for declared in ({}, {"max_events_per_tick": 1}):
        top = et.MaxSum(20, guarantee=et.PureDP(1.0), horizon=2000, largest=20, key=et.simulation(1), **declared)
        assert top.mechanism != "trivial"
        rows = np.zeros((2000, 20), dtype=np.int64)
        rows[:, 3] = 1
        errors = np.abs(top.run(rows) - np.arange(1, 2001))
        assert errors.max() <= top.error_bound(BETA)
    asked = et.MaxSum(20, guarantee=et.PureDP(1.0), horizon=2000, largest=20, mechanism="trivial", key=et.simulation(1))
    assert (asked.error_bound(), asked.status) == (math.inf, "unbounded")
    low, high = asked.step([0] * 20).interval()
    assert low <= 0
    assert high >= NO_BOUND
    known = et.MaxSum(
        20,
        guarantee=et.PureDP(1.0),
        horizon=2000,
        largest=20,
        max_events_per_tick=1,
        mechanism="trivial",
        key=et.simulation(1),
    )
    assert (known.error_bound(), known.status) == (1990, "ok"), "half of the guess, and 2,000 are possible"
    assert known.step([0] * 20).interval() == (0, 1)


def test_a_repeated_answer_is_never_too_high() -> None:
    """Between two releases of a recomputation the lower end holds, and the upper one says that nothing is known."""
    top = et.MaxSum(3, guarantee=et.PureDP(8.0), horizon=100, mechanism="recompute", key=et.simulation(2))
    period = top._engine.worker.period  # type: ignore[attr-defined]
    assert period > 1
    fresh, *stale = (top.step([10, 0, 0]).interval(BETA) for _ in range(period))
    assert fresh[1] - fresh[0] < 1000
    for low, high in stale:
        assert low == fresh[0]
        assert high > NO_BOUND / 2


def test_a_declared_number_carries_its_bound() -> None:
    """More declared, a larger bound, and none that is infinite; the guess moves the bound only if it is trusted."""
    for mechanism in ("recompute", "trivial", "two-level", "doubling"):
        bounds = [
            et.MaxSum(
                3, guarantee=et.PureDP(1.0), horizon=500, mechanism=mechanism, max_events_per_tick=m
            ).error_bound()
            for m in (1, 10, 100)
        ]
        assert bounds == sorted(bounds)
        assert math.isfinite(bounds[-1])
    made = et.MaxSum(3, guarantee=et.PureDP(1.0), horizon=500, largest=50, mechanism="bounded", max_events_per_tick=1)
    assert made.error_bound() == math.inf
    assert "declare largest=500" in made.unbounded_because
    sure = et.MaxSum(3, guarantee=et.PureDP(1.0), horizon=500, largest=500, mechanism="bounded", max_events_per_tick=1)
    assert math.isfinite(sure.error_bound())
    assert sure.unbounded_because is None
    assert sure.error_bound(trust_largest=True) == sure.error_bound()
