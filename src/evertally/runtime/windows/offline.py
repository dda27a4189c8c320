"""Windows of a stream that is not asked over HTTP: from its state, which is read and never written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from evertally.runtime.machine import Machine, StreamState
from evertally.runtime.opening import anchored
from evertally.runtime.releases import TickRelease
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.looking import StoreToRead
from evertally.runtime.windows.answers import Windows


@contextmanager
def windows_of(spec: StreamSpec) -> Iterator[tuple[StreamSpec, Windows, int]]:
    """The spec with its clock in place, the windows, and the last tick that is out. Needs the key: which mechanisms the
    stream runs on is sealed with it. Another process may be running the stream."""
    with StoreToRead.of(spec) as (key, store):
        whole, last = anchored(spec, store), store.shown_through()
        rows = store.head.rows
        machine = Machine.at(whole, StreamState(store.head.snapshot, store.snapshots()), key, rows=rows)
        store.check_ledger(machine.ledger())

        def read(ticks: Sequence[int], queries: Sequence[str]) -> list[TickRelease]:
            return [release for tick in ticks if tick <= last for release in store.releases(tick, tick)]

        yield whole, Windows(whole, machine.twins(), rows, read), last
