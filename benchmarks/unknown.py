"""Counts of items that nobody listed: events a second through Arrow columns, and memory an item.

    python -m benchmarks.unknown [--short] [--json FILE]

Everything is included: the door (canonical labels, duplicates, long events cut), exact counts, the noise of every item
seen so far at every tick, the threshold. CPU time of `step_events`, which uses one core; making the input is not
counted, nor one small stream before that loads the compiled parts. The bar is for lists: 10^7 events of 10^6 items in
50 ticks.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.report import Table, quantity

import evertally as et
from evertally.statistics import UnknownHistogram

LEAST_EVENTS_A_SECOND = 1e6
SHAPES = ("labels", "lists")


@dataclass(frozen=True)
class Ingest:
    """One stream: what it was, and what it took."""

    shape: str
    events: int
    items: int
    ticks: int
    seconds: float
    bytes_an_item: float
    released: int

    @property
    def events_a_second(self) -> float:
        return self.events / self.seconds


def histogram(ticks: int) -> UnknownHistogram:
    guarantee = et.ApproxDP(epsilon=1.0, delta=1e-6)
    return UnknownHistogram(max_per_event=3, guarantee=guarantee, horizon=ticks, key=et.simulation(0))


def columns(shape: str, events: int, items: int, ticks: int) -> Iterator[Any]:
    """One Arrow array a tick. Half of the items that are named are popular ones, the other half are any, and each item
    is named at least once. Lists have 1 to 5 items, 1.4 on average; 2 % of them are cut to 3."""
    import pyarrow as pa

    generator = np.random.default_rng(0)  # content to be counted, not noise
    names = pa.array([f"item-{i:07d}" for i in range(items)])
    popular = np.cumsum(1 / np.arange(1, items // 100 + 1))
    once = generator.permutation(items)
    for t in range(ticks):
        size = events // ticks
        lists = shape == "lists"
        lengths = generator.choice([1, 2, 3, 5], size, p=[0.7, 0.2, 0.08, 0.02]) if lists else np.ones(size, np.int64)
        values = generator.integers(0, items, lengths.sum())
        often = generator.random(values.size) < 0.5
        values[often] = np.searchsorted(popular, popular[-1] * generator.random(int(often.sum())))
        due = once[t * items // ticks : (t + 1) * items // ticks]
        values[: due.size] = due
        column = names.take(pa.array(values))
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        yield pa.ListArray.from_arrays(offsets, column) if lists else column


def ingest(shape: str, events: int, items: int, ticks: int) -> Ingest:
    """Time and memory of one stream."""
    for column in columns(shape, 5000, 1000, 2):
        histogram(2).step_events(column)
    seconds, counting, released = 0.0, histogram(ticks), 0
    for column in columns(shape, events, items, ticks):
        start = time.process_time()
        released = len(counting.step_events(column).value)
        seconds += time.process_time() - start
    return Ingest(shape, events, items, ticks, seconds, memory(items, ticks), released)


def memory(items: int, ticks: int) -> float:
    """Bytes that an item takes, in a stream of its own: to watch memory takes time."""
    (column,) = columns("labels", items, items, 1)
    tracemalloc.start()
    try:
        watched = histogram(ticks)
        before = tracemalloc.get_traced_memory()[0]
        watched.step_events(column)
        watched.step_events(column[:0])  # an empty tick: the input of the first one is let go
        return (tracemalloc.get_traced_memory()[0] - before) / items
    finally:
        tracemalloc.stop()


def measure(short: bool) -> list[Ingest]:
    size = (10**6, 10**5, 5) if short else (10**7, 10**6, 50)
    return [ingest(shape, *size) for shape in SHAPES]


def tables(rows: list[Ingest]) -> list[Table]:
    return [
        Table(
            "Items that nobody listed",
            f"Events a second through UnknownHistogram.step_events, CPU time. Bar: {quantity(LEAST_EVENTS_A_SECOND)}.",
            ["input", "events", "items", "ticks", "events/s", "bytes an item", "released at the end"],
            [
                (
                    f"Arrow {row.shape}",
                    quantity(row.events),
                    quantity(row.items),
                    str(row.ticks),
                    quantity(row.events_a_second),
                    f"{row.bytes_an_item:.0f}",
                    str(row.released),
                )
                for row in rows
            ],
        )
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unknown", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few seconds")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    rows = measure(options.short)
    for table in tables(rows):
        print(table.text())
    if options.json is not None:
        options.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1) + "\n")
    return 0 if all(row.events_a_second >= LEAST_EVENTS_A_SECOND for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
