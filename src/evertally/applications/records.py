"""The door of applications: the records of a tick, each bounded by a fixed function of itself.

What an application makes of a record is `read`: a tuple of texts and whole numbers, or None for a record that cannot
be used. Such a record is dropped without a word (factorization-counting 6.0).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from evertally.applications.tables import as_bytes
from evertally.encode.labels import as_list, require_column
from evertally.secret import Secret

_PIECE = 1 << 22  # numbers that a piece of a run releases

Record = tuple[Any, ...]  # texts, whole numbers, None


@dataclass(frozen=True, repr=False)
class Records(Secret):
    """The records of one tick that can be used, in their order of arrival. Secret."""

    read: tuple[Record, ...]

    def __len__(self) -> int:
        return len(self.read)

    def digest(self) -> bytes:
        """A hash that says whether two ticks had the same input. Order counts: a letter follows another."""
        return hashlib.sha256(as_bytes(self.read)).digest()


class RecordDoor:
    """Ticks of records in; there are no totals to hand over. `step` takes records, `run` a list of ticks of records.

    `sort`: for statistics that do not look at the order of a tick's records; then the digest does not either.
    """

    def __init__(self, read: Callable[[Any], Record | None], width: int, *, sort: bool = False) -> None:
        self.read, self.sort = read, sort
        self._piece = max(1, min(1024, _PIECE // max(1, width)))  # ticks

    def events(self, events: Any, tick: int) -> Records:
        require_column(events, "events")
        read = [record for record in map(self.read, as_list(events)) if record is not None]
        return Records(tuple(sorted(read) if self.sort else read))

    def total(self, x: Any, tick: int) -> Records:
        return self.events(x, tick)

    def many(self, x: Any, first: int) -> list[Any]:
        require_column(x, "the ticks of a run")
        ticks = as_list(x)
        for records in ticks:
            require_column(records, "the records of a tick")
        return ticks

    def pieces(self, many: list[Any]) -> Iterator[list[Records]]:
        for start in range(0, len(many), self._piece):
            yield [self.events(records, 0) for records in many[start : start + self._piece]]

    def batch(self, totals: Records) -> list[Records]:
        return [totals]

    def last(self, batch: list[Records]) -> Records:
        return batch[-1]

    def digest(self, totals: Records) -> bytes:
        return totals.digest()
