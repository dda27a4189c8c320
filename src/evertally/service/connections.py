"""Connections that do not wait for ever: every part of an exchange has its time.

A head must be there within 20 seconds, and what is left of a body that nobody wants to read any more as well. (How long
a wanted body may take: bodies.py.) A stranger's answer has 60 seconds to be made and taken. Holders of tokens may take
longer over large answers; the kernel ends a connection whose other end takes nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from evertally.service.places import Place
from evertally.service.problems import problem

_SECONDS_FOR_A_HEAD = 20.0
_SECONDS_FOR_A_STRANGER = 60.0
HEALTH = ("/healthz", "/readyz")


class PunctualProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which would keep a connection open that sends its request byte by byte, or nothing at all."""

    def __init__(self, *arguments: Any, place: Place | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._place = place or Place()
        self._late: asyncio.TimerHandle | None = None
        self._part: tuple[str, object] | None = None  # of the exchange, in which cycle
        self.app_state = {**self.app_state, "place": self._place}
        if self._place.only_health:
            self.app = OnlyHealth(self.app)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._place.close = transport.abort
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._late is not None:
            self._late.cancel()
        self._place.leave()
        super().connection_lost(exc)

    def _watch(self) -> None:
        part = (self._now(), self.cycle)
        if part == self._part or self.transport.is_closing():
            return
        self._part = part
        if self._late is not None:
            self._late.cancel()
        if part[0] == "answer":
            self._place.works()
            self._late = self.loop.call_later(_SECONDS_FOR_A_STRANGER, self._answer_is_late)
        else:
            self._place.waits()
            self._late = self.loop.call_later(_SECONDS_FOR_A_HEAD, self._is_late)

    def _now(self) -> str:
        if self.conn.their_state is h11.IDLE:
            return "head"
        return "answer" if self.cycle is not None and not self.cycle.response_complete else "rest"

    def _answer_is_late(self) -> None:
        if self._place.stranger and not self._place.stays:
            self.transport.abort()

    def _is_late(self) -> None:
        self.transport.close()  # once what was answered is taken
        if self._place.stranger:
            self._late = self.loop.call_later(_SECONDS_FOR_A_STRANGER, self.transport.abort)


class OnlyHealth:
    """All places of strangers are taken: whoever comes may ask whether the service is well, or show a token."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in HEALTH or any(name == b"authorization" for name, _ in scope["headers"]):
            await self._app(scope, receive, send)
        else:
            headers = {"Retry-After": "5", "Connection": "close"}
            await problem(503, "too many connections; try again later", headers)(scope, receive, send)
