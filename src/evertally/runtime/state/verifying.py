"""Whether a state is what the stream has written: all of it, without taking it up and without writing anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evertally.errors import StateError
from evertally.runtime.releases import TickRelease
from evertally.runtime.state import database
from evertally.runtime.state.log import DamagedLog
from evertally.runtime.state.looking import StoreToRead
from evertally.runtime.state.sidecar import NO_CHAIN


class StoreToVerify(StoreToRead):
    """Goes through everything. Another process may be running the stream."""

    def problems(self) -> Iterator[str]:
        """What is wrong, a sentence each; nothing if all of it is as it was written."""
        if not self._proved:
            yield "it was written by an earlier version, which gave no proofs; start the stream once with this one"
            return
        try:
            if self._select("PRAGMA integrity_check") != [("ok",)]:
                yield "the file is damaged: SQLite finds its pages inconsistent"
            with database.translated(self._path):  # a table may be gone, or hold texts that are none
                database.check_schema(self._connection, self._path)
                self._take_inventory()
            self.snapshots()
            for _ in self.journal(-1):
                pass
            self.cursors()
            yield from self._beside_the_key()
            yield from self._unchained()
        except StateError as error:
            yield str(error)

    def signed(self, digests: bool) -> dict[str, Any]:
        """What vouches for the log up to the last tick; with `digests` also for each tick that is kept."""
        if self._proved:
            with database.translated(self._path):
                self._take_inventory()  # nothing is signed that was not released
        last = self.shown_through()
        ticks = [tick for tick in self._ticks() if tick <= last] if digests else []
        return self.proof.head(last, self._chain(last), (self._release(tick) for tick in ticks))

    def _chain(self, tick: int) -> str:
        """Of the public log at the last tick that is shown."""
        if tick == self.head.tick or tick <= self.head.since:
            return self.head.log if tick == self.head.tick else NO_CHAIN
        links = self._select("SELECT tick, chain, mac FROM link WHERE tick = ?", tick)
        if not links:
            raise self.proof.not_as_committed()
        return self.proof.chain(links[0])

    def _ticks(self) -> list[int]:
        return [tick for (tick,) in self._select("SELECT DISTINCT tick FROM release ORDER BY tick")]

    def _release(self, tick: int) -> TickRelease:
        (release,) = self.releases(tick, tick)
        return release

    def _refuse(self, tables: Any) -> None:
        raise DamagedLog(f"these tables are not as they were written: {', '.join(tables)}")

    def _beside_the_key(self) -> Iterator[str]:
        mark = self._marks[-1]
        if mark is None:
            yield f"{self._sidecar.path} is missing: nothing proves that it is the last state of the stream"
        elif self._vouched() is None or mark.ended != self.head.ended:
            yield f"it is not the last state of the stream: {self._sidecar.path} knows of another one"

    def _unchained(self) -> Iterator[str]:
        """Ticks that are not what the chain of the public log says, where the tick before is kept too."""
        before, chain = self.head.since, None
        for row in self._select("SELECT tick, chain, mac FROM link ORDER BY tick"):
            tick, link = row[0], self.proof.chain(row)
            if tick == before + 1 and tick > self.head.since:
                known = NO_CHAIN if chain is None else chain
                kept = self.releases(tick, tick)  # not there: it was damaged, and a rescue took it out
                if kept and self.proof.linked(known, kept[0]) != link:
                    yield f"tick {tick} is not what the chain of the log says"
            before, chain = tick, link
        if self.head.tick > self.head.since and chain != self.head.log:
            yield "the log does not end with the last tick"
