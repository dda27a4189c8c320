"""What one task does with one part of the state in one batch: a pure function of the state after the batch before, of
what came (in any order), of the ticks that the batch closes, and of the key. Attempts, wherever they run, agree."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evertally.contract import restore
from evertally.contract.admission import AdmissionEngine
from evertally.contract.doors import RowDoor
from evertally.contract.snapshot import unpack
from evertally.counting.slice_state import merged
from evertally.counting.slices import LinearSlice
from evertally.encode import ItemTotals
from evertally.encode.item_cells import ItemCells
from evertally.encode.range_door import NumberedLabels
from evertally.errors import StateError
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.releases import pack
from evertally.runtime.sieve import stepped, takeable
from evertally.secret import Secret
from evertally.selection.item_shards import ItemShard
from evertally.spark.job import Job, Shop, put
from evertally.spark.packing import (
    CellsOf,
    joined_cells,
    joined_tables,
    pack_cells,
    pack_items,
    pack_table,
    unpack_cells,
    unpack_items,
)
from evertally.spark.reading import Rows
from evertally.spark.root import content_name
from evertally.spark.ways import Part, is_plain

_GROUP = 1 << 20  # rows of a Parquet row group


@dataclass(frozen=True)
class Played:
    """What a part reports: names of what it wrote, and a digest of what it released."""

    state: str
    release: str  # "" where nothing is released
    values: bytes


def play(job: Job, shop: Shop, part: Part, payloads: Iterable[bytes]) -> Played:
    """Plays a part to the end of the batch, and writes what comes of it."""
    player = {"slices": _play_slice, "shards": _play_shard, "whole": _play_whole}[shop.stand.ways[part.query].place]
    state, table, values = player(job, shop, part, payloads)
    name = _place(shop, part)
    kept = shop.keep(name, job.batch, "state", state)
    if table is None:
        return Played(kept, "", values)
    written = parquet(table)
    release = content_name(f"releases/{job.batch}/{name}", written)
    put(shop.shelf, release, written)
    return Played(kept, release, values)


def _place(shop: Shop, part: Part) -> str:
    return f"{part.query}-{part.first}-{part.stop}"


def _before(job: Job, shop: Shop, part: Part) -> list[bytes]:
    """The states of the batch before that overlap a part; one, unless slices were cut otherwise."""
    if not job.states:
        return []
    slices = shop.stand.ways[part.query].place == "slices"
    found = []
    for (query, first, stop), name in job.states.items():
        same = first < part.stop and part.first < stop if slices else first == part.first
        if query == part.query and same:
            found.append(shop.state(name, f"{query}-{first}-{stop}", job.batch - 1))
    if not found:
        raise StateError("the manifest of the batch before has no state for this part; the root is not whole")
    return found


# slices


def _play_slice(job: Job, shop: Shop, part: Part, payloads: Iterable[bytes]) -> tuple[bytes, Any, bytes]:
    plan, states = shop.plan(part.query), _before(job, shop, part)
    plain = is_plain(shop.mechanism(part.query)._form)  # what is made of a whole row needs all of it
    at, above = (job.at(), job.above()) if plain else (None, None)
    lazy = at is not None
    if states:
        playing = LinearSlice.from_bytes(plan, shop.key, part.first, part.stop, states, lazy=lazy)
    else:
        playing = LinearSlice(plan, shop.key, part.first, part.stop)
    came = joined_cells(map(unpack_cells, payloads))
    digest, pieces = hashlib.sha256(), []
    labels = _labels(shop, part)
    for first, rows in playing.advance(came.ticks, came.columns + part.first, came.weight(), job.through, at):
        digest.update(first.to_bytes(8, "little") + np.ascontiguousarray(rows, "<i8").tobytes())
        pieces.append(_shown(first, rows, labels, above))
    remember = not plain or shop.stand.spec.engine.release != "on demand"
    return playing.to_bytes(remember), pa.concat_tables(pieces) if pieces else None, digest.digest()


def _labels(shop: Shop, part: Part) -> pa.Array:
    """What the columns of a slice are called: numbers, where they have no other names."""
    form = shop.mechanism(part.query)._form
    names = form.labels if is_plain(form) else None
    if names is None or (isinstance(names, NumberedLabels) and names.other is None):
        return pa.array(np.arange(part.first, part.stop))
    return pa.array([_shown_label(label) for label in names[part.first : part.stop]], pa.string())


def _shown_label(label: str) -> str:
    return label.encode("utf-8", "backslashreplace").decode()


def _shown(first: int, rows: Any, labels: pa.Array, above: int | None) -> pa.Table:
    ticks = np.repeat(np.arange(first, first + len(rows), dtype=np.int32), rows.shape[1])
    values = rows.ravel()
    if above is None:
        category = pa.concat_arrays([labels] * len(rows))
    else:
        kept = np.flatnonzero(values > above)
        ticks, values, category = ticks[kept], values[kept], labels.take(pa.array(kept % rows.shape[1]))
    return pa.table({"tick": ticks, "category": category, "value": values})


# shards


def _play_shard(job: Job, shop: Shop, part: Part, payloads: Iterable[bytes]) -> tuple[bytes, Any, bytes]:
    plan, states = shop.plan(part.query), _before(job, shop, part)
    if states:
        playing = ItemShard.from_bytes(plan, shop.key, part.first, part.stop, states[0])
    else:
        playing = ItemShard(plan, shop.key, part.first, part.stop)
    came = ItemCells.joined([unpack_items(payload) for payload in payloads])
    digest = hashlib.sha256()
    rows: dict[str, list[Any]] = {"tick": [], "category": [], "value": []}
    for tick, found in playing.advance_cells(came, job.through):
        for label, count in found.counts.items():
            raw = label.encode("utf-8", "surrogatepass")
            digest.update(tick.to_bytes(8, "little") + len(raw).to_bytes(8, "little") + raw)
            digest.update(count.to_bytes(8, "little", signed=True))
            for name, cell in zip(rows, (tick, raw, count), strict=True):
                rows[name].append(cell)
    kinds = {"tick": pa.int32(), "category": pa.binary(), "value": pa.int64()}
    table = pa.table({name: pa.array(cells, kinds[name]) for name, cells in rows.items()})
    return playing.to_bytes(), table, digest.digest()


# whole queries


@dataclass(frozen=True, repr=False)
class Admitted(Secret):
    """A tick behind a rule that was played in buckets: its row, or its items."""

    totals: Any

    def digest(self) -> bytes:
        totals = self.totals
        if isinstance(totals, ItemTotals):
            return hashlib.sha256(repr(sorted(totals.mapping().items())).encode("utf-8", "surrogatepass")).digest()
        return hashlib.sha256(np.ascontiguousarray(totals, "<i8").tobytes()).digest()


class Passing(Secret):
    """In the place of a rule that was played in buckets: lets through what they let through."""

    def begin(self, tick: int) -> None:
        pass

    def undo(self, tick: int) -> None:
        pass

    def admit(self, arrivals: Admitted) -> Any:
        return arrivals.totals

    def save(self) -> bytes:
        return b""

    def load(self, tick: int, data: bytes) -> None:
        pass


def _play_whole(job: Job, shop: Shop, part: Part, payloads: Iterable[bytes]) -> tuple[bytes, Any, bytes]:
    way, query = shop.stand.ways[part.query], shop.queries[part.query]
    states = _before(job, shop, part)
    snapshot, waiting = _whole_state(states[0]) if states else (b"", b"")
    mechanism = _passing(shop.fresh(part.query)) if way.ruled else shop.fresh(part.query)
    if snapshot:
        mechanism = _continued(mechanism, snapshot, shop, way.ruled)
    ticks = range(job.opened, job.through + 1)
    if way.travels == "cells":
        steps, waits = _row_steps(mechanism, [waiting, *payloads], ticks, way.ruled)
    elif way.travels == "items":
        steps, waits = _item_steps(mechanism, [waiting, *payloads], ticks, way.ruled)
    else:
        steps, waits = _record_steps(mechanism, query, shop, [waiting, *payloads], ticks)
    digest, found = hashlib.sha256(), []
    beta = shop.stand.spec.beta
    for tick, release in zip(ticks, steps, strict=True):
        payload = pack(query, release, beta, rows=True)
        digest.update(tick.to_bytes(8, "little") + len(payload).to_bytes(8, "little") + payload)
        found.append(payload)
    table = pa.table({"tick": pa.array(list(ticks), pa.int32()), "payload": pa.array(found, pa.binary())})
    kept = mechanism.snapshot()
    return len(kept).to_bytes(8, "little") + kept + waits, table, digest.digest()


def _whole_state(state: bytes) -> tuple[bytes, bytes]:
    stop = 8 + int.from_bytes(state[:8], "little")
    return state[8:stop], state[stop:]


def _passing(mechanism: Any) -> Any:
    assert isinstance(mechanism._engine, AdmissionEngine)
    mechanism._engine.rule = Passing()
    return mechanism


def _continued(mechanism: Any, snapshot: bytes, shop: Shop, ruled: bool) -> Any:
    if not ruled:
        return restore(snapshot, key=shop.key, allow_copy=True)
    return restore_behind(snapshot, type(mechanism), shop)


def restore_behind(snapshot: bytes, statistic: type[Any], shop: Shop) -> Any:
    """A mechanism whose rule is elsewhere, from its snapshot: the rule has no bytes in it."""
    header, parts = unpack(snapshot, shop.key)
    options = {name: statistic._decoded(name, value) for name, value in header["options"].items()}
    made = _passing(statistic(**options, key=shop.key, allow_copy=True))
    made._resume(header, parts, allow_copy=True)
    return made


def _row_steps(mechanism: Any, payloads: list[bytes], ticks: range, ruled: bool) -> tuple[Iterator[Any], bytes]:
    came = joined_cells(map(unpack_cells, payloads))
    now = came.ticks < ticks.stop
    door, width = mechanism._door, mechanism._engine.width if ruled else None
    order = np.flatnonzero(now)[np.argsort(came.ticks[now], kind="stable")]
    at, columns, weights = came.ticks[order], came.columns[order], came.weight()[order]
    edges = np.searchsorted(at, np.arange(ticks.start, ticks.stop + 1))
    size = width if width is not None else door.columns if isinstance(door, RowDoor) else door.columns.width

    def steps() -> Iterator[Any]:
        for tick, a, b in zip(ticks, edges.tolist(), edges[1:].tolist(), strict=False):
            row = np.zeros(size, np.int64)
            np.add.at(row, columns[a:b], weights[a:b])
            if isinstance(door, RowDoor):
                totals: Any = door._in_range(row)
            else:
                limit = mechanism._tick_limit
                totals = np.clip(row, -limit, limit)
            yield mechanism._folded(Admitted(totals) if ruled else totals, tick)

    return steps(), pack_cells(_sorted(CellsOf(came.ticks[~now], came.columns[~now], came.weight()[~now])))


def _sorted(cells: CellsOf) -> CellsOf:
    """In the one order that they have: bytes of a state must not follow from the order in which things came."""
    ticks, columns, weights = merged(np.stack([cells.ticks, cells.columns, cells.weight()]))
    return CellsOf(ticks, columns, weights)


def _item_steps(mechanism: Any, payloads: list[bytes], ticks: range, ruled: bool) -> tuple[Iterator[Any], bytes]:
    cells = ItemCells.joined([unpack_items(payload) for payload in payloads]).added_up(mechanism._tick_limit).in_order()
    edges = np.searchsorted(cells.ticks, np.arange(ticks.start, ticks.stop + 1))

    def steps() -> Iterator[Any]:
        for tick, a, b in zip(ticks, edges.tolist(), edges[1:].tolist(), strict=False):
            part = cells.where(np.arange(a, b))
            totals = ItemTotals(part.labels(), part.weights)
            if not ruled:
                totals = mechanism._door.in_range(totals)
            yield mechanism._folded(Admitted(totals) if ruled else totals, tick)

    return steps(), pack_items(cells.where(np.arange(int(edges[-1]), len(cells))))


def _record_steps(
    mechanism: Any, query: Any, shop: Shop, payloads: list[bytes], ticks: range
) -> tuple[Iterator[Any], bytes]:
    came, spec = joined_tables(payloads), shop.stand.spec
    if came is None:
        later, of_tick = None, {}
    else:
        now, later = Rows.of_table(spec, came, shop.key.order_key).up_to(ticks.stop - 1)
        of_tick = dict(now.in_order().by_tick())

    def steps() -> Iterator[Any]:
        for tick in ticks:
            events = of_tick.get(tick) or TickEvents(spec, [])
            try:
                yield stepped(mechanism, events, query, tick)
            except (StateError, MemoryError):
                raise
            except Exception:
                kept = takeable(mechanism, events, query)
                if kept.all():
                    raise
                yield stepped(mechanism, events.only(kept), query, tick)

    return steps(), b"" if later is None else pack_table(later.in_order().table())


def parquet(table: pa.Table) -> bytes:
    """A table as a file: whole numbers by their differences (numbered columns follow each other), others by
    dictionaries."""
    out = io.BytesIO()
    numbers = [field.name for field in table.schema if pa.types.is_int64(field.type)]
    others = [name for name in table.column_names if name not in numbers and name != "payload"]
    encoding = dict.fromkeys(numbers, "DELTA_BINARY_PACKED")
    options = {"use_dictionary": others, "column_encoding": encoding or None, "row_group_size": _GROUP}
    pq.write_table(table, out, compression="zstd", **options)
    return out.getvalue()
