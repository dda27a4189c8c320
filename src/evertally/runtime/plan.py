"""What a spec will release and how good it will be, before any data is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evertally.kinds import Discovery
from evertally.pictures import html_table
from evertally.planner.user_cost import about_users
from evertally.privacy import Guarantee
from evertally.runtime.mechanisms import Mechanisms
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.standing import standing
from evertally.statistics.column_options import is_question

WITHOUT_END = 1024  # the tick at which errors of a stream without a horizon are quoted


@dataclass(frozen=True)
class PlannedQuery:
    """One query: the noise that was chosen for it, what it pays of what it was given (`promised`), and its error at the
    last tick of the plan; the largest standard deviation of all ticks up to there is `worst_stddev`.

    Where the error depends on the data (a mean's does, on the number of events) none is known beforehand, and releases
    carry an interval. Partitions and selections have a bound and no standard deviation. A bound is infinite where
    nothing that was declared bounds the error: `unbounded_because` says what is missing. `guessed_bound` is that of a
    partition while answers stay below `largest`, a guess; None where it is not smaller. `numbers` is None where nobody
    knows how many there will be. `users`: what a rule for users buys, beside group privacy, and which ticks it biases.
    `known`: of an error that depends on data, how large it is under assumptions.
    """

    name: str
    kind: str
    numbers: int | None
    mechanism: str
    exactness: str
    promised: Guarantee
    charge: Guarantee
    stddev: float | None
    error_bound: float | None
    guessed_bound: float | None = None
    unbounded_because: str | None = None
    discovery: Discovery | None = None
    worst_stddev: float | None = None
    users: tuple[str, ...] = ()
    known: str = ""


@dataclass(frozen=True)
class Plan:
    """Errors are in the released unit for counts; `ticks` is the horizon, or the tick at which errors are quoted.

    `warnings`: what whoever relies on the guarantee must be told. `about`: what the intervals and bounds are about.
    `advice`: what the writer of the spec may want otherwise.
    """

    ticks: int
    beta: float
    queries: tuple[PlannedQuery, ...]
    warnings: tuple[str, ...] = ()
    about: str = ""
    advice: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        heads = ["query", "kind", "numbers", "mechanism", "pays", "stddev", "error bound"]
        rows = [
            (one.name, one.kind, one.numbers, one.mechanism, str(one.charge), one.stddev, _finite(one.error_bound))
            for one in self.queries
        ]
        said = [f"errors at tick {self.ticks:,}; no number is off by more than its bound, but for {self.beta:.0%}"]
        return html_table("Plan", heads, rows, [*said, *([self.about] if self.about else []), *self.warnings])


def plan(spec: StreamSpec, ticks: int | None = None) -> Plan:
    """Asks the mechanisms that the stream runs on, or, before its first tick, new ones with a key that is thrown away.
    Nothing is written; the key is read only if there is a state."""
    return plan_of(spec, standing(spec), ticks)


def plan_of(spec: StreamSpec, mechanisms: Mechanisms, ticks: int | None = None) -> Plan:
    """The plan of mechanisms that exist."""
    at = ticks or spec.horizon or WITHOUT_END
    rows = []
    for query in spec.queries:
        record, mechanism = query.record, mechanisms[query.name]
        when = None if spec.horizon else at
        bound = None if record.error_later else mechanism.error_bound(spec.beta, t=when)
        rows.append(
            PlannedQuery(
                name=query.name,
                kind=query.kind,
                numbers=query.result.numbers(query.parameters),
                mechanism=mechanism.mechanism,
                exactness=mechanism.exactness,
                promised=mechanism.guarantee,
                charge=mechanism.charge,
                stddev=None if record.error_later else mechanism.stddev(at),
                error_bound=bound,
                guessed_bound=_guessed(mechanism, spec.beta, when, bound),
                unbounded_because=getattr(mechanism, "unbounded_because", None),
                worst_stddev=None if record.error_later else mechanism.worst_stddev(t=when),
                users=tuple(about_users(mechanism)),
                known=record.known_before(mechanism, spec.beta, when) if record.known_before else "",
                discovery=record.discovery and record.discovery(mechanism, spec.beta, at),
            )
        )
    return Plan(at, spec.beta, tuple(rows), warnings_of(spec), about_intervals(spec), advice_of(spec))


def only_above(query: QuerySpec, planned: PlannedQuery) -> bool:
    """Whether the bound is about counts that are too high alone: what blocks lose is in the intervals."""
    return planned.mechanism in query.record.only_above


def warnings_of(spec: StreamSpec) -> tuple[str, ...]:
    """A delta that is too large for the declared number of events, or for any; kinds that are not ours."""
    events = spec.max_events_per_tick
    large = spec.guarantee.warning(events * spec.horizon if events and spec.horizon else None)
    foreign = [query.name for query in spec.queries if not query.ours]
    warnings = [] if large is None else [large]
    if foreign:
        warnings.append(
            f"{', '.join(foreign)}: of a kind that is not ours. Whether it keeps its part of the promise is for its "
            "author to show"
        )
    return tuple(warnings)


def advice_of(spec: StreamSpec) -> tuple[str, ...]:
    """What the writer of a spec may want otherwise, told by the spec alone."""
    found = []
    for query in spec.queries:
        if query.record.advice is not None:
            said = query.record.advice(query.column, (spec.events or {}).get(query.column or ""))
            found += [f"{query.name}: {said}"] if said else []
    return tuple(found)


def about_intervals(spec: StreamSpec) -> str:
    """What the released intervals and the error bounds of a stream are about: not always what happened."""
    return _about(spec) + ("" if spec.order == "arrival" else f"; {order_words(spec)}")


def order_words(spec: StreamSpec) -> str:
    """Which events of a tick come first, where that is not decided by arrival."""
    whose = "events" if spec.user_column is None else "a user's events"
    return f"within a tick {whose} count in the order of a keyed hash of their content"


def _about(spec: StreamSpec) -> str:
    rules = [query.user_rule for query in spec.queries]
    if spec.unit == "event" and not any(rules):
        return "intervals and bounds are about all events, cut to their bounds one by one"
    if not any(rules):
        return (
            f"intervals and bounds are about the events that the cap kept, at most {spec.max_events_per_user} of each "
            f"{spec.user_column!r}; what it left out is not counted, and nothing here says how much that was"
        )
    return (
        f"intervals and bounds are about what the rules kept of each {spec.user_column!r}; what a rule left out is not "
        "counted, and nothing here says how much that was"
    )


def _finite(bound: float | None) -> float | str | None:
    return bound if bound is None or math.isfinite(bound) else "none"


def _guessed(mechanism: Any, beta: float, tick: int | None, bound: float | None) -> float | None:
    if not is_question(mechanism) or bound is None:
        return None
    guessed = mechanism.error_bound(beta, tick=tick, trust_largest=True)
    return guessed if guessed < bound else None
