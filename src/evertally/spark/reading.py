"""Rows of a data frame as events: of which tick, and as each query reads them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evertally.encode.content_order import content_keys, sorted_places
from evertally.runtime.input.arrow_columns import clean
from evertally.runtime.input.sources import ROWS, Batch
from evertally.runtime.input.tick_events import TickEvents, prepared, ticks_of
from evertally.runtime.spec import StreamSpec
from evertally.secret import Secret
from evertally.spark.job import Job

BEAT = "evertally_beat"  # true for the rows of a clock source, which are no events
TICK = "evertally_tick"
ORDER = ("evertally_order_low", "evertally_order_high")  # of rows that travel without all that their order rests on


class Rows(Secret):
    """Events of any ticks, in the form that doors read."""

    def __init__(
        self,
        spec: StreamSpec,
        batch: Batch,
        ticks: NDArray[np.int64],
        order_key: bytes,
        keys: NDArray[np.uint64] | None = None,
    ) -> None:
        self._spec, self.batch, self.ticks, self._order_key = spec, batch, ticks, order_key
        self._keys = keys  # where they came with the rows

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
        columns = {name: _one(joined[name]) for name in joined.column_names if name not in (TICK, *ORDER)}
        ticks = _one(joined[TICK]).to_numpy(zero_copy_only=False).astype(np.int64)
        if ORDER[0] not in joined.column_names:
            return cls(spec, columns, ticks, order_key)
        keys = np.stack([_one(joined[name]).to_numpy(zero_copy_only=False) for name in ORDER], axis=1)
        return cls(spec, columns, ticks, order_key, keys)

    def __len__(self) -> int:
        return len(self.ticks)

    @cached_property
    def all(self) -> TickEvents:
        """All of them as if they were of one tick: for doors to which the tick means nothing."""
        return TickEvents(self._spec, [self.batch])

    def table(self, names: list[str] | None = None) -> pa.Table:
        """Some columns, and the ticks."""
        kept = {name: self.batch[name] for name in self.batch if names is None or name in names}
        order = {} if self._keys is None else dict(zip(ORDER, map(pa.array, self._keys.T), strict=True))
        return pa.table(kept | order | {TICK: pa.array(self.ticks)})

    @cached_property
    def keyed(self) -> Rows:
        """The same, with what orders them: all columns of the stream decide about it, and some will be left behind."""
        uses = [] if self._keys is not None else self._spec.uses()
        if not len(self) or not uses:
            return self
        columns = [(prepared(self._by_value(name, use), use), use) for name, use in uses]
        return Rows(self._spec, self.batch, self.ticks, self._order_key, content_keys(columns, self._order_key))

    def _by_value(self, name: str, use: str) -> Any:
        return coded(self.batch[name]) if use in ("labels", "users") else self.batch[name]

    def in_order(self) -> Rows:
        """By tick and content: an order that does not depend on the one in which rows came."""
        keys = self.keyed._keys
        order = np.arange(len(self)) if keys is None else sorted_places(keys)
        return self.take(order[by_number(self.ticks[order])])

    def edges(self) -> list[tuple[int, int, int]]:
        """Of rows in the order of ticks: each tick, where it begins and where it ends."""
        found, starts = np.unique(self.ticks, return_index=True)
        stops = [*starts[1:].tolist(), len(self)] if len(self) else []
        return list(zip(found.tolist(), starts.tolist(), stops, strict=True))

    def by_tick(self) -> Iterator[tuple[int, TickEvents]]:
        """The events of each tick, ticks in order."""
        rows = self.take(by_number(self.ticks))
        for tick, start, stop in rows.edges():
            yield tick, rows.slice(start, stop).all

    def slice(self, start: int, stop: int) -> Rows:
        batch = {name: column[start:stop] for name, column in self.batch.items()}
        return Rows(self._spec, batch, self.ticks[start:stop], self._order_key, _some(self._keys, slice(start, stop)))

    def take(self, rows: NDArray[np.int64]) -> Rows:
        batch = {name: column.take(pa.array(rows)) for name, column in self.batch.items()}
        return Rows(self._spec, batch, self.ticks[rows], self._order_key, _some(self._keys, rows))

    def cut(self, places: NDArray[Any], count: int) -> list[Rows]:
        """The rows of each of `count` places."""
        edges = [0, *np.cumsum(np.bincount(places, minlength=count)).tolist()]
        rows = self.take(by_number(places))
        return [rows.slice(start, stop) for start, stop in pairwise(edges)]

    def up_to(self, tick: int) -> tuple[Rows, Rows]:
        """Those of the ticks up to one, and the later ones."""
        now = self.ticks <= tick
        if now.all():
            return self, self.slice(0, 0)
        return self.take(np.flatnonzero(now)), self.take(np.flatnonzero(~now))


def by_number(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """The places of whole numbers in their order, equal ones as they stand.

    >>> by_number(np.array([7, -2, 7, 5])).tolist()
    [1, 3, 0, 2]
    """
    if len(numbers) and int(numbers.max()) - int(numbers.min()) < 2**16:
        numbers = (numbers - numbers.min()).astype(np.uint16)  # of 16 bits: a radix sort, five times as fast
    return np.argsort(numbers, kind="stable")


def coded(column: Any) -> Any:
    """A column of whole numbers by its different ones: users and categories come again and again in a batch, and what
    each is called is worked out once. Other columns as they are."""
    return column.dictionary_encode() if pa.types.is_integer(column.type) else column


def _some(keys: NDArray[np.uint64] | None, rows: Any) -> NDArray[np.uint64] | None:
    return None if keys is None else keys[rows]


def _one(column: Any) -> Any:
    """A column of a table in one piece."""
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
