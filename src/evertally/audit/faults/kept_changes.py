"""What somebody may do to the files of a stream that lies still: rows and tables of its state, and whole files.

Nothing is known of the tables but what SQLite says of them. Each change is small, and most keep the shape of what is
there: a row less, a row twice, a cell of another row, of another tick, of another stream under another key.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from evertally.audit.faults.service_copy import KEY, OUTPUT, STATE

_BOUND = f"{KEY}.bound"
FILES = (STATE, f"{STATE}-wal", f"{STATE}-shm", KEY, _BOUND, OUTPUT)
_READ = ("release", "link")  # what those read who ask a stream that runs
_SCHEMAS = {
    "a trigger": "CREATE TRIGGER more AFTER INSERT ON {table} BEGIN SELECT 1; END",
    "a view": "CREATE VIEW more AS SELECT * FROM {table}",
    "an index": "CREATE INDEX more ON {table} ({column})",
    "a table": "CREATE TABLE more (one INTEGER)",
}
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """One change of the files in a folder. `apply` says whether it could be made. `undo`, of changes that are also made
    while a stream has its file open. `noticed`: the next start refuses it, and who verifies the state is told."""

    told: str
    apply: Callable[[Path], bool]
    undo: Callable[[Path], bool] | None = None
    noticed: bool = True

    def __str__(self) -> str:
        return self.told


def changes_of(late: Path, early: Path, foreign: Path, calm: Path) -> Iterator[Change]:
    """Changes of `late`, a stream that lies still: rows, tables, and files of its `early` state, of a stream of another
    key, and of what becomes of it (`calm`)."""
    with closing(sqlite3.connect(late / STATE)) as connection:
        tables = {name: _rows(connection, name) for (name,) in connection.execute(_TABLES)}
        columns = {name: _columns(connection, name) for name in tables}
    for name, rows in tables.items():
        undo = _written(name, rows) if name in _READ else None
        for told, new in _edited(rows, columns[name]):
            if sorted(map(repr, new)) == sorted(map(repr, rows)):
                continue  # two rows of one tick, in another order
            yield Change(f"table {name}: {told}", _written(name, new), undo)
        for other, whose in ((early, "an earlier state"), (foreign, "another key")):
            with closing(sqlite3.connect(other / STATE)) as connection:
                theirs = _rows(connection, name)
            if theirs != rows:
                yield Change(f"table {name} of {whose}", _written(name, theirs))
            if rows and theirs and theirs[0][:1] == rows[0][:1] and theirs[0] != rows[0]:
                yield Change(f"table {name}: a row of {whose}", _written(name, [theirs[0], *rows[1:]]), undo)
    first = next(iter(tables))
    for told, statement in _SCHEMAS.items():
        yield Change(f"{told} more in the state", _executed(statement.format(table=first, column=columns[first][0])))
    for name in tables:
        yield Change(f"no table {name}", _executed(f"DROP TABLE {name}"))
    yield from _of_files(early, foreign, calm)


_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"


def _rows(connection: sqlite3.Connection, table: str) -> list[Row]:
    return connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()  # noqa: S608 (a name in the file)


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]


def _edited(rows: list[Row], columns: list[str]) -> Iterator[tuple[str, list[Row]]]:
    """A row less, a row more, another cell; the last row is the one that is read first after a restart."""
    if not rows:
        return
    yield "without its last row", rows[:-1]
    if len(rows) > 1:
        yield "without its first row", rows[1:]
    for number, column in enumerate(columns):
        last = rows[-1]
        yield f"another {column}", [*rows[:-1], (*last[:number], _other(last[number]), *last[number + 1 :])]
        if len(rows) > 1 and rows[0][number] != last[number]:
            one, two = list(rows[0]), list(last)
            one[number], two[number] = two[number], one[number]
            yield f"{column} of two rows swapped", [tuple(one), *rows[1:-1], tuple(two)]
    if len(rows) > 1 and len(columns) > 1:
        yield (
            "the contents of two rows swapped",
            [(rows[0][0], *rows[-1][1:]), *rows[1:-1], (rows[-1][0], *rows[0][1:])],
        )
    last = rows[-1]
    for number in [i for i, cell in enumerate(last) if isinstance(cell, int)][:1]:
        yield "a row twice", [*rows, (*last[:number], last[number] + 1, *last[number + 1 :])]


def _other(cell: Any) -> Any:
    """Another value of the same form."""
    if isinstance(cell, bytes):
        return bytes([cell[0] ^ 1]) + cell[1:] if cell else b"\0"
    if isinstance(cell, int):
        return cell + 1
    if isinstance(cell, str):
        return _other_text(cell)
    return 0


def _other_text(text: str) -> str:
    """JSON stays JSON, with one number more in it."""
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if isinstance(said, dict):
        number = next((name for name, value in said.items() if type(value) is int), None)
        if number is not None:
            return json.dumps({**said, number: said[number] + 1}, sort_keys=True)
    return text[:-1] + chr(ord(text[-1]) ^ 1) if text else "0"


def _written(table: str, rows: list[Row]) -> Callable[[Path], bool]:
    def apply(folder: Path) -> bool:
        with closing(sqlite3.connect(folder / STATE, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 (a name in the file)
                marks = ",".join("?" * len(rows[0])) if rows else ""
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows) if rows else None  # noqa: S608
            except sqlite3.Error:  # the tables themselves do not take it
                connection.execute("ROLLBACK")
                return False
            connection.execute("COMMIT")
        return True

    return apply


def _executed(statement: str) -> Callable[[Path], bool]:
    def apply(folder: Path) -> bool:
        with closing(sqlite3.connect(folder / STATE, isolation_level=None)) as connection:
            connection.execute(statement)
        return True

    return apply


def _of_files(early: Path, foreign: Path, calm: Path) -> Iterator[Change]:
    """Files of another moment, of another stream, or none."""
    sources = {"an earlier": early, "a later": calm, "another stream's": foreign}
    for told, source in sources.items():
        yield Change(f"{told} state", _taken(source, STATE), noticed=False)
        yield Change(f"{told} sidecar", _taken(source, _BOUND), noticed=False)
        if source is not foreign:
            yield Change(f"{told} state with {told} output", _taken(source, STATE, OUTPUT), noticed=False)
    yield Change("an earlier state and sidecar, beside the output of now", _put_back(early), noticed=False)
    yield Change("another stream's key", _taken(foreign, KEY), noticed=False)
    yield Change("another stream's state and sidecar", _taken(foreign, STATE, _BOUND), noticed=False)
    yield Change("no sidecar", _without(_BOUND), noticed=False)
    yield Change("no state", _without(STATE), noticed=False)
    yield Change("no state and no sidecar", _without(STATE, _BOUND), noticed=False)
    yield Change("a sidecar with another tick", _sidecar, noticed=False)
    yield from _in_pairs(early, foreign)


def _in_pairs(early: Path, foreign: Path) -> Iterator[Change]:
    """A state that is lost, or not that of now, beside a sidecar that is damaged: what is left says only that the
    stream has run, and that is enough to refuse it. Without its output as well, which would be in the way."""
    states = {
        "no state": _without(STATE),
        "an empty state": _cut(STATE, 0),
        "half a state": _cut(STATE, 1),
        "an earlier state": _taken(early, STATE),
        "another stream's state": _taken(foreign, STATE),
    }
    sidecars = {
        "an empty sidecar": _cut(_BOUND, 0),
        "half a sidecar": _cut(_BOUND, 1),
        "a sidecar with another tick": _sidecar,
        "a sidecar without a proof": _unproved,
        "a sidecar that is a list": _listed,
        "another stream's sidecar": _taken(foreign, _BOUND),
    }
    outputs = {"": _as_it_is, ", and no output": _without(OUTPUT)}
    for (state, lose), (sidecar, damage), (output, end) in product(states.items(), sidecars.items(), outputs.items()):
        yield Change(f"{state} beside {sidecar}{output}", _together(lose, damage, end), noticed=False)


def _put_back(early: Path) -> Callable[[Path], bool]:
    """State and sidecar of then. What proves it is an output that knows more: one that had no line since proves
    nothing, as is documented, and is left alone."""
    taken = _taken(early, STATE, _BOUND)

    def apply(folder: Path) -> bool:
        outputs = [path.read_bytes() if path.exists() else b"" for path in (folder / OUTPUT, early / OUTPUT)]
        return outputs[0] != outputs[1] and taken(folder)

    return apply


def _taken(source: Path, *names: str) -> Callable[[Path], bool]:
    def apply(folder: Path) -> bool:
        for name in names:
            (folder / name).unlink(missing_ok=True)
            if (source / name).exists():
                shutil.copy2(source / name, folder / name)
        return True

    return apply


def _without(*names: str) -> Callable[[Path], bool]:
    def apply(folder: Path) -> bool:
        for name in names:
            (folder / name).unlink(missing_ok=True)
        return True

    return apply


def _together(*changes: Callable[[Path], bool]) -> Callable[[Path], bool]:
    return lambda folder: all(change(folder) for change in changes)


def _as_it_is(folder: Path) -> bool:
    return True


def _cut(name: str, halves: int) -> Callable[[Path], bool]:
    """One half of a file, or nothing of it; of the state without the log that SQLite may have beside it."""

    def apply(folder: Path) -> bool:
        for path in folder.glob(f"{name}-*"):
            path.unlink()
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: halves * len(content) // 2])
        return True

    return apply


def _unproved(folder: Path) -> bool:
    path = folder / _BOUND
    said = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({name: value for name, value in said.items() if name != "mac"}), "utf-8")
    return True


def _listed(folder: Path) -> bool:
    path = folder / _BOUND
    path.write_text(f"[{path.read_text('utf-8')}]", "utf-8")
    return True


def _sidecar(folder: Path) -> bool:
    path = folder / _BOUND
    path.write_text(_other_text(path.read_text("utf-8")), "utf-8")
    return True
