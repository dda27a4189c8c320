"""Events come in here. The answer is a function of the request's envelope: its headers, its size, its syntax.

Nothing is said about records, neither what they hold nor how many were good, so the answers to two batches of one
envelope are the same byte for byte.
"""

import asyncio
import re
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request

from evertally.errors import EvertallyError
from evertally.runtime.input.batches import MEDIA_TYPES
from evertally.runtime.input.encoded import BatchFailed, Encoded
from evertally.runtime.input.envelope import BatchRefused
from evertally.runtime.live import Receipt, StreamEnded
from evertally.runtime.pump import Stopped
from evertally.runtime.room import Busy
from evertally.service.answers import Accepted, problems
from evertally.service.logs import log
from evertally.service.parts import Parts
from evertally.service.problems import Refused

_CHARSETS = ("utf-8", "utf8", "us-ascii", "ascii")
_KEY = r"^[A-Za-z0-9._:-]{1,128}$"
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "Events. Columns that no query needs are ignored; records that cannot be read are dropped. "
        "A batch in which no record has any column that the stream knows is refused.",
        "content": {
            "application/x-ndjson": {"schema": {"type": "string", "description": "One JSON object on each line."}},
            "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
            "text/csv": {"schema": {"type": "string", "description": "A line of column names, then one event a line."}},
            "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


def ingest_routes(parts: Parts) -> APIRouter:
    router = APIRouter(tags=["ingest"])
    Caller = Annotated[str, Depends(parts.doorman.door("ingest"))]
    Key = Annotated[str, Header(alias="Idempotency-Key", pattern=_KEY, description="Your id of this batch.")]

    @router.post(
        "/v1/events",
        status_code=202,
        responses=problems(400, 401, 403, 408, 409, 410, 411, 413, 415, 429, 503),
        openapi_extra=_BODY,
    )
    async def events(request: Request, caller: Caller, idempotency_key: Key) -> Accepted:
        """Takes a batch of events. It is on disk when the answer comes; sending it again does not count it again."""
        if parts.pump.ended:
            raise _ended()
        media_type = _media_type(request)
        _count_rows(parts, caller, 1)  # who has sent too many need not send the next body
        async with parts.reading_room.body(request, caller, parts.spec.serve.max_batch_bytes) as body:
            batch = await _parsed(parts, caller, body, media_type)
            _count_rows(parts, caller, max(0, batch.sent - 1))
            receipt = await _submitted(parts, f"{caller}/{idempotency_key}", caller, batch, len(body))
        return Accepted(batch=idempotency_key, tick=receipt.tick, duplicate=receipt.duplicate)

    return router


def _count_rows(parts: Parts, caller: str, rows: int) -> None:
    if not parts.rows.allows(caller, rows):
        parts.pump.turned_away(caller)
        raise Refused(429, "too many rows; slow down", {"Retry-After": "1"})


async def _parsed(parts: Parts, caller: str, body: bytes, media_type: str) -> Encoded:
    try:
        return await parts.workers.parse(caller, partial(parts.pump.received, body, media_type, caller))
    except BatchFailed as error:
        parts.pump.failed(caller)
        raise _failed(error) from None
    except BatchRefused as error:
        raise Refused(400, str(error)) from None


def _failed(error: BatchFailed) -> Refused:
    log.error("a batch could not be taken: %s", error.place)
    if error.lasting:
        return Refused(400, str(error))
    return Refused(503, "the batch cannot be taken now; send it again later", {"Retry-After": "5"})


async def _submitted(parts: Parts, batch_id: str, caller: str, batch: Encoded, size: int) -> Receipt:
    try:
        return await asyncio.wrap_future(parts.pump.submit(batch_id, batch, size, caller))
    except Busy as error:
        raise Refused(503, str(error), {"Retry-After": "1"}) from None
    except Stopped:
        raise Refused(503, "the stream has stopped; send it again when it is back", {"Retry-After": "5"}) from None
    except StreamEnded:
        raise _ended() from None
    except BatchFailed as error:
        raise _failed(error) from None
    except BatchRefused as error:
        raise Refused(409, str(error)) from None
    except EvertallyError as error:  # a disk that is full, for example
        log.error("a batch was not accepted: %s", error)
        raise Refused(503, "the batch cannot be kept now; send it again later", {"Retry-After": "5"}) from None


def _ended() -> Refused:
    return Refused(410, "the stream has ended and takes no more events")


def _media_type(request: Request) -> str:
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise Refused(415, "send the body without a Content-Encoding")
    media_type, _, said = request.headers.get("Content-Type", "").partition(";")
    media_type, charset = media_type.strip().lower(), re.search(r"charset\s*=\s*[\"']?([^\s;\"']*)", said.lower())
    if media_type not in MEDIA_TYPES:
        raise Refused(415, f"Content-Type must be one of {', '.join(MEDIA_TYPES)}")
    if charset is not None and charset[1] not in _CHARSETS:
        raise Refused(415, "texts are read as UTF-8; send them so")  # labels in another one would be others
    return media_type
