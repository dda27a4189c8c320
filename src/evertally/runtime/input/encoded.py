"""A batch in the form in which the journal keeps it, made before the thread that owns the stream gets the batch.

All that could fail because of what a batch holds happens here: it fails for whoever sent it, and for nobody else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evertally.errors import described
from evertally.runtime.input.batches import counted, encode, encoded_earlier
from evertally.runtime.input.envelope import BatchRefused
from evertally.runtime.input.sources import Batch
from evertally.runtime.input.tick_events import length, split_by_tick
from evertally.runtime.spec import StreamSpec
from evertally.secret import Secret


class BatchFailed(BatchRefused):
    """Taking a batch failed where nothing should: a defect of evertally. Nothing of it was counted.

    `place` is for the log; who sent the batch is told nothing that depends on it.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__("the batch cannot be taken; it was left out as a whole, and would be again")
        self.place = described(error)
        self.lasting = not isinstance(error, MemoryError)


@dataclass(frozen=True, repr=False)
class Part(Secret):
    """The events that one batch has in one tick, without the bytes that keep them."""

    digest: bytes
    size: int
    batch: Batch
    caller: str  # whose it is; nobody's ("") after a restart, which has forgotten

    @classmethod
    def of(cls, payload: bytes, batch: Batch, caller: str = "") -> Part:
        """The part of a batch that is kept as these bytes."""
        return cls(hashlib.sha256(payload).digest(), len(payload), batch, caller)

    @property
    def rows(self) -> int:
        return length(self.batch)


@dataclass(frozen=True, repr=False)
class Encoded(Secret):
    """A batch that can be kept, cut into ticks for the case that `first` is the open one."""

    payload: bytes
    batch: Batch
    caller: str
    first: int
    parts: Sequence[tuple[int, bytes, Part]]
    sent: int = 0  # rows of the body, good and bad ones: how many were good is nobody's business

    @property
    def rows(self) -> int:
        return length(self.batch)

    def as_before(self) -> bytes:
        """What an earlier version kept of it: it may come again after an update. BatchFailed if there is no such."""
        try:
            return encoded_earlier(self.batch)
        except Exception as error:
            failed = BatchFailed(error)
        raise failed  # out here: it must not carry the other one, and what that holds, along

    def entering(self, tick: int, spec: StreamSpec) -> Encoded:
        """The same batch for the tick that is open now; BatchFailed if it cannot be kept."""
        if self.first == tick:
            return self
        if spec.clock.close == "wall":
            return replace(self, first=tick, parts=[(tick, payload, part) for _, payload, part in self.parts])
        return encoded(self.batch, spec, tick, self.caller)


def received(body: bytes, media_type: str, spec: StreamSpec, first: int, caller: str) -> Encoded:
    """What is kept of a body; BatchRefused if its envelope is wrong, BatchFailed if it cannot be read or kept."""
    try:
        sent, batch = counted(body, media_type, spec)
    except BatchRefused:
        raise
    except Exception as error:
        failed = BatchFailed(error)
    else:
        return replace(encoded(batch, spec, first, caller), sent=sent)
    raise failed  # out here as well


def encoded(batch: Batch, spec: StreamSpec, first: int, caller: str = "") -> Encoded:
    """What is kept of a batch of which no event enters a tick before `first`; BatchFailed if it cannot be kept."""
    try:
        payload = encode(batch)
        return Encoded(payload, batch, caller, first, _parts(batch, payload, spec, first, caller))
    except Exception as error:
        failed = BatchFailed(error)
    raise failed  # out here as well


def _parts(batch: Batch, payload: bytes, spec: StreamSpec, first: int, caller: str) -> list[tuple[int, bytes, Part]]:
    if spec.clock.close == "wall":
        return [(first, payload, Part.of(payload, batch, caller))]
    found = [(tick, encode(part), part) for tick, part in split_by_tick(batch, spec, first, spec.last_tick)]
    return [(tick, kept, Part.of(kept, part, caller)) for tick, kept, part in found]
