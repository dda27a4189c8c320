"""Secret tables that change in place, and can be taken back to where a call began.

Before an entry is touched for the first time in a call it goes into a log, and entering the log again is the same as
entering it once. So a call that is interrupted at any line leaves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from typing import Any

from evertally.errors import StateError
from evertally.secret import Secret

_FORMAT = "evertally-tables-1"


class Table(Secret):
    """Entries by key: whole numbers, texts, and tuples of them, on both sides. An entry is never None.

    >>> table = Table()
    >>> table.put("a", 1)
    >>> table.begin()
    >>> table.put("a", 2); table.put(("b", 3), (4, 5))
    >>> table.undo()
    >>> table.get("a"), table.get(("b", 3)), len(table)
    (1, None, 1)
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, Any] = {}
        self._log: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def get(self, key: Hashable, otherwise: Any = None) -> Any:
        return self._entries.get(key, otherwise)

    def put(self, key: Hashable, entry: Any) -> None:
        """None takes the entry away."""
        if key not in self._log:
            self._log[key] = self._entries.get(key)
        self._write(key, entry)

    def add(self, key: Hashable, amount: int) -> int:
        """Adds to a number that is 0 where there is none; a 0 is not kept."""
        total: int = self._entries.get(key, 0) + amount
        self.put(key, total or None)
        return total

    def begin(self) -> None:
        self._log = {}

    def undo(self) -> None:
        for key, entry in self._log.items():
            self._write(key, entry)

    def _write(self, key: Hashable, entry: Any) -> None:
        if entry is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = entry

    def written(self) -> list[Any]:
        """Sorted, so that the same state is the same bytes."""
        return sorted(([key, entry] for key, entry in self._entries.items()), key=lambda pair: as_bytes(pair[0]))

    def read(self, written: list[Any]) -> None:
        self._entries, self._log = {_tuples(key): _tuples(entry) for key, entry in written}, {}


def as_bytes(value: Any) -> bytes:
    """Numbers, texts and tuples of them in writing. Not as ASCII: there the two halves of a surrogate pair, which a
    hostile name may consist of, are written as the one character is, and would be read as it.

    >>> as_bytes("\\ud83d\\ude00") != as_bytes("\\U0001f600")
    True
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def pack(tick: int, tables: list[Table]) -> bytes:
    """Secret bytes: they hold what records said."""
    return as_bytes([_FORMAT, tick, [table.written() for table in tables]])


def unpack(data: bytes, tick: int, tables: list[Table]) -> None:
    """The way back; StateError, without content, for anything else."""
    try:
        form, at, written = json.loads(data.decode("utf-8", "surrogatepass"))
    except ValueError:
        form, at, written = "", 0, []
    if form != _FORMAT or at != tick or len(written) != len(tables):
        raise StateError("these bytes are not the tables of this statistic; restore from an intact snapshot")
    for table, entries in zip(tables, written, strict=True):
        table.read(entries)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value
