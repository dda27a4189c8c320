"""A stream that is being fed: batches come in and are durable, ticks are closed and released.

Events are kept in a journal until a snapshot holds them; after a crash the mechanisms come back from the last snapshot
and go through the journal again. The noise is addressed, so they release the same bytes; it is checked that they do.

An event enters the tick of its receipt. Only where ticks close on request does its own time stamp decide, and a late
one enters the open tick. In neither case does one event decide about another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from evertally.errors import StateError
from evertally.runtime.amounts import Amounts
from evertally.runtime.certificate import certificate_of
from evertally.runtime.input.batches import decode, encode
from evertally.runtime.input.encoded import Encoded, Part, encoded
from evertally.runtime.input.envelope import BatchRefused
from evertally.runtime.input.sources import Batch
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.input.without import without
from evertally.runtime.opening import anchored, opened
from evertally.runtime.plan import Plan, plan_of
from evertally.runtime.releases import TickRelease
from evertally.runtime.spec import StreamSpec, check_servable
from evertally.runtime.state.log import Proof
from evertally.runtime.state.mending import MendedStore
from evertally.runtime.state.records import Cursor, Entry
from evertally.runtime.waiting import Waiting, in_pieces
from evertally.secret import Secret

_COMMIT_TICKS = 256  # at most so many ticks in one transaction, a quarter where they have many rows
_COMMIT_ROWS = 2**16
_LOOK_SECONDS = 10.0  # between two looks at the memory of queries
_OTHER_CONTENT = "this batch id was used for another content; a retry must send the same bytes"


class StreamEnded(StateError):
    """The last tick of the stream has closed; it takes no more events."""


@dataclass(frozen=True)
class Receipt:
    """A batch is durable. Nothing in here depends on its records."""

    tick: int
    duplicate: bool


class Live(Secret):
    """One live stream. All of it belongs to one thread."""

    def __init__(
        self,
        spec: StreamSpec,
        *,
        wall: Callable[[], float] = time.time,
        replay: bool = False,
        nothing_was_released: bool = False,
        mending: bool = False,
    ) -> None:
        check_servable(spec)
        self._wall = wall
        self._waiting = Waiting(spec.serve.max_memory_bytes)
        self._latest = 0  # tick that an event was stamped with
        self.memory: dict[str, int] = {}  # bytes of each query, about; looked at now and then
        self._looked = -_LOOK_SECONDS
        self._twins: dict[str, Any] | None = None
        with ExitStack() as stack:
            stream = opened(
                spec,
                replay=replay,
                nothing_was_released=nothing_was_released,
                mending=mending,
                origin=lambda: self._origin(spec),
            )
            self._store, self._machine, self._publisher = stack.enter_context(stream)
            self.spec = anchored(spec, self._store)
            if self._store.head.run is not None:
                raise StateError("a run of a file was interrupted; finish it with `evertally run` first")
            self.lost = 0  # ticks that the log has lost, in mending
            if not self._store.head.ended:
                self._recover()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None and not self._store.head.ended:
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
        return self.released if self._store.head.ended else self.spec.last_tick

    @property
    def proof(self) -> Proof:
        """What tells genuine releases, and vouches for them. May be asked from any thread."""
        return self._store.proof

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
        return plan_of(self.spec, twins), certificate_of(self.spec, twins, self.proof.public_key)

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

    @property
    def trouble(self) -> str | None:
        """What happened in a tick that should not, for operators."""
        return self._machine.trouble

    @property
    def waiting(self) -> Amounts:
        """How much waits for its tick, in the encoding of the journal."""
        return self._waiting.amounts

    @property
    def waiting_bytes(self) -> int:
        return self.waiting.all.bytes

    def mark(self, name: str) -> int | None:
        """The position in a source up to which everything was accepted."""
        return self._store.mark(name)

    def encoded(self, batch: Batch, caller: str = "") -> Encoded:
        """A batch as `accept` keeps it. May be called from any thread; BatchFailed if it cannot be kept."""
        return encoded(batch, self.spec, self.released + 1, caller)

    def accept(
        self, batches: Sequence[tuple[str, Batch | Encoded]], marks: Mapping[str, int] | None = None
    ) -> list[Receipt | BatchRefused]:
        """Makes batches durable, in one transaction, each exactly once by its id. A batch that is refused is refused
        alone, and then no mark moves."""
        tick = self.open_tick
        if self.over:
            raise StreamEnded("the stream has ended; it takes no more events. A new stream needs its own spec and key")
        answers: list[Receipt | BatchRefused] = []
        entries: dict[str, Entry] = {}
        accepted: list[tuple[int, Part]] = []
        for batch_id, given in batches:
            try:
                batch = given if isinstance(given, Encoded) else self.encoded(given)
                digest = self._store.digest(batch.payload)
                earlier = entries.get(batch_id)
                known = (earlier.digest, earlier.tick) if earlier is not None else self._store.batch(batch_id)
                if known is not None and known[0] != digest and known[0] != self._store.digest(batch.as_before()):
                    raise BatchRefused(_OTHER_CONTENT)
                if known is None:
                    parts = batch.entering(tick, self.spec).parts
                    entries[batch_id] = Entry(batch_id, digest, tick, [(at, payload) for at, payload, _ in parts])
                    accepted += ((at, part) for at, _, part in parts)
                answers.append(Receipt(tick, False) if known is None else Receipt(known[1], True))
            except BatchRefused as problem:
                answers.append(problem)
        refused = any(isinstance(answer, BatchRefused) for answer in answers)
        self._store.add(list(entries.values()), {} if refused else marks or {})
        for at, part in accepted:
            self._waiting.add(at, part)
        return answers

    def release_through(self, tick: int) -> list[TickRelease]:
        """Closes ticks up to `tick`. What it returns is committed, and is to be published next."""
        released: list[TickRelease] = []
        while self.released < tick:
            released += self._release(self._stop(tick))
        return released

    def erase(self, users: Sequence[str]) -> None:
        """Erases users from mechanisms, snapshots and journal, all at once or not at all. Nothing is released."""
        self._machine.erase(users)
        waiting = Waiting(self.spec.serve.max_memory_bytes)
        payloads: list[tuple[int, bytes]] = []
        for tick, payload in self._store.journal(self.released):
            left = without(decode(payload), str(self.spec.user_column), users)
            if left is not None:
                payloads.append((tick, encode(left)))
                waiting.add(tick, Part.of(payloads[-1][1], left))
        self._store.rewrite(self._machine.state().snapshots, payloads)
        self._waiting = waiting

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
        """Where the next transaction ends: at the tick that a replay must meet, or before it is big. By public numbers:
        how often a stream commits does not depend on its events."""
        most = max(_COMMIT_TICKS // 4, min(_COMMIT_TICKS, _COMMIT_ROWS // self.spec.rows))
        stop = min(tick, self.released + most)
        return min(stop, self._store.replay_target or stop)

    def _release(self, stop: int) -> list[TickRelease]:
        was_replay = self.replaying
        every, before = self.spec.snapshot_every, self.released
        ticks = self._steps(before + 1, stop)
        inputs = [self._waiting.digest(tick) for tick in range(before + 1, stop + 1)]
        snapshots = self._machine.state().snapshots if stop // every > before // every else None
        self._look_at_memory()
        self._store.commit(ticks, inputs, snapshots=snapshots, cursors=self._publisher.cursors)
        for tick in range(ticks[0].tick, stop + 1):
            self._waiting.forget(tick)
        if was_replay and not self.replaying:
            self._publisher.catch_up()
        return [] if was_replay else ticks

    def _steps(self, first: int, last: int) -> list[TickRelease]:
        """Computes ticks; those without events that follow each other in one go."""
        ticks: list[TickRelease] = []
        for stretch in stretches(first, last, self._waiting):
            batches = self._waiting.batches(stretch[0])
            if batches is None:
                ticks.append(self._step_from_journal(stretch[0]))
            else:
                ticks += self._machine.idle(TickEvents(self.spec, batches), stretch)
        return ticks

    def _step_from_journal(self, tick: int) -> TickRelease:
        """A tick that has more events than memory: in pieces, or all at once where a query needs that."""
        pieces = in_pieces(self._store.journal_of(tick))
        if self._machine.folds:
            return self._machine.fold((TickEvents(self.spec, piece) for piece in pieces), tick)
        return self._machine.step(TickEvents(self.spec, [batch for piece in pieces for batch in piece]), tick)

    def _origin(self, spec: StreamSpec) -> int | None:
        return self.now() // spec.clock.length * spec.clock.length if spec.clock.floating else None

    def _recover(self) -> None:
        head = self._store.head
        for tick, payload in self._store.journal(head.snapshot):
            self._waiting.add(tick, Part.of(payload, decode(payload)))
        mended = self._store if isinstance(self._store, MendedStore) and head.snapshot >= head.since else None
        log, repeated = head.snapshot_log, list[TickRelease]()
        for first in range(head.snapshot + 1, head.tick + 1, _COMMIT_TICKS):
            last = min(head.tick, first + _COMMIT_TICKS - 1)
            kept = {} if mended is not None else {one.tick: one for one in self._store.releases(first, last)}
            for again in self._steps(first, last):
                log = self.proof.linked(log, again)
                if mended is not None:
                    repeated.append(again)
                self._check_again(again, kept.get(again.tick))
                self._waiting.forget(again.tick)
        if log != head.log and head.snapshot >= head.since:
            raise self._otherwise(head.tick)  # of the ticks before it not all are kept
        if isinstance(self._store, MendedStore):
            self.lost = self._store.mend(repeated)
        self._look_at_memory()
        # The clock may have gone back since: no event may enter a tick before one that was stamped already.
        self._latest = max(self._waiting, default=0) if self.spec.clock.close == "wall" else 0

    def _look_at_memory(self) -> None:
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self.memory, self._looked = self._machine.memory(), time.monotonic()

    def _check_again(self, again: TickRelease, kept: TickRelease | None) -> None:
        if kept is not None and any(again.payloads[name] != payload for name, payload in kept.payloads.items()):
            raise self._otherwise(again.tick)

    def _otherwise(self, tick: int) -> StateError:
        return StateError(
            f"{self.spec.state_file}: tick {tick} does not come out as it was released; the stream stops. The state is "
            "damaged, or the program has changed: bring the version back that released it, or see `evertally rescue`"
        )


def stretches(first: int, last: int, busy: Container[int]) -> Iterator[range]:
    """Ticks in turn: those that are busy alone, those between them together.

    >>> list(stretches(1, 7, {3, 4}))
    [range(1, 3), range(3, 4), range(4, 5), range(5, 8)]
    """
    start = first
    for tick in range(first, last + 1):
        if tick in busy:
            yield from (range(start, tick),) if start < tick else ()
            yield range(tick, tick + 1)
            start = tick + 1
    yield from (range(start, last + 1),) if start <= last else ()
