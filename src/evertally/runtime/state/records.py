"""What the store is made of, as its callers say it: where the stream is, a batch, how far a sink is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evertally.runtime.state.sidecar import NO_CHAIN, Mark
from evertally.secret import Secret

LedgerRow = tuple[str, str, str, str]  # query, share, charge, fingerprint of its noise


@dataclass(frozen=True)
class RunInProgress:
    """The input that is being read: its (keyed) hash, the first tick it may enter, the last tick it is released to."""

    input: str
    first: int
    last: int


@dataclass(frozen=True)
class Head:
    """Where the stream is."""

    spec: str
    generation: int = 0
    tick: int = 0
    chain: str = NO_CHAIN
    before_tick: int = 0  # of the commit before the last one: the sidecar may be that old
    before_chain: str = NO_CHAIN
    snapshot: int = 0  # the tick of the snapshots; the journal has the events since
    origin: int | None = None  # of a clock that starts at the first serve
    run: RunInProgress | None = None
    rows: bool = False  # whether payloads keep rows; those of earlier versions do not
    since: int = 0  # the tick after which the public log is a chain
    log: str = NO_CHAIN  # that chain (see public_log)
    snapshot_log: str = NO_CHAIN  # at the tick of the snapshots: what is computed again must lead from here to there
    inventory: Mapping[str, str] = field(default_factory=dict)  # what is in each table (see inventory)
    ended: bool = False  # for good, by its operator

    def mark(self) -> Mark:
        """What the sidecar keeps of it."""
        return Mark(self.generation, self.tick, self.chain, self.rows, self.since, self.ended)


@dataclass(frozen=True)
class Cursor:
    """How far a sink is."""

    tick: int = 0
    offset: int = 0


@dataclass(frozen=True, repr=False)
class Entry(Secret):
    """One accepted batch: its id and the events of it by tick."""

    id: str
    digest: bytes
    tick: int  # that was open when it came
    parts: Sequence[tuple[int, bytes]]
