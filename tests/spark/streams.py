"""Streams that tests play by hand, and their events; not a test."""

from __future__ import annotations

import datetime as dt
import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from by_hand import play
from one_process import assert_same, in_one_process

from evertally.runtime import load_spec
from spec_text import Table, spec_text

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
BY_NUMBER: Table = {"column": "time", "start": 0, "tick": 1, "close": "request"}
BY_HOUR: Table = {"column": "time", "start": START, "tick": "1h", "close": "request"}
# The narrowest slices there are, and few of everything: each query of a few dozen columns is cut.
NARROW: Table = {"slice_width": 16, "user_buckets": 3, "label_shards": 3}

WORDS = [f"word-{number:02d}" for number in range(60)]
Batches = Sequence[tuple[pa.Table, int]]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory, where there is such: an engine makes every file durable, and there are many."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def write(folder: Path, *queries: Table, engine: Table = NARROW, **sections: Any) -> Path:
    """The spec of a stream, in a folder of its own."""
    folder.mkdir(exist_ok=True)
    path = folder / "visits.toml"
    given: dict[str, Any] = {
        "stream": {"name": "visits", "horizon": 24, "max_events_per_tick": 500},
        "clock": BY_NUMBER,
        "output": None,
    }
    path.write_text(spec_text(*queries, engine=engine, **given | sections))
    return path


def events(count: int, seed: int = 1, hours: bool = False) -> pa.Table:
    """Events of ticks -2 to 11, and some beyond the end, of a few people: with labels that are not declared, cells that
    are empty, and times that nobody can read."""
    order = random.Random(seed)

    def rarely(usual: Any, else_: Any) -> Any:
        return else_ if order.random() < 0.05 else usual

    def often(choices: Sequence[Any]) -> Any:
        return choices[min(int(order.expovariate(0.2)), len(choices) - 1)]

    ticks = [rarely(order.randrange(-3, 12), 999) for _ in range(count)]
    texts = [(START + dt.timedelta(hours=tick, minutes=order.randrange(60))).isoformat() for tick in ticks]
    times = pa.array([rarely(text, "noon") for text in texts]) if hours else pa.array([rarely(t, None) for t in ticks])
    people = [f"person {number}" for number in range(25)]
    return pa.table(
        {
            "time": times,
            "user": pa.array([rarely(often(people), None) for _ in range(count)]),
            "page": pa.array([rarely(often(WORDS), order.choice(["nowhere", None])) for _ in range(count)]),
            "number": pa.array([rarely(order.randrange(70), -5) for _ in range(count)]),
            "words": pa.array([[often(WORDS) for _ in range(order.randrange(5))] for _ in range(count)]),
            "amount": pa.array([rarely(round(order.gauss(20, 30), 3), float("nan")) for _ in range(count)]),
            "what": pa.array([order.choice(["letter", "visit", "call", "else"]) for _ in range(count)]),
            "item": pa.array([f"item {order.randrange(60)}" for _ in range(count)]),
            "does": pa.array([rarely(order.choice(["comes", "goes"]), "stays") for _ in range(count)]),
            "other": pa.array([often(people) for _ in range(count)]),
        }
    )


def three_batches(table: pa.Table) -> Batches:
    """Ticks of one batch, a batch that closes none, one without an event, and one of idle ticks; events of later ticks
    wait over several of them."""
    third = table.num_rows // 3
    return [
        (table.slice(0, third), 3),
        (table.slice(third, third), 3),
        (table.slice(0, 0), 5),
        (table.slice(2 * third), 9),
        (table.slice(0, 0), 12),
    ]


def pieces(table: pa.Table, count: int, seed: int) -> list[pa.Table]:
    """A table in pieces, and the rows of it in another order."""
    if not table.num_rows:
        return []
    rows = list(range(table.num_rows))
    random.Random(seed).shuffle(rows)
    size = -(-len(rows) // count)
    return [table.take(rows[start : start + size]) for start in range(0, len(rows), size)]


def in_pieces(batches: Batches, count: int, seed: int) -> list[tuple[list[pa.Table], int]]:
    return [(pieces(table, count, seed + number), through) for number, (table, through) in enumerate(batches)]


def twin(spec: Path, folder: Path) -> Path:
    """A copy of all that a stream is, under the same key: what no operator may have, and a test needs to ask what would
    have happened otherwise."""
    shutil.copytree(spec.parent, folder)
    return folder / spec.name


def begun(spec: Path) -> Path:
    """The stream with a key and without a batch."""
    play(spec, [])
    return spec


def check_equal(spec: Path, batches: Batches) -> int:
    """Plays a stream in two ways, both times in pieces: the same states, to the byte, and what one process releases."""
    other = twin(begun(spec), spec.parent.parent / "twin")
    first = play(spec, in_pieces(batches, 1, seed=1))
    second = []
    for number, batch in enumerate(in_pieces(batches, 4, seed=7)):  # a driver for each batch
        second += play(other, [batch], first=number, seed=number)
    for name in ("values", "states", "users", "releases", "chain"):
        assert [record[name] for record in first] == [record[name] for record in second], name
    return assert_same(spec, in_one_process(spec, spec.parent.parent / "one", batches))


def places(spec: Path) -> dict[str, tuple[str, str]]:
    """Where each query is played, and what travels there."""
    from evertally.spark.beginning import taken

    settled = load_spec(spec)
    with taken(settled) as held:
        return {q.name: (way.place, way.travels) for q, way in zip(settled.queries, held.stand.ways, strict=True)}
