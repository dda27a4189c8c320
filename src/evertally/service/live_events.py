"""Server-sent events: every published tick once, in order, to everybody who listens.

A listener is a cursor, not a queue: the number of the last tick that it was sent. What comes after the cursor is taken
from the frames of the last ticks, which all listeners share, or from the release log. So a slow listener costs little
memory, falls behind without missing anything, and one that comes back says where it was (`Last-Event-ID`) and goes on
from there. One that takes nothing at all for a while is dropped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from itertools import chain, count, takewhile

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from evertally.runtime.pump import Pump
from evertally.runtime.releases import TickRelease, as_json
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.history import History
from evertally.service.access import is_stranger
from evertally.service.limits import Slots
from evertally.service.workers import Workers

_WINDOW = 1000  # ticks that are looked for at once
_PAGE_BYTES = 2**20  # frames of so many bytes, or one, are held for a listener who is behind
_SHARED = 32  # frames of the last ticks, held for all listeners
_RETRY = b"retry: 2000\n\n"
_HEARTBEAT = b": still here\n\n"
_ENDED = b"event: ended\ndata: {}\n\n"

Frames = Sequence[tuple[int, bytes]]  # with their ticks


def frame(spec: StreamSpec, release: TickRelease) -> bytes:
    """One release as an event. JSON escapes line breaks and everything beyond ASCII, so its data is one line."""
    text = json.dumps(as_json(spec, release), separators=(",", ":"))
    return f"event: release\nid: {release.tick}\ndata: {text}\n\n".encode("ascii")


class LiveEvents:
    """All listeners of one stream."""

    def __init__(
        self,
        spec: StreamSpec,
        pump: Pump,
        history: History,
        workers: Workers,
        *,
        most: int = 256,
        each: int = 32,
        heartbeat: float = 15.0,
    ) -> None:
        self._spec, self._pump, self._history = spec, pump, history
        self._workers, self._heartbeat = workers, heartbeat
        # Half of a public stream is for those without a token. Behind a proxy they all have one address.
        strangers = most // 2 if spec.serve.public else 0
        proxied = spec.serve.connections_per_address is None
        self._known, self._strangers = Slots(most - strangers, each), Slots(strangers, strangers if proxied else each)
        self._frames: dict[int, bytes] = {}
        self._loading = asyncio.Lock()
        self._wake = asyncio.Event()
        self._closing = False
        self._unsubscribe: Callable[[], None] | None = None

    def open(self) -> None:
        """Starts to follow the pump; on the event loop."""
        loop = asyncio.get_running_loop()

        def published(release: TickRelease) -> None:
            with suppress(RuntimeError):  # the loop has ended since: nobody listens, and the pump must not care
                loop.call_soon_threadsafe(self._wake_all)

        self._unsubscribe = self._pump.subscribe(published)

    def close(self) -> None:
        """Ends all answers after the frame that they are at; on the event loop."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._closing = True
        self._wake_all()

    def _wake_all(self) -> None:
        self._wake.set()
        self._wake = asyncio.Event()

    def answer(
        self, after: int | None, welcome: Callable[[], bool] = lambda: True, caller: str = "token"
    ) -> Response | None:
        """The frames of all ticks after `after` (None: from now on); None if there are too many listeners, or too many
        of this caller.

        It ends when the listener is no longer `welcome`: a token may be removed meanwhile.
        """
        slots = self._strangers if is_stranger(caller) else self._known
        if not slots.take(caller):
            return None
        return EventStream(self._events(after, welcome), lambda: slots.give(caller))

    async def _events(
        self, after: int | None, welcome: Callable[[], bool] = lambda: True
    ) -> AsyncGenerator[bytes, None]:
        position = self._pump.published if after is None else after
        yield _RETRY
        while not self._closing and welcome():
            wake, published = self._wake, self._pump.published
            if position < published:
                frames = await self._next(position, published)
                for _, one in frames:
                    yield one
                # Ticks that the log no longer keeps are passed over.
                position = frames[-1][0] if frames else min(published, position + _WINDOW)
            elif published == self._spec.last_tick:
                yield _ENDED
                return
            elif not await _rings(wake, self._heartbeat):
                yield _HEARTBEAT

    async def _next(self, position: int, published: int) -> Frames:
        if position < published - _SHARED:  # far behind: nobody else needs this now
            return await self._workers.read(lambda: self._load(position, published))
        if position + 1 not in self._frames:
            async with self._loading:  # all listeners wake at once, and one of them reads
                if position + 1 not in self._frames:
                    frames = await self._workers.read(lambda: self._load(position, published))
                    known = chain(self._frames.items(), frames)
                    self._frames = {tick: one for tick, one in known if tick > published - _SHARED}
                    return frames
        # Up to the first gap: what is behind it comes after what is missing.
        return [(tick, self._frames[tick]) for tick in takewhile(self._frames.__contains__, count(position + 1))]

    def _load(self, position: int, published: int) -> Frames:
        frames: list[tuple[int, bytes]] = []
        size = 0
        for tick in self._history.ticks(position + 1, min(published, position + _WINDOW), limit=_WINDOW):
            for release in self._history.read([tick]):
                frames.append((tick, frame(self._spec, release)))
                size += len(frames[-1][1])
            if size >= _PAGE_BYTES:
                break
        return frames


async def _rings(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


class EventStream(Response):
    """Sends events until they end, the listener leaves, or it has taken nothing for `patience` seconds."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None], on_end: Callable[[], None], patience: float = 30.0) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._events, self._on_end, self._patience = events, on_end, patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (place := scope.get("state", {}).get("place")) is not None:
            place.stays = True
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()
            self._on_end()
        if sending.done() and not sending.cancelled():
            sending.result()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._events) as events:
            async for one in events:
                try:
                    async with asyncio.timeout(self._patience):
                        await send({"type": "http.response.body", "body": one, "more_body": True})
                except TimeoutError:
                    return  # without an end: the connection is closed, and its owner resumes from the log
                await asyncio.sleep(0)  # sending need not wait, and others want their turn
        await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
