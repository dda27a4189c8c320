"""The contract for events that name items of an unknown domain: ticks are lists of events, releases label -> count."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from typing import Any, NoReturn

import numpy as np

from evertally.counting.epochs import LAST_TICK
from evertally.counting.guarded import Kept, exclusive, no_way_back
from evertally.counting.mechanism import Accuracy, Contract, Options, to_bytes, wanted_ticks
from evertally.counting.release import Release
from evertally.encode import ItemDoor, ItemTotals, require_column
from evertally.encode.labels import as_list
from evertally.encode.texts import Texts
from evertally.privacy import Contribution


class ItemMechanism(Contract):
    """Not used directly; see `UnknownHistogram` and `UnknownTopK`.

    There are no totals to hand over: `step` takes the tick's events and bounds them as `step_events` does, and `run`
    takes a list of ticks. Where users are protected both are refused: events without owners have no cap.
    """

    def __init__(self, *, contribution: Contribution, options: Options, **common: Any) -> None:
        super().__init__(
            contribution=contribution,
            options=options
            | {
                "max_per_event": contribution.max_per_event,
                "max_weight": contribution.max_weight,
                "unit": contribution.unit,
                "max_events_per_user": contribution.max_events_per_user,
            },
            **common,
        )
        self._door = ItemDoor(contribution.max_per_event, contribution.max_weight, order=self._source.order)

    @abstractmethod
    def _value(self) -> dict[str, int]:
        """What was released at the last tick, best first, ties by label."""

    @abstractmethod
    def _accuracy(self, tick: int) -> Accuracy:
        """How far each number that is released at a tick may be off."""

    def step(self, x: Any, *, tick: int | None = None) -> Release:
        """One tick: its events go in, the release comes out. Whatever is not legal in an event is bounded silently.

        With `tick`, the same events for the last tick, in any order, give the same release again, and others are
        refused.
        """
        return super().step(x, tick=tick)

    @exclusive
    def run(self, x: Any, *, full: bool = False, at: Any = None) -> Any:
        """Many ticks at once, each a list of events: a list of releases label -> count, as repeated `step` gives them.

        With `full=True` an Arrow table with tick, column (the label), value and the 95 % interval of each value. With
        `at`, an increasing list of ticks of this run, only the releases at those ticks are kept; all ticks are played.
        """
        self._check_owners()
        require_column(x, "the ticks of a run")
        ticks = as_list(x)
        for events in ticks:
            require_column(events, "the events of a tick")
        first, count = self.tick + 1, len(ticks)
        if self.tick + count > (self.horizon or LAST_TICK):
            raise self._over(count)
        wanted = wanted_ticks(at, first, count)
        kept = range(count) if wanted is None else set(wanted.tolist())
        releases = []
        for i, events in enumerate(ticks):
            release = self._step(self._totals(events, first + i), None)
            if i in kept:
                releases.append(release)
        return _table(releases) if full else [release.value for release in releases]

    # -- machinery -------------------------------------------------------------------------------------------------

    def _go_back(self, kept: Kept) -> NoReturn:
        # A tick changes tables of all labels in place; to keep a copy of them would cost as much as the tick.
        no_way_back()

    def _totals(self, x: Any, tick: int) -> ItemTotals:
        return self._event_totals(x, tick)

    def _event_totals(self, events: Any, tick: int) -> ItemTotals:
        totals = self._door.totals(events, tick)
        # 1-Lipschitz in every total, hence free; keeps the sums far from the end of int64.
        return ItemTotals(totals.labels, np.minimum(totals.counts, self._tick_limit))

    def _digest(self, totals: ItemTotals) -> bytes:
        # In the order of the labels: the order in which they came is no part of the input.
        names = totals.labels.names()
        order = sorted(range(len(names)), key=names.__getitem__)
        ordered = Texts.of_bytes([names[i] for i in order])
        parts = to_bytes(totals.counts[order]), to_bytes(ordered.offsets), ordered.data.tobytes()
        return hashlib.sha256(b"".join(parts)).digest()

    def _last_release(self) -> Release:
        value, accuracy = self._value(), self._accuracy(self.tick)

        def interval(beta: float) -> tuple[dict[str, int], dict[str, int]]:
            radius = math.floor(accuracy.radius(beta))  # releases and truth are integers
            return (
                {label: count - radius for label, count in value.items()},
                {label: count + radius for label, count in value.items()},
            )

        return Release(self.tick, dict(value), accuracy.stddev, self._key.private, interval)


def _table(releases: list[Release]) -> Any:
    import pyarrow as pa

    lines: dict[str, list[Any]] = {"tick": [], "column": [], "value": [], "lower": [], "upper": []}
    for release in releases:
        lower, upper = release.interval(0.05)
        for label, count in release.value.items():
            # Arrow holds UTF-8 only; what else a label may contain is shown escaped.
            shown = label.encode("utf-8", "backslashreplace").decode()
            for name, cell in zip(lines, (release.tick, shown, count, lower[label], upper[label]), strict=True):
                lines[name].append(cell)
    return pa.table(
        {name: pa.array(cells, pa.string() if name == "column" else pa.int64()) for name, cells in lines.items()}
    )
