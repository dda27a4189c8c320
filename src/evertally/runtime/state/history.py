"""The release log for readers: what was published, and nothing that is merely committed."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any

from evertally.runtime.releases import TickRelease
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state import database
from evertally.runtime.state.store import collected

_AT_ONCE = 500  # ticks in one SQL statement


class History:
    """A read-only view; every thread that asks gets a connection of its own.

    `spec` has its clock in place, `published` says up to which tick readers may see.
    """

    def __init__(self, spec: StreamSpec, published: Callable[[], int]) -> None:
        self._spec, self._published = spec, published
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []

    def close(self) -> None:
        """Closes the connections of all threads; nobody may ask any more."""
        with self._lock:
            while self._connections:
                self._connections.pop().close()

    def latest(self) -> TickRelease | None:
        """The last published tick."""
        found = self.read([self._published()])
        return found[0] if found else None

    def ticks(self, first: int, last: int, every: int = 1, limit: int = 1000) -> list[int]:
        """Published ticks from `first` to `last` that are kept: multiples of `every`, the last `limit` of them."""
        rows = self._select(
            "SELECT DISTINCT tick FROM release WHERE tick BETWEEN ? AND ? AND tick % ? = 0 ORDER BY tick DESC LIMIT ?",
            (first, min(last, self._published()), every, limit),
        )
        return [tick for (tick,) in reversed(rows)]

    def read(self, ticks: Sequence[int], queries: Sequence[str] | None = None) -> list[TickRelease]:
        """The releases of some ticks in their order, of all queries or of some; those not kept are left out."""
        published = self._published()
        wanted = sorted({tick for tick in ticks if tick <= published})
        names = [query.name for query in self._spec.queries if queries is None or query.name in queries]
        rows: list[tuple[int, str, bytes]] = []
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            rows += self._select(
                f"SELECT tick, query, payload FROM release WHERE tick IN ({_marks(some)}) "  # noqa: S608 (only marks)
                f"AND query IN ({_marks(names)}) ORDER BY tick",
                (*some, *names),
            )
        return collected(self._spec, None, rows)

    def _select(self, statement: str, values: Sequence[object]) -> list[Any]:
        with database.translated(self._spec.state_file):
            return self._connection().execute(statement, tuple(values)).fetchall()

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._local, "connection"):
            self._local.connection = database.connect_to_read(self._spec.state_file)
            with self._lock:
                self._connections.append(self._local.connection)
        connection: sqlite3.Connection = self._local.connection
        return connection


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
