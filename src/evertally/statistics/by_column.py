"""What statistics with one number for each column, or category, have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evertally.contract.cutting import CutsEvents
from evertally.contract.doors import Bins, EachColumn
from evertally.contract.options import option, statistic
from evertally.encode import CategoryDoor
from evertally.encode.range_door import RangeDoor

ABOUT_BUSIEST = "A public fact: no tick has more events. Error bounds rest on it, privacy does not."


@statistic
class ByColumn(CutsEvents):
    """Events name columns. Not used directly; see `VectorCounter`, `Histogram`, `MaxSum`, `StreamingTopK`."""

    max_weight: int = option("The largest amount that an event adds (to each of its columns).", default=1)
    other: str | None = option("A column for labels that were not declared; None: they are dropped.", default=None)

    @property
    def protected_unit(self) -> str:
        # One item of an event is less than the event: no promise covers both.
        return "item of an event" if getattr(self, "protects", "event") == "item" else self.unit

    @property
    def labels(self) -> tuple[str, ...]:
        """What the columns are called, `other` included."""
        assert isinstance(self._door, EachColumn | Bins)
        return self._door.labels

    def _per_event(self, names: Sequence[Any], given: int | None) -> int:
        """How many columns an event touches at most."""
        return len(names) + (self.other is not None) if given is None else given

    def _read_events(
        self, names: Sequence[Any], max_per_event: int, signed: bool = False, rank_by_label: bool = False
    ) -> tuple[CategoryDoor, Any]:
        """How events are read, and the columns as addresses and snapshots keep them: a number, or the list of names."""
        numbered = isinstance(names, range)
        reader = (RangeDoor if numbered else CategoryDoor)(
            names,
            self.other,
            max_per_event,
            self.max_weight,
            signed,
            order=lambda message: self._source.order(message),  # there is no key yet
            rank_by_label=rank_by_label,
            cutting=self.cutting,
        )
        self._read_by(reader)
        return reader, len(names) if numbered else list(reader.labels[: len(names)])
