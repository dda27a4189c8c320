"""What is public about a stream before any data: its promise, its plan, its ledger, its spec."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from fractions import Fraction
from typing import Any

from evertally.privacy import Guarantee
from evertally.runtime.certificate import certificate, plain_words
from evertally.runtime.clock import Clock
from evertally.runtime.plan import Plan, plan
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.service.answers import (
    AboutStream,
    Amounts,
    Budget,
    CardInStream,
    LedgerAnswer,
    LedgerEntry,
    PlanAnswer,
    PlannedAnswer,
    PlannedDiscovery,
    PublicClock,
    QueryInStream,
    SpecAnswer,
    SpecQuery,
)


class About:
    """The public side of one spec. The plan is made once: it does not depend on data."""

    def __init__(self, spec: StreamSpec) -> None:
        self._spec = spec
        self._plan: Plan = plan(spec)
        self.certificate: dict[str, Any] = certificate(spec)

    def stream(self, released: int, next_release: str | None, ended: bool) -> AboutStream:
        spec = self._spec
        horizon = spec.last_tick
        return AboutStream(
            name=spec.name,
            guarantee=str(spec.guarantee),
            plain_words=plain_words(spec),
            unit=spec.unit,
            neighbours=spec.neighbours,
            adversary=spec.guarantee.adversary,
            horizon=horizon,
            ended=ended,
            beta=spec.beta,
            clock=_clock(spec.clock),
            released=released,
            released_time=spec.clock.end_of(released) if released else None,
            next_release=next_release,
            budget=Budget(
                **_amounts(spec.guarantee).model_dump(),
                spent_share=float(self._spent()),
                ticks_left=None if horizon is None else max(0, horizon - released),
            ),
            queries=self._queries(),
        )

    def _queries(self) -> list[QueryInStream]:
        return [
            QueryInStream(
                name=query.name,
                kind=query.kind,
                column=query.column,
                labels=query.categories,
                share=str(query.share),
                mechanism=planned.mechanism,
                exactness=planned.exactness,
                charge=_amounts(planned.charge),
                stddev=_finite(planned.stddev),
                error_bound=_finite(planned.error_bound),
                unbounded_because=planned.unbounded_because,
                ours=query.ours,
                card=_card(query),
            )
            for query, planned in zip(self._spec.queries, self._plan.queries, strict=True)
        ]

    def plan(self) -> PlanAnswer:
        rows = []
        for planned in self._plan.queries:
            found = planned.discovery
            fields = {field.name: getattr(planned, field.name) for field in dataclasses.fields(planned)}
            fields |= {name: _finite(fields[name]) for name in ("stddev", "error_bound", "guessed_bound")}
            fields["charge"] = _amounts(planned.charge)
            fields["discovery"] = None if found is None else PlannedDiscovery(**dataclasses.asdict(found))
            rows.append(PlannedAnswer(**fields))
        return PlanAnswer(
            ticks=self._plan.ticks,
            beta=self._plan.beta,
            queries=rows,
            warnings=list(self._plan.warnings),
            about=self._plan.about,
        )

    def ledger(self) -> LedgerAnswer:
        entries = [
            LedgerEntry(
                query=query.name,
                share=str(query.share),
                promised=str(self._promised(query.share, query.takes_whole(self._spec.guarantee))),
                charge=str(planned.charge),
                amounts=_amounts(planned.charge),
            )
            for query, planned in zip(self._spec.queries, self._plan.queries, strict=True)
        ]
        spent = self._spent()
        return LedgerAnswer(
            guarantee=str(self._spec.guarantee), entries=entries, spent=float(spent), left=float(1 - spent)
        )

    def _promised(self, share: Fraction, whole: bool) -> Guarantee:
        return self._spec.guarantee if whole else self._spec.shared.share(share)

    def _spent(self) -> Fraction:
        return sum((query.share for query in self._spec.queries), Fraction(0))

    def spec(self) -> SpecAnswer:
        spec = self._spec
        return SpecAnswer(
            name=spec.name,
            digest=spec.digest,
            horizon=spec.horizon,
            neighbours=spec.neighbours,
            unit=spec.unit,
            max_events_per_user=spec.max_events_per_user,
            user_column=spec.user_column,
            max_events_per_tick=spec.max_events_per_tick,
            guarantee=str(spec.guarantee),
            clock=_clock(spec.clock),
            beta=spec.beta,
            events=None if spec.events is None else dict(spec.events),
            columns=spec.columns(),
            queries=[
                SpecQuery(
                    name=query.name,
                    kind=query.kind,
                    share=str(query.share),
                    column=query.column,
                    parameters=dict(query.parameters),
                )
                for query in spec.queries
            ],
            max_batch_bytes=spec.serve.max_batch_bytes,
            requests_per_second=spec.serve.requests_per_second,
            publish_after=spec.serve.publish_after,
        )


def next_release(spec: StreamSpec, published: int) -> dt.datetime | None:
    """When the next tick is published; None after the last one, and where ticks close on request."""
    clock = spec.clock
    if clock.close == "request" or published == spec.last_tick:
        return None
    end = dt.datetime.fromisoformat(str(clock.end_of(published + 1)))
    return end + dt.timedelta(seconds=spec.serve.publish_after)


def _card(query: QuerySpec) -> CardInStream:
    card, result = query.record.card, query.record.result
    return CardInStream(
        view=card.view,
        words=card.shown(query.column, query.parameters),
        together=card.shown(query.column, query.parameters, several=True) if card.together else None,
        order=card.order(query.parameters),
        values="labels" if result.value == "label" else "numbers",
        places=card.places,
    )


def _clock(clock: Clock) -> PublicClock:
    return PublicClock(
        start=clock.end_of(0),
        tick_seconds=None if clock.integer else clock.length / 1e6,
        tick_length=clock.length,
        close=clock.close,
        column=clock.column,
        end=None if clock.ticks is None else clock.end_of(clock.ticks),
    )


def _amounts(guarantee: Any) -> Amounts:
    return Amounts(**{name: getattr(guarantee, name, None) for name in ("epsilon", "rho", "delta")})


def _finite(value: float | None) -> float | None:
    """JSON has no infinity."""
    return None if value is None or not math.isfinite(value) else float(value)
