"""The web application of one stream, put together from its parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

import evertally
from evertally.runtime.pump import Pump
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.history import History
from evertally.runtime.windows import Windows
from evertally.service.about import About
from evertally.service.access import Doorman
from evertally.service.answers import problems
from evertally.service.bodies import ReadingRoom
from evertally.service.headers import HeadRequests, SecurityHeaders
from evertally.service.hosts import KnownHosts
from evertally.service.limits import RateLimit
from evertally.service.live_events import LiveEvents
from evertally.service.metrics import Metrics
from evertally.service.parts import Parts
from evertally.service.problems import QuietErrors, add_problem_handlers, describe_truthfully
from evertally.service.routes_admin import admin_routes
from evertally.service.routes_ingest import ingest_routes
from evertally.service.routes_open import open_routes
from evertally.service.routes_read import read_routes
from evertally.service.routes_windows import window_routes
from evertally.service.tokens import TokenFile
from evertally.service.workers import Workers

_BODIES_AT_ONCE = 8  # of the largest size, in memory while they are read and parsed; half of them for one caller


def create_app(
    pump: Pump, history: History, spec: StreamSpec, tokens: TokenFile, hosts: frozenset[str] | None = None
) -> FastAPI:
    """The application. `spec` is that of the live stream, with its clock in place. `hosts`: see `KnownHosts`."""
    workers = Workers()
    windows = Windows(spec, *pump.laws(), history.read)
    parts = Parts(
        spec=spec,
        pump=pump,
        history=history,
        doorman=Doorman(tokens, public=spec.serve.public, requests_per_second=spec.serve.requests_per_second),
        about=About(spec, *pump.described(), windows),
        metrics=Metrics(spec, pump, history, windows),
        live_events=LiveEvents(spec, pump, history, workers, each=spec.serve.listeners_per_token),
        workers=workers,
        reading_room=ReadingRoom(_BODIES_AT_ONCE * spec.serve.max_batch_bytes, pump.turned_away),
        rows=RateLimit(spec.serve.rows_per_second, least=spec.serve.max_batch_rows),
        windows=windows,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        parts.live_events.open()
        try:
            yield
        finally:
            parts.live_events.close()
            workers.close()

    app = FastAPI(
        title="evertally",
        version=evertally.__version__,
        summary="Live statistics over a stream of personal events, under one privacy guarantee for its whole life.",
        lifespan=lifespan,
        openapi_url=None,  # see routes_open
        docs_url=None,  # the interactive pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        responses=problems(421, 500, 503),
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.parts = parts
    for router in (
        open_routes(parts),
        read_routes(parts),
        window_routes(parts),
        ingest_routes(parts),
        admin_routes(parts),
    ):
        app.include_router(router)
    add_problem_handlers(app)
    describe_truthfully(app)
    app.add_middleware(QuietErrors)
    app.add_middleware(HeadRequests)
    app.add_middleware(KnownHosts, hosts=hosts)
    app.add_middleware(SecurityHeaders, tls=spec.serve.certificate is not None)
    return app
