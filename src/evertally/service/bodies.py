"""How much: request bodies are read within bounds, never all at once because a client says so.

A body declares its length and is refused by it before a byte is read. All bounds are public numbers. (The framework's
own way to read a body has no bound, and comes before it looks at tokens: it is not used.)
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import Request
from starlette.requests import ClientDisconnect

from evertally.service.problems import Refused

_SECONDS_FOR_A_BODY = 60.0
_CLOSE = {"Connection": "close"}


class ReadingRoom:
    """Bytes of request bodies that are in memory at one time, over all requests. One caller gets at most half of it.

    >>> room = ReadingRoom(10)
    >>> room.take("a", 4), room.take("a", 3), room.take("b", 5), room.take("c", 3)
    (True, False, True, False)
    >>> room.give("b", 5)
    >>> room.take("c", 3)
    True
    """

    def __init__(self, size: int, turned_away: Callable[[str], None] = lambda caller: None) -> None:
        self._left = size
        self._turned_away = turned_away
        self._share = size // 2  # a caller that sends slowly must not shut out the others
        self._taken: dict[str, int] = {}

    def take(self, caller: str, size: int) -> bool:
        taken = self._taken.get(caller, 0) + size
        if size > self._left or taken > self._share:
            return False
        self._left -= size
        self._taken[caller] = taken
        return True

    def give(self, caller: str, size: int) -> None:
        self._left += size
        left = self._taken.get(caller, 0) - size
        if left:
            self._taken[caller] = left
        else:
            self._taken.pop(caller, None)

    @asynccontextmanager
    async def body(self, request: Request, caller: str, most: int) -> AsyncIterator[bytes]:
        """The body of a request; its room is kept until the block ends."""
        declared = _declared_length(request, most)
        if not self.take(caller, declared):
            self._turned_away(caller)
            raise Refused(503, "too much is being sent at once; send it again", {"Retry-After": "1"})
        try:
            yield await _read(request, declared)
        finally:
            self.give(caller, declared)


def _declared_length(request: Request, most: int) -> int:
    text = request.headers.get("Content-Length", "")
    if not re.fullmatch(r"[0-9]{1,20}", text) or "Transfer-Encoding" in request.headers:
        raise Refused(411, "a Content-Length is needed")
    if int(text) > most:
        raise Refused(413, f"the body may have at most {most} bytes")
    return int(text)


async def _read(request: Request, declared: int) -> bytes:
    parts: list[bytes] = []
    left = declared
    try:
        async with asyncio.timeout(_SECONDS_FOR_A_BODY):
            async for chunk in request.stream():
                left -= len(chunk)
                if left < 0:
                    raise Refused(413, "the body is longer than its Content-Length", _CLOSE)
                parts.append(chunk)
    except TimeoutError:
        raise Refused(408, "the body took too long", _CLOSE) from None
    except ClientDisconnect:
        raise Refused(400, "the body ended early", _CLOSE) from None
    return b"".join(parts)
