"""Streams of records, played as the runtime plays them: columns, one tick after the other, through the doors.

Two streams that are played without noise differ by what the noise has to hide. What is compared are the rows that a
mechanism committed, from which every release is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from evertally.audit.game import FloatArray
from evertally.audit.spec_down.small import Small
from evertally.contract import restore
from evertally.encode.content_order import order_key
from evertally.noise import NoiseKey, ZeroNoise
from evertally.runtime.input.sources import ROWS
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.mechanisms import twins
from evertally.runtime.sieve import stepped

Record = dict[str, Any]  # a cell for each column
Records = Sequence[Sequence[Record]]  # by tick
# "restored": put away and taken up again between ticks; "twice": every tick is asked for once more.
Way = Literal["at once", "restored", "twice"]
_SILENT = ZeroNoise()
WAYS: tuple[Way, ...] = ("at once", "restored", "twice")


def prepared(small: Small, records: Records) -> list[Any]:
    """The columns of each tick, as doors get them. Keys without noise order events by content in the same way."""
    ticks: list[Any] = [TickEvents(small.spec, [_batch(small, events)]) for events in records]
    return [tick.ordered(order_key(_SILENT)) for tick in ticks] if small.spec.order == "content" else ticks


def played(small: Small, ticks: Sequence[Any], key: NoiseKey | None = None, way: Way = "at once") -> list[Any]:
    """The row behind each release of prepared ticks.

    >>> from evertally.runtime.mechanisms import build
    >>> from evertally.runtime.table.given import spec_from
    >>> content = {"stream": {"name": "s", "horizon": 2}, "guarantee": {"rho": 0.5}, "clock": {"start": 0, "tick": 1}}
    >>> spec = spec_from(content | {"query": [{"name": "all", "kind": "counter"}]})
    >>> small = Small(spec, build(spec, None)["all"], 2)
    >>> [row.tolist() for row in played(small, prepared(small, [[{}, {}], [{}]]))]
    [[2.0], [3.0]]
    """
    under: Any = _SILENT if key is None else key
    name, query = small.query.name, small.query
    mechanism, rows = twins({name: small.made}, under)[name], []
    for tick, given in enumerate(ticks, start=1):
        if way == "restored" and tick > 1:
            mechanism = restore(mechanism.snapshot(), key=under, allow_copy=True)
        for _ in range(2 if way == "twice" else 1):
            stepped(mechanism, given, query, tick)
        rows.append(row_of(mechanism))
    return rows


def numbers(rows: Sequence[Any]) -> FloatArray | None:
    """All rows as one vector; None where they are no numbers, or not the same numbers at every tick."""
    if any(row is None for row in rows):
        return None
    return np.concatenate([np.zeros(0), *rows])


def row_of(mechanism: Any) -> FloatArray | None:
    """The last row that a mechanism committed, if it is an array of numbers."""
    committed = mechanism._kept.played
    if hasattr(committed, "shown"):
        return np.array([float(committed.shown)])
    last = committed.recent[-1]
    if not isinstance(last, np.ndarray) or last.dtype.kind not in "iuf":
        return None
    return last.astype(np.float64).ravel()


def _batch(small: Small, events: Sequence[Record]) -> dict[str, Any]:
    names = small.spec.wanted(small.spec.user_column)
    batch: dict[str, Any] = {}
    for name in names or [ROWS]:
        column = np.empty(len(events), object)
        column[:] = [event.get(name) for event in events]
        batch[name] = column
    return batch
