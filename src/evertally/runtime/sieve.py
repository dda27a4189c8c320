"""The last resort of a tick: which of its events a statistic can take.

No record should make a statistic raise: columns are made safe before they are kept, and doors bound whatever is in
them. Should one do so all the same, the stream must neither stop, for it would stop at the same tick for ever, nor
leave out more than that record: whether an event counts may depend on that event alone. So every event is asked for by
itself, of a twin that has seen nothing, and one that raises there is left out of that statistic. The answer is a
function of the event and the program: whoever goes through the journal again leaves out the same.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evertally.errors import EvertallyError
from evertally.runtime.mechanisms import twins
from evertally.runtime.spec import QuerySpec

Kept = NDArray[np.bool_]


class Rows(Protocol):
    """The events of one tick."""

    def __len__(self) -> int: ...

    def events(self, query: QuerySpec) -> Any:
        """What the door of a query gets."""

    def users(self) -> Any:
        """The user of each event, where users are the protected unit."""

    def only(self, kept: Kept) -> Rows:
        """Some of them."""

    def ordered(self, key: bytes) -> Rows:
        """The same events in the order of their content (encode/content_order.py)."""


def stepped(mechanism: Any, rows: Rows, query: QuerySpec, tick: int | None) -> Any:
    """What a mechanism releases for these events."""
    users = {"users": rows.users()} if mechanism.takes_users else {}
    return mechanism.step_events(rows.events(query), tick=tick, **users)


def takeable(mechanism: Any, rows: Rows, query: QuerySpec) -> Kept:
    """Which events do not raise by themselves. Halves are asked first: nearly all of them are."""
    twin = _twin(mechanism)
    kept = np.ones(len(rows), np.bool_)
    ranges = [(0, len(rows))] if len(rows) else []
    while ranges:
        start, stop = ranges.pop()
        some = np.zeros(len(rows), np.bool_)
        some[start:stop] = True
        if twin.horizon is not None and twin.tick >= twin.horizon:
            twin = _twin(mechanism)
        try:
            stepped(twin, rows.only(some), query, None)
        except (EvertallyError, MemoryError):
            raise
        except Exception:
            if stop - start == 1:
                kept[start] = False
            else:
                middle = (start + stop) // 2
                ranges += [(start, middle), (middle, stop)]
    return kept


def _twin(mechanism: Any) -> Any:
    return twins({"": mechanism})[""]
