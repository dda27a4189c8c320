"""The door, old and new in one run: JSON lines by the careful reader and by the scanner, caps by name and by event.

    python -m benchmarks.door [--rows N] [--users N] [--out FOLDER]

CPU time of one core in ns a row, best of several; the ratio is what to trust on a machine that others use. The old ways
are in the library still: the careful reader reads every line that the scanner does not understand, and ticks that are
small beside the table of users look each name up once.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.report import Table, print_tables
from benchmarks.user_tables import resident

from evertally.encode import AmountDoor, CategoryDoor, UserCap, caps
from evertally.encode.owners import owners
from evertally.runtime.input.json_lines import read
from evertally.runtime.input.tick_events import prepared
from evertally.runtime.input.times import instants

NAMES = ["time", "user", "ward", "amount"]
KNOWN = frozenset(NAMES)
SCANNED, CAREFULLY = 0, sys.maxsize
REPEATS = 5
ODD = '{"time":"2013-01-31","user":"cafe\u0301","ward":"n\\u006frth","amount":NaN}'


@dataclass(frozen=True)
class Row:
    """One measurement: ns a row, the old way and the new one."""

    what: str
    old: float
    new: float

    def cells(self) -> list[str]:
        return [self.what, f"{self.old:,.0f}", f"{self.new:,.0f}", f"{self.old / self.new:.1f}"]


def best(call: Callable[[], Any], rows: int) -> float:
    """CPU time in ns a row."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found) / rows * 1e9


def lines(rows: int, odd_one_in: int = 0) -> bytes:
    """Events of about 107 bytes: a time, one of a million users, one of three wards, an amount, and a note."""
    random = np.random.default_rng(1)
    days, hours = random.integers(1, 29, rows).tolist(), random.integers(0, 24, rows).tolist()
    users, wards = random.integers(0, 10**6, rows).tolist(), random.integers(0, 3, rows).tolist()
    amounts = np.round(random.random(rows) * 100, 2).tolist()
    records = [
        {
            "time": f"2013-01-{day:02d}T{hour:02d}:30:00Z",
            "user": f"user-{user:07d}",
            "ward": ("north", "south", "east")[ward],
            "amount": amount,
            "note": "something else",
        }
        for day, hour, user, ward, amount in zip(days, hours, users, wards, amounts, strict=True)
    ]
    written = [json.dumps(record, separators=(",", ":")) for record in records]
    if odd_one_in:
        written[::odd_one_in] = [ODD] * len(written[::odd_one_in])
    return "".join(line + "\n" for line in written).encode()


class Door:
    """All steps from bytes to what mechanisms count, one after the other."""

    def __init__(self, body: bytes, few: int) -> None:
        self.body, self.few, self.tick = body, few, 0
        self.columns: dict[str, Any] = {}
        self.cap, self.amounts = UserCap(5), AmountDoor(50)
        self.wards = CategoryDoor(["north", "south"], "rest", order=lambda message: message)
        self.clock: Any = SimpleNamespace(integer=False, column="time")

    def steps(self) -> dict[str, Callable[[], Any]]:
        return {
            "lines to cells": self._read,
            "times": lambda: instants(self.columns["time"], self.clock),
            "amounts": lambda: self.amounts.totals(prepared(self.columns["amount"], "amounts"), 1),
            "users and their cap": self._kept,
            "labels": lambda: self.wards.totals(prepared(self.columns["ward"], "labels"), 1),
        }

    def all(self) -> None:
        for step in self.steps().values():
            step()

    def _read(self) -> None:
        self.columns = read(self.body, NAMES, KNOWN, self.few).columns

    def _kept(self) -> None:
        self.tick += 1
        self.cap.keep(prepared(self.columns["user"], "users"), self.tick)


def json_rows(rows: int) -> Iterator[Row]:
    old, new = (Door(lines(rows), few) for few in (CAREFULLY, SCANNED))
    for door in (old, new):
        door.all()  # compiles, and enters the users
    for what, step in old.steps().items():
        yield Row(what, best(step, rows), best(new.steps()[what], rows))
    yield Row("JSON lines, end to end", best(old.all, rows), best(new.all, rows))
    for what, one_in in (("one doubtful line in a hundred", 100), ("doubtful lines alone", 1)):
        old, new = (Door(lines(rows, one_in), few) for few in (CAREFULLY, SCANNED))
        yield Row(f"end to end, {what}", best(old.all, rows), best(new.all, rows))


def cap_rows(rows: int, users: int) -> Iterator[Row]:
    """Ticks of users who are known, everything included: names, decision, count."""
    random = np.random.default_rng(3)

    def text(ids: Any) -> Any:
        return pa.array(ids).cast(pa.string())

    before = resident()
    cap, tick = UserCap(2**20), 0
    for first in range(0, users, rows):
        tick += 1
        cap.keep(text(np.arange(first, min(users, first + rows))), tick)
    cap.to_bytes()  # the last tick goes into the table, too
    size = (resident() - before) / users
    found: dict[int, list[float]] = {0: [], 2**30: []}
    for large in [*found] * REPEATS:  # in turn, on the same table
        tick += 1
        column = text(random.permutation(users)[:rows])
        caps._LARGE = large  # type: ignore[misc]
        start = time.process_time()
        cap.keep(column, tick)
        found[large].append((time.process_time() - start) / len(column) * 1e9)
    yield Row(f"cap, {users:,} known users, {size:.0f} bytes each", min(found[0]), min(found[2**30]))
    plain, odd = text(np.arange(rows)), pa.array([*map(str, range(rows - 1)), "cafe\u0301"])
    as_objects = odd.to_pylist()
    as_objects[0] = b"0"  # sends the whole column to be read name by name, as an odd name once did
    yield Row(
        "names of a tick, one of them odd", best(lambda: owners(as_objects), rows), best(lambda: owners(odd), rows)
    )
    yield Row("names of a tick, none odd", best(lambda: owners(as_objects), rows), best(lambda: owners(plain), rows))


def table(rows: list[Row]) -> Table:
    return Table("The door", "CPU time, ns a row", ("what", "old", "new", "ratio"), [row.cells() for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10**5, help="of a tick of JSON lines")
    parser.add_argument("--users", type=lambda text: int(float(text)), default=10**6, help="whom the cap knows")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="directory of the results")
    options = parser.parse_args()
    rows = [*json_rows(options.rows), *cap_rows(min(10**6, options.users), options.users)]
    print_tables([table(rows)])
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / ".gitignore").write_text("*\n")
    (options.out / "door.md").write_text(table(rows).markdown())


if __name__ == "__main__":
    main()
