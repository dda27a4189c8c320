"""What a user costs: time and memory of the table of users, of the columns that name them, and of both caps.

`python -m benchmarks.user_tables [USERS]`: ticks of a million rows until there are so many users (default 10^6; 10^7 by
hand), then ticks of users who are known. CPU time in ns a row, and bytes a user as the process grew.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evertally.encode import SeparatedCap, UserCap
from evertally.encode.owners import owners
from evertally.encode.user_table import UserTable

ROWS = 1_000_000


@dataclass(frozen=True)
class Row:
    """One measurement."""

    what: str
    value: float
    unit: str


def nanoseconds(call: Callable[[], Any], rows: int) -> float:
    start = time.process_time()
    call()
    return (time.process_time() - start) / rows * 1e9


def resident() -> int:
    """Bytes of memory that this process has now; Linux only."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def text(ids: Any) -> Any:
    return pa.array(ids).cast(pa.string())


def columns(rows: int) -> Iterator[Row]:
    """Columns of as many users as rows, in every form, to names and codes."""
    ids = np.random.default_rng(1).permutation(rows)
    named = text(ids)
    forms = {
        "int64": ids,
        "Arrow int64": pa.array(ids),
        "Arrow text": named,
        "Arrow dictionary": named.dictionary_encode(),
        "Arrow text, ten rows a user": text(ids // 10),
        "list of str": named.to_pylist(),
    }
    for name, column in forms.items():
        yield Row(f"owners, {name}", nanoseconds(lambda: owners(column), rows), "ns a row")  # noqa: B023


def table(users: int, rows: int, fields: int) -> Iterator[Row]:
    """A table that grows to so many users, then ticks of known ones."""
    random = np.random.default_rng(2)
    ticks = [text(random.permutation(rows) + first) for first in range(0, users, rows)]
    made, before, total = UserTable(fields), resident(), 0.0

    def tick(names: Any) -> None:
        made.begin()
        numbers = made.enter(names)
        for field in range(fields):
            made.write(field, numbers, made.read(field, numbers) + 1)

    for column in ticks:
        _, names = owners(column)
        total += nanoseconds(lambda: tick(names), 1)  # noqa: B023
    made.begin()
    yield Row(f"table of {fields} fields, newcomers", total / users, "ns a row")
    yield Row(f"table of {fields} fields, {users:,} users", (resident() - before) / users, "bytes a user")
    _, names = owners(text(random.permutation(users)[:rows]))
    yield Row(f"table of {fields} fields, known users", nanoseconds(lambda: tick(names), len(names)), "ns a row")
    saved: list[bytes] = []
    yield Row("save", nanoseconds(lambda: saved.append(made.save()), users), "ns a user")
    yield Row("saved", len(saved[0]) / users, "bytes a user")
    yield Row("load", nanoseconds(lambda: UserTable(fields).load(saved[0]), users), "ns a user")
    yield Row("undo of a tick", nanoseconds(made.undo, rows), "ns a row")


def caps(rows: int) -> Iterator[Row]:
    """Both caps on Arrow text, everything included: names, decision, count."""
    random = np.random.default_rng(3)
    for cap in (UserCap(5), SeparatedCap(5, 2)):
        times = []
        for tick in range(1, 5):
            column = text(random.permutation(rows))
            times.append(nanoseconds(lambda: cap.keep(column, tick), rows))  # noqa: B023
        yield Row(f"{type(cap).__name__}, newcomers", times[0], "ns a row")
        yield Row(f"{type(cap).__name__}, known users", min(times[1:]), "ns a row")


def rows_of(users: int, rows: int = ROWS) -> Iterator[Row]:
    if rows > 1000:
        list(rows_of(1000, 1000))  # compiles
    yield from columns(rows)
    yield from table(users, min(rows, users), fields=2)
    yield from caps(rows)


def main() -> None:
    for row in rows_of(int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS):
        print(f"{row.what:45} {row.value:9.1f} {row.unit}", flush=True)


if __name__ == "__main__":
    main()
