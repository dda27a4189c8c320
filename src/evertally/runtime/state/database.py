"""The SQLite file under a stream: how it is opened, what tables it has, how old files are brought up to date.

WAL with synchronous=FULL: a transaction that has returned survives a power cut. secure_delete overwrites what is
deleted, because deleted rows were events and exact sums. Errors of SQLite are translated here and nowhere else; its own
texts are not passed on.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from itertools import islice
from pathlib import Path

from evertally.errors import StateError

# Version n is reached by the first n steps. A released step is never edited; a change is a new step at the end.
STEPS = (
    """
    CREATE TABLE head (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        state TEXT NOT NULL,                -- JSON: see store.Head
        mac BLOB NOT NULL
    );
    CREATE TABLE ledger (query TEXT PRIMARY KEY, share TEXT NOT NULL, charge TEXT NOT NULL);
    CREATE TABLE snapshot (query TEXT PRIMARY KEY, tick INTEGER NOT NULL, sealed BLOB NOT NULL);
    CREATE TABLE journal (number INTEGER PRIMARY KEY, tick INTEGER NOT NULL, sealed BLOB NOT NULL);
    CREATE INDEX journal_by_tick ON journal (tick, number);
    CREATE TABLE batch (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id BLOB NOT NULL UNIQUE,
        digest BLOB NOT NULL,
        tick INTEGER NOT NULL
    );
    CREATE TABLE input (name TEXT PRIMARY KEY);
    CREATE TABLE release (tick INTEGER, query TEXT, payload BLOB NOT NULL, PRIMARY KEY (tick, query));
    CREATE TABLE sink (name TEXT PRIMARY KEY, tick INTEGER NOT NULL, offset INTEGER NOT NULL, mac BLOB NOT NULL);
    """,
    """
    CREATE TABLE mark (  -- positions in sources that can be read again
        name TEXT PRIMARY KEY, value INTEGER NOT NULL, mac BLOB NOT NULL
    );
    """,
    """
    -- a keyed fingerprint of where a query draws its noise
    ALTER TABLE ledger ADD COLUMN noise TEXT NOT NULL DEFAULT '';
    """,
    """
    -- the head of a stream may say that its payloads keep rows: what cannot make them must not go on with it
    """,
    """
    -- what proves a release (log.Proof); rows of earlier versions get theirs when the stream is taken up
    ALTER TABLE release ADD COLUMN mac BLOB;
    CREATE TABLE link (tick INTEGER PRIMARY KEY, chain BLOB NOT NULL, mac BLOB NOT NULL);
    """,
)
LOOKED_AT = 3  # the first version whose tables can be read without bringing them up to date
PROVED = 5  # the first version whose rows have proofs

WITHOUT_LOG = "it is damaged, or came without its -wal: bring both back as they were"
_DAMAGED = "it is damaged; the stream stops. Bring back the last good copy and resume with --replay"
_REMEDIES = {
    "SQLITE_FULL": "the disk is full; make room, then start again: nothing that was acknowledged is lost",
    "SQLITE_READONLY": "it cannot be written; give this user the right to write it and its folder",
    "SQLITE_CANTOPEN": "it cannot be opened; check the folder and its permissions",
    "SQLITE_BUSY": "another program holds it open; close that program",
    "SQLITE_IOERR": "the disk reports an error; check the disk, then start again",
    "SQLITE_NOTADB": "it is not a state file of this version, or it is damaged; bring the right one back",
}


_Objects = frozenset[tuple[str, str, str, str | None]]  # type, name, table, the words that made it
_DROPPED = ("trigger", "view", "index", "table")  # what depends on others first


class Unreadable(StateError):
    """What is in the file is not what was written there."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Errors of SQLite as StateErrors that say what to do."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        name = getattr(error, "sqlite_errorname", None) or ""
        # What is left is not a matter of the disk: tables that are gone, keys that are there twice, broken texts.
        remedy = next((text for start, text in _REMEDIES.items() if name.startswith(start)), _DAMAGED)
        kind = Unreadable if remedy in (_DAMAGED, _REMEDIES["SQLITE_NOTADB"]) else StateError
        raise kind(f"the state file {path}: {remedy}") from None


