"""A small spec to bend, and events in every format; not a test."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from evertally.noise import ZeroNoise
from spec_text import BUSIEST, MIDDLE, ORDER, RARE, queries_text, spec_text

SPEC = spec_text(
    {"name": "all", "kind": "counter", "share": 0.25},
    {
        "name": "ward",
        "kind": "histogram",
        "share": 0.75,
        "column": "ward",
        "categories": ["north", "south"],
        "other": "elsewhere",
    },
)

# Queries on column sums beside them, with budgets so large that partitions close within a few hundred visits.
COLUMN_QUERIES = queries_text(
    BUSIEST,
    {
        "name": "first",
        "kind": "leader",
        "share": 0.2,
        "column": "ward",
        "categories": ["north", "south"],
        "other": "elsewhere",
        "mechanism": "recompute",
    },
    ORDER,
    MIDDLE,
    RARE,
)
WITH_COLUMN_QUERIES = (
    ("horizon = 48", "horizon = 48\nmax_events_per_tick = 4"),
    ("rho = 0.5", "rho = 250"),
    ("share = 0.25", "share = 0.005"),
    ("share = 0.75", "share = 0.005"),
)

# Wards that nobody declared beside them; the guarantee needs a delta, and rho stays about the same.
UNKNOWN_QUERIES = queries_text(
    {"name": "found", "kind": "unknown-histogram", "share": 0.05, "column": "ward"},
    {"name": "most", "kind": "unknown-top", "k": 2, "share": 0.03, "column": "ward", "mechanism": "meta"},
    {
        "name": "ahead",
        "kind": "streaming-top",
        "k": 2,
        "share": 0.01,
        "column": "ward",
        "categories": ["north", "south", "attic"],
        "mechanism": "meta",
    },
)
WITH_UNKNOWN_QUERIES = (*WITH_COLUMN_QUERIES, ("rho = 250", "epsilon = 340\ndelta = 1e-6"))

WriteSpec = Callable[..., Path]


def spec_writer(home: Path) -> WriteSpec:
    """Writes SPEC with some texts replaced and some appended."""

    def write(*changes: tuple[str, str], append: str = "", folder: str = ".") -> Path:
        text = SPEC
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        path = home / folder / "visits.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + append)
        return path

    return write


class NoNoise(ZeroNoise):
    """A key under which all noise is zero, good enough for a store."""

    def seal(self, purpose: str, data: bytes) -> bytes:
        return self.mac(purpose, data) + data

    def unseal(self, purpose: str, sealed: bytes) -> bytes:
        assert sealed[:32] == self.mac(purpose, sealed[32:])
        return sealed[32:]


def visits(first_hour: int, last_hour: int) -> list[dict[str, Any]]:
    """A few visits in every hour but every fifth, not in order of time."""
    records = [
        {
            "time": f"2013-01-{1 + hour // 24:02d}T{hour % 24:02d}:{7 * i:02d}:00Z",
            "ward": ["north", "south", "north", "attic"][(hour + i) % 4],
            "minutes": (hour * 13 + i * 29) % 50,
            "patient": f"p{(hour + 3 * i) % 11}",
        }
        for hour in range(first_hour, last_hour)
        for i in range((hour * 7) % 5)
    ]
    return records[1::2] + records[::2]


def save(records: list[dict[str, Any]], path: Path) -> Path:
    if path.suffix == ".csv":
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif path.suffix == ".parquet":
        pa.parquet.write_table(pa.Table.from_pylist(records), path)
    else:
        table = pa.Table.from_pylist(records)
        with (pa.ipc.new_stream if path.suffix == ".ipc" else pa.ipc.new_file)(path, table.schema) as writer:
            writer.write_table(table)
    return path
