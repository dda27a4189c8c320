"""Log lines that cannot hold a record, a token or a query string.

The text of an exception may quote what it is about. So a line about one says its type and its place only, unless it is
an error of evertally, whose texts are written to be shown. Messages of libraries may be made of anything: of those only
the place is shown.

And lines that cannot fill a disk: of each place in the code so many a minute, and then one that says how many more
there were.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from evertally.errors import described

log = logging.getLogger("evertally.service")

_LINES = 20
_MINUTE = 60.0


class PublicFormatter(logging.Formatter):
    """One line per record: our own text as it is, of others the place; of an exception what `described` says."""

    def format(self, record: logging.LogRecord) -> str:
        own = record.name.partition(".")[0] == "evertally"
        text = record.getMessage() if own else f"{record.name}, {record.filename}:{record.lineno}"
        error = record.exc_info[1] if record.exc_info else None
        about = f": {described(error)}" if error is not None else ""
        return f"{self.formatTime(record)} {record.levelname.lower()}: {text}{about}"


class BoundedLines(logging.StreamHandler[TextIO]):
    """At most `_LINES` lines a minute from each place in the code; the rest is summed up, when the minute is over."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._counts: dict[tuple[str, int], int] = {}  # of the minute, by file and line
        self._ends = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        now = self._clock()
        if now >= self._ends:
            self._sum_up()
            self._ends = now + _MINUTE
        place = (record.filename, record.lineno)
        self._counts[place] = self._counts.get(place, 0) + 1
        if self._counts[place] <= _LINES:
            super().emit(record)

    def _sum_up(self) -> None:
        for (file, line), count in self._counts.items():
            if count > _LINES:
                text = f"{count - _LINES} more lines of {file}:{line} within a minute"
                super().emit(logging.LogRecord(log.name, logging.WARNING, file, line, text, (), None))
        self._counts = {}

    def close(self) -> None:
        self._sum_up()
        super().close()


def write_public_lines() -> None:
    """Makes stderr get such lines, and nothing else, for the rest of the process."""
    handler = BoundedLines(sys.stderr)
    handler.setFormatter(PublicFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.raiseExceptions = False  # a failing log call would print its arguments
    log.setLevel(logging.INFO)
    # They tell of every malformed request and every dropped connection: nothing that an operator acts on.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    sys.unraisablehook = lambda what: log.error("unraisable %s", type(what.exc_value).__name__)
    threading.excepthook = _thread_ended
    sys.excepthook = _process_ended


def _thread_ended(what: threading.ExceptHookArgs) -> None:
    if what.exc_value is not None:
        log.error("a thread ended: %s", described(what.exc_value))


def _process_ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.error("the process ends: %s", described(error))
