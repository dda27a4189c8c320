"""The dashboard's files, read once from the package: a fixed table, so that no name in a request is ever a path."""

from __future__ import annotations

from importlib import resources

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and media type of each file, by name.

    >>> content, media_type = page_files()["index.html"]
    >>> media_type
    'text/html; charset=utf-8'
    """
    files = {}
    for file in resources.files("evertally.service").joinpath("dashboard").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in _MEDIA_TYPES:
            files[file.name] = (file.read_bytes(), _MEDIA_TYPES[suffix])
    return files
