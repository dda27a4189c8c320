"""From the release log to the sinks: each sink gets every tick once, in order, whatever was interrupted.

A sink writes at an offset that the store knows. The offset of a tick is committed with a later transaction, so after a
crash some ticks are written again: the same bytes at the same place. Beside the offset a digest of what is there is
kept, as the offset of a cursor of its own: whoever changes an output is found out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evertally.errors import StateError
from evertally.runtime.releases import TickRelease
from evertally.runtime.sinks import Sink
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.records import Cursor
from evertally.runtime.state.store import Store
from evertally.runtime.windows import Windows
from evertally.runtime.windows.outputs import WindowRows

_AT_ONCE = 256  # ticks read from the log at a time


class Publisher:
    """The sinks of a stream and how far each of them is."""

    def __init__(
        self, spec: StreamSpec, store: Store, sinks: Sequence[Sink], laws: Callable[[], Mapping[str, Any]]
    ) -> None:
        self._store, self._sinks = store, sinks
        self._places = {sink.name: sink.file for sink in spec.sinks}
        self._windows: WindowRows | None = None
        if spec.longest_window:
            self._windows = WindowRows(spec, Windows(spec, laws(), store.head.rows, self._kept))
        names = {sink.name for sink in spec.sinks}  # one that was taken out of the spec must not hold up the others
        names |= {_digest_of(name) for name in names}
        self.cursors = {name: cursor for name, cursor in store.cursors().items() if name in names}
        self._begin([sink for sink in sinks if sink.name not in self.cursors])

    def _begin(self, sinks: Sequence[Sink]) -> None:
        """Remembers sinks before they are written: what is in them after a crash is then known to be ours."""
        if not sinks:
            return
        if self._store.head.ended:  # nobody knows any more how far it is: what was published stays as it is
            lost = [sink for sink in sinks if sink.last_behind(0)]
            self._sinks = [sink for sink in self._sinks if sink not in lost]
            sinks = [sink for sink in sinks if sink not in lost]
        if self._store.replay_target is None:  # a replay writes over what the stream has written before
            for sink in sinks:
                sink.check_new()
        self.cursors |= {sink.name: Cursor() for sink in sinks}
        self._store.keep_cursors(self.cursors)

    def catch_up(self) -> None:
        """Brings every sink up to the last committed tick."""
        last = self._store.head.tick
        for sink in self._sinks:
            cursor = self.cursors[sink.name]
            if not self._may_write(sink, cursor, last):
                continue
            if (kept := self.cursors.get(_digest_of(sink.name))) is not None and kept.tick == cursor.tick:
                sink.expect(kept.offset)
            # Also a sink that needs nothing is asked: what it holds may be less than it should be.
            self._write(sink, cursor, [])
            for first in range(cursor.tick + 1, last + 1, _AT_ONCE):
                ticks = self._store.releases(first, min(last, first + _AT_ONCE - 1))
                self._write(sink, self.cursors[sink.name], ticks)

    def _may_write(self, sink: Sink, cursor: Cursor, last: int) -> bool:
        """Whether what is behind the cursor can be written again. A tick that the stream does not know was published
        by its future: the sidecar moves before an output does, so both files are older than they should be."""
        behind = sink.last_behind(cursor.offset)
        if behind > last:
            raise StateError(
                f"the output {self._places[sink.name]} holds tick {behind}, and the stream is at tick {last}: state "
                "and sidecar are of an earlier moment, or the output is another stream's. To go on would release ticks "
                "a second time, with the same noise on other data; bring the last state and sidecar back"
            )
        if not self._store.head.ended:
            return True
        # What the log has lost to damage was published all the same, and nothing could write it again.
        return not behind or len(self._store.releases(cursor.tick + 1, behind)) == behind - cursor.tick

    def _kept(self, ticks: Sequence[int], queries: Sequence[str]) -> list[TickRelease]:
        return [release for tick in ticks for release in self._store.releases(tick, tick)]

    def publish(self, ticks: Sequence[TickRelease]) -> None:
        """Ticks that have just been committed."""
        self._store.check_mine()  # a process that took the stream over writes the same files
        for sink in self._sinks:
            self._write(sink, self.cursors[sink.name], ticks)

    def _write(self, sink: Sink, cursor: Cursor, ticks: Sequence[TickRelease]) -> None:
        shown = ticks if self._windows is None else self._windows.added(ticks)
        offset = sink.publish(shown, cursor.offset)
        tick = ticks[-1].tick if ticks else cursor.tick
        self.cursors[sink.name] = Cursor(tick, offset)
        if sink.digest is not None:
            self.cursors[_digest_of(sink.name)] = Cursor(tick, sink.digest)


def _digest_of(sink: str) -> str:
    return f"{sink}/digest"  # no name of a file has a slash in it
