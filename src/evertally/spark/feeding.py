"""What events give to the parts of each query: bounded at the door, cut by part, packed.

Each event is bounded by a fixed function of that one event, as in one process: the doors are the mechanisms' own.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from evertally.contract.cells import cells
from evertally.contract.doors import EachColumn, RowDoor
from evertally.contract.folding import HEAVIEST
from evertally.contract.item_cells import item_cells
from evertally.encode import ItemTotals
from evertally.encode.item_cells import ItemCells
from evertally.encode.name_index import taken
from evertally.encode.texts import Texts
from evertally.errors import EvertallyError
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.sieve import takeable
from evertally.runtime.spec import QuerySpec
from evertally.selection.item_shards import shard_of
from evertally.spark.job import Job, Shop
from evertally.spark.packing import CellsOf, cut_cells, joined_cells, pack_cells, pack_items, pack_table
from evertally.spark.reading import Rows, by_number

_DENSE = 4  # times the events: where there are no more cells than this they are counted, and sent with weights


def payloads(job: Job, shop: Shop, rows: Rows) -> list[bytes]:
    """What these events give to every part, in the order of parts. For streams whose events need no user."""
    found: list[bytes] = []
    for number, query in enumerate(shop.queries):
        way = shop.stand.ways[number]
        if way.travels == "records":
            found.append(records(rows, query, shop))
        elif way.travels == "cells":
            found += cut(job, number, cells_of(shop.mechanism(number), query, rows))
        else:
            found += shared(shop, number, items_of(shop.mechanism(number), query, rows))
    return found


def records(rows: Rows, query: QuerySpec, shop: Shop) -> bytes:
    """The events themselves, with the columns that a query reads, users, and their place among all of a tick."""
    names = [column.name for column in query.columns]
    user = shop.stand.spec.user_column
    return pack_table(rows.keyed.table(names if user is None else [*names, user]))


def cut(job: Job, query: int, made: CellsOf) -> list[bytes]:
    """Cells for every slice of a query, or for all of it."""
    way, width = job.stand.ways[query], job.stand.spec.engine.slice_width
    if way.parts == 1:
        return [pack_cells(_added(made, way.columns))]
    span = int(made.ticks.max() - made.ticks.min()) + 1 if len(made) else 1
    if span * way.columns <= _DENSE * len(made):
        made = _added(made, way.columns)
    return [pack_cells(part) for part in cut_cells(made, width, way.parts)]


def shared(shop: Shop, query: int, made: ItemCells) -> list[bytes]:
    """Items for every shard of a query, or for all of it."""
    parts = shop.stand.ways[query].parts
    if parts == 1:
        return [pack_items(made)]
    shard = shard_of(made.names, shop.key, parts)
    of_cell = shard[made.numbers]
    # All by shard at once, then cut: labels get the numbers that they have among those of their own shard.
    labels, cells = by_number(shard), by_number(of_cell)
    names = taken(made.names.data, made.names.offsets[labels], made.names.lengths[labels])
    starts, edges = (np.searchsorted(sorted_by[order], np.arange(parts + 1)).tolist()
                     for sorted_by, order in ((shard, labels), (of_cell, cells)))  # fmt: skip
    place = np.empty_like(labels)
    place[labels] = np.arange(len(labels))
    ticks, numbers, weights = made.ticks[cells], place[made.numbers[cells]], made.weights[cells]
    found = []
    for (first, last), (a, b) in zip(pairwise(starts), pairwise(edges), strict=True):
        own = Texts(names.data, names.offsets[first : last + 1])
        found.append(pack_items(ItemCells(ticks[a:b], numbers[a:b] - first, weights[a:b], own)))
    return found


def cells_of(mechanism: Any, query: QuerySpec, rows: Rows) -> CellsOf:
    """So much for which column at which tick."""
    door = mechanism._door
    with TriedAtOnce():
        if type(door) is EachColumn and door.categories.max_weight <= HEAVIEST:
            events = mechanism._own_events(rows.all.events(query))
            places = door.categories.places(events)
            if places is None:
                return CellsOf(*cells(door, events, rows.ticks))
            inside = places >= 0
            return CellsOf(rows.ticks[inside], places[inside])
        if not query.columns:  # events are counted, and that is all
            found, counts = np.unique(rows.ticks, return_counts=True)
            return CellsOf(found, np.zeros(len(found), np.int64), counts.astype(np.int64))
    return _tick_by_tick(mechanism, query, rows)


def _tick_by_tick(mechanism: Any, query: QuerySpec, rows: Rows) -> CellsOf:
    return joined_cells(row_cells(tick, row_of(mechanism, query, events, tick)) for tick, events in rows.by_tick())


def row_of(mechanism: Any, query: QuerySpec, events: TickEvents, tick: int) -> Any:
    """The sum of the rows of some events of a tick."""
    door = mechanism._door
    read = door.event_row if isinstance(door, RowDoor) else door.events
    return _without_bad(mechanism, query, events, lambda some: read(mechanism._own_events(some.events(query)), tick))


def owned_of(mechanism: Any, query: QuerySpec, rows: Rows, tick: int) -> Any:
    """The events of a tick with their users, as the rule of a mechanism takes them."""

    def read(some: TickEvents) -> Any:
        return mechanism._door.owned(mechanism._own_events(some.events(query)), some.users(), tick)

    return _without_bad(mechanism, query, rows.all, read)


def row_cells(tick: int, row: Any) -> CellsOf:
    """A row as cells."""
    touched = np.flatnonzero(row)
    return CellsOf(np.full(len(touched), tick, np.int64), touched, row[touched].astype(np.int64))


def items_of(mechanism: Any, query: QuerySpec, rows: Rows) -> ItemCells:
    """So much of which label at which tick."""
    with TriedAtOnce():
        return item_cells(mechanism._door, mechanism._own_events(rows.all.events(query)), rows.ticks)
    return joined_items([(tick, item_totals(mechanism, query, events, tick)) for tick, events in rows.by_tick()])


def item_totals(mechanism: Any, query: QuerySpec, events: TickEvents, tick: int) -> ItemTotals:
    """Items of some events of a tick, added up."""

    def read(some: TickEvents) -> ItemTotals:
        found: ItemTotals = mechanism._door.events(mechanism._own_events(some.events(query)), tick)
        return found

    totals: ItemTotals = _without_bad(mechanism, query, events, read)
    return totals


def joined_items(parts: list[tuple[int, ItemTotals]]) -> ItemCells:
    """Totals of several ticks as cells."""
    return ItemCells.joined(
        [
            ItemCells.of(
                np.full(len(totals.labels), tick, np.int64), totals.labels, np.asarray(totals.counts, np.int64)
            )
            for tick, totals in parts
        ]
    )


class TriedAtOnce:
    """Around what no record should make fail: should one, the way that comes next leaves out that record alone."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, Exception) and not issubclass(kind, EvertallyError | MemoryError)


def _without_bad(mechanism: Any, query: QuerySpec, events: TickEvents, read: Any) -> Any:
    """What `read` makes of the events, without those that make it raise by themselves (runtime/sieve.py)."""
    try:
        return read(events)
    except (EvertallyError, MemoryError):
        raise
    except Exception:
        kept = takeable(mechanism, events, query)
        if kept.all():
            raise
    return read(events.only(kept))


def _added(made: CellsOf, columns: int) -> CellsOf:
    """The same cells, those of one tick and column added up."""
    if len(made) < 2:
        return made
    first = int(made.ticks.min())
    span = int(made.ticks.max()) - first + 1
    flat = (made.ticks - first) * columns + made.columns
    if made.weights is None and span * columns <= _DENSE * len(made) + 2**16:
        counts = np.bincount(flat, minlength=0)
        touched = np.flatnonzero(counts)
        weights = counts[touched]
    elif span * columns < 2**62:
        touched, where = np.unique(flat, return_inverse=True)
        weights = np.zeros(len(touched), np.int64)
        np.add.at(weights, where, made.weight())
    else:
        return made
    return CellsOf(touched // columns + first, touched % columns, weights.astype(np.int64))
