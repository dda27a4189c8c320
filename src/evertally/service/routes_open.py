"""What needs no token: the page and its files, and two signs of life."""

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Response

from evertally.service.answers import Status, problems
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


def open_routes(parts: Parts) -> APIRouter:
    router = APIRouter(tags=["open"])
    files = page_files()

    def file(name: str) -> Response:
        if name not in files:
            raise Refused(404, "not found")
        content, media_type = files[name]
        return Response(content, media_type=media_type, headers={"Cache-Control": "no-cache"})

    @router.get("/", response_class=Response, responses={200: _PAGE})
    async def page() -> Response:
        """The dashboard."""
        return file("index.html")

    @router.get("/static/{name:path}", response_class=Response, responses={200: _FILE, **problems(404)})
    async def static(name: str) -> Response:
        """Scripts and styles of the dashboard."""
        return file(name)

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
