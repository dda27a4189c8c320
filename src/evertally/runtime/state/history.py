"""The release log for readers: what was published, and nothing that is merely committed."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evertally.runtime.releases import TickRelease
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state import database
from evertally.runtime.state.log import DamagedLog, KeptRow, Proof, collected
from evertally.runtime.state.sidecar import NO_CHAIN

_AT_ONCE = 500  # ticks in one SQL statement
_PAGE = 64  # ticks whose columns are in memory


class History:
    """A read-only view; every thread that asks gets a connection of its own.

    `spec` has its clock in place, `published` says up to which tick readers may see, `proof` what is genuine.
    """

    def __init__(self, spec: StreamSpec, published: Callable[[], int], proof: Proof) -> None:
        self._spec, self._published, self._proof = spec, published, proof
        self.damaged = False  # whether somebody asked for a release that is not what it was
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
        return collected(self._spec, None, [row for rows in self._genuine(ticks, queries) for row in rows])

    def check(self, ticks: Sequence[int], queries: Sequence[str] | None = None) -> None:
        """Refuses (DamagedLog) unless all that `read` would give is what was released."""
        for _ in self._genuine(ticks, queries):
            pass

    def head(self, ticks: Sequence[int] = ()) -> dict[str, Any]:
        """What vouches for the log as it is published, and for some of its ticks: signed (see public_log)."""
        published = self._published()
        with self._noticed():
            chain = self._chain(published) or NO_CHAIN
        pages = (self.read(ticks[start : start + _PAGE]) for start in range(0, len(ticks), _PAGE))
        return self._proof.head(published, chain, (self._linked(release) for page in pages for release in page))

    def _linked(self, release: TickRelease) -> TickRelease:
        """The same; refuses to vouch for a tick of which a query is gone, as far as the tick before is kept."""
        with self._noticed():
            before, chain = self._chain(release.tick - 1, thinned=True), self._chain(release.tick)
            if before is not None and chain is not None and self._proof.linked(before, release) != chain:
                raise self._proof.not_as_committed()
        return release

    def _chain(self, tick: int, thinned: bool = False) -> str | None:
        """Of the public log at a tick. None if it had none yet; with `thinned`, also if it is not kept."""
        if tick <= self._proof.since:
            return NO_CHAIN if tick == self._proof.since else None
        links = self._select("SELECT tick, chain, mac FROM link WHERE tick = ?", (tick,))
        if not links and not thinned:
            raise self._proof.not_as_committed()
        return self._proof.chain(links[0]) if links else None

    def _genuine(self, ticks: Sequence[int], queries: Sequence[str] | None) -> Iterator[Sequence[KeptRow]]:
        published = self._published()
        wanted = sorted({tick for tick in ticks if tick <= published})
        names = [query.name for query in self._spec.queries if queries is None or query.name in queries]
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            rows = self._select(
                f"SELECT tick, query, payload, mac FROM release WHERE tick IN ({_marks(some)}) "  # noqa: S608
                f"AND query IN ({_marks(names)}) ORDER BY tick",
                (*some, *names),
            )
            with self._noticed():
                genuine = self._proof.genuine(rows)
                self._check_whole(some, names, rows)
            yield genuine

    def _check_whole(self, ticks: Sequence[int], names: Sequence[str], rows: Sequence[KeptRow]) -> None:
        """Refuses ticks of which a query is gone. A tick leaves the log as a whole, and does not come back: if anything
        of it is there after it was read, all of it was to be read."""
        found = Counter(tick for tick, *_ in rows)
        partly = [tick for tick in ticks if found[tick] < len(names)]
        if partly and self._select(f"SELECT 1 FROM release WHERE tick IN ({_marks(partly)}) LIMIT 1", partly):  # noqa: S608
            raise self._proof.not_as_committed()

    @contextmanager
    def _noticed(self) -> Iterator[None]:
        try:
            yield
        except DamagedLog:
            self.damaged = True
            raise

    def _select(self, statement: str, values: Sequence[object]) -> list[Any]:
        try:
            with database.translated(self._spec.state_file):
                return self._connection().execute(statement, tuple(values)).fetchall()
        except database.Unreadable as error:
            self.damaged = True
            raise DamagedLog(str(error)) from None

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._local, "connection"):
            self._local.connection = database.connect_to_read(self._spec.state_file)
            with self._lock:
                self._connections.append(self._local.connection)
        connection: sqlite3.Connection = self._local.connection
        return connection


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
