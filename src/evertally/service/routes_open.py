"""What needs no token: the page and its files, and two signs of life.

The files are bytes in memory, and a browser that has them gets 304. Of one address so many a second are answered as of
a token (`requests_per_second`), and a few pages at once; behind a proxy, which has one address for all, it is the
proxy's business. Signs of life are not counted.
"""

import hashlib
import json
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import APIRouter, Request, Response

from evertally.service.access import stranger_of, too_many
from evertally.service.answers import Status, problems
from evertally.service.limits import RateLimit
from evertally.service.parts import Parts
from evertally.service.problems import Refused

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_PAGE = {"description": "The page.", "content": {"text/html": {"schema": {"type": "string"}}}}
_FILE = {
    "description": "A file of the page.",
    "content": {text.partition(";")[0]: {"schema": {"type": "string"}} for text in _MEDIA_TYPES.values()},
}


_SAME: dict[int | str, dict[str, Any]] = {304: {"description": "What the caller has is what there is."}}
_PAGES = 4  # that one address may load at once


class PageFiles:
    """Answers with a file, or that the caller has it, or that it asks too often."""

    def __init__(self, parts: Parts) -> None:
        self._files = {name: (content, kind, _tag(content)) for name, (content, kind) in page_files().items()}
        serve = parts.spec.serve
        few = _PAGES * len(self._files)
        self._rate = None if serve.behind_proxy else RateLimit(serve.requests_per_second, least=few)

    def answer(self, request: Request, name: str) -> Response:
        if name not in self._files:
            self.count(request)
            raise Refused(404, "not found")
        return self.content(request, *self._files[name])

    def content(self, request: Request, content: bytes, kind: str, tag: str) -> Response:
        self.count(request)
        headers = {"Cache-Control": "no-cache", "ETag": tag}
        known = {one.strip().removeprefix("W/") for one in request.headers.get("If-None-Match", "").split(",")}
        if tag in known:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    def count(self, request: Request) -> None:
        if self._rate is not None and not self._rate.allows(stranger_of(request)):
            raise too_many()


def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def open_routes(parts: Parts) -> APIRouter:
    router = APIRouter(tags=["open"])
    files = PageFiles(parts)
    described: list[bytes] = []

    @router.get("/", response_class=Response, responses={200: _PAGE, **_SAME, **problems(429)})
    async def page(request: Request) -> Response:
        """The dashboard."""
        return files.answer(request, "index.html")

    @router.get("/static/{name:path}", response_class=Response, responses={200: _FILE, **_SAME, **problems(404, 429)})
    async def static(name: str, request: Request) -> Response:
        """Scripts and styles of the dashboard."""
        return files.answer(request, name)

    @router.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        if not described:
            described.append(json.dumps(request.app.openapi()).encode())
        return files.content(request, described[0], "application/json", _tag(described[0]))

    @router.get("/healthz")
    async def healthz() -> Status:
        """The process answers."""
        return Status(status="ok")

    @router.get("/readyz", responses=problems(503))
    async def readyz() -> Status:
        """The stream works: events are taken, ticks are released. After its end there are still releases to read."""
        if not parts.pump.working:
            raise Refused(503, "the stream has stopped", {"Retry-After": "5"})
        if parts.history.damaged:
            raise Refused(503, "the release log is damaged")
        return Status(status="ended" if parts.pump.ended else "ready")

    return router


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and media type of each file, by name: a fixed table, so that no name in a request is ever a path.

    >>> files = page_files()
    >>> files["index.html"][1], files["charts/line.js"][1]
    ('text/html; charset=utf-8', 'text/javascript; charset=utf-8')
    """
    return dict(_files_in(resources.files("evertally.service").joinpath("dashboard"), ""))


def _files_in(folder: Traversable, place: str) -> Iterator[tuple[str, tuple[bytes, str]]]:
    for file in folder.iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if file.is_dir():
            yield from _files_in(file, f"{place}{file.name}/")
        elif suffix in _MEDIA_TYPES:
            yield place + file.name, (file.read_bytes(), _MEDIA_TYPES[suffix])
