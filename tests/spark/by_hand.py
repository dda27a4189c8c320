"""Jobs without Spark: the same tasks, over tables in memory, in whatever pieces and order a test wants. What Spark adds
is tested in real applications; what tasks do is quicker to look at here."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
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
    batches = [table.combine_chunks().to_batches()[0] for table in tables if table.num_rows]
    order.shuffle(batches)
    if job.stand.by_user:
        made = _grouped(user_door_task(job)(iter(batches)), job.stand.buckets, order)
        given = [batch for table in made for batch in bucket_task(job)(table).to_batches()]
        parts = _grouped(given, len(job.parts), order)
    else:
        parts = _grouped(door_task(job)(iter(batches)), len(job.parts), order)
    return [row for table in parts for row in part_task(job)(table).to_pylist()]


def _grouped(batches: Any, count: int, order: random.Random) -> list[pa.Table]:
    nothing = pa.table(
        {"part": pa.array(range(count), pa.int32())}
        | {name: pa.nulls(count, pa.binary()) for name in ("payload", "seen", "source")}
    )
    rows = pa.Table.from_batches([*batches, *nothing.to_batches()])
    groups = []
    for number in sorted(set(rows["part"].to_pylist())):
        group = rows.filter(pa.compute.equal(rows["part"], number))
        places = list(range(group.num_rows))
        order.shuffle(places)
        groups.append(group.take(places))
    order.shuffle(groups)
    return groups


def play(spec: Path, batches: Sequence[tuple[Sequence[pa.Table], int]], first: int = 0, seed: int = 0) -> list[Record]:
    """Batches of tables, each followed by the tick up to which all are closed."""
    with taken(load_spec(spec)) as held:
        engine = Engine(held)
        engine.catch_up()
        return [
            engine.advance(by_hand(tables, seed + number), number, through, {"id": str(number)})
            for number, (tables, through) in enumerate(batches, first)
        ]
