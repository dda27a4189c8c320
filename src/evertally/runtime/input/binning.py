"""The events of one input, sorted into ticks.

The whole input is looked at before its first tick is released (only the needed columns are held). Releasing
while reading would need a rule for when a tick is over, and any such rule lets the time stamp of one event
decide about another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evertally.contract.inputs import keep_events
from evertally.encode.content_order import content_order
from evertally.encode.labels import Coded
from evertally.runtime.input.envelope import check_use, known
from evertally.runtime.input.outside import Rows
from evertally.runtime.input.sources import Batch, InputFile
from evertally.runtime.input.tick_events import events_of, in_order, joined, own_ticks, prepared
from evertally.runtime.input.tokens import is_tokens
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.secret import Secret

Order = NDArray[np.int64]


class BinnedEvents(Secret):
    """Events in tick order: what the door of each query gets, and the users, if they are the protected unit."""

    def __init__(
        self, spec: StreamSpec, source: InputFile, first: int, last: int, late: Literal["count", "drop"] = "count"
    ) -> None:
        seen = np.zeros(4, np.int64)
        self._first = first
        ticks: list[Any] = []
        chunks: dict[tuple[str, str], list[Any]] = {}
        for batch in source.batches(spec.columns(), known(spec)):
            own, readable = own_ticks(batch, spec)
            early, after = readable & (own < first), readable & (own > last)
            seen += [len(own), early.sum(), after.sum(), len(own) - readable.sum()]
            kept = readable & ~after & ~early if late == "drop" else readable & ~after
            ticks.append(np.maximum(own, first)[kept])
            for use, column in _prepared(batch, spec).items():
                chunks.setdefault(use, []).append(_kept(column, kept))
        rows, before, later, unreadable = seen.tolist()
        in_file_order = np.concatenate(ticks) if ticks else np.empty(0, np.int64)
        end = int(in_file_order.max(initial=0))
        self.rows = Rows(rows, before, later, unreadable, source.broken, end)
        order = None
        if np.any(in_file_order[1:] < in_file_order[:-1]):
            order = np.argsort(in_file_order, kind="stable")
            in_file_order = in_file_order[order]
        self._edges = np.searchsorted(in_file_order, np.arange(first, last + 2)).tolist()
        self._columns = {use: _in_ticks(joined(parts), order) for use, parts in chunks.items()}
        self._user_column = spec.user_column

    def events(self, query: QuerySpec, tick: int, order: Order | None = None) -> Any:
        return events_of(query, self.count(tick), lambda name, use, _: self._slice(name, use, tick, order))

    def users(self, tick: int, order: Order | None = None) -> Any:
        return self._slice(str(self._user_column), "users", tick, order)

    def order(self, tick: int, key: bytes) -> Order | None:
        """The order of a tick's events by their content; None where nobody reads them."""
        columns = [(self._slice(name, use, tick, None), use) for name, use in sorted(self._columns)]
        return content_order(columns, key) if columns and self.count(tick) else None

    def count(self, tick: int) -> int:
        start, stop = self._range(tick)
        return stop - start

    def _range(self, tick: int) -> tuple[int, int]:
        position = tick - self._first
        return self._edges[position], self._edges[position + 1]

    def _slice(self, name: str, use: str, tick: int, order: Order | None) -> Any:
        column = self._columns.get((name, use))
        if column is None:
            return []
        start, stop = self._range(tick)
        return column[start:stop] if order is None else in_order(column[start:stop], order)


def _prepared(batch: Batch, spec: StreamSpec) -> dict[tuple[str, str], Any]:
    """The columns in the forms that their uses need, each once: several queries may read one column alike."""
    for name, column in batch.items():
        if not isinstance(column, np.ndarray) and not is_tokens(column):
            check_use(spec, name, column.type)
    return {(name, use): prepared(batch[name], use) for name, use in spec.uses()}


def _kept(column: Any, kept: Any) -> Any:
    if kept.all():
        return column
    return column[kept] if isinstance(column, np.ndarray | Coded) else column.filter(pa.array(kept))


def _in_ticks(column: Any, order: Order | None) -> Any:
    return column if order is None else in_order(column, order)


@dataclass(frozen=True, repr=False)
class BinnedTick(Secret):
    """The events of one tick of a file or table."""

    binned: BinnedEvents
    tick: int
    kept: NDArray[np.bool_] | None = None  # None: all of them
    order: Order | None = None  # None: that of the file

    def __len__(self) -> int:
        return self.binned.count(self.tick) if self.kept is None else int(self.kept.sum())

    def events(self, query: QuerySpec) -> Any:
        return self._some(self.binned.events(query, self.tick, self.order))

    def users(self) -> Any:
        return self._some(self.binned.users(self.tick, self.order))

    def only(self, kept: NDArray[np.bool_]) -> BinnedTick:
        """Some of them, in the same order."""
        return replace(self, kept=kept)

    def ordered(self, key: bytes) -> BinnedTick:
        """The same events in the order of their content, wherever they stood in the file."""
        return replace(self, order=self.binned.order(self.tick, key))

    def _some(self, events: Any) -> Any:
        return events if self.kept is None else keep_events(events, self.kept)
