"""Erasure requests to a stream that is not running: names of users leave its snapshots and its journal.

The stream is taken up as a start does, under its lock: the last snapshots, and the journal since. Then the users are
erased from every mechanism, their events are taken out of the ticks that are still to come, and new snapshots of the
same tick and what is left of the journal take the place of the old ones, in one transaction. Nothing is released, and
no release changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from evertally.errors import ConfigurationError, StateError
from evertally.runtime.live import Live
from evertally.runtime.opening import opened
from evertally.runtime.spec import StreamSpec


def erase(spec: StreamSpec, users: Sequence[str]) -> int:
    """Erases users from a stream that is not running. The tick after which they are erased: the last one released."""
    if spec.user_column is None:
        raise ConfigurationError(
            f"{spec.path}: the stream protects single events, and keeps no names of users. Events wait in the journal "
            "until a snapshot holds their sums; a clean stop takes them out"
        )
    if not spec.state_file.exists():
        raise StateError(f"the state file {spec.state_file} is missing: there is nothing to erase from")
    if spec.clock.integer and spec.clock.close == "wall":  # only ever run from files: nothing waits
        with opened(spec) as (store, machine, _):
            if store.head.run is not None:
                raise StateError("a run of a file was interrupted; finish it with `evertally run` first")
            machine.erase(users)
            store.rewrite(machine.state().snapshots, [])
            return store.head.tick
    with Live(spec) as live:
        live.erase(users)
        return live.released
