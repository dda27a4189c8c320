"""Every answer that is no success: JSON with one text under `error`, which speaks of the request's envelope only."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evertally.errors import described
from evertally.runtime.state.log import DamagedLog
from evertally.service.logs import log


class Refused(Exception):
    """Ends a request with a status and a text for the caller."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status, self.text = status, text
        self.headers = dict(headers or {})


def problem(status: int, text: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": text}, status, headers=dict(headers or {}))


def add_problem_handlers(app: FastAPI) -> None:
    """Replaces the framework's own error answers, which repeat the input."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(DamagedLog, _damaged)


async def _refused(request: Request, error: Any) -> JSONResponse:
    return problem(error.status, error.text, error.headers)


async def _damaged(request: Request, error: Any) -> JSONResponse:
    log.error("%s", error)
    return problem(503, "a release is not what it was when it was published; it is not shown")


async def _invalid(request: Request, error: Any) -> JSONResponse:
    # Of each complaint only the name of the declared parameter: its text and `input` may repeat what was sent.
    where = sorted({" ".join(map(str, detail["loc"][:2])) for detail in error.errors()})
    return problem(400, f"missing or not of the documented form: {', '.join(where)}")


async def _http(request: Request, error: Any) -> JSONResponse:
    return problem(error.status_code, HTTPStatus(error.status_code).phrase.lower(), error.headers)


def describe_truthfully(app: FastAPI) -> None:
    """Takes out the answer that the framework documents for bad parameters: ours is 400, with one text."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            for operations in document["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)
            for name in ("HTTPValidationError", "ValidationError"):
                document["components"]["schemas"].pop(name, None)
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]


class QuietErrors:
    """ASGI middleware: an unexpected exception becomes 500 without its text, or a broken-off answer if it has begun."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            log.error("internal error: %s", described(error))
            if not started and scope["type"] == "http":
                await problem(500, "internal error")(scope, receive, send)
