"""Log lines that cannot hold a record, a token or a query string.

The text of an exception may quote what it is about. So a line about one says its type and its place only, unless it is
an error of evertally, whose texts are written to be shown. Messages of libraries may be made of anything: of those only
the place is shown.
"""

from __future__ import annotations

import logging
import sys
import threading
from types import TracebackType

from evertally.errors import described

log = logging.getLogger("evertally.service")


class PublicFormatter(logging.Formatter):
    """One line per record: our own text as it is, of others the place; of an exception what `described` says."""

    def format(self, record: logging.LogRecord) -> str:
        own = record.name.partition(".")[0] == "evertally"
        text = record.getMessage() if own else f"{record.name}, {record.filename}:{record.lineno}"
        error = record.exc_info[1] if record.exc_info else None
        about = f": {described(error)}" if error is not None else ""
        return f"{self.formatTime(record)} {record.levelname.lower()}: {text}{about}"


def write_public_lines() -> None:
    """Makes stderr get such lines, and nothing else, for the rest of the process."""
    handler = logging.StreamHandler(sys.stderr)
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
