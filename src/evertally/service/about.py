"""What is public about a stream and depends on no data: its promise, its plan, its ledger, its spec."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

from evertally.runtime.certificate import guesses, plain_words
from evertally.runtime.clock import Clock
from evertally.runtime.plan import Plan
from evertally.runtime.releases import listed
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.windows import Windows
from evertally.runtime.windows.offered import RANGES, declared_range, edges_of, offered
from evertally.service import answers


class About:
    """The public side of one stream. Plan and certificate are those of the mechanisms that run (`Live.described`), made
    once: they do not depend on data."""

    def __init__(
        self, spec: StreamSpec, plan: Plan, certificate: dict[str, Any], windows: Windows | None = None
    ) -> None:
        self._spec, self._plan, self.certificate = spec, plan, certificate
        self._windowed = frozenset() if windows is None else windows.windowed
        self._guesses = guesses(spec)
        self._planned = list(zip(spec.queries, self._plan.queries, strict=True))
        self._spent = sum((query.share for query in spec.queries), Fraction(0))
        self._public = {name: getattr(spec, name) for name in answers.PublicStream.model_fields}
        self._public |= {"clock": _clock(spec.clock), "unit": spec.protects}

    def stream(self, released: int, next_release: str | None, ended: bool) -> answers.AboutStream:
        spec, horizon = self._spec, self._spec.last_tick
        amounts = answers.Amounts.model_validate(spec.guarantee)
        left = None if horizon is None else max(0, horizon - released)
        named = [query.words.window for query in spec.queries if query.words.window is not None]
        return answers.AboutStream(
            **self._public | {"horizon": horizon},
            title=spec.title,
            noun=spec.noun or "event",
            description=spec.description,
            guesses=self._guesses,
            windows=[answers.Length(**one) for one in offered(spec.clock, horizon, named=named)],
            ranges=[answers.Length(**one) for one in offered(spec.clock, horizon, RANGES)],
            plain_words=plain_words(spec),
            adversary=spec.guarantee.adversary,
            ended=ended,
            released=released,
            released_time=spec.clock.end_of(released) if released else None,
            next_release=next_release,
            budget=answers.Budget(**dict(amounts), spent_share=float(self._spent), ticks_left=left),
            queries=[
                answers.QueryInStream(
                    **dict(answers.PlannedNoise.model_validate(planned)),
                    column=query.column,
                    labels=listed(query.categories),
                    share=str(query.share),
                    ours=query.ours,
                    card=_card(query, spec.clock, query.words.noun or spec.noun or "event"),
                    title=query.words.title,
                    noun=query.words.noun,
                    unit=query.words.unit,
                    description=query.words.description,
                    differences=query.name in self._windowed,
                    running=query.record.result.running,
                    window=query.words.window,
                    per=query.words.per,
                    edges=edges_of(query),
                    range=declared_range(query),
                )
                for query, planned in self._planned
            ],
        )

    def plan(self) -> answers.PlanAnswer:
        return answers.PlanAnswer.model_validate(self._plan)

    def ledger(self) -> answers.LedgerAnswer:
        spec = self._spec
        entries = [
            answers.LedgerEntry(
                query=query.name,
                share=str(query.share),
                promised=str(planned.promised),
                charge=str(planned.charge),
                amounts=answers.Amounts.model_validate(planned.charge),
            )
            for query, planned in self._planned
        ]
        spent, left = float(self._spent), float(1 - self._spent)
        return answers.LedgerAnswer(guarantee=str(spec.guarantee), entries=entries, spent=spent, left=left)

    def spec(self) -> answers.SpecAnswer:
        spec = self._spec
        return answers.SpecAnswer(
            **self._public,
            digest=spec.digest,
            max_events_per_user=spec.max_events_per_user,
            user_column=spec.user_column,
            period=spec.period,
            max_events_per_tick=spec.max_events_per_tick,
            events=None if spec.events is None else dict(spec.events),
            columns=spec.columns(),
            queries=[answers.SpecQuery.model_validate(query) for query in spec.queries],
            max_batch_bytes=spec.serve.max_batch_bytes,
            max_batch_rows=spec.serve.max_batch_rows,
            requests_per_second=spec.serve.requests_per_second,
            rows_per_second=spec.serve.rows_per_second,
            publish_after=spec.serve.publish_after,
        )


def next_release(spec: StreamSpec, published: int) -> dt.datetime | None:
    """When the next tick is published; None after the last one, and where ticks close on request."""
    clock = spec.clock
    if clock.close == "request" or published == spec.last_tick:
        return None
    end = dt.datetime.fromisoformat(str(clock.end_of(published + 1)))
    return end + dt.timedelta(seconds=spec.serve.publish_after)


def _card(query: QuerySpec, clock: Clock, noun: str) -> answers.CardInStream:
    card, result = query.record.card, query.result
    given = query.parameters
    ticks = None if card.period is None else given[card.period]
    return answers.CardInStream(
        made=card.making(query.column, given, noun),
        view=card.view_of(given),
        words=card.shown(query.column, given, lasting=clock.lasting),
        together=card.shown(query.column, given, several=True) if card.together else None,
        order=card.order(given),
        values="labels" if result.value == "label" else "numbers",
        places=card.places,
        vertices=None if card.vertices is None else card.vertices(given),
        names=None if card.names is None else card.names(given, clock.lasting),
        scale="log" if card.logarithmic is not None and card.logarithmic(given) else "linear",
        apart=card.apart,
        nested=card.nested is not None and card.nested(given),
        period=None if ticks is None else answers.CardPeriod(ticks=ticks, words=clock.lasting(ticks)),
    )


def _clock(clock: Clock) -> answers.PublicClock:
    return answers.PublicClock(
        start=clock.end_of(0),
        tick_seconds=None if clock.integer else clock.length / 1e6,
        tick_length=clock.length,
        close=clock.close,
        column=clock.column,
        end=None if clock.ticks is None else clock.end_of(clock.ticks),
    )
