"""What every answer says to browsers and caches: load nothing from elsewhere, guess nothing, keep nothing. And answers
that are nothing but their head."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The page has neither inline scripts nor inline styles, so no 'unsafe-inline' is needed anywhere.
_ALWAYS = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_ONE_YEAR = "max-age=31536000"


class SecurityHeaders:
    """ASGI middleware that adds them. `Cache-Control: no-store` unless an answer has its own."""

    def __init__(self, app: ASGIApp, *, tls: bool) -> None:
        self._app = app
        self._headers = _ALWAYS | ({"Strict-Transport-Security": _ONE_YEAR} if tls else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class HeadRequests:
    """ASGI middleware: `HEAD` is answered wherever `GET` is, by the head of the same answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        ended = False

        async def send_head(message: Message) -> None:
            # An answer without an end ends here too: the server then says that the caller is gone.
            nonlocal ended
            if not ended:
                await send(message if message["type"] == "http.response.start" else _EMPTY)
                ended = message["type"] == "http.response.body"

        await self._app({**scope, "method": "GET"}, receive, send_head)


_EMPTY: Message = {"type": "http.response.body", "body": b"", "more_body": False}
