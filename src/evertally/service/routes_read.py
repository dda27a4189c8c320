"""What readers get: what is public about the stream, and what it has released."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import StreamingResponse

from evertally.runtime.clock import microseconds, written
from evertally.runtime.releases import as_json
from evertally.service import answers, metrics
from evertally.service.about import next_release
from evertally.service.access import Credentials
from evertally.service.answers import problems
from evertally.service.pages import MEDIA_TYPES, Format, Pages, encoded, stretch
from evertally.service.parts import Parts
from evertally.service.problems import Refused

_LARGEST_TICK = 2**53
_RELEASES: dict[str, Any] = {
    "model": answers.ReleasesAnswer,
    "description": "Releases in the order of their ticks.",
    "content": {
        "text/csv": {"schema": {"type": "string"}},
        "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
    },
}
_RELEASE_EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "event": {"const": "release"},
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"$ref": "#/components/schemas/TickAnswer"},
        },
    },
    "required": ["event", "id", "data"],
}
_ENDED_EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {"event": {"const": "ended"}, "data": {"const": "{}"}},
    "required": ["event", "data"],
}
_EVENTS: dict[str, Any] = {
    "description": "Server-sent events: `release` with a tick as its id, and `ended` after the last one.",
    "content": {"text/event-stream": {"itemSchema": {"oneOf": [_RELEASE_EVENT, _ENDED_EVENT]}}},
}
METRICS: dict[str, Any] = {
    "description": "The text format of Prometheus.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}

Tick = Annotated[int | None, Query(ge=0, le=_LARGEST_TICK)]
Limit = Annotated[int, Query(ge=1, le=10_000, description="The last so many ticks.")]


def read_routes(parts: Parts) -> APIRouter:
    door = Depends(parts.doorman.door("read"))
    router = APIRouter(tags=["read"], dependencies=[door], responses=problems(401, 403, 429))
    spec, pump, about = parts.spec, parts.pump, parts.about
    pages = Pages(spec, parts.history, parts.workers)

    @router.get("/v1/stream")
    async def stream() -> answers.AboutStream:
        """The stream: its promise in words and numbers, its clock, its queries, how far it is."""
        published = pump.published
        moment = next_release(spec, published)
        return about.stream(published, None if moment is None else written(microseconds(moment)), pump.ended)

    @router.get("/v1/plan")
    async def plan() -> answers.PlanAnswer:
        """Which noise each query has and how large its error is, known before any data."""
        return about.plan()

    @router.get("/v1/certificate")
    async def certificate() -> dict[str, Any]:
        """What is promised, to whom, for how long, and by which theorems."""
        return about.certificate

    @router.get("/v1/ledger")
    async def ledger() -> answers.LedgerAnswer:
        """How the guarantee is divided among the queries."""
        return about.ledger()

    @router.get("/v1/spec")
    async def public_spec() -> answers.SpecAnswer:
        """The public part of the spec."""
        return about.spec()

    @router.get("/v1/releases", response_class=StreamingResponse, responses={200: _RELEASES, **problems(400, 404, 503)})
    async def releases(
        query: Annotated[list[str] | None, Query(description="Only these queries.")] = None,
        first: Tick = None,
        last: Tick = None,
        every: Annotated[int, Query(ge=1, le=_LARGEST_TICK, description="Only multiples of it.")] = 1,
        limit: Limit = 500,
        points: Annotated[int | None, Query(ge=1, le=10_000, description="Thins evenly to about so many.")] = None,
        format: Format = "json",
    ) -> Response:
        """Past releases, the last 500 ticks unless more is asked for. Old ticks may have been thinned out."""
        if query is not None and not set(query) <= {one.name for one in spec.queries}:
            raise Refused(404, "the stream has no query of that name")
        wanted = stretch(pump.published, first, last, every, limit, points)
        return StreamingResponse(await pages.begin(wanted, query, format), media_type=MEDIA_TYPES[format])

    @router.get("/v1/head", responses=problems(400, 503))
    async def head(first: Tick = None, last: Tick = None, limit: Limit = 500) -> answers.HeadAnswer:
        """What vouches for all that was released: a hash chain over it, signed with the key that the certificate
        names. With `first` or `last`, digests of the kept ticks there, for a log that has not all ticks."""
        wanted = stretch(pump.published, first, last, 1, 0 if first is None and last is None else limit, None)

        def made() -> dict[str, Any]:
            return parts.history.head(parts.history.ticks(*wanted))

        return answers.HeadAnswer.model_validate(await parts.workers.read(made))

    @router.get("/v1/releases/latest", response_model=answers.TickAnswer, responses=problems(404, 503))
    async def latest() -> Response:
        """The last released tick."""
        found = await parts.workers.read(parts.history.latest)
        if found is None:
            raise Refused(404, "nothing has been released yet")
        return Response(encoded(as_json(spec, found)), media_type="application/json")

    @router.get("/v1/releases/live", response_class=Response, responses={200: _EVENTS, **problems(400, 503)})
    async def live(
        credentials: Credentials,
        caller: Annotated[str, door],
        after: Tick = None,
        last_event_id: Annotated[str, Header(alias="Last-Event-ID", pattern="^[0-9]{0,15}$")] = "",
    ) -> Response:
        """Every tick when it is published, after `Last-Event-ID` or `after` if given, without a gap."""
        # A browser that reconnects repeats its address: the id of the last event is the newer one of the two.
        start = int(last_event_id) if last_event_id else after
        answer = parts.live_events.answer(start, lambda: parts.doorman.welcomes(credentials, "read"), caller)
        if answer is None:
            raise Refused(503, "too many listeners, or too many of yours; try again later", {"Retry-After": "10"})
        return answer

    @router.get("/metrics", response_class=Response, responses={200: METRICS})
    async def public_metrics() -> Response:
        """Released and public values for Prometheus."""
        return Response(await parts.workers.read(parts.metrics.public), media_type=metrics.MEDIA_TYPE)

    return router
