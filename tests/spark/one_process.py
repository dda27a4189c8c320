"""The same stream in one process, under the same key: what everything on Spark is held against."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from evertally.runtime import load_spec
from evertally.runtime.live import Live
from evertally.runtime.releases import TickRelease, unpack
from evertally.spark.public import payloads, shown
from evertally.spark.root import Record


def in_one_process(spec: Path, folder: Path, batches: Sequence[tuple[pa.Table, int]]) -> list[TickRelease]:
    """What one process releases from tables of events, each followed by the tick up to which all are closed."""
    folder.mkdir()
    shutil.copy(spec, folder / spec.name)
    settled = load_spec(folder / spec.name)
    shutil.copy(load_spec(spec).key_file, settled.key_file)
    settled.key_file.chmod(0o600)
    released: list[TickRelease] = []
    with Live(settled, nothing_was_released=True) as live:
        for number, (table, through) in enumerate(batches):
            columns = {name: table[name].combine_chunks() for name in settled.columns()}
            for name, column in columns.items():
                if isinstance(column, pa.ChunkedArray):
                    columns[name] = pa.concat_arrays(column.chunks) if column.num_chunks else column
            if table.num_rows:
                live.accept([(str(number), columns)])
            released += live.release_through(through)
    return released


def assert_same(spec: Path, expected: Sequence[TickRelease]) -> int:
    """Everything that was shown is what one process released, to the byte; gives how many numbers were compared."""
    settled = load_spec(spec)
    compared = 0
    for query in settled.queries:
        found: dict[int, Any] = dict(shown(settled, query.name))
        assert sorted(found) == [one.tick for one in expected], query.name
        raw = dict(payloads(settled, query.name))
        for one in expected:
            wanted = unpack(query, one.payloads[query.name])
            if wanted["category"] is not None:
                wanted["category"] = list(wanted["category"])
            assert found[one.tick] == wanted, (query.name, one.tick)
            if raw:
                assert raw[one.tick] == one.payloads[query.name], (query.name, one.tick)
            compared += len(wanted["value"]) if isinstance(wanted["value"], list) else 1
    return compared


def about(record: Record) -> tuple[int, int]:
    return record["batch"], record["through"]
