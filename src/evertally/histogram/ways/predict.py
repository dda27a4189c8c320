"""The error that each way typically makes: what "auto" compares.

Error bounds are promises, and some are looser than others: recomputation stays near its bound, a partition at half of
it. So a choice by bounds would be wrong where the ways are close. What is predicted here is the median over runs of the
largest error of any tick, on a stream on which one column grows evenly and reaches `largest` at the end of the horizon
while the others stay empty. If `largest` is not declared, it reaches what it can: horizon times growth. Where a query
looks at all columns their noise counts in full; for order statistics in the middle that is more than happens, by the
same factor for all ways.

All from public numbers, before the stream starts (price-of-continual-release 3.8): a prediction may be poor, but it can
cost no privacy.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.extremes import Floats, TypicalTails, largest_where
from evertally.counting.process import NoiseProcess, spread_of
from evertally.counting.sqrt_estimate import SquareRoot
from evertally.histogram.tasks import AllColumns, Largest, Task
from evertally.noise import Law
from evertally.partition import Configuration, TwoLevelPlan
from evertally.partition.histograms import IN_BLOCKS
from evertally.partition.typical import Scales, TypicalStream, typical_error

_LN2 = math.log(2)
_TICKS = 512  # ticks at which the noise of a counter is looked at
_GOLDEN = (math.sqrt(5) - 1) / 2


def typical_stream(task: Task) -> TypicalStream:
    T = task.ticks
    largest = max(1, int(min(task.ceiling, T * task.growth)))
    narrow = isinstance(task.queries, Largest) and task.queries.count == 1
    return TypicalStream(T, largest, task.growth, task.columns, wide=not narrow, selects=task.selects)


def counter_error(task: Task, process: NoiseProcess | SquareRoot) -> float:
    """d counters: `process` is the noise of one of them."""
    stream = typical_stream(task)
    T, d = stream.horizon, stream.columns
    if stream.selects and d == 1:
        return 0.0
    if stream.selects:
        return _mistaken(stream, process)
    # Few ticks in place of all, spread so that no digit of a tree is favoured.
    count = min(T, _TICKS)
    ticks = np.arange(1, T + 1) if T <= _TICKS else 1 + np.floor(T * (np.arange(count) * _GOLDEN % 1)).astype(np.int64)
    tails = TypicalTails([process.spread(int(t)) for t in ticks])
    many = tails.theta * T / count
    height: Floats = np.zeros(count) if stream.wide else stream.rate * ticks.astype(np.float64)
    sides = 2 if isinstance(task.queries, AllColumns) else 1

    def expected(x: float) -> float:
        one = 2 * float(tails.above(np.full(count, x)).sum())
        return many * (one + sides * (d - 1) * float(tails.above(x + height).sum()))

    return largest_where(expected, _LN2, high=4 * process.spread(T).stddev)


def _mistaken(stream: TypicalStream, process: NoiseProcess | SquareRoot) -> float:
    """How far behind the leader a column is taken; the noise of two columns decides."""
    ticks, stand_for = _early(stream.horizon)
    tails = TypicalTails([process.spread(int(t)) for t in ticks])
    behind, each = stream.rivals
    missing = behind[:, None] * stream.rate * ticks
    mistaken = tails.theta * stand_for * each * tails.above(missing / math.sqrt(2))
    return largest_where(lambda x: float(mistaken[missing >= x].sum()), _LN2, high=float(stream.largest))


def _early(T: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Some of the numbers 1 .. T, and for how many each of them stands: all of the first, and ever fewer.

    Columns grow apart, so who is taken for the leader is decided early; later hardly anything is mistaken.
    """
    if T <= _TICKS:
        return np.arange(1, T + 1), np.ones(T, dtype=np.int64)
    edges = np.unique(np.geomspace(1, T + 1, _TICKS + 1).round().astype(np.int64))
    stand_for = np.diff(edges)
    within = np.floor(stand_for * (np.arange(1, stand_for.size + 1) * _GOLDEN % 1)).astype(np.int64)
    return edges[:-1] + within, stand_for


def recompute_error(task: Task, law: Law, period: int, releases: int) -> float:
    """The answer anew every `period` ticks: stale at the end of a period, noisy at its start."""
    stale = typical_stream(task).rate * (period - 1)
    tails = TypicalTails([spread_of(law, 1.0, 1.0)])

    def expected(x: float) -> float:
        fresh, late = (float(tails.above(np.array([y]))[0]) for y in (x, x - stale))
        return releases * (fresh + late + 2 * (task.queries.count - 1) * fresh)

    return largest_where(expected, _LN2, high=stale + 4 * law.stddev())


def selection_error(task: Task, scale: float, period: int, releases: int) -> float:
    """A selection every `period` ticks: a column that is x behind is taken with probability of about exp(-x/scale)."""
    stream = typical_stream(task)
    if stream.columns == 1:
        return 0.0
    behind, each = stream.rivals
    places, stand_for = _early(releases)
    missing = behind[:, None] * stream.largest * places / releases
    mistaken = each * stand_for * np.exp(-missing / scale)
    wrong = largest_where(lambda x: float(mistaken[missing >= x].sum()), _LN2, high=float(stream.largest))
    return stream.rate * (period - 1) + wrong


def partition_error(task: Task, configuration: Configuration) -> float:
    """Rebased thresholds and intervals: simulated. Ladders: one step, and each noise once."""
    stream = typical_stream(task)
    if configuration.histogram in IN_BLOCKS:
        scales = Scales.of(configuration.noise, configuration.terms.change)
        kappa = configuration.rise(1, stream.horizon)
        return _simulated(stream, scales, kappa, configuration.histogram, configuration.intervals)
    if configuration.rise(1, stream.horizon) >= stream.largest:
        return float(stream.largest)  # nothing ever closes
    return configuration.typical(stream.horizon, intervals_reached(task, configuration))


def intervals_reached(task: Task, configuration: Configuration) -> int:
    """About how many intervals the synthetic stream closes, each growing by its rise."""
    stream, j, reached = typical_stream(task), 1, 0
    while reached < stream.largest:
        step = max(1, j // 8)
        reached += step * configuration.rise(j, stream.horizon)
        j += step
    return j if configuration.histogram in IN_BLOCKS else min(j, configuration.intervals or j)


@lru_cache(maxsize=512)
def _simulated(stream: TypicalStream, scales: Scales, kappa: int, histogram: str, n: int | None) -> float:
    return typical_error(stream, scales, kappa, histogram, n)


def two_level_error(task: Task, plan: TwoLevelPlan) -> float:
    """The partition of the last segment that is reached."""
    stream = typical_stream(task)
    inner = plan.inner(plan.segment_of(stream.largest))
    return min(float(stream.largest), inner.typical(stream.horizon, inner.intervals or 1))
