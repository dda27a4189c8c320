"""The way on when a stream does not start any more: it goes on if it can be proved that it may, or it ends."""

from __future__ import annotations

import contextlib

from evertally.errors import StateError
from evertally.runtime.live import Live
from evertally.runtime.opening import opened
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.fence import fence, obtain_key
from evertally.runtime.state.mending import MendedStore


def rescue(spec: StreamSpec) -> tuple[int, int]:
    """Mends the state of a stream that is not running: the last tick, and how many older ones the log has lost.

    Nothing is released. Refused (StateError) if it is not proved that the mechanisms have seen what they had seen.
    """
    _check_there(spec)
    if spec.clock.integer and spec.clock.close == "wall":  # only ever run from files: a commit has all in snapshots
        with opened(spec, mending=True) as (store, _, _):
            assert isinstance(store, MendedStore)
            return store.head.tick, store.mend(())
    with Live(spec, mending=True) as live:
        return live.released, live.lost


def end(spec: StreamSpec) -> int:
    """Ends a stream that is not running, whatever its state is: its last tick. Nothing is ever released again."""
    with fence(spec.key_file):
        key, _ = obtain_key(spec.key_file, spec.state_file)
        store, readable = MendedStore(key, spec), False
        try:
            with contextlib.suppress(StateError):  # what belongs to another spec is refused below as well
                if spec.state_file.exists() and store.open():
                    readable = True
            if not readable:
                return store.end_without_state()
            store.end()
            return store.head.tick
        finally:
            store.close()


def _check_there(spec: StreamSpec) -> None:
    if not spec.state_file.exists():
        raise StateError(
            f"the state file {spec.state_file} is missing: nothing can be mended. Bring it back, or end the stream: "
            "evertally rescue --end"
        )
