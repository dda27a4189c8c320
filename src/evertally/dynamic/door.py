"""The door of dynamic statistics, in the style of the contract: ticks of records in, arrivals out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evertally.encode.labels import as_list, require_column
from evertally.encode.updates import Arrivals, UpdateDoor

_PIECE = 1 << 22  # numbers that a piece of a run releases


class RecordsOfTicks:
    """There are no totals to hand over: `step` takes records, `run` a list of ticks of records."""

    def __init__(self, records: UpdateDoor, width: int) -> None:
        self._records = records
        self._piece = max(1, min(1024, _PIECE // width))  # ticks

    def total(self, x: Any, tick: int) -> Arrivals:
        return self._records.arrivals(x)

    def events(self, events: Any, tick: int) -> Arrivals:
        return self._records.arrivals(events)

    def many(self, x: Any, first: int) -> list[Any]:
        require_column(x, "the ticks of a run")
        ticks = as_list(x)
        for records in ticks:
            require_column(records, "the records of a tick")
        return ticks

    def pieces(self, many: list[Any]) -> Iterator[list[Arrivals]]:
        for start in range(0, len(many), self._piece):
            yield [self._records.arrivals(records) for records in many[start : start + self._piece]]

    def batch(self, totals: Arrivals) -> list[Arrivals]:
        return [totals]

    def last(self, batch: list[Arrivals]) -> Arrivals:
        return batch[-1]

    def digest(self, totals: Arrivals) -> bytes:
        return totals.digest()
