"""A state in which something is not as it was written: what is proved stays, and nothing is released twice.

Either the stream goes on, if all that its mechanisms have seen is proved and only rows of the release log are not.
Those since the last snapshot come again, for the chain of the public log proves that they are the same; older ones are
gone from the log. Or the stream ends: what was released stays, and nothing is ever released again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from evertally.errors import StateError
from evertally.runtime.releases import TickRelease
from evertally.runtime.state import database
from evertally.runtime.state.log import DamagedLog
from evertally.runtime.state.records import Cursor, Head
from evertally.runtime.state.sidecar import Mark
from evertally.runtime.state.store import Store

_LOG = ("release", "link")
_UNREADABLE = ("snapshot", "sink", "mark")  # at the start of a stream that has ended, if they are damaged


class MendedStore(Store):
    """Opens what `Store` refuses. Nothing is written before `mend` or `end`."""

    damaged: Sequence[str] = ()  # tables
    _settled = False  # a head that is written before that would vouch for the damage

    def _connect(self) -> None:
        super()._connect()
        # A text that is none fails by its proof, like anything else that somebody wrote.
        self._connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")

    def _refuse(self, tables: Sequence[str]) -> None:
        self.damaged = tables

    def _adopt(self, mark: Mark) -> None:
        raise StateError(
            f"{self._path} was written by an earlier version: nothing in it has a proof yet. Start the stream"
        )

    def _take_up(self, mark: Mark) -> None:
        (self._last,) = self._connection.execute("SELECT mac FROM head").fetchone()

    def keep_cursors(self, cursors: Mapping[str, Cursor]) -> None:
        if self._settled:  # otherwise with the next commit
            super().keep_cursors(cursors)

    def _put_head(self, head: Head) -> Head:
        if not self._settled:
            raise StateError(f"{self._path} was not mended")
        return super()._put_head(head)

    def mend(self, again: Sequence[TickRelease]) -> int:
        """Goes on. `again`: the ticks since the last snapshot, proved by the chain. How many ticks the log has lost."""
        beyond = [table for table in self.damaged if table not in _LOG]
        if beyond:
            raise StateError(
                f"{self._path} is damaged ({', '.join(beyond)}): what the stream has seen cannot be proved any more; "
                "to go on without it would put the same noise on other data. Bring the last state back, or end the "
                "stream: evertally rescue --end"
            )
        with self._settling(self.head):
            lost = self._drop_unproved()
            log, rows, links = self.head.snapshot_log, [], []
            for release in again:
                log = self.proof.linked(log, release)
                rows += [self.proof.row(release.tick, query, payload) for query, payload in release.payloads.items()]
                links.append(self.proof.link(release.tick, log))
                for table in _LOG:
                    self._connection.execute(f"DELETE FROM {table} WHERE tick = ?", (release.tick,))  # noqa: S608
            self._put_releases(rows, links)
            self._inventory.take(self._connection, _LOG)
            self._check_sinks()
        return len(lost - {release.tick for release in again})

    def end(self) -> None:
        """Ends the stream for good. Events that wait are deleted: nothing will ever count them."""
        with self._settling(replace(self.head, ended=True, run=None)):
            self._drop_unproved()
            for table in ("journal", *(table for table in _UNREADABLE if table in self.damaged)):
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 (names of ours)
            self._inventory.take(self._connection)
        self._sidecar.write(self.head.mark())

    def end_without_state(self) -> int:
        """Ends a stream whose state cannot be read: beside the key it is written that it has ended. Its last tick."""
        mark = self._sidecar.read()
        if mark is None:
            raise StateError(f"{self._sidecar.path} is missing: nothing says that this stream has ever run")
        self._sidecar.write(replace(mark, ended=True))
        return mark.tick

    @contextmanager
    def _settling(self, new: Head) -> Iterator[None]:
        """The transaction that mends: first of all, nothing acts in it but this."""
        self._settled = True
        with self._writing(new):
            database.drop(self._connection, database.schema_differences(self._connection, len(database.STEPS))[1])
            yield

    def _check_schema(self, version: int = len(database.STEPS)) -> None:
        """What is there besides our tables is taken out with the rest of the damage; it must not act until then."""
        if database.schema_differences(self._connection, version)[0]:
            super()._check_schema(version)

    def _drop_unproved(self) -> set[int]:
        """Takes ticks out of the log of which anything is not what was released."""
        rows = self._connection.execute("SELECT tick, query, payload, mac FROM release")
        ticks = {row[0] for row in rows if not self.proof.is_genuine(row)}
        for row in self._connection.execute("SELECT tick, chain, mac FROM link"):
            try:
                self.proof.chain(row)
            except DamagedLog:
                ticks.add(row[0])
        for tick in ticks:
            for table in _LOG:
                self._connection.execute(f"DELETE FROM {table} WHERE tick = ?", (tick,))  # noqa: S608 (names of ours)
        if self.head.tick > self.head.since:  # heads are signed with it, also if the last tick is gone
            last = self.proof.link(self.head.tick, self.head.log)
            self._connection.execute("INSERT OR REPLACE INTO link VALUES (?, ?, ?)", last)
        return ticks

    def _check_sinks(self) -> None:
        kept = {tick for (tick,) in self._connection.execute("SELECT DISTINCT tick FROM release")}
        names = {sink.name for sink in self._spec.sinks}
        for name, cursor in self.cursors().items():
            if name in names and not kept.issuperset(range(cursor.tick + 1, self.head.tick + 1)):
                raise StateError(
                    f"{self._path}: a tick that the output {name!r} still waits for is damaged, and would be left out. "
                    "Bring the last state back, or end the stream: evertally rescue --end"
                )
