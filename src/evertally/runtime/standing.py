"""The mechanisms that a spec stands for, to be asked about mechanism, charge and error.

Which mechanism "auto" takes may change from version to version; a stream goes on with what it began with. So what is
said about a stream that has run is said of the mechanisms in its state, never of those that would be chosen today.
"""

from __future__ import annotations

from evertally.runtime.machine import Machine, StreamState
from evertally.runtime.mechanisms import Mechanisms, build
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.looking import AnotherSpec, StoreToRead, key_to_look
from evertally.runtime.windows.outputs import check_windows


def standing(spec: StreamSpec) -> Mechanisms:
    """Those of the stream if it has run, which needs its key; otherwise, or if the state is of another spec, new ones.

    They have their own key, which is thrown away, and have seen no data. Charges that are not those of the ledger in
    the state, or other noise, are refused (StateError).
    """
    running = _running(spec)
    if running is not None:
        return running
    made = build(spec, key=None)
    check_windows(spec, made, keeps_rows=True)
    return made


def _running(spec: StreamSpec) -> Mechanisms | None:
    try:
        key = key_to_look(spec)
        if key is None:
            return None
        with StoreToRead.found(key, spec) as store:
            if store is None:
                return None
            state = StreamState(store.head.snapshot, store.snapshots())
            machine = Machine.at(spec, state, key, rows=store.head.rows)
            store.check_ledger(machine.ledger())
            return machine.twins()
    except AnotherSpec:
        return None