def create(path: Path) -> None:
    """An empty file that only this user may read; what is there already stays."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StateError(f"cannot write the state file {path}: {error.strerror}") from None


def connect(path: Path) -> sqlite3.Connection:
    """The one connection that writes. Checks the file; `up_to_date` brings its tables up to date."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError as error:
        raise StateError(f"cannot read the state file {path}: {error.strerror}") from None
    if mode & 0o077:
        raise StateError(f"{path} is open to others (mode {mode:04o}); it holds exact sums: chmod 600 it")
    if not os.access(path, os.W_OK):
        # SQLite would make the files beside it with the same mode, and they would stay so after it was put right.
        raise StateError(f"the state file {path}: {_REMEDIES['SQLITE_READONLY']}")
    with translated(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            # Not quick_check: a batch that its index has lost would be counted again when it is sent again.
            if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise StateError(f"the state file {path}: {_DAMAGED}")
        except BaseException:
            connection.close()
            raise
    return connection


def connect_to_read(path: Path, *, alone: bool = False) -> sqlite3.Connection:
    """A connection that cannot write. `alone`: the file may lie still; then none is made beside it either.

    A log beside it means that it is open, or was not closed, and has to be read with it. Who begins to write meanwhile
    writes there; should the file itself change under the reader, seals and macs do not fit.
    """
    still = alone and not Path(f"{path}-wal").exists()
    with translated(path):
        address = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if still else ''}"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk rolls back by itself
            connection.execute("ROLLBACK")
        raise


@contextmanager
def up_to_date(connection: sqlite3.Connection, path: Path, check: Callable[[int], None]) -> Iterator[int]:
    """One transaction: `check` of the version that is there, the steps that the file lacks, and what is done inside,
    which hears the version. If that refuses the stream, the file stays as it was, and what wrote it can go on."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(STEPS):
        raise StateError(f"the state file {path} was written by a later version (format {version}); upgrade evertally")
    with transaction(connection):
        check(version)
        for number, step in enumerate(STEPS[version:], version + 1):
            _take(connection, step)
            connection.execute(f"PRAGMA user_version = {number}")
        yield version


def _take(connection: sqlite3.Connection, step: str) -> None:
    for statement in filter(str.strip, step.split(";\n")):
        connection.execute(statement)


def check_schema(connection: sqlite3.Connection, path: Path, version: int = len(STEPS)) -> None:
    """Refuses a file that has anything but what the steps make. A trigger would change rows as they are written, a view
    would show others than those that are there: neither is a row, so no proof of a row knows of it."""
    missing, more = schema_differences(connection, version)
    if missing or more:
        found = islice(sorted(missing | more, key=ascii), 3)
        named = ", ".join(dict.fromkeys(ascii(f"{kind} {name}") for kind, name, *_ in found))
        raise Unreadable(
            f"the state file {path} is damaged (schema): it does not have exactly the tables that evertally makes "
            f"({named}). The stream stops. Bring back the last good copy, or let `evertally rescue` take out what "
            "somebody has put there"
        )


def schema_differences(connection: sqlite3.Connection, version: int) -> tuple[_Objects, _Objects]:
    """What the steps make and is not there, and what is there and they do not make."""
    ours, found = _objects_of(version), _objects(connection)
    return ours - found, found - ours


def drop(connection: sqlite3.Connection, objects: _Objects) -> None:
    """Takes out what nobody of us has made; indices that a table brings along go with it."""
    for kind, name, _, sql in sorted(objects, key=lambda one: (_DROPPED.index(one[0]), ascii(one))):
        if sql is not None:
            quoted = name.replace('"', '""')
            connection.execute(f'DROP {kind} IF EXISTS "{quoted}"')


@cache
def _objects_of(version: int) -> _Objects:
    with closing(sqlite3.connect(":memory:")) as connection:
        for step in STEPS[:version]:
            _take(connection, step)
        return _objects(connection)


def _objects(connection: sqlite3.Connection) -> _Objects:
    """All that is not a row: tables, indices, views, triggers, each with the words that made it."""
    return frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))
