"""What a spec will release and how good it will be, before any data is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evertally.privacy import Guarantee
from evertally.runtime.mechanisms import Mechanisms, build
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.spec.options import UNKNOWN
from evertally.statistics.column_options import is_question


@dataclass(frozen=True)
class Discovery:
    """Which items of an unknown domain show at the last tick of the plan.

    A noisy count must exceed `threshold`. An item that occurred `surely` times is shown with probability at least
    1 - beta, one that occurred threshold + 1 times in about half of all cases.
    """

    threshold: int
    surely: int


@dataclass(frozen=True)
class PlannedQuery:
    """One query: the noise that was chosen for it, what it pays, and its error at the last tick of the plan.

    A mean has no error known beforehand: it depends on the number of events. Its releases carry an interval. Partitions
    and selections have a bound and no standard deviation. A bound is infinite where nothing that was declared bounds
    the error: `unbounded_because` says what is missing. `guessed_bound` is that of a partition while answers stay below
    `largest`, a guess; None where it is not smaller. `numbers` is None where nobody knows how many there will be.
    """

    name: str
    kind: str
    numbers: int | None
    mechanism: str
    exactness: str
    charge: Guarantee
    stddev: float | None
    error_bound: float | None
    guessed_bound: float | None = None
    unbounded_because: str | None = None
    discovery: Discovery | None = None


@dataclass(frozen=True)
class Plan:
    """Errors are in the released unit for counts; `ticks` is the horizon, or the tick at which errors are quoted.

    `warnings`: what whoever relies on the guarantee must be told. `about`: what the intervals and bounds are about.
    """

    ticks: int
    beta: float
    queries: tuple[PlannedQuery, ...]
    warnings: tuple[str, ...] = ()
    about: str = ""


def plan(spec: StreamSpec, ticks: int | None = None) -> Plan:
    """Builds the mechanisms (with a key that is thrown away) and asks them. No key file or input is touched."""
    return plan_of(spec, build(spec, key=None), ticks)


def plan_of(spec: StreamSpec, mechanisms: Mechanisms, ticks: int | None = None) -> Plan:
    """The plan of mechanisms that exist."""
    at = ticks or spec.horizon or 1024
    rows = []
    for query in spec.queries:
        is_mean = query.kind == "mean"
        mechanism = mechanisms[query.name]
        when = None if spec.horizon else at
        bound = None if is_mean else mechanism.error_bound(spec.beta, t=when)
        rows.append(
            PlannedQuery(
                name=query.name,
                kind=query.kind,
                numbers=_numbers(query, mechanism),
                mechanism=mechanism.mechanism,
                exactness=mechanism.exactness,
                charge=mechanism.charge,
                stddev=None if is_mean else mechanism.stddev(at),
                error_bound=bound,
                guessed_bound=_guessed(mechanism, spec.beta, when, bound),
                unbounded_because=getattr(mechanism, "unbounded_because", None),
                discovery=_discovery(query, mechanism, spec.beta, at),
            )
        )
    return Plan(at, spec.beta, tuple(rows), warnings_of(spec), about_intervals(spec))


def only_above(planned: PlannedQuery) -> bool:
    """Whether the bound is about counts that are too high alone: what blocks lose is in the intervals."""
    return planned.kind in UNKNOWN and planned.mechanism == "meta"


def warnings_of(spec: StreamSpec) -> tuple[str, ...]:
    """A delta that is too large for the declared number of events, or for any."""
    events = spec.max_events_per_tick
    warning = spec.guarantee.warning(events * spec.horizon if events and spec.horizon else None)
    return () if warning is None else (warning,)


def about_intervals(spec: StreamSpec) -> str:
    """What the released intervals and the error bounds of a stream are about: not always what happened."""
    if spec.unit != "user":
        return "intervals and bounds are about all events, cut to their bounds one by one"
    return (
        f"intervals and bounds are about the events that the cap kept, at most {spec.max_events_per_user} of each "
        f"{spec.user_column!r}; what it left out is not counted, and nothing here says how much that was"
    )


def _guessed(mechanism: Any, beta: float, tick: int | None, bound: float | None) -> float | None:
    if not is_question(mechanism) or bound is None:
        return None
    guessed = mechanism.error_bound(beta, tick=tick, trust_largest=True)
    return guessed if guessed < bound else None


def _discovery(query: QuerySpec, mechanism: Any, beta: float, tick: int) -> Discovery | None:
    """None where all labels are declared, and where the threshold of a block depends on the other items in it."""
    if query.kind not in UNKNOWN or mechanism.mechanism == "meta":
        return None
    threshold = mechanism.threshold_at(tick)
    return Discovery(threshold, threshold + math.floor(mechanism.error_bound(beta, t=tick)) + 1)


def _numbers(query: QuerySpec, mechanism: Any) -> int | None:
    """How many numbers, or labels, a release has; of found ones, how many at most."""
    if query.kind == "unknown-histogram":
        return None
    if query.kind == "histogram":
        return len(mechanism.columns)
    return int(query.parameters.get("k", len(query.parameters.get("expressions", "1"))))
