"""Time and memory of what is present now: updates through the public door, construction by construction.

CPU time of `run` on records `(action, value, id)`, which uses one core; making the records is not counted, nor one
small stream before that loads the compiled parts. Memory is what Python and numpy hold afterwards, for each item that
was ever inserted: names from outside are remembered for ever, tokens and values only while they live. (Nobody gives
tokens back here: such items go when their time is over.)
"""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.report import Table, quantity

import evertally as et

APPROXIMATE = et.ApproxDP(epsilon=1.0, delta=1e-6)
SIZE = 1024  # cells
LARGE = "DynamicRange, 1024 cells: L"

SUBJECTS: dict[str, tuple[type, dict[str, Any]]] = {
    LARGE: (et.DynamicRange, {"size": SIZE}),
    "L": (et.DynamicCount, {}),
    "L, tokens, lifetimes <= 10": (et.DynamicCount, {"identity": "token", "max_lifetime": 10}),
    "L, values": (et.DynamicCount, {"identity": "value", "protects": "event"}),
    "L, names, lifetimes <= 50": (et.DynamicCount, {"max_lifetime": 50}),
    "K, every tick": (et.DynamicCount, {"mechanism": "anew", "every": 1}),
    "C1, signed": (et.DynamicCount, {"mechanism": "tree"}),
    "C2, signed": (et.DynamicCount, {"mechanism": "doubling"}),
    "B": (et.DynamicCount, {"mechanism": "subtract"}),
    "C5f": (et.DynamicCount, {"mechanism": "interval-tree"}),
    "C5 after P2": (et.DynamicCount, {"mechanism": "interval-tree", "partition": "infinite"}),
}


@dataclass(frozen=True)
class Speed:
    """One stream: what it was and what it took."""

    way: str
    updates: int
    ticks: int
    seconds: float
    bytes_an_item: float
    bytes_of_snapshot: int

    @property
    def updates_a_second(self) -> float:
        return self.updates / self.seconds


def records(updates: int, ticks: int) -> list[list[tuple[str, int, int]]]:
    """Half insertions; each item is deleted some ticks later, by name and value, in the same order."""
    rng = np.random.default_rng(1)  # content to be counted, not noise
    half = updates // ticks // 2
    values = rng.integers(0, SIZE, half * ticks).tolist()
    stay = min(10, ticks // 2)
    made: list[list[tuple[str, int, int]]] = []
    for t in range(ticks):
        came = [("insert", values[i], i) for i in range(t * half, (t + 1) * half)]
        # In the first ticks nothing can go: those deletions find nothing.
        gone = [("delete", values[i], i) for i in range((t - stay) * half, (t - stay + 1) * half)]
        made.append(came + gone)
    return made


def statistic(way: str, ticks: int) -> Any:
    kind, options = SUBJECTS[way]
    return kind(guarantee=APPROXIMATE, horizon=ticks, key=et.simulation(1), **options)


def speed(way: str, updates: int, ticks: int) -> Speed:
    """Time, and memory in a stream of its own: to watch memory takes time."""
    statistic(way, 4).run(records(40, 4))
    stream, made = records(updates, ticks), statistic(way, ticks)
    start = time.process_time()
    made.run(stream)
    seconds = time.process_time() - start
    watched = records(min(updates, 40_000), min(ticks, 40))
    tracemalloc.start()
    try:
        small = statistic(way, min(ticks, 40))
        before = tracemalloc.get_traced_memory()[0]
        small.run(watched)
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    return Speed(way, updates, ticks, seconds, held / (len(watched) * len(watched[0]) / 2), len(made.snapshot()))


def measure(short: bool) -> list[Speed]:
    large, small = (20_000, 20) if short else (10**6, 1000), (20_000, 100) if short else (200_000, 1000)
    return [speed(way, *(large if way == LARGE else small)) for way in SUBJECTS]


def tables(rows: list[Speed]) -> list[Table]:
    base = next(row for row in rows if row.way == "L")
    return [
        Table(
            "Speed of updates",
            "Records through the public door by `run`, CPU time; the first line is ranges over an insert and delete "
            "stream, end to end, the others are counts. The first ticks compute margins and laws once.",
            ["construction", "updates", "ticks", "seconds", "updates/s", "time over L", "bytes an item", "snapshot"],
            [
                (
                    row.way,
                    f"{row.updates:,}",
                    f"{row.ticks:,}",
                    f"{row.seconds:.2f}",
                    quantity(row.updates_a_second),
                    f"{base.updates_a_second / row.updates_a_second:.1f}",
                    f"{row.bytes_an_item:.0f}",
                    quantity(row.bytes_of_snapshot) + "B",
                )
                for row in rows
            ],
        )
    ]
