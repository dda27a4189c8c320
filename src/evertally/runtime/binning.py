"""The events of one input, sorted into ticks.

The whole input is looked at before its first tick is released (only the needed columns are held). Releasing
while reading would need a rule for when a tick is over, and any such rule lets the time stamp of one event
decide about another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from evertally.runtime import columns
from evertally.runtime.sources import Batch, InputFile
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.spec_options import UNKNOWN

_USERS = "users of the stream"  # no query can have this name


class BinnedEvents:
    """Events in tick order: what the door of each query gets, and the users, if they are the protected unit."""

    def __init__(self, spec: StreamSpec, source: InputFile, first: int, last: int) -> None:
        self.records = 0
        self._first = first
        ticks: list[Any] = []
        chunks: dict[str, list[Any]] = {}
        for batch in source.batches(spec.columns()):
            ticks_here, kept = _ticks(batch, spec, first, last)
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
        self._columns = {name: _ordered(_joined(parts), order) for name, parts in chunks.items()}

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


def _ticks(batch: Batch, spec: StreamSpec, first: int, last: int) -> tuple[Any, Any]:
    """The tick that each event enters, and which events enter any: its own time stamp and public bounds decide."""
    moments, readable = columns.instants(batch[spec.clock.column], spec.clock)
    ticks = spec.clock.ticks_of(moments)
    return np.maximum(ticks, first), readable & (ticks <= last)


def _prepared(batch: Batch, spec: StreamSpec) -> dict[str, Any]:
    prepared = {}
    for query in spec.queries:
        if query.column is not None:
            raw = batch[query.column]
            if query.kind in ("counter", "mean"):
                prepared[query.name] = columns.amounts(raw, query.column)
            else:
                prepared[query.name] = columns.items(raw) if query.kind in UNKNOWN else columns.labels(raw)
    if spec.user_column is not None:
        prepared[_USERS] = columns.users(batch[spec.user_column], spec.user_column)
    return prepared


def _kept(column: Any, kept: Any) -> Any:
    if kept.all():
        return column
    return column[kept] if isinstance(column, np.ndarray) else column.filter(pa.array(kept))


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    whole = pa.chunked_array(parts)
    if pa.types.is_dictionary(whole.type):
        whole = whole.unify_dictionaries()
    return whole.combine_chunks()


def _ordered(column: Any, order: Any) -> Any:
    if order is None:
        return column
    return column[order] if isinstance(column, np.ndarray) else column.take(pa.array(order))
