"""A tick in pieces: its events come bit by bit, and what is kept between two pieces is their sum.

The row of a tick is the sum of the rows of its events (encode/door.py), so the sums of pieces add up to it, in whatever
pieces it came. That is so where a door looks at each event alone and draws no coins: numbers, labels, bins, means, and
items that nobody listed. Caps of users, rules with a memory, and amounts whose coins are numbered among equal ones get
a tick as a whole.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from evertally.contract.doors import Bins, EachColumn, Items, OneAmount, RowDoor, Values
from evertally.contract.mechanism import Mechanism
from evertally.contract.release import Release
from evertally.encode import ItemTotals, require_column
from evertally.secret import Secret

_ADD_UP = (OneAmount, EachColumn, Bins, Values, Items)  # exactly: what inherits from them may draw coins
HEAVIEST = 2**32  # of one event: a piece of 2^25 events stays far below the doors' own limits
_LIMIT = 2**62


def adds_up(mechanism: Any) -> bool:
    """Whether the mechanism takes a tick in pieces."""
    return bounds_each_event(mechanism) and not mechanism.takes_users


def bounds_each_event(mechanism: Any) -> bool:
    """Whether its door looks at each event alone and draws no coins: what is left of a tick behind a cap of users adds
    up as well."""
    return (
        isinstance(mechanism, Mechanism)
        and type(mechanism._door) in _ADD_UP
        and not mechanism._plan.owned
        and type(mechanism).step_events is Mechanism.step_events
        and mechanism.contribution.max_weight <= HEAVIEST
    )


class Folded(Secret):
    """The events of one tick so far, as the sum of their rows. The mechanism moves when it is released, and not before:
    a tick that is given up half-way has used nothing.

    >>> import evertally as et
    >>> counter, whole = (et.Counter(guarantee=et.PureDP(1.0), horizon=9, key=et.simulation(1)) for _ in range(2))
    >>> tick = Folded(counter, 1)
    >>> for piece in ([1, 1], [], [1]):
    ...     tick.feed(piece)
    >>> tick.release() == whole.step_events([1, 1, 1])
    True
    """

    def __init__(self, mechanism: Any, tick: int) -> None:
        assert adds_up(mechanism)
        self._mechanism: Mechanism = mechanism
        self._tick, door = tick, mechanism._door
        self._sum: _Sum = _RowSum(door, tick) if isinstance(door, RowDoor) else _ItemSum(door, tick)

    def feed(self, events: Any) -> None:
        """Some more events of the tick."""
        events = self._mechanism._own_events(events)
        require_column(events, "events")
        self._sum.add(events)

    def release(self) -> Release:
        """The release of the tick, once all of its events were fed."""
        totals = self._sum.totals()
        return self._mechanism._folded(totals, self._tick)  # the last call: nothing comes between commit and return


class _RowSum(Secret):
    """In Python's integers: nothing is clipped before all of it is here, as if it had come at once."""

    def __init__(self, door: Any, tick: int) -> None:
        self._door, self._tick = door, tick
        self._row = np.zeros(door.columns, dtype=object)

    def add(self, events: Any) -> None:
        row = self._door.event_row(events, self._tick)
        moved = np.flatnonzero(row)
        self._row[moved] += row[moved]

    def totals(self) -> Any:
        return self._door._in_range(np.clip(self._row, -_LIMIT, _LIMIT).astype(np.int64))


class _ItemSum(Secret):
    """Counts by label. In which order labels came plays no part in any release."""

    def __init__(self, door: Any, tick: int) -> None:
        self._door, self._tick = door, tick
        self._counts: Counter[str] = Counter()

    def add(self, events: Any) -> None:
        self._counts.update(self._door.events(events, self._tick).mapping())

    def totals(self) -> ItemTotals:
        found: ItemTotals = self._door.in_range(ItemTotals.of(self._counts))
        return found


_Sum = _RowSum | _ItemSum
