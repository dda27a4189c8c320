"""Where the events of a user meet: caps and rules of users, a bucket of users at a time.

A rule looks at one user's own events alone, so a bucket needs no other. Events of ticks that are not over wait here, as
events: ticks are played in their order, as in one process. Within a tick events come by a keyed hash of their content,
for rows of a shuffle come in any order, and another one after a retry (docs/theory/distributed.md 6, traps 4 and 13).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from evertally.encode import ItemTotals
from evertally.errors import StateError
from evertally.runtime.spec import QuerySpec
from evertally.spark.feeding import cells_of, cut, items_of, joined_items, owned_of, records, row_cells, shared
from evertally.spark.job import Job, Shop
from evertally.spark.packing import joined_cells, joined_tables, pack_table
from evertally.spark.reading import Rows, coded
from evertally.spark.ways import Way, rule_of

_LENGTH = struct.Struct("<q")


def play_bucket(job: Job, shop: Shop, bucket: int, payloads: Iterable[bytes]) -> tuple[str, list[bytes]]:
    """Plays a bucket to the end of the batch: the name of its state, and what it gives to every part."""
    name = job.users.get(bucket)
    if name is None and job.states:
        raise StateError("the manifest of the batch before has no state for this bucket; the root is not whole")
    before = b"" if name is None else shop.state(name, f"bucket-{bucket}", job.batch - 1)
    memories, waiting = _opened(before, len(shop.queries))
    came = joined_tables([waiting, *payloads])
    rows = None if came is None else Rows.of_table(shop.stand.spec, came, shop.key.order_key)
    later, given, kept = b"", list[bytes](), list[bytes]()
    if rows is not None:
        rows, rest = rows.up_to(job.through)
        rows, later = rows.in_order(), pack_table(rest.in_order().table())
    for number, query in enumerate(shop.queries):
        memory, parts = _play(job, shop, number, query, memories[number], rows)
        kept.append(memory)
        given += parts
    return shop.keep(f"bucket-{bucket}", job.batch, "users", _written([*kept, later])), given


def _play(
    job: Job, shop: Shop, number: int, query: QuerySpec, memory: bytes, rows: Rows | None
) -> tuple[bytes, list[bytes]]:
    """One query: what its cap or rule remembers afterwards, and what they let through, for every part of it."""
    way, mechanism = shop.stand.ways[number], shop.fresh(number)
    rule, cap = rule_of(mechanism) if way.ruled else None, mechanism._users
    if memory and rule is not None:
        rule.load(0, memory)
    elif memory and cap is not None:
        cap = cap.from_bytes(memory)
    if rows is None or not len(rows):
        return _saved(rule, cap), [b""] * way.parts
    if cap is not None:
        mask = cap.keep_ticks(coded(rows.batch[str(shop.stand.spec.user_column)]), rows.edges())
        rows = rows if mask.all() else rows.take(np.flatnonzero(mask))
    given = _given(job, shop, number, way, mechanism, rule, query, rows)
    return _saved(rule, cap), given


def _given(
    job: Job, shop: Shop, number: int, way: Way, mechanism: Any, rule: Any, query: QuerySpec, rows: Rows
) -> list[bytes]:
    if way.travels == "records":
        return [records(rows, query, shop)]
    if rule is None:
        if way.travels == "cells":
            return cut(job, number, cells_of(mechanism, query, rows))
        return shared(shop, number, items_of(mechanism, query, rows))
    let_through = []
    for tick, start, stop in rows.edges():
        rule.begin(tick - 1)
        let_through.append((tick, rule.admit(owned_of(mechanism, query, rows.slice(start, stop), tick))))
    if way.travels == "cells":
        return cut(job, number, joined_cells(row_cells(tick, row) for tick, row in let_through))
    assert all(isinstance(totals, ItemTotals) for _, totals in let_through)
    return shared(shop, number, joined_items(let_through))


def _saved(rule: Any, cap: Any) -> bytes:
    if rule is not None:
        saved: bytes = rule.save()
        return saved
    return b"" if cap is None else cap.to_bytes()


def _written(parts: list[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def _opened(state: bytes, queries: int) -> tuple[list[bytes], bytes]:
    if not state:
        return [b""] * queries, b""
    parts, place = [], 0
    for _ in range(queries + 1):
        (size,) = _LENGTH.unpack_from(state, place)
        place += _LENGTH.size
        parts.append(state[place : place + size])
        place += size
    return parts[:-1], parts[-1]
