"""Parts of an output that nobody writes any more: they may be moved elsewhere, but not changed where they are.

A folder can have thousands of them, so a publication looks at some, in turn. Only one that was touched is read again.
How they were is known since the start, when each is read once; nothing about them is kept with the stream: a log that
was changed between two starts is found out by its readers (`evertally verify --log`).
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from evertally.runtime.sinks.seals import Touched, changed, look, shortened

_AT_ONCE = 64  # parts, some microseconds each


class Finished:
    """The parts before the one that is written."""

    def __init__(self, parts: Iterable[Path]) -> None:
        self._left: dict[Path, tuple[Touched, int]] = {}
        self._turns: deque[Path] = deque()
        for path in parts:
            if (now := look(path)) is not None:
                self.add(path, now, _digest(path))

    def add(self, path: Path, left: Touched | None, digest: int | None) -> None:
        """A part is written no more."""
        if left is not None and digest is not None and path not in self._left:
            self._left[path] = left, digest
            self._turns.append(path)

    def check(self) -> None:
        """Looks at the next ones; refuses (StateError) one that is not what it was."""
        for _ in range(min(_AT_ONCE, len(self._turns))):
            path = self._turns[0]
            left, digest = self._left[path]
            now = look(path)
            if now is not None and now != left and _digest(path) != digest:
                raise changed(path)
            self._turns.popleft()
            del self._left[path]
            self.add(path, now, digest)  # not if it was moved elsewhere


def _digest(path: Path) -> int:
    with open(path, "rb") as file:
        return shortened(hashlib.file_digest(file, "sha256").digest())
