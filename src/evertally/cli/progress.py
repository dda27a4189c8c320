"""A progress bar of one line, for a terminal."""

from __future__ import annotations

import shutil
import time
from typing import TextIO

_WIDTH = 30
_PAUSE = 0.1  # seconds between two pictures: writing to a terminal is slow


class ProgressBar:
    """Draws over its own line with carriage returns. It shows ticks, which are public, and nothing else.

    >>> import io
    >>> terminal = io.StringIO()
    >>> bar = ProgressBar("visits", terminal)
    >>> bar.show(24, 48)
    >>> terminal.getvalue().split("\\r")[-1].rstrip()
    'visits: [###############               ] 24 of 48 ticks'
    """

    def __init__(self, name: str, terminal: TextIO) -> None:
        self._name, self._terminal = name, terminal
        self._shown = float("-inf")
        self._started: float | None = None

    def show(self, done: int, of: int) -> None:
        """So many ticks are out."""
        now = time.monotonic()
        if self._started is None:
            self._started, self._done_before = now, done
        if now - self._shown < _PAUSE and done < of:
            return
        self._shown = now
        filled = _WIDTH * done // of
        bar = "#" * filled + " " * (_WIDTH - filled)
        self._draw(f"{self._name}: [{bar}] {done:,} of {of:,} ticks{self._left(now, done, of)}")

    def say(self, words: str) -> None:
        """In place of the bar, until there is one."""
        self._draw(f"{self._name}: {words} ...")

    def line(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self._terminal.write(f"{text}\n")
        self._terminal.flush()

    def clear(self) -> None:
        """Leaves an empty line."""
        self._draw("")
        self._terminal.write("\r")
        self._terminal.flush()

    def _left(self, now: float, done: int, of: int) -> str:
        assert self._started is not None
        since = now - self._started
        if since < 1 or done >= of or done <= self._done_before:
            return ""
        seconds = round(since * (of - done) / (done - self._done_before))
        return f", {seconds // 60}:{seconds % 60:02d} left"

    def _draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1  # a full line would wrap
        self._terminal.write("\r" + text[:width].ljust(width))
        self._terminal.flush()
