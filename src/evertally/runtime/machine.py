"""The mechanisms of a stream, and one tick after the other: events in, releases out.

A tick is a function of the snapshots, the events and the key; no clock, file or generator is read. Whoever goes through
the same events again gets the same bytes, here or on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from evertally.contract.folding import Folded, adds_up
from evertally.contract.idle import idle, plays_idle
from evertally.contract.memory import held_bytes
from evertally.encode.content_order import order_key
from evertally.errors import ConfigurationError, EvertallyError, described
from evertally.noise import Key, NoiseKey
from evertally.runtime.mechanisms import Mechanisms, build, restored, twins
from evertally.runtime.releases import TickRelease, pack
from evertally.runtime.sieve import Rows, stepped, takeable
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.state.records import LedgerRow
from evertally.runtime.windows.outputs import check_windows
from evertally.secret import Secret


@dataclass(frozen=True, repr=False)
class StreamState(Secret):
    """All that a stream is between two ticks. Secret: the snapshots hold exact sums."""

    tick: int = 0
    snapshots: Mapping[str, bytes] = field(default_factory=dict)  # by query; empty before the first tick


class Machine(Secret):
    """The mechanisms of a stream between two ticks."""

    def __init__(self, spec: StreamSpec, mechanisms: Mechanisms, key: NoiseKey, rows: bool = False) -> None:
        self._spec, self._mechanisms, self._key, self._rows = spec, mechanisms, key, rows
        self.tick = 0
        self.releases: dict[str, Any] = {}  # of the last tick, by query
        self.trouble: str | None = None  # what happened that should not, for operators

    @classmethod
    def at(cls, spec: StreamSpec, state: StreamState, key: Key, *, rows: bool = False) -> Machine:
        """The machine that goes on from a state. `rows`: whether payloads keep rows, as the stream began."""
        mechanisms = restored(spec, key, state.snapshots) if state.snapshots else build(spec, key)
        check_windows(spec, mechanisms, rows)
        machine = cls(spec, mechanisms, key, rows)
        machine.tick = state.tick
        return machine

    def step(self, rows: Rows, tick: int) -> TickRelease:
        """Releases the next tick."""
        if self._spec.order == "content":
            rows = rows.ordered(order_key(self._key))
        return self._packed(tick, {query.name: self._released(rows, query, tick) for query in self._spec.queries})

    @property
    def folds(self) -> bool:
        """Whether all mechanisms take a tick in pieces."""
        return all(map(adds_up, self._mechanisms.values()))

    def fold(self, pieces: Iterable[Rows], tick: int) -> TickRelease:
        """Releases the next tick, whose events come in pieces; the same bytes as all at once, in whatever order: what
        takes pieces adds them up."""
        folded = {query.name: Folded(self._mechanisms[query.name], tick) for query in self._spec.queries}
        for rows in pieces:
            for query in self._spec.queries:
                self._taken(query, rows, tick, partial(_feed, folded[query.name], query))
        return self._packed(tick, {name: one.release() for name, one in folded.items()})

    def idle(self, nothing: Rows, ticks: range) -> list[TickRelease]:
        """Releases the next ticks, none of which has an event; the same bytes as one by one."""
        if len(ticks) == 1:
            return [self.step(nothing, ticks[0])]
        released = {query.name: self._released_idle(nothing, query, ticks) for query in self._spec.queries}
        return [self._packed(tick, {name: of[i] for name, of in released.items()}) for i, tick in enumerate(ticks)]

    def _released_idle(self, nothing: Rows, query: QuerySpec, ticks: range) -> list[Any]:
        mechanism = self._mechanisms[query.name]
        if plays_idle(mechanism):
            return idle(mechanism, len(ticks))
        return [self._released(nothing, query, tick) for tick in ticks]

    def _packed(self, tick: int, releases: dict[str, Any]) -> TickRelease:
        self.tick, self.releases = tick, releases
        payloads = {
            query.name: pack(query, releases[query.name], self._spec.beta, rows=self._rows)
            for query in self._spec.queries
        }
        return TickRelease(tick, self._spec.clock.end_of(tick), payloads)

    def _released(self, rows: Rows, query: QuerySpec, tick: int) -> Any:
        return self._taken(query, rows, tick, lambda some: stepped(self._mechanisms[query.name], some, query, tick))

    def _taken(self, query: QuerySpec, rows: Rows, tick: int, take: Callable[[Rows], Any]) -> Any:
        """What `take` makes of the rows, without those that make it raise."""
        try:
            return take(rows)
        except (EvertallyError, MemoryError):
            raise
        except Exception as error:  # the tick is not used, and the other queries know nothing of it
            kept = takeable(self._mechanisms[query.name], rows, query)
            if kept.all():
                raise
            why = described(error)
        self.trouble = f"query {query.name!r} could not take every event of tick {tick}, and left some out: {why}"
        return take(rows.only(kept))

    def erase(self, users: Sequence[str]) -> None:
        """Erases users from all mechanisms; refused if one of them cannot, and then nothing of this may be kept."""
        for name, mechanism in self._mechanisms.items():
            try:
                mechanism.erase(users)
            except ConfigurationError as error:
                raise ConfigurationError(f"query {name!r}: {error}") from None

    def state(self) -> StreamState:
        """What to keep."""
        return StreamState(self.tick, {name: mechanism.snapshot() for name, mechanism in self._mechanisms.items()})

    def on(self, spec: StreamSpec) -> Machine:
        """The same mechanisms under a spec whose clock has been set."""
        machine = Machine(spec, self._mechanisms, self._key, self._rows)
        machine.tick = self.tick
        return machine

    def twins(self) -> Mechanisms:
        """What runs here, to be asked about it: without its key and its state."""
        return twins(self._mechanisms)

    def memory(self) -> dict[str, int]:
        """How many bytes each query takes, about. Private."""
        return {name: held_bytes(mechanism) for name, mechanism in self._mechanisms.items()}

    def ledger(self) -> list[LedgerRow]:
        """What each query may cost, and from where it draws its noise, as the store keeps it."""
        return [
            (query.name, str(query.share), str(made.charge), made.noise_fingerprint)
            for query in self._spec.queries
            for made in [self._mechanisms[query.name]]
        ]


def _feed(folded: Folded, query: QuerySpec, rows: Rows) -> None:
    folded.feed(rows.events(query))
