"""Whether an output is still what was written: a digest of it, kept with the position in it.

While a stream runs, a look at the file says whether anybody else has touched it, and only then it is read again. At a
start it is read from the beginning. A digest has 63 bits, so that it fits where positions are kept: it is for hands
that slip, editors that save and tools that rotate, not for somebody who forges.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from evertally.errors import StateError

_CHUNK = 2**20

Touched = tuple[int, ...]


def touched(descriptor: int) -> Touched:
    """Which file it is, and when it was touched last."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def look(path: Path) -> Touched | None:
    """The same of what is under a name, None if nothing is."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return touched(descriptor)
    finally:
        os.close(descriptor)


def digest(content: bytes) -> int:
    """Of a file as a whole."""
    return shortened(hashlib.sha256(content).digest())


def shortened(sha256: bytes) -> int:
    return int.from_bytes(sha256[:8], "big") >> 1


def changed(path: Path) -> StateError:
    """What is said of an output that somebody else has written into."""
    return StateError(
        f"the output {path} is not what the stream wrote there: somebody else has changed or replaced it. Bring it "
        "back as it was, or begin a new one: name another file in a [[sink]] in its place"
    )


class Written:
    """A file up to an offset: its running digest, and how it was left."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.offset = 0
        self._left: Touched | None = None

    @classmethod
    def read(cls, descriptor: int, offset: int) -> Written:
        """What is there now."""
        found = cls()
        while part := os.pread(descriptor, min(_CHUNK, offset - found.offset), found.offset):
            found.add(part)
        return found

    @property
    def digest(self) -> int:
        return shortened(self._hash.digest())

    def add(self, data: bytes) -> None:
        self._hash.update(data)
        self.offset += len(data)

    def leave(self, descriptor: int) -> None:
        """It is on disk; nobody else writes there."""
        self._left = touched(descriptor)

    def untouched(self, descriptor: int) -> bool:
        return self._left is not None and self._left == touched(descriptor)
