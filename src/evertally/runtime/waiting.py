"""Events that wait for their tick to close: in memory as far as there is room, otherwise in the journal alone.

All of them are in the journal, sealed. What is here besides is for speed: a tick that has outgrown its memory is read
from there again when it closes, piece by piece. Of such a tick nothing is held but its size and a running hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from evertally.runtime.amounts import Amounts
from evertally.runtime.input.batches import decode
from evertally.runtime.input.encoded import Part
from evertally.runtime.input.sources import Batch
from evertally.secret import Secret

_PIECE = 2**22  # bytes of the journal that are decoded at once; doors take several times as much for a moment


@dataclass(repr=False)
class _Tick(Secret):
    amounts: Amounts = field(default_factory=Amounts)
    digest: Any = field(default_factory=hashlib.sha256)  # of the hashes of all batches, in the order of arrival
    batches: list[Batch] | None = field(default_factory=list)  # None: more than there is room for


class Waiting(Secret):
    """Batches by tick. `memory`: how many bytes of them, as the journal has them, are held in memory at most.

    >>> waiting = Waiting(memory=5)
    >>> waiting.add(1, Part.of(b"1234", {"ward": ["north"]})), waiting.add(2, Part.of(b"56", {"ward": ["south"]}))
    (None, None)
    >>> waiting.batches(1), waiting.batches(2), waiting.amounts.all.bytes, list(waiting)
    ([{'ward': ['north']}], None, 6, [1, 2])
    """

    def __init__(self, memory: int) -> None:
        self._memory, self._held = memory, 0
        self._ticks: dict[int, _Tick] = {}
        self.amounts = Amounts()  # of all that waits

    def __iter__(self) -> Iterator[int]:
        return iter(self._ticks)

    def __contains__(self, tick: object) -> bool:
        return tick in self._ticks

    def add(self, tick: int, part: Part) -> None:
        """What a batch has in a tick. The order within a tick is that of the journal."""
        found = self._ticks.setdefault(tick, _Tick())
        found.digest.update(part.digest)
        if found.batches is not None:
            if self._held + part.size > self._memory:
                self._held -= found.amounts.all.bytes
                found.batches = None
            else:
                self._held += part.size
                found.batches.append(part.batch)
        for amounts in (found.amounts, self.amounts):
            amounts.add(part.caller, part.rows, part.size)

    def batches(self, tick: int) -> list[Batch] | None:
        """The batches of a tick, in the order of their arrival; None if the journal alone has them."""
        found = self._ticks.get(tick)
        return [] if found is None else found.batches

    def digest(self, tick: int) -> bytes:
        """A hash of all that waits for a tick."""
        found: bytes = (self._ticks[tick] if tick in self._ticks else _Tick()).digest.digest()
        return found

    def forget(self, tick: int) -> None:
        """The tick is released."""
        found = self._ticks.pop(tick, _Tick())
        self._held -= 0 if found.batches is None else found.amounts.all.bytes
        for caller, amount in found.amounts:
            self.amounts.take(caller, amount.rows, amount.bytes)


def in_pieces(journal: Iterable[bytes]) -> Iterator[list[Batch]]:
    """Batches of the journal, so many at a time that memory does not grow with their number."""
    piece: list[Batch] = []
    size = 0
    for payload in journal:
        piece.append(decode(payload))
        size += len(payload)
        if size >= _PIECE:
            yield piece
            piece, size = [], 0
    yield piece
