"""Events that name any items, of many ticks, as cells: so much for this label at that tick."""

from __future__ import annotations

from typing import Any

from evertally.contract.doors import Items
from evertally.contract.inputs import as_integers
from evertally.encode import own_column, require_column
from evertally.encode.item_cells import ItemCells
from evertally.errors import ConfigurationError


def item_cells(door: Any, events: Any, ticks: Any) -> ItemCells:
    """The bounded events of some ticks, of each its own, each tick and label once; labels that count nowhere are not
    there.

    A tick is the one that an event enters, which may decide what of a long one is kept: whoever moves late events to
    the open tick does it before.

    >>> import evertally as et
    >>> words = et.UnknownHistogram(guarantee=et.ApproxDP(1.0, 1e-6), horizon=9, key=et.simulation(1))
    >>> cells = item_cells(words._door, ["tea", "milk", "tea", None, "tea"], [1, 2, 1, 1, 2])
    >>> cells.ticks.tolist(), cells.labels().list(), cells.weights.tolist()
    ([1, 2, 2], ['tea', 'tea', 'milk'], [2, 1, 1])
    """
    if type(door) is not Items:
        raise ConfigurationError(
            "only events that name items of an unknown domain become such cells; where a rule about users comes first, "
            "cells are what it lets through"
        )
    require_column(events, "events")
    events, numbers = own_column(events), as_integers(ticks)
    if numbers.shape != (len(events),):
        raise TypeError("events and ticks differ in length; give exactly one tick for each event")
    return door.cells(events, numbers)
