"""Rows of a data frame as events: of which tick, and as each query reads them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evertally.encode.content_order import content_order
from evertally.runtime.input.arrow_columns import clean
from evertally.runtime.input.sources import ROWS, Batch
from evertally.runtime.input.tick_events import TickEvents, prepared, ticks_of
from evertally.runtime.spec import StreamSpec
from evertally.secret import Secret
from evertally.spark.job import Job

BEAT = "evertally_beat"  # true for the rows of a clock source, which are no events
TICK = "evertally_tick"


class Rows(Secret):
    """Events of any ticks, in the form that doors read."""

    def __init__(self, spec: StreamSpec, batch: Batch, ticks: NDArray[np.int64], order_key: bytes) -> None:
        self._spec, self.batch, self.ticks, self._order_key = spec, batch, ticks, order_key

    @classmethod
    def of(cls, given: pa.RecordBatch, job: Job, order_key: bytes) -> Rows:
        """The rows of an Arrow batch that enter a tick."""
        spec = job.stand.spec
        if BEAT in given.schema.names:
            given = given.filter(pa.compute.invert(given.column(BEAT)))
        columns = {name: clean(given.column(name)) for name in spec.columns()}
        if job.stamp is not None:
            ticks, kept = np.full(given.num_rows, job.stamp, np.int64), np.ones(given.num_rows, np.bool_)
        else:
            ticks, kept = ticks_of(columns, spec, job.opened, spec.last_tick)
        used = {name: columns[name] for name in spec.wanted(spec.user_column)} or {ROWS: pa.nulls(given.num_rows)}
        if not kept.all():
            mask = pa.array(kept)
            used, ticks = {name: column.filter(mask) for name, column in used.items()}, ticks[kept]
        return cls(spec, used, ticks, order_key)

    @classmethod
    def of_table(cls, spec: StreamSpec, table: pa.Table, order_key: bytes) -> Rows:
        """The way back from `table`."""
        joined = table.combine_chunks()
        columns = {name: _one(joined[name]) for name in joined.column_names if name != TICK}
        return cls(spec, columns, _one(joined[TICK]).to_numpy(zero_copy_only=False).astype(np.int64), order_key)

    def __len__(self) -> int:
        return len(self.ticks)

    @cached_property
    def all(self) -> TickEvents:
        """All of them as if they were of one tick: for doors to which the tick means nothing."""
        return TickEvents(self._spec, [self.batch])

    def table(self, names: list[str] | None = None) -> pa.Table:
        """Some columns, and the ticks."""
        kept = {name: self.batch[name] for name in self.batch if names is None or name in names}
        return pa.table(kept | {TICK: pa.array(self.ticks)})

    def in_order(self) -> Rows:
        """By tick and content: an order that does not depend on the one in which rows came."""
        if not len(self):
            return self
        uses = [(prepared(self.batch[name], use), use) for name, use in self._spec.uses() if name in self.batch]
        if not uses:
            return self.take(np.argsort(self.ticks, kind="stable"))
        order = content_order(uses, self._order_key)
        return self.take(order[np.argsort(self.ticks[order], kind="stable")])

    def edges(self) -> list[tuple[int, int, int]]:
        """Of rows in the order of ticks: each tick, where it begins and where it ends."""
        found, starts = np.unique(self.ticks, return_index=True)
        stops = [*starts[1:].tolist(), len(self)] if len(self) else []
        return list(zip(found.tolist(), starts.tolist(), stops, strict=True))

    def by_tick(self) -> Iterator[tuple[int, TickEvents]]:
        """The events of each tick, ticks in order."""
        rows = self.take(np.argsort(self.ticks, kind="stable"))
        for tick, start, stop in rows.edges():
            yield tick, rows.slice(start, stop).all

    def slice(self, start: int, stop: int) -> Rows:
        batch = {name: column[start:stop] for name, column in self.batch.items()}
        return Rows(self._spec, batch, self.ticks[start:stop], self._order_key)

    def take(self, rows: NDArray[np.int64]) -> Rows:
        batch = {name: column.take(pa.array(rows)) for name, column in self.batch.items()}
        return Rows(self._spec, batch, self.ticks[rows], self._order_key)

    def cut(self, places: NDArray[Any], count: int) -> list[Rows]:
        """The rows of each of `count` places."""
        order = np.argsort(places, kind="stable")
        edges = np.searchsorted(places[order], np.arange(count + 1)).tolist()
        rows = self.take(order)
        return [rows.slice(start, stop) for start, stop in pairwise(edges)]

    def up_to(self, tick: int) -> tuple[Rows, Rows]:
        """Those of the ticks up to one, and the later ones."""
        now = self.ticks <= tick
        return self.take(np.flatnonzero(now)), self.take(np.flatnonzero(~now))


def _one(column: Any) -> Any:
    """A column of a table in one piece."""
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
