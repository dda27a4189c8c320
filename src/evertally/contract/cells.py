"""Events of many ticks as cells: so much for this column at that tick, and nothing for the others.

The row of a tick is the sum of the rows of its events (encode/door.py), so cells of pieces add up to it, wherever the
pieces were read and in whatever order they come; totals are clipped where all of a tick is together. A row for each
tick would have all columns of it, however few of them an event touches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.contract.doors import EachColumn, RowDoor
from evertally.contract.folding import HEAVIEST
from evertally.contract.inputs import IntArray, as_integers, keep_events
from evertally.encode import own_column, require_column
from evertally.errors import ConfigurationError

Cells = tuple[IntArray, IntArray, IntArray]


def cells(door: RowDoor, events: Any, ticks: Any) -> Cells:
    """The bounded events of some ticks, of each its own: ticks, coordinates and weights of the cells that are not 0, in
    order, each tick and coordinate once.

    >>> import evertally as et
    >>> counts = et.Histogram(categories=["a", "b"], guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1))
    >>> [part.tolist() for part in cells(counts._door, ["b", "a", "b", "?", "b"], [1, 2, 1, 1, 2])]
    [[1, 2, 2], [1, 0, 1], [2, 1, 1]]
    """
    if type(door) is not EachColumn or door.categories.max_weight > HEAVIEST:
        raise ConfigurationError(
            "only counts by column become cells, of events that weigh at most 2^32: amounts that are rounded by coins, "
            "and numbers in bins, are read a tick at a time"
        )
    require_column(events, "events")
    events, numbers = own_column(events), as_integers(ticks)
    if numbers.shape != (len(events),):
        raise TypeError("events and ticks differ in length; give exactly one tick for each event")
    places = door.categories.places(events)
    if places is None:
        return _tick_by_tick(door, events, numbers)
    inside = places >= 0
    found, at = np.unique(numbers[inside], return_inverse=True)
    # By numbers of ticks, which are few: a tick itself, times all columns, would not fit 64 bits.
    cell, weights = np.unique(at * door.columns + places[inside], return_counts=True)
    return found[cell // door.columns], cell % door.columns, weights.astype(np.int64)


def _tick_by_tick(door: EachColumn, events: Any, ticks: IntArray) -> Cells:
    """Events that are collections: which items of a long one stay follows from the tick, too."""
    parts: list[IntArray] = [np.empty((3, 0), dtype=np.int64)]
    for tick in np.unique(ticks).tolist():
        row = door.event_row(keep_events(events, ticks == tick), tick)
        touched = np.flatnonzero(row)
        parts.append(np.stack([np.full(touched.size, tick), touched, row[touched]]))
    tick_of, coordinate, weight = np.concatenate(parts, axis=1)
    return tick_of, coordinate, weight
