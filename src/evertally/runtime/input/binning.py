"""The events of one input, sorted into ticks.

The whole input is looked at before its first tick is released (only the needed columns are held). Releasing
while reading would need a rule for when a tick is over, and any such rule lets the time stamp of one event
decide about another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from evertally.runtime.input.envelope import check_use
from evertally.runtime.input.sources import Batch, InputFile
from evertally.runtime.input.tick_events import joined, prepared, ticks_of
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.secret import Secret

_USERS = "users of the stream"  # no query can have this name


class BinnedEvents(Secret):
    """Events in tick order: what the door of each query gets, and the users, if they are the protected unit."""

    def __init__(self, spec: StreamSpec, source: InputFile, first: int, last: int) -> None:
        self.records = 0
        self._first = first
        ticks: list[Any] = []
        chunks: dict[str, list[Any]] = {}
        for batch in source.batches(spec.columns()):
            ticks_here, kept = ticks_of(batch, spec, first, last)
            self.records += len(kept)
            ticks.append(ticks_here[kept])
            for name, column in _prepared(batch, spec).items():
                chunks.setdefault(name, []).append(_kept(column, kept))
        in_file_order = np.concatenate(ticks) if ticks else np.empty(0, np.int64)
        order = None
        if np.any(in_file_order[1:] < in_file_order[:-1]):
            order = np.argsort(in_file_order, kind="stable")
            in_file_order = in_file_order[order]
        self._edges = np.searchsorted(in_file_order, np.arange(first, last + 2)).tolist()
        self._columns = {name: _ordered(joined(parts), order) for name, parts in chunks.items()}

    def events(self, query: QuerySpec, tick: int) -> Any:
        start, stop = self._range(tick)
        if query.column is None:
            return np.broadcast_to(np.int64(1), stop - start)
        return self._slice(query.name, start, stop)

    def users(self, tick: int) -> Any:
        return self._slice(_USERS, *self._range(tick))

    def _range(self, tick: int) -> tuple[int, int]:
        position = tick - self._first
        return self._edges[position], self._edges[position + 1]

    def _slice(self, name: str, start: int, stop: int) -> Any:
        column = self._columns.get(name)
        return [] if column is None else column[start:stop]


def _prepared(batch: Batch, spec: StreamSpec) -> dict[str, Any]:
    for name, column in batch.items():
        if not isinstance(column, np.ndarray):
            check_use(spec, name, column.type)
    columns = {
        query.name: prepared(batch[query.column], query.record.reads.use)
        for query in spec.queries
        if query.column is not None
    }
    if spec.user_column is not None:
        columns[_USERS] = prepared(batch[spec.user_column], "users")
    return columns


def _kept(column: Any, kept: Any) -> Any:
    if kept.all():
        return column
    return column[kept] if isinstance(column, np.ndarray) else column.filter(pa.array(kept))


def _ordered(column: Any, order: Any) -> Any:
    if order is None:
        return column
    return column[order] if isinstance(column, np.ndarray) else column.take(pa.array(order))
