"""How a stream is taken up, new or again: lock, key, store, mechanisms, sinks, in an order that leaves no trace of what
was refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from evertally.errors import ConfigurationError, StateError
from evertally.runtime.machine import Machine, StreamState
from evertally.runtime.publisher import Publisher
from evertally.runtime.sinks import open_sinks
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.fence import fence, keep_key, obtain_key
from evertally.runtime.state.mending import MendedStore
from evertally.runtime.state.shelf import open_shelf
from evertally.runtime.state.store import Store


@contextmanager
def opened(
    spec: StreamSpec,
    *,
    replay: bool = False,
    nothing_was_released: bool = False,
    mending: bool = False,
    origin: Callable[[], int | None] = lambda: None,
    check_input: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Store, Machine, Publisher]]:
    """The stream as of its last snapshot. `origin` is asked only by a clock that starts with the stream, `check_input`
    only of a new stream: what it refuses leaves no key behind. `nothing_was_released`: a key that is there without
    sidecar and state is new. `mending`: the caller mends the store (a `MendedStore`) before anything else."""
    with fence(spec.key_file) as hold_key:
        _check_not_on_spark(spec)
        key, new_key = obtain_key(spec.key_file, spec.state_file, nothing_was_released)
        store = (MendedStore if mending else Store)(key, spec)
        try:
            found: list[Machine] = []

            def check() -> None:
                state = StreamState(store.head.snapshot, store.snapshots())
                found.append(Machine.at(anchored(spec, store), state, key, rows=store.head.rows))
                store.check_ledger(found[0].ledger())

            known = store.open(replay, check)
            if known:
                machine = found[0]
                publisher = Publisher(spec, store, open_sinks(spec), machine.twins)
                if store.replay_target is None and not mending:
                    publisher.catch_up()
            else:
                # Mechanisms, sinks and input come first: what they refuse must not leave a bound key behind.
                machine = Machine.at(spec, StreamState(), key, rows=store.head.rows)
                sinks = open_sinks(spec)
                if store.replay_target is None:
                    for sink in sinks:
                        sink.check_new()
                check_input()
                if new_key:
                    keep_key(key, spec.key_file, store.bind)
                    hold_key()
                store.begin(machine.ledger(), origin())
                publisher = Publisher(spec, store, sinks, machine.twins)
                machine = machine.on(anchored(spec, store))
            yield store, machine, publisher
        finally:
            store.close()


def _check_not_on_spark(spec: StreamSpec) -> None:
    """The sidecar keeps one process off the key of a stream on Spark, but only after a state was begun for a replay,
    and that would keep Spark off it."""
    with suppress(ConfigurationError):  # a home that only the driver on Spark knows how to open
        if open_shelf(spec.engine.home).read("genesis") is not None:
            raise StateError(
                f"{spec.engine.home} is there: this stream runs on Spark, and the two cannot share a key. A new stream "
                "needs new key, state and output files"
            )


def anchored(spec: StreamSpec, store: Store) -> StreamSpec:
    """The spec with its clock in place: one that starts at the first serve gets its start from the store."""
    origin = store.head.origin
    return spec if origin is None else replace(spec, clock=spec.clock.anchored(origin))
