"""The tables of the store: rows in, rows out, each with what proves it, and all of it in the inventory."""

from __future__ import annotations

import hmac
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evertally.errors import StateError
from evertally.noise import Key
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state import database
from evertally.runtime.state.inventory import ROWS, Inventory
from evertally.runtime.state.log import KeptRow, LinkRow
from evertally.secret import Secret


class Tables(Secret):
    """What `Store` is made of. Every change belongs into one of its transactions."""

    _connection: sqlite3.Connection

    def __init__(self, key: Key, spec: StreamSpec) -> None:
        self._key, self._spec = key, spec
        self._path = spec.state_file
        self._inventory = Inventory(key)

    def _select(self, statement: str, *values: object) -> list[Any]:
        with database.translated(self._path):
            return self._connection.execute(statement, values).fetchall()

    def _put_releases(self, rows: Sequence[KeptRow], links: Sequence[LinkRow]) -> None:
        self._connection.executemany("INSERT INTO release VALUES (?, ?, ?, ?)", rows)
        self._connection.executemany("INSERT INTO link VALUES (?, ?, ?)", links)
        self._inventory.add("release", ((tick, query, mac) for tick, query, _, mac in rows))
        self._inventory.add("link", ((tick, mac) for tick, _, mac in links))

    def _put_snapshots(self, snapshots: Mapping[str, bytes], tick: int) -> None:
        self._empty("snapshot")
        rows = [(query, tick, self._key.seal(f"snapshot {query} {tick}", blob)) for query, blob in snapshots.items()]
        self._connection.executemany("INSERT INTO snapshot VALUES (?, ?, ?)", rows)
        self._inventory.add("snapshot", _with_tags(rows))

    def _put_journal(self, number: int, tick: int, payload: bytes) -> None:
        part = (number, tick, self._key.seal(f"journal {number} {tick}", payload))
        self._connection.execute("INSERT INTO journal VALUES (?, ?, ?)", part)
        self._inventory.add("journal", _with_tags([part]))

    def _put(self, table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Rows with macs in the place of those of the same name."""
        for row in rows:
            earlier = self._connection.execute(f"SELECT {columns} FROM {table} WHERE name = ?", row[:1]).fetchone()  # noqa: S608
            if earlier != row:
                marks = ",".join("?" * (len(row) + 1))
                self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", self._signed(table, *row))  # noqa: S608
                self._inventory.remove(table, [] if earlier is None else [earlier])
                self._inventory.add(table, [row])

    def _consume(self, name: str) -> None:
        if not self._select("SELECT 1 FROM input WHERE name = ?", name):
            self._connection.execute("INSERT INTO input VALUES (?)", (name,))
            self._inventory.add("input", [(name,)])

    def _drop(self, table: str, condition: str, values: Sequence[int]) -> None:
        rows = self._connection.execute(f"{ROWS[table]} WHERE {condition}", values).fetchall()
        if rows:
            self._inventory.remove(table, rows)
            self._connection.execute(f"DELETE FROM {table} WHERE {condition}", values)  # noqa: S608 (only marks)

    def _empty(self, table: str) -> None:
        self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 (a name of ours)
        self._inventory.clear(table)

    def _last_number(self, table: str) -> int:
        (number,) = self._connection.execute(f"SELECT coalesce(max(number), 0) FROM {table}").fetchone()  # noqa: S608
        return int(number)

    def _signed(self, table: str, *row: str | int) -> tuple[Any, ...]:
        """A row with its mac: a position that is off by a bit would make the stream leave out, or count twice."""
        return (*row, self._key.mac(f"store {table}", json.dumps(row).encode()))

    def _genuine(self, table: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        try:
            genuine = all(hmac.compare_digest(self._signed(table, *row)[-1], mac) for *row, mac in rows)
        except (TypeError, ValueError):  # a text where bytes were
            genuine = False
        if not genuine:
            raise self._damaged(table)
        return [tuple(row) for *row, _ in rows]

    def _unsealed(self, purpose: str, sealed: bytes) -> bytes:
        try:
            return self._key.unseal(purpose, sealed)
        except (StateError, TypeError):
            raise self._damaged(purpose.split(" ")[0]) from None

    def _damaged(self, table: str) -> StateError:
        return StateError(
            f"{self._path} is damaged ({table}); the stream stops. Bring back the last good copy and resume with "
            "--replay, or see `evertally rescue`"
        )


def _with_tags(rows: Iterable[tuple[Any, Any, bytes]]) -> Iterator[tuple[Any, Any, bytes]]:
    """Sealed rows as the inventory knows them."""
    return ((place, tick, sealed[:16]) for place, tick, sealed in rows)
