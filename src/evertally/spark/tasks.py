"""The functions that Spark calls on workers, and the rows between them.

    events ──▶ door ──▶ (part, payload, seen) ──by part──▶ part: plays, writes, reports
    events ──▶ door ──▶ (bucket, ...) ──by bucket──▶ bucket: caps and rules ──▶ (part, ...) ──by part──▶ part

Every row carries a keyed hash of all that its door task made of one Arrow batch, and every part gets a row of every
batch. A part reports the sum of the hashes it saw; the driver demands one value from all. So one job cannot mix two
realisations of its input: a lost executor makes Spark read some of it again, and it may have changed by then
(docs/theory/distributed.md 3, item 4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from evertally.encode.content_order import user_buckets
from evertally.errors import StateError
from evertally.spark.buckets import play_bucket
from evertally.spark.failures import guarded
from evertally.spark.feeding import payloads
from evertally.spark.job import Job, Shop, shop
from evertally.spark.packing import pack_table
from evertally.spark.parquet_files import Scan
from evertally.spark.playing import play
from evertally.spark.reading import Rows

# `seen`: of the door's Arrow batch, or of a bucket; `source`: what all buckets must have seen alike, null without them.
GIVEN = "part int, payload binary, seen binary, source binary"
DONE = "part int, state string, release string, values binary, seen binary, source binary"
_GIVEN = pa.schema([("part", pa.int32()), ("payload", pa.binary()), ("seen", pa.binary()), ("source", pa.binary())])
_DONE = pa.schema(
    [
        ("part", pa.int32()),
        ("state", pa.string()),
        ("release", pa.string()),
        ("values", pa.binary()),
        ("seen", pa.binary()),
        ("source", pa.binary()),
    ]
)
_MODULUS = 2**128

Batches = Iterator[pa.RecordBatch]


def door_task(job: Job, names: list[str] | None = None) -> Callable[[Batches], Batches]:
    """Events to what every part gets of them. `names`: what their columns are, if they are not called so."""

    def door(batches: Batches) -> Batches:
        own = shop(job.stand)
        for batch in batches:
            yield _by_part(job, own, _named(batch, names))

    return guarded(door, "door")


def user_door_task(job: Job, names: list[str] | None = None) -> Callable[[Batches], Batches]:
    """Events to what every bucket gets of them: themselves, by their users."""

    def door(batches: Batches) -> Batches:
        own = shop(job.stand)
        for batch in batches:
            yield _by_bucket(job, own, _named(batch, names))

    return guarded(door, "door")


def scan_task(job: Job, scan: Scan) -> Callable[[Batches], Batches]:
    """Either door where tasks read the events themselves: they are given numbers of pieces. The first piece begins with
    a row for each group, so that idle ones move on: which of them are idle would show otherwise."""

    def door(batches: Batches) -> Batches:
        own = shop(job.stand)
        each, groups = (_by_bucket, job.stand.buckets) if job.stand.by_user else (_by_part, len(job.parts))
        for number in (row for batch in batches for row in batch.column(0).to_pylist()):
            if number == 0:
                nothing = [pa.nulls(groups, pa.binary())] * 3
                yield pa.RecordBatch.from_arrays([pa.array(range(groups), pa.int32()), *nothing], schema=_GIVEN)
            for batch in scan.batches(number):
                yield each(job, own, batch)

    return guarded(door, "door")


def bucket_task(job: Job) -> Callable[[pa.Table], pa.Table]:
    """A bucket of users: what it lets through, for every part; and, under a number below 0, its own report."""

    def bucket(table: pa.Table) -> pa.Table:
        own = shop(job.stand)
        number = table["part"][0].as_py()
        came, seen, _ = _came(table)
        name, given = play_bucket(job, own, number, came)
        rows = _rows(own, f"bucket {number}".encode() + seen, given)
        report = [[-1 - number], [name.encode()], [b""], [seen]]
        rows = rows.set_column(3, _GIVEN.field("source"), pa.array([seen] * rows.num_rows, pa.binary()))
        both = [
            rows,
            pa.RecordBatch.from_arrays(
                [pa.array(c, f.type) for c, f in zip(report, _GIVEN, strict=True)], schema=_GIVEN
            ),
        ]
        return pa.Table.from_batches(both)

    return guarded(bucket, "bucket")


def part_task(job: Job) -> Callable[[pa.Table], pa.Table]:
    """A part of the state: plays to the end of the batch, and reports what it wrote."""

    def part(table: pa.Table) -> pa.Table:
        number = table["part"][0].as_py()
        if number < 0:  # the report of a bucket, on its way to the driver
            told = table.filter(pa.compute.is_valid(table["payload"]))
            name, source = told["payload"][0].as_py().decode(), told["source"][0].as_py()
            return _reported(number, name, "", b"", b"", source)
        own = shop(job.stand)
        came, seen, source = _came(table)
        played = play(job, own, job.parts[number], came)
        return _reported(number, played.state, played.release, played.values, seen, source)

    return guarded(part, "part")


def _by_part(job: Job, own: Shop, batch: pa.RecordBatch) -> pa.RecordBatch:
    return _rows(own, b"door", payloads(job, own, Rows.of(batch, job, own.key.order_key)))


def _by_bucket(job: Job, own: Shop, batch: pa.RecordBatch) -> pa.RecordBatch:
    rows, count = Rows.of(batch, job, own.key.order_key), job.stand.buckets
    users = user_buckets(rows.batch[str(job.stand.spec.user_column)], own.key.order_key, count)
    # Whose user is not to be told goes to the first: what needs no user counts it.
    users[users < 0] = 0
    return _rows(own, b"door", [pack_table(part.table()) for part in rows.cut(users, count)])


def _named(batch: pa.RecordBatch, names: list[str] | None) -> pa.RecordBatch:
    return batch if names is None else batch.rename_columns(names)


def _reported(*cells: Any) -> pa.Table:
    return pa.table({field.name: pa.array([cell], field.type) for field, cell in zip(_DONE, cells, strict=True)})


def _rows(own: Shop, purpose: bytes, made: list[bytes]) -> pa.RecordBatch:
    hashed = hashlib.blake2b(purpose, key=own.key.mac("realisation", b""), digest_size=16)
    for payload in made:
        hashed.update(len(payload).to_bytes(8, "little") + payload)
    count = len(made)
    columns = [
        pa.array(range(count), pa.int32()),
        pa.array(made, pa.binary()),
        pa.array([hashed.digest()] * count, pa.binary()),
        pa.nulls(count, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_GIVEN)


def _came(table: pa.Table) -> tuple[list[bytes], bytes, bytes]:
    """The payloads of a group, the sum of the hashes it saw, and what its rows say of their own source."""
    rows = table.filter(pa.compute.is_valid(table["payload"]))  # others keep idle groups going
    total = sum(int.from_bytes(seen, "little") for seen in rows["seen"].to_pylist()) % _MODULUS
    sources = {source for source in rows["source"].to_pylist() if source is not None}
    if len(sources) > 1:
        raise StateError("buckets of one job saw different input")
    return rows["payload"].to_pylist(), total.to_bytes(16, "little"), next(iter(sources), b"")
