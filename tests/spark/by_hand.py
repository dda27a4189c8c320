"""Jobs without Spark: the same tasks, over tables in memory, in whatever pieces and order a test wants. What Spark adds
is tested in real applications; what tasks do is quicker to look at here."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from evertally.runtime import load_spec
from evertally.spark.beginning import taken
from evertally.spark.engine import Engine
from evertally.spark.job import Job
from evertally.spark.root import Record
from evertally.spark.tasks import bucket_task, door_task, part_task, user_door_task


def by_hand(tables: Sequence[pa.Table], seed: int = 0) -> Callable[[Job], list[dict[str, Any]]]:
    """Runs a job over tables, each as one Arrow batch; rows of groups come in an order of `seed`."""
    return lambda job: _run(job, tables, random.Random(seed))


def _run(job: Job, tables: Sequence[pa.Table], order: random.Random) -> list[dict[str, Any]]:
    return [row for table in groups(job, tables, order) for row in part_task(job)(table).to_pylist()]


def groups(job: Job, tables: Sequence[pa.Table], order: random.Random) -> list[pa.Table]:
    """What each part gets, parts in any order; buckets of users are played on the way."""
    if not job.stand.by_user:
        return grouped(door_task(job)(_batches(tables, order)), len(job.parts), order)
    return from_buckets(job, bucket_groups(job, tables, order), order)


def bucket_groups(job: Job, tables: Sequence[pa.Table], order: random.Random) -> list[pa.Table]:
    """What each bucket of users gets."""
    return grouped(user_door_task(job)(_batches(tables, order)), job.stand.buckets, order)


def from_buckets(job: Job, buckets: Sequence[pa.Table], order: random.Random) -> list[pa.Table]:
    given = [batch for table in buckets for batch in bucket_task(job)(table).to_batches()]
    return grouped(given, len(job.parts), order)


def _batches(tables: Sequence[pa.Table], order: random.Random) -> Iterator[pa.RecordBatch]:
    batches = [table.combine_chunks().to_batches()[0] for table in tables if table.num_rows]
    order.shuffle(batches)
    return iter(batches)


def grouped(batches: Any, count: int, order: random.Random) -> list[pa.Table]:
    """Rows by part, with a row for each part, as `running` has it."""
    nothing = pa.table(
        {"part": pa.array(range(count), pa.int32())}
        | {name: pa.nulls(count, pa.binary()) for name in ("payload", "seen", "source")}
    )
    rows = pa.Table.from_batches([*batches, *nothing.to_batches()])
    found = []
    for number in sorted(set(rows["part"].to_pylist())):
        group = rows.filter(pa.compute.equal(rows["part"], number))
        places = list(range(group.num_rows))
        order.shuffle(places)
        found.append(group.take(places))
    order.shuffle(found)
    return found


def play(spec: Path, batches: Sequence[tuple[Sequence[pa.Table], int]], first: int = 0, seed: int = 0) -> list[Record]:
    """Batches of tables, each followed by the tick up to which all are closed."""
    with taken(load_spec(spec)) as held:
        engine = Engine(held)
        engine.catch_up()
        return [
            engine.advance(by_hand(tables, seed + number), number, through, {"id": str(number)})
            for number, (tables, through) in enumerate(batches, first)
        ]
