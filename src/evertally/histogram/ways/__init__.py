"""Every way to answer a question about column sums, with the budget it pays and the error that it makes.

`"auto"` takes the way with the smallest predicted error (`predict`) among those that fit. The choice is made from
public numbers before the stream starts, so it costs nothing (price-of-continual-release 3.8, M7; running several ways
and publishing the best afterwards would be another, unproved procedure, trap P4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from evertally.contract.snapshot import guarantee_from_json
from evertally.counting.processes import OURS, PROCESSES, unknown
from evertally.errors import ConfigurationError
from evertally.histogram.tasks import Task
from evertally.histogram.ways import partitions
from evertally.histogram.ways.column_way import ColumnWay
from evertally.histogram.ways.constant import constant as constant_way
from evertally.histogram.ways.counters import counters as counter_ways
from evertally.histogram.ways.recomputation import recompute
from evertally.privacy import Neighbours
from evertally.ranking import Ranking, Way, chosen

NAMES = (*OURS, *partitions.NAMES, "recompute", "trivial")

__all__ = ["NAMES", "ColumnWay", "check_known", "choose", "rank"]


def check_known(mechanism: str) -> None:
    if mechanism != "auto" and mechanism not in (*NAMES, *PROCESSES):
        raise unknown(mechanism, NAMES)


def rank(task: Task, mechanism: str = "auto") -> Ranking:
    """All ways (or the named one, with each budget that it may pay), best first, and why the others do not fit."""
    check_known(mechanism)
    found: list[Way] = []
    for name in _all_names(task) if mechanism == "auto" else (mechanism,):
        try:
            found.extend(_ways(task, name))
        except ConfigurationError as error:
            said = f'mechanism "{name}"'
            reason = str(error) if str(error).startswith(said) else f"{said}: {error}"
            found.append(Way(name=name, charge=None, refused=reason))
    return Ranking(found)


def choose(task: Task, mechanism: str) -> ColumnWay:
    """The named way, or the best one; of a task that was settled, the one that was chosen then."""
    if task.settled is not None:  # by numbers from outside: they are read each time
        return _best(task, mechanism)
    return chosen((task, mechanism), lambda: _best(task, mechanism))


def _best(task: Task, mechanism: str) -> ColumnWay:
    ranked = rank(task, mechanism)
    if task.settled is not None:
        charge = guarantee_from_json(task.settled["charge"])
        ranked = Ranking(way for way in ranked if way.refused or way.charge == charge)
    best = ranked.best
    assert isinstance(best, ColumnWay)
    return best


def _all_names(task: Task) -> Iterator[str]:
    # Nobody should get an answer that ignores the data because of a guess: a constant is for what was declared.
    sure = math.isfinite(task.reachable) and (task.largest is None or task.largest >= task.reachable)
    return (name for name in NAMES if name != "trivial" or sure)


def _ways(task: Task, name: str) -> Iterator[ColumnWay]:
    if name in PROCESSES:
        return counter_ways(task, name)
    if task.neighbours is Neighbours.INDEPENDENT:
        # parameterized-histograms 1.2: d intervals could each contain a difference
        raise ConfigurationError('independent neighbours are proved for counters only, e.g. "tree"')
    if name == "recompute":
        return recompute(task)
    if name == "trivial":
        return iter([constant_way(task)])
    return partitions.partitions(task, name)
