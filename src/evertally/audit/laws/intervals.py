"""The histogram mechanism H of a partition, for as many intervals as it is made for.

`audit.columns` audits H on a copy of up to 128 inserts, all of them. What H charges for its levels depends on how many
intervals there may be: here it is made for the real number, and read at the inserts that tell (`audit.laws.telling`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evertally.audit.columns import worker_of
from evertally.audit.gaussian import claim_of
from evertally.audit.laws.full_horizon import loss_of, read_process
from evertally.audit.laws.telling import telling_for
from evertally.audit.report import Report
from evertally.counting.process import NoiseProcess
from evertally.noise.source import ZeroSource
from evertally.partition import Configuration, PartitionEngine, TwoLevelPlan
from evertally.partition.histograms import make_histogram
from evertally.partition.optimal_blocks import OptimalBlocks
from evertally.privacy import PureDP

_SMALL = 128  # inserts that are read as they are
_MOST_READ = 2**12  # inserts, where every release has as many draws as there were inserts
_OPEN_ENDED = 2**10  # inserts that are looked at where their number has no limit


def interval_rows(model: Any) -> list[tuple[str, Callable[[], Report]]]:
    """Of partitions with more intervals than a copy has."""
    many = {level: made for level, made in levels_of(model).items() if (made.intervals or _OPEN_ENDED) > _SMALL}
    return [("full horizon", partial(intervals_report, model, made, level)) for level, made in many.items()]


def levels_of(model: Any) -> dict[str, Configuration]:
    """The partitions of a query on column sums, by the name of their level; none for other engines."""
    worker = worker_of(model)
    if not isinstance(worker, PartitionEngine):
        return {}
    plan = worker._formula
    if isinstance(plan, TwoLevelPlan):
        return {"outer level": plan.outer, "inner level": plan.inner(1)}
    assert isinstance(plan, Configuration)
    return {"": plan}


def intervals_report(model: Any, made: Configuration, level: str) -> Report:
    """What one insert loses in all releases of H together, at the full number of intervals, against H's share."""
    change, charge, group = made.terms.change, made.noise.histogram, model._task.group
    n = made.intervals or _OPEN_ENDED

    def histogram(source: Any, columns: int) -> NoiseProcess:
        return make_histogram(made.histogram, charge, change, made.intervals, made.terms.columns, source, width=columns)

    process = histogram(ZeroSource(), 1)
    reached = min(n, _MOST_READ)
    pure = isinstance(charge, PureDP)
    norm = float(change.l1) if pure else math.sqrt(change.l2_squared)
    found = []
    # Blocks of real noise have as many draws as inserts, and read slowly; they show most of the first.
    for tick in [1] if isinstance(process, OptimalBlocks) else sorted({1, reached // 2 + 1, reached}):
        ticks = telling_for(process, tick, reached)
        W, laws, two = read_process(histogram, ticks)
        try:
            moved = (np.array(ticks) >= tick).astype(np.float64)
            lost = math.inf if two else loss_of(W, laws, moved, float(process.spread(reached).roundings))
        except np.linalg.LinAlgError:
            lost = math.inf
        found.append((lost * norm, tick))
    audited, tick = max(found)
    unit, claimed = claim_of(charge)
    if pure:
        claimed, audited = group * claimed, group * audited
    of = f"{n} intervals" if made.intervals else "intervals without end"
    told = f"{level + ', ' if level else ''}full horizon, insert {tick} of {reached}, {of}"
    return replace(Report.computed(model, told, "closed form", f"{unit} of H", claimed, audited), aspect="noise")
