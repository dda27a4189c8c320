"""Events that are collections or mappings of labels, and single steps of a counter: an earlier version beside this one.

    git worktree add ../earlier COMMIT
    python -m benchmarks.door_collections --earlier ../earlier

CPU time of one core, the best of several calls. Both versions take turns, each in a process of its own: what else a
machine does hits both. Ratios say more than nanoseconds do. Without `--earlier` this version alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.report import Table

import evertally as et
from evertally.encode import CategoryDoor, ItemDoor

EVENTS, LABELS, DECLARED = 20_000, 5_000, 200
STEPS = 60
SHAPES = [(3, 3), (8, 8), (5, 2), (8, 3)]  # labels of an event, and how many of them may stay


def order(message: bytes) -> bytes:
    return blake2b(message, key=bytes(32), digest_size=16, person=b"benchmark").digest()


def columns(labels: int) -> dict[str, Any]:
    """The same events in four forms; some labels are frequent, and few events have one twice."""
    drawn = np.random.default_rng(labels).pareto(1.1, (EVENTS, labels)) * 50
    lists = [[f"label-{i}" for i in row] for row in np.minimum(drawn, LABELS - 1).astype(int).tolist()]
    mappings = [dict.fromkeys(event, 2) for event in lists]
    pairs = [list(event.items()) for event in mappings]
    return {
        "Arrow lists": pa.array(lists),
        "Python lists": lists,
        "Arrow maps": pa.array(pairs, pa.map_(pa.string(), pa.int64())),
        "dictionaries": mappings,
    }


def nanoseconds(call: Callable[[], Any], things: int, repeats: int) -> float:
    call()  # compiles, fills caches
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e9 * min(times) / things


def measured() -> Iterator[tuple[str, float]]:
    declared = [f"label-{i}" for i in range(DECLARED)]
    for labels, most in SHAPES:
        doors = {
            "any items": ItemDoor(most, 3, order=order),
            "categories": CategoryDoor(declared, "rest", most, 3, order=order),
        }
        for form, events in columns(labels).items():
            for name, door in doors.items():
                took = nanoseconds(lambda door=door, events=events: door.totals(events, 5), EVENTS, 3)
                yield f"{form}, {name}, {labels} labels, {most} stay", took
    for guarantee in (et.ZCDP(0.5), et.PureDP(1.0)):
        counter = et.Counter(guarantee=guarantee, horizon=2**20, key=et.Key.generate(), name="benchmark")

        def steps(counter: Any = counter) -> None:
            for _ in range(STEPS):
                counter.step(3).stddev  # noqa: B018

        yield f"Counter.step and its stddev, {counter.mechanism}", nanoseconds(steps, STEPS, 100)


def _in_turn(sources: list[Path], rounds: int) -> list[dict[str, float]]:
    """The best of each version, which take turns."""
    found: list[dict[str, float]] = [{} for _ in sources]
    here = Path(__file__).parent.parent
    for _ in range(rounds):
        for best, source in zip(found, sources, strict=True):
            paths = os.pathsep.join([str(source / "src"), str(here)])
            command = [sys.executable, "-m", "benchmarks.door_collections", "--one"]
            done = subprocess.run(
                command, env=os.environ | {"PYTHONPATH": paths}, stdout=subprocess.PIPE, cwd=here, check=True
            )
            for what, took in json.loads(done.stdout).items():
                best[what] = min(took, best.get(what, took))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--earlier", type=Path, help="the source tree of an earlier version")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", action="store_true", help="measure the version that is imported, and print JSON")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(dict(measured())))
        return
    sources = ([given.earlier.resolve()] if given.earlier else []) + [Path(__file__).parent.parent]
    found = _in_turn(sources, given.rounds)
    rows = [[what, *(f"{best[what]:,.0f}" for best in found)] for what in found[-1]]
    names = ["ns", *(["earlier"] if given.earlier else []), "now"]
    if given.earlier:
        names.append("ratio")
        rows = [[*row, f"{found[0][row[0]] / found[1][row[0]]:.1f}"] for row in rows]
    note = "CPU time of one core, of an event or a step; both versions in one run, in turn."
    print(Table("Collections at the door, and single steps", note, names, rows).markdown())


if __name__ == "__main__":
    main()
