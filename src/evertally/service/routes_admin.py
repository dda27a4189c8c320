"""What administrators do: close ticks, and look at figures that carry no noise."""

import asyncio
import dataclasses

from fastapi import APIRouter, Depends, Request, Response
from pydantic import ValidationError

from evertally.errors import ConfigurationError
from evertally.runtime.pump import Stopped
from evertally.service import metrics
from evertally.service.answers import Closed, CloseRequest, FiguresAnswer, problems
from evertally.service.parts import Parts
from evertally.service.problems import Refused
from evertally.service.routes_read import METRICS

_LONGEST = 4096  # bytes of a request
_JSON = {"application/json": {"schema": CloseRequest.model_json_schema()}}
_BODY = {"requestBody": {"required": True, "content": _JSON}}


def admin_routes(parts: Parts) -> APIRouter:
    router = APIRouter(
        tags=["admin"], dependencies=[Depends(parts.doorman.door("admin"))], responses=problems(401, 403, 429)
    )

    @router.post("/v1/ticks", responses=problems(400, 408, 409, 411, 413, 503), openapi_extra=_BODY)
    async def close_ticks(request: Request) -> Closed:
        """Closes and releases all ticks that are over at a time, where `[clock] close = "request"`."""
        if parts.spec.clock.close == "wall":
            raise Refused(409, "the ticks of this stream close on the wall clock")
        async with parts.reading_room.body(request, "administrators", _LONGEST) as body:
            until = _until(body)
        try:
            return Closed(released=await asyncio.wrap_future(parts.pump.close_until(until)))
        except ConfigurationError as error:
            raise Refused(400, str(error)) from None
        except Stopped:
            raise Refused(503, "the stream has stopped", {"Retry-After": "5"}) from None

    @router.get("/v1/admin/figures")
    async def figures() -> FiguresAnswer:
        """What has come in and what waits. Not noised: not for readers."""
        return FiguresAnswer(**dataclasses.asdict(parts.pump.figures), failure=parts.pump.failure)

    @router.get("/v1/admin/metrics", response_class=Response, responses={200: METRICS})
    async def private_metrics() -> Response:
        """The same figures for Prometheus."""
        return Response(parts.metrics.private(), media_type=metrics.MEDIA_TYPE)

    return router


def _until(body: bytes) -> str | int:
    try:
        return CloseRequest.model_validate_json(body).until
    except ValidationError:
        raise Refused(400, 'the body must be {"until": a time or an integer}') from None
