"""What is in each table of the store, in a few bytes that only the key can make: no row is changed, added or taken away
unnoticed.

Of a table the head keeps a keyed hash of a sum: the sum, modulo 2^256, of a keyed hash of each of its rows. A row that
comes is added, one that goes is subtracted, so a transaction costs what it changes and nothing for what is there; a
start goes through all rows once and must come to the same hash. The hashes of rows and their sum are written nowhere:
whoever has the file alone has nothing to solve for rows that cancel out.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from evertally.noise import Key
from evertally.secret import Secret

# What stands for a row. Of what is sealed the first 16 bytes, which authenticate all of it; of a release its mac.
ROWS = {
    "ledger": "SELECT query, share, charge, noise FROM ledger",
    "snapshot": "SELECT query, tick, substr(sealed, 1, 16) FROM snapshot",
    "journal": "SELECT number, tick, substr(sealed, 1, 16) FROM journal",
    "batch": "SELECT number, id, digest, tick FROM batch",
    "input": "SELECT name FROM input",
    "release": "SELECT tick, query, mac FROM release",
    "link": "SELECT tick, mac FROM link",
    "sink": "SELECT name, tick, offset FROM sink",
    "mark": "SELECT name, value FROM mark",
}
_MODULUS = 1 << 256

Row = tuple[Any, ...]


class Inventory(Secret):
    """The sums of all tables.

    >>> one, two = (Inventory(Key(bytes(32))) for _ in range(2))
    >>> one.add("input", [("a",), ("b",)])
    >>> two.add("input", [("b",), ("c",), ("a",)])
    >>> one.said() == two.said()
    False
    >>> two.remove("input", [("c",)])
    >>> one.said() == two.said()
    True
    """

    def __init__(self, key: Key) -> None:
        self._key = key
        self._keys = {table: key.mac("store inventory", table.encode()) for table in ROWS}
        self._sums = dict.fromkeys(ROWS, 0)
        self._said: dict[str, str] = {}

    def add(self, table: str, rows: Iterable[Row]) -> None:
        self._change(table, rows, 1)

    def remove(self, table: str, rows: Iterable[Row]) -> None:
        self._change(table, rows, -1)

    def clear(self, table: str) -> None:
        """All its rows go."""
        self._sums[table] = 0
        self._said.pop(table, None)

    def take(self, connection: sqlite3.Connection, tables: Iterable[str] = tuple(ROWS)) -> None:
        """Goes through tables as they are."""
        for table in tables:
            self.clear(table)
            self.add(table, connection.execute(ROWS[table]))

    def said(self) -> dict[str, str]:
        """What the head keeps, by table."""
        for table in self._sums.keys() - self._said.keys():
            number = self._sums[table].to_bytes(32, "big")
            self._said[table] = self._key.mac(f"store inventory of {table}", number)[:16].hex()
        return dict(sorted(self._said.items()))

    def differs(self, said: Mapping[str, str]) -> list[str]:
        """The tables that are not as was said."""
        now = self.said()
        return [table for table in ROWS if said.get(table) != now[table]]

    def kept(self) -> dict[str, int]:
        """To go back to, if a transaction fails."""
        return dict(self._sums)

    def back(self, kept: Mapping[str, int]) -> None:
        self._sums, self._said = dict(kept), {}

    def _change(self, table: str, rows: Iterable[Row], sign: int) -> None:
        key, total = self._keys[table], 0
        for row in rows:
            # `ascii` tells apart whatever differs in a row of integers, texts and bytes, the same in every version.
            digest = hashlib.blake2b(ascii(row).encode(), key=key, digest_size=32).digest()
            total += int.from_bytes(digest, "big")
        self._sums[table] = (self._sums[table] + sign * total) % _MODULUS
        self._said.pop(table, None)
