"""The door of dynamic data: records of insertions and deletions, each bounded by a fixed function of itself.

A record is `(action, value, id)`: what is done, the value that names a cell, and the name of the item. What cannot be
used is dropped without a word, as everywhere at a door; which items live is not known here (dynamic-data 14.2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.frames import Table
from evertally.encode.labels import as_list, canonical, label_bytes, require_column
from evertally.encode.named import columns_of, parts_by_name
from evertally.encode.named import records as rows_of
from evertally.encode.plain import UNREADABLE
from evertally.secret import Secret

IntArray = NDArray[np.int64]

_SIGNS = {"insert": 1, "true": 1, "1": 1, "+1": 1, "delete": -1, "false": -1, "-1": -1}
FIELDS = ("action", "value", "id")
LONGEST_NAME = 1024  # bytes
_REMEMBERED = 1 << 16  # values


@dataclass(frozen=True, repr=False)
class Arrivals(Secret):
    """The records of one tick that can be used, in their order of arrival. Secret.

    `cells` is -1 where a deletion names an item and not a value, and for an insertion that has no cell; `names` is
    None where items have no names, or get them here.
    """

    cells: IntArray
    signs: IntArray
    names: list[str | None]

    def __len__(self) -> int:
        return len(self.signs)

    def digest(self) -> bytes:
        """A hash that says whether two ticks had the same input. Order counts: a deletion finds what came before."""
        hashed = hashlib.sha256(np.stack([self.cells, self.signs]).astype("<i8").tobytes())
        for name in self.names:
            raw = b"" if name is None else label_bytes(name)
            hashed.update((len(raw) + (name is not None)).to_bytes(4, "big") + raw)
        return hashed.digest()


class UpdateDoor(Secret):
    """Records to arrivals. `cell` is the family's own: the number of the cell that a value names, or None.

    `by_name`: deletions name items; then they need no value, and `named` says whether insertions bring the name. A
    record that is no collection is an insertion of it: of the item of that name where there is one cell only
    (`single`), of that value where items have no names from outside.

    >>> door = UpdateDoor({"a": 0, "b": 1}.get, by_name=True, named=True)
    >>> arrived = door.arrivals([("insert", "a", 17), ("delete", None, "17"), ("insert", "x", 18), None, 5])
    >>> arrived.cells.tolist(), arrived.signs.tolist(), arrived.names
    ([0, -1], [1, -1], ['17', '17'])
    """

    def __init__(
        self,
        cell: Callable[[Any], int | None],
        *,
        by_name: bool,
        named: bool,
        single: bool = False,
        deletions: bool = True,
    ) -> None:
        self._cell, self._by_name, self._named, self._single = cell, by_name, named, single
        self._deletions = deletions
        self._seen: dict[str | int, int | None] = {}  # cells of values, as the family said

    def arrivals(self, events: Any) -> Arrivals:
        """The records of one tick."""
        require_column(events, "events")
        cells: list[int] = []
        signs: list[int] = []
        names: list[str | None] = []
        for event in as_list(events):
            read = self._read(event)
            if read is not None:
                cells.append(read[0])
                signs.append(read[1])
                names.append(read[2])
        return Arrivals(np.array(cells, dtype=np.int64), np.array(signs, dtype=np.int64), names)

    def _read(self, event: Any) -> tuple[int, int, str | None] | None:
        # Exact types go the short way, to the same answers.
        action, value, name = event if type(event) is tuple and len(event) == 3 else self._fields(event)
        sign = _SIGNS.get(action) if type(action) is str else sign_of(action)
        if sign is None or (sign < 0 and not self._deletions):
            return None
        if sign < 0 and self._by_name:
            own = _name(name)
            return None if own is None else (-1, -1, own)
        cell = self._cell_of(value)
        if self._named:
            own = _name(name)
            return None if own is None or cell is None else (cell, 1, own)
        if cell is None:
            # Who is given names in return for insertions gets one for each of them, in order.
            return (-1, 1, None) if self._by_name else None
        return cell, sign, None

    def _cell_of(self, value: Any) -> int | None:
        kind = type(value)
        if kind is not str and kind is not int:
            return self._cell(value)
        if value not in self._seen:
            if len(self._seen) >= _REMEMBERED:
                return self._cell(value)
            self._seen[value] = self._cell(value)
        return self._seen[value]

    def _fields(self, event: Any) -> tuple[Any, Any, Any]:
        kind = type(event)
        for own in (tuple, list):
            if issubclass(kind, own):
                fields = parts_by_name(event, FIELDS) or []
                return (*fields, *[None] * (3 - len(fields))) if 1 <= len(fields) <= 3 else (None, None, None)
        if issubclass(kind, dict):
            read = dict.get
            return read(event, "action"), read(event, "value"), read(event, "id")
        if issubclass(kind, Mapping | np.ndarray | set | frozenset):
            return None, None, None
        if self._named:
            return ("insert", None, event) if self._single else (None, None, None)
        return "insert", event, None


def sign_of(action: Any) -> int | None:
    """1 for an insertion, -1 for a deletion, None for any other action."""
    written = canonical(action)
    return None if written is None else _SIGNS.get(written)


def _name(value: Any) -> str | None:
    name = value if type(value) is str and value.isascii() else canonical(value)
    return name if name is not None and len(label_bytes(name)) <= LONGEST_NAME else None


def updates_of(found: Table, wanted: Sequence[str], *, insertions: bool = False) -> list[tuple[Any, ...]]:
    """The rows of a table as records, by the names of its columns. `insertions`: where there is no column `action`, all
    of them insert."""
    if insertions and "action" not in found.names:
        wanted = [name for name in wanted if name != "action"]
    places = dict(zip(wanted, columns_of(found, wanted), strict=True))
    rows = rows_of(found, [places.get(name) for name in FIELDS])
    return rows if "action" in places else [("insert", *row[1:]) for row in rows]


def records(inserted: Any, deleted: Any, *, pairs: bool, by_name: bool, named: bool) -> list[Any]:
    """Columns of what is inserted and what is deleted as records, insertions first.

    Insertions are (value, id) pairs where `pairs`, else names (`named`) or values; deletions are names (`by_name`) or
    values.

    >>> records([("a", 17)], [16], pairs=True, by_name=True, named=True)
    [('insert', 'a', 17), ('delete', None, 16)]
    """
    for column, what in ((inserted, "inserted"), (deleted, "deleted")):
        require_column(column, what)
    made: list[Any] = []
    for entry in as_list(inserted):
        if pairs:
            made.append(("insert", *_pair(entry)))
        else:
            made.append(("insert", None, entry) if named else ("insert", entry, None))
    made += [("delete", None, entry) if by_name else ("delete", entry, None) for entry in as_list(deleted)]
    return made


def _pair(entry: Any) -> tuple[Any, Any]:
    try:
        for own in (tuple, list):
            if issubclass(type(entry), own):
                value, name = own.__iter__(entry)
                return value, name
    except UNREADABLE:
        pass
    return None, None
