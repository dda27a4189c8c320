"""Queries on column sums, for the checks: every engine, with every relation, unit and law that it takes.

Their answers follow the stream in steps, so a noiseless one may be stale: by as much as the thresholds in force let go
unseen, or by the ticks since the last recomputation. Budgets are large and counts are high, so that within a few ticks
intervals close and the answers outgrow their error bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject, difference
from evertally.counting.linear import LinearEngine
from evertally.counting.processes import PROCESSES
from evertally.histogram import expressions
from evertally.histogram.in_place import Recomputation
from evertally.noise import NoiseKey
from evertally.partition import PartitionEngine, TwoLevelPlan
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.statistics import (
    Counter,
    Histogram,
    MaxSum,
    MinSum,
    MonotoneQuery,
    SumQuantile,
    SumSelect,
    TopK,
    TopKSelect,
)
from long import LONG

PURE, CONCENTRATED, APPROXIMATE = PureDP(20.0), ZCDP(20.0), ApproxDP(20.0, 1e-6)
OBLIVIOUS = ApproxDP(20.0, 1e-6, adversary="oblivious")
SMALL_PURE, SMALL_CONCENTRATED = PureDP(4.0), ZCDP(2.0)
USER: dict[str, Any] = {"unit": "user", "max_events_per_user": 2}

_LABELS = ["a", "b", "c", "d"]
_RUNS = 60 if LONG else 40  # Binomial(., 0.1) is above its mean by six standard deviations with probability 8e-7

Row = NDArray[np.int64]


def busy(n: int) -> list[list[int]]:
    """Up to a hundred events in a tick; the columns are close in pairs."""
    sizes = (100, 100, 60, 60)
    return [[size * (2 + (3 * t * t + 2 * j * t + j) % 4) // 5 for j, size in enumerate(sizes)] for t in range(n)]


def race(n: int) -> list[list[int]]:
    """The first two columns lead for three ticks and fall behind; the last two are equal."""
    return [[100, 90, 30, 30] if t < 3 else [0, 10, 80, 80] for t in range(n)]


def quiet(n: int) -> list[list[int]]:
    """One event in a tick, in several columns; the first one leads at first."""
    return [[int(t < 6), int(t % 2), int(t >= 6 and t % 8 > 0), int(t >= 6)] for t in range(n)]


@dataclass(frozen=True)
class Workload:
    """A stream, and what is declared about it."""

    feed: Callable[[int], list[Any]]
    ticks: int
    declared: dict[str, Any]


BUSY = Workload(busy, 24, {"largest": 2400, "max_events_per_tick": 100})
UNDECLARED = Workload(busy, 24, {"max_events_per_tick": 100})
RACE = Workload(race, 32, {"largest": 3200, "max_events_per_tick": 100})
QUIET = Workload(quiet, 60, {"max_events_per_tick": 1})
UNSAID = Workload(quiet, 60, {})  # nobody said how many events a tick has: repeated and constant answers have no bound


@dataclass(frozen=True)
class Question:
    """What is asked: how the mechanism is made, the exact answer from exact sums, and how far an answer is off."""

    name: str
    make: Callable[..., Any]
    answer: Callable[[Row], Any]
    error: Callable[[Any, Any], NDArray[np.float64]] = difference
    width: int | None = 4  # columns of a tick's input; None: a plain number


def _deficit(label: str, sums: Row) -> NDArray[np.float64]:
    return np.array([sums.max() - sums[_LABELS.index(label)]], dtype=np.float64)


def _deficits(labels: list[str], sums: Row) -> NDArray[np.float64]:
    right = np.sort(sums)[::-1][: len(labels)]
    return np.array(right - sums[[_LABELS.index(label) for label in labels]], dtype=np.float64)


def _by_label(sums: Row) -> dict[str, int]:
    return dict(zip(_LABELS, sums.tolist(), strict=True))


def _top_and_mean(sums: Row) -> dict[str, int]:
    return {"top": int(sums.max()), "mean": -(-int(sums.sum()) // sums.size)}


_TOP_AND_MEAN = {"top": expressions.Maximum(), "mean": expressions.Mean()}

LARGEST = Question("MaxSum", partial(MaxSum, _LABELS), np.max)
SMALLEST = Question("MinSum", partial(MinSum, _LABELS), np.min)
MEDIAN = Question("Quantile(1/2)", partial(SumQuantile, "1/2", _LABELS), lambda sums: np.sort(sums)[1])
TOP = Question("TopK(2)", partial(TopK, 2, _LABELS), lambda sums: np.sort(sums)[:1:-1])
LEADER = Question("SumSelect", partial(SumSelect, _LABELS), lambda sums: sums, _deficit)
LEADERS = Question("TopKSelect(3)", partial(TopKSelect, 3, _LABELS), lambda sums: sums, _deficits)
MEAN = Question(
    "MonotoneQuery(mean)", partial(MonotoneQuery, expressions.Mean(), _LABELS), lambda sums: -(-sums.sum() // 4)
)
SEVERAL = Question("MonotoneQuery(top, mean)", partial(MonotoneQuery, _TOP_AND_MEAN, _LABELS), _top_and_mean)
COUNT = Question("Counter", Counter, lambda total: total, width=None)
HISTOGRAM = Question("Histogram", partial(Histogram, categories=_LABELS), _by_label)
# the same columns, the last one for undeclared labels
LARGEST_OTHER = Question("MaxSum(other)", partial(MaxSum, _LABELS[:3], other=_LABELS[3]), np.max)
LEADERS_OTHER = Question(
    "TopKSelect(4, other)", partial(TopKSelect, 4, _LABELS[:3], other=_LABELS[3]), lambda sums: sums, _deficits
)
HISTOGRAM_OTHER = Question("Histogram(other)", partial(Histogram, categories=_LABELS[:3], other=_LABELS[3]), _by_label)


def staleness(mechanism: Any) -> float:
    """How far a noiseless answer may be off, from public numbers: what could happen unseen since the last release."""
    if isinstance(mechanism._engine, LinearEngine):
        return 0.0
    worker = mechanism._engine.worker
    if isinstance(worker, Recomputation):
        return float((worker.period - 1) * mechanism._task.growth)
    if not isinstance(worker, PartitionEngine):
        return float(mechanism._task.ceiling)
    engine: Any = worker.partition
    configuration: Any = worker._formula
    if isinstance(configuration, TwoLevelPlan):
        configuration, engine = configuration.inner(engine.closes + 1), engine._inner
    return float(configuration.rise(engine.closes + 1, mechanism.tick))


def query(
    question: Question,
    guarantee: Guarantee,
    mechanism: str,
    workload: Workload = BUSY,
    *,
    unlimited: bool = False,
    **options: Any,
) -> Subject:
    """A question about a stream, answered in one way; `unlimited`: without a horizon."""
    horizon = None if unlimited else workload.ticks
    shown = {"largest": workload.declared.get("largest"), "events": "undeclared" if not workload.declared else None}
    shown |= options
    words = [mechanism, repr(guarantee), f"T={horizon}", *(f"{k}={v}" for k, v in shown.items() if v is not None)]
    options = workload.declared | options

    def feed(n: int) -> list[Any]:
        rows = workload.feed(n)
        return [row[0] for row in rows] if question.width is None else rows

    def make(key: NoiseKey) -> Any:
        return question.make(guarantee=guarantee, horizon=horizon, mechanism=mechanism, key=key, **options)

    return Subject(
        name=f"{question.name}: {', '.join(words)}",
        make=make,
        feed=feed,
        truth=lambda inputs: [question.answer(sums) for sums in np.cumsum(np.array(inputs), axis=0)],
        garbage=GARBAGE,
        wrong_calls=["abc", 1.5, [1] * 5, [0.5] * 4, None],
        ticks=workload.ticks,
        tolerance=staleness,
        error=question.error,
        noise="none" if mechanism == "trivial" else "fixed" if mechanism in (*PROCESSES, "recompute") else "transcript",
        users="unit" in options,
        runs=_RUNS,
    )


COLUMN_MECHANISMS: tuple[Subject, ...] = (
    # counters
    query(LARGEST, PURE, "tree"),
    query(LARGEST, CONCENTRATED, "sqrt"),
    query(LARGEST, CONCENTRATED, "bank"),
    query(LARGEST, CONCENTRATED, "bank-open", unlimited=True),
    query(LARGEST, PURE, "pure-blocks"),
    query(LARGEST, PURE, "epoch-blocks", unlimited=True),
    query(LARGEST, PURE, "epoch-tree", unlimited=True),
    query(LARGEST, ZCDP(20.0, adversary="oblivious"), "tree", neighbours="independent"),
    query(LEADERS, CONCENTRATED, "bank", RACE, max_per_event=1),
    query(LEADER, PURE, "tree", RACE, **USER),
    # partitions: every rule, with every law that it takes
    query(LARGEST, PURE, "rebased"),
    query(LARGEST, PURE, "rebased", UNDECLARED),
    query(LARGEST, PURE, "rebased", unlimited=True),
    query(LARGEST, APPROXIMATE, "rebased"),
    query(LARGEST, APPROXIMATE, "rebased", unlimited=True),
    query(LARGEST, CONCENTRATED, "rebased"),
    query(LARGEST, PURE, "bounded"),
    query(LARGEST, PURE, "bounded", unlimited=True),
    query(LARGEST, PURE, "noisy-ladders"),
    query(LARGEST, APPROXIMATE, "noisy-ladders"),
    query(LARGEST, PureDP(12.0), "doubling"),
    query(LARGEST, PURE, "two-level"),
    query(LARGEST, PURE, "two-level", unlimited=True),
    query(LARGEST, OBLIVIOUS, "two-level"),
    query(TOP, PURE, "rebased"),
    query(TOP, PURE, "noisy-ladders"),
    query(TOP, PURE, "two-level"),
    query(LEADER, PURE, "rebased", RACE),
    query(LEADER, PURE, "two-level", RACE),
    query(LEADERS, PURE, "intervals", RACE),
    query(LEADERS, PURE, "noisy-ladders", RACE),
    query(LEADERS, PURE, "doubling", RACE),
    query(MEAN, PURE, "intervals"),
    query(SEVERAL, APPROXIMATE, "rebased"),
    query(COUNT, PURE, "sparse"),
    query(COUNT, PURE, "sparse", unlimited=True),
    query(HISTOGRAM, APPROXIMATE, "sparse"),
    # recomputation and constants
    query(LARGEST, SMALL_PURE, "recompute", QUIET),
    query(TOP, SMALL_CONCENTRATED, "recompute", QUIET),
    query(LEADER, SMALL_PURE, "recompute", QUIET),
    query(LEADER, SMALL_CONCENTRATED, "recompute", QUIET),
    query(LARGEST, SMALL_PURE, "trivial", QUIET),
    query(LARGEST, SMALL_PURE, "recompute", UNSAID),
    query(LARGEST, SMALL_PURE, "trivial", UNSAID),
    query(LEADER, SMALL_PURE, "trivial", QUIET),
    # what an event, or a user, may do
    query(SMALLEST, PureDP(8.0), "rebased", max_per_event=1),
    query(MEDIAN, PureDP(8.0), "rebased", neighbours="replace", max_per_event=1),
    query(LARGEST, PURE, "rebased", max_weight=3),
    query(LARGEST, PURE, "rebased", split=("1/3", "1/3", "1/3")),
    query(LARGEST, PURE, "bounded", **USER),
    query(LARGEST, SMALL_PURE, "recompute", QUIET, neighbours="replace", **USER),
    query(COUNT, PURE, "sparse", max_weight=2, neighbours="replace", **USER),
    query(HISTOGRAM, PURE, "sparse", max_per_event=2, neighbours="replace"),
    query(LARGEST_OTHER, PURE, "rebased"),
    query(LEADERS_OTHER, PURE, "rebased", RACE),
    query(HISTOGRAM_OTHER, PURE, "sparse"),
)
