"""What a spec will release and how good it will be, before any data is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evertally.privacy import Guarantee
from evertally.runtime.mechanisms import build
from evertally.runtime.spec import QuerySpec, StreamSpec


@dataclass(frozen=True)
class PlannedQuery:
    """One query: the noise that was chosen for it, what it pays, and its error at the last tick of the plan.

    A mean has no error known beforehand: it depends on the number of events. Its releases carry an interval. Partitions
    and selections have a bound and no standard deviation.
    """

    name: str
    kind: str
    numbers: int
    mechanism: str
    exactness: str
    charge: Guarantee
    stddev: float | None
    error_bound: float | None


@dataclass(frozen=True)
class Plan:
    """Errors are in the released unit for counts; `ticks` is the horizon, or the tick at which errors are quoted."""

    ticks: int
    beta: float
    queries: tuple[PlannedQuery, ...]


def plan(spec: StreamSpec, ticks: int | None = None) -> Plan:
    """Builds the mechanisms (with a key that is thrown away) and asks them. No key file or input is touched."""
    at = ticks or spec.horizon or 1024
    mechanisms = build(spec, key=None)
    rows = []
    for query in spec.queries:
        is_mean = query.kind == "mean"
        mechanism = mechanisms[query.name]
        rows.append(
            PlannedQuery(
                name=query.name,
                kind=query.kind,
                numbers=_numbers(query, mechanism),
                mechanism=mechanism.mechanism,
                exactness=mechanism.exactness,
                charge=mechanism.charge,
                stddev=None if is_mean else mechanism.stddev(at),
                error_bound=None if is_mean else mechanism.error_bound(spec.beta, t=None if spec.horizon else at),
            )
        )
    return Plan(at, spec.beta, tuple(rows))


def _numbers(query: QuerySpec, mechanism: Any) -> int:
    """How many numbers, or labels, a release has."""
    if query.kind == "histogram":
        return len(mechanism.columns)
    return int(query.parameters.get("k", len(query.parameters.get("expressions", "1"))))
