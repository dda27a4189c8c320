"""A label, a count and a key that are planted, and the search for them; not a test."""

from __future__ import annotations

import base64
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

LABEL = "canary-label-7f"
COUNT = 135_797


def needles(key: bytes) -> dict[str, list[bytes]]:
    """What each of the three can look like, as patterns."""
    inside = [
        base64.b64encode(bytes(shift) + key + bytes(3))[8:40] for shift in range(3)
    ]  # as part of something longer
    written = [key, key.hex().encode(), key.hex().upper().encode(), base64.urlsafe_b64encode(key), *inside]
    return {
        "label": [
            re.escape(LABEL.encode()),
            re.escape(LABEL.encode("utf-16-le")),
            re.escape(LABEL.encode().hex().encode()),
        ],
        "count": [rb"(?<!\d)%d(?!\d)" % COUNT, rb"(?<!\d)135,797(?!\d)", *map(re.escape, _binary(COUNT))],
        "key": [re.escape(way) for way in written],
    }


def _binary(number: int) -> Iterator[bytes]:
    yield struct.pack("<q", number)
    yield struct.pack(">q", number)


def _files(place: Path) -> Iterator[Path]:
    def refused(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    if place.is_file():
        yield place
        return
    for folder, _, names in os.walk(place, onerror=refused):
        yield from (path for name in names if (path := Path(folder) / name).is_file())


def found_in(place: Path, key: bytes) -> dict[str, set[str]]:
    """Which of the three is in which file; contents and names. Java may still be taking its files away."""
    found: dict[str, set[str]] = {}
    for path in _files(place):
        try:
            content = path.read_bytes() + b"\0" + str(path.relative_to(place.parent)).encode()
        except FileNotFoundError:
            continue
        for name, ways in needles(key).items():
            if any(re.search(way, content) for way in ways):
                found.setdefault(name, set()).add(path.relative_to(place).parts[0] if place.is_dir() else path.name)
    return found
