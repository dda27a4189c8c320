"""A stream that is being fed: batches come in and are durable, ticks are closed and released.

Events are kept in a journal until a snapshot holds them; after a crash the mechanisms come back from the last snapshot
and go through the journal again. The noise is addressed, so they release the same bytes; it is checked that they do.

An event enters the tick of its receipt. Only where ticks close on request does its own time stamp decide, and a late
one enters the open tick. In neither case does one event decide about another.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from evertally.errors import StateError
from evertally.runtime.certificate import certificate_of
from evertally.runtime.input.batches import decode, encode, encoded_earlier
from evertally.runtime.input.envelope import BatchRefused
from evertally.runtime.input.sources import Batch
from evertally.runtime.input.tick_events import TickEvents, split_by_tick
from evertally.runtime.input.without import without
from evertally.runtime.opening import anchored, opened
from evertally.runtime.plan import Plan, plan_of
from evertally.runtime.releases import TickRelease
from evertally.runtime.spec import StreamSpec, check_servable
from evertally.runtime.state.store import Cursor, Entry
from evertally.secret import Secret

_COMMIT_TICKS = 64  # at most so many ticks in one transaction
_OTHER_CONTENT = "this batch id was used for another content; a retry must send the same bytes"


class StreamEnded(StateError):
    """The last tick of the stream has closed; it takes no more events."""


@dataclass(frozen=True)
class Receipt:
    """A batch is durable. Nothing in here depends on its records."""

    tick: int
    duplicate: bool


@dataclass(frozen=True, repr=False)
class _Part(Secret):
    """The events that one batch has in one tick."""

    digest: bytes
    size: int
    batch: Batch


class Live(Secret):
    """One live stream. All of it belongs to one thread."""

    def __init__(self, spec: StreamSpec, *, wall: Callable[[], float] = time.time, replay: bool = False) -> None:
        check_servable(spec)
        self._wall = wall
        self._waiting: dict[int, list[_Part]] = {}  # by tick
        self._latest = 0  # tick that an event was stamped with
        self.waiting_bytes = 0
        self._twins: dict[str, Any] | None = None
        with ExitStack() as stack:
            stream = opened(spec, replay=replay, origin=lambda: self._origin(spec))
            self._store, self._machine, self._publisher = stack.enter_context(stream)
            self.spec = anchored(spec, self._store)
            if self._store.head.run is not None:
                raise StateError("a run of a file was interrupted; finish it with `evertally run` first")
            self._recover()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                # A clean end leaves no events behind: the snapshots hold them.
                self._store.commit([], [], snapshots=self._machine.state().snapshots, cursors=self._publisher.cursors)
        finally:
            self._stack.close()

    def abandon(self) -> None:
        """Lets go of lock and files at once. Nothing is lost: the next start goes through the journal again."""
        self._stack.close()

    @property
    def released(self) -> int:
        """The last tick that is committed."""
        return self._store.head.tick

    @property
    def last_tick(self) -> int | None:
        """The last tick of the stream, None if it has no end."""
        return self.spec.last_tick

    @property
    def ended(self) -> bool:
        """Whether all ticks are released."""
        return self.last_tick is not None and self.released >= self.last_tick

    @property
    def over(self) -> bool:
        """Whether it takes no more events: its last tick has closed, released or not."""
        return self.last_tick is not None and self.open_tick > self.last_tick

    @property
    def replaying(self) -> bool:
        """Whether this is a replay that has not arrived yet: nothing is published."""
        return self._store.replay_target is not None

    @property
    def open_tick(self) -> int:
        """The tick that events enter now. It never goes back, whatever the wall clock does."""
        if self.spec.clock.close == "wall":
            self._latest = max(self._latest, self.spec.clock.open_tick(self.now()))
        return max(self.released + 1, self._latest)

    def described(self) -> tuple[Plan, dict[str, Any]]:
        """Plan and certificate of the mechanisms that run here. May be called from any thread: twins of them are asked,
        made from options that never change."""
        twins, _ = self.laws()
        return plan_of(self.spec, twins), certificate_of(self.spec, twins)

    def laws(self, *, anew: bool = False) -> tuple[dict[str, Any], bool]:
        """Twins of the mechanisms that run here, and whether payloads keep rows: what windows are made with. `anew`:
        for another thread, for a mechanism is for one at a time."""
        if anew:
            return self._machine.twins(), self._store.head.rows
        if self._twins is None:
            self._twins = self._machine.twins()
        return self._twins, self._store.head.rows

    def now(self) -> int:
        """The wall clock in microseconds since 1970."""
        return int(self._wall() * 1_000_000)

    def mark(self, name: str) -> int | None:
        """The position in a source up to which everything was accepted."""
        return self._store.mark(name)

    def accept(
        self, batches: Sequence[tuple[str, Batch]], marks: Mapping[str, int] | None = None
    ) -> list[Receipt | BatchRefused]:
        """Makes batches durable, in one transaction, each exactly once by its id."""
        tick = self.open_tick
        if self.over:
            raise StreamEnded("the stream has ended; it takes no more events. A new stream needs its own spec and key")
        answers: list[Receipt | BatchRefused] = []
        entries: dict[str, Entry] = {}
        accepted: list[tuple[int, _Part]] = []
        for batch_id, batch in batches:
            payload = encode(batch)
            digest = self._store.digest(payload)
            earlier = entries.get(batch_id)
            known = (earlier.digest, earlier.tick) if earlier is not None else self._store.batch(batch_id)
            if known is not None:
                same = known[0] == digest or known[0] == self._store.digest(encoded_earlier(batch))
                answers.append(Receipt(known[1], True) if same else BatchRefused(_OTHER_CONTENT))
                continue
            parts = self._parts(batch, payload, tick)
            entries[batch_id] = Entry(batch_id, digest, tick, [(at, text) for at, text, _ in parts])
            accepted += ((at, _part(text, events)) for at, text, events in parts)
            answers.append(Receipt(tick, False))
        self._store.add(list(entries.values()), marks or {})
        for at, part in accepted:
            self._wait(at, part)
        return answers

    def _parts(self, batch: Batch, payload: bytes, tick: int) -> list[tuple[int, bytes, Batch]]:
        if self.spec.clock.close == "wall":
            return [(tick, payload, batch)]
        return [(at, encode(part), part) for at, part in split_by_tick(batch, self.spec, tick, self.last_tick)]

    def _wait(self, tick: int, part: _Part) -> None:
        self._waiting.setdefault(tick, []).append(part)
        self.waiting_bytes += part.size

    def release_through(self, tick: int) -> list[TickRelease]:
        """Closes ticks up to `tick`. What it returns is committed, and is to be published next."""
        released: list[TickRelease] = []
        while self.released < tick:
            released += self._release(self._stop(tick))
        return released

    def erase(self, users: Sequence[str]) -> None:
        """Erases users from mechanisms, snapshots and journal, all at once or not at all. Nothing is released."""
        self._machine.erase(users)
        waiting: dict[int, list[_Part]] = {}
        payloads: list[tuple[int, bytes]] = []
        for tick, parts in sorted(self._waiting.items()):
            for part in parts:
                left = without(part.batch, str(self.spec.user_column), users)
                if left is not None:
                    payload = encode(left)
                    payloads.append((tick, payload))
                    waiting.setdefault(tick, []).append(_part(payload, left))
        self._store.rewrite(self._machine.state().snapshots, payloads)
        self._waiting = waiting
        self.waiting_bytes = sum(part.size for parts in waiting.values() for part in parts)

    def publish(self, ticks: Sequence[TickRelease]) -> None:
        """Gives committed ticks to the sinks."""
        if ticks:
            self._publisher.publish(ticks)

    def delivered_through(self, sink: str) -> int:
        """The last tick that a webhook took; one that is new to a running stream begins with the next tick."""
        return self._publisher.cursors.setdefault(sink, Cursor(self.released)).tick

    def delivered(self, sink: str, tick: int) -> None:
        """A webhook took a tick. Remembered with the next commit. May be called from any thread."""
        self._publisher.cursors[sink] = Cursor(tick)

    def _stop(self, tick: int) -> int:
        """Where the next transaction ends: at a snapshot, at the tick that a replay must meet, or before it is big."""
        every = self.spec.snapshot_every
        stop = min(tick, self.released + _COMMIT_TICKS, (self.released // every + 1) * every)
        return min(stop, self._store.replay_target or stop)

    def _release(self, stop: int) -> list[TickRelease]:
        was_replay = self.replaying
        ticks, inputs = [], []
        for tick in range(self.released + 1, stop + 1):
            ticks.append(self._step(tick))
            inputs.append(_digest(self._waiting.get(tick, [])))
        snapshots = self._machine.state().snapshots if stop % self.spec.snapshot_every == 0 else None
        self._store.commit(ticks, inputs, snapshots=snapshots, cursors=self._publisher.cursors)
        for tick in range(ticks[0].tick, stop + 1):
            self._forget(tick)
        if was_replay and not self.replaying:
            self._publisher.catch_up()
        return [] if was_replay else ticks

    def _step(self, tick: int) -> TickRelease:
        return self._machine.step(TickEvents(self.spec, [part.batch for part in self._waiting.get(tick, [])]), tick)

    def _forget(self, tick: int) -> None:
        self.waiting_bytes -= sum(part.size for part in self._waiting.pop(tick, ()))

    def _origin(self, spec: StreamSpec) -> int | None:
        return self.now() // spec.clock.length * spec.clock.length if spec.clock.floating else None

    def _recover(self) -> None:
        head = self._store.head
        for tick, payload in self._store.journal(head.snapshot):
            self._wait(tick, _part(payload, decode(payload)))
        for tick in range(head.snapshot + 1, head.tick + 1):
            again = self._step(tick)
            for kept in self._store.releases(tick, tick):
                if any(again.payloads[name] != payload for name, payload in kept.payloads.items()):
                    raise StateError(
                        f"{self.spec.state_file}: tick {tick} does not come out as it was released; the stream stops. "
                        "The state is damaged, or the program has changed: bring the version back that released it"
                    )
            self._forget(tick)
        # The clock may have gone back since: no event may enter a tick before one that was stamped already.
        self._latest = max(self._waiting, default=0) if self.spec.clock.close == "wall" else 0


def _part(payload: bytes, batch: Batch) -> _Part:
    return _Part(hashlib.sha256(payload).digest(), len(payload), batch)


def _digest(parts: Sequence[_Part]) -> bytes:
    return hashlib.sha256(b"".join(part.digest for part in parts)).digest()
