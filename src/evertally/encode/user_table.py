"""What is remembered of each user: names in, whole numbers beside them, with a way back to where a call began.

Secret, sizes included. Users have numbers in the order in which they were first seen; a number means nothing outside.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.encode.texts import Texts
from evertally.errors import StateError
from evertally.secret import Secret

IntArray = NDArray[np.int64]

_FORMAT = b"evertally-user-table-1\n"


class UserTable(Secret):
    """Users by name, and `fields` whole numbers about each of them, all 0 for a newcomer.

    `begin` marks where a call begins, and `undo` goes back there, from wherever it was interrupted; it can itself be
    interrupted, and done again. Everything else is between the two.

    >>> table = UserTable(fields=1)
    >>> table.begin()
    >>> ann_bob = table.enter(Texts.of(["ann", "bob"]))
    >>> table.write(0, ann_bob, np.array([5, 7]))
    >>> table.begin()
    >>> both = table.enter(Texts.of(["bob", "cid"]))
    >>> table.write(0, both, table.read(0, both) + 1)
    >>> table.read(0, both).tolist(), len(table)
    ([8, 1], 3)
    >>> table.undo()
    >>> table.read(0, table.find(Texts.of(["bob", "ann"]))).tolist(), table.find(Texts.of(["cid"])).tolist(), len(table)
    ([7, 5], [-1], 2)
    """

    def __init__(self, fields: int) -> None:
        self.fields = fields
        self._number: dict[bytes, int] = {}
        self._columns = [np.zeros(16, dtype=np.int64) for _ in range(fields)]
        self._size = self._known = 0  # now, and when the call began
        self._log: list[tuple[int, IntArray, IntArray]] = []  # field, numbers, what was written there before

    def __len__(self) -> int:
        return self._size

    def find(self, names: Texts) -> IntArray:
        """The number of each name, -1 for those that are not here."""
        return np.fromiter((self._number.get(name, -1) for name in names.names()), np.int64, len(names))

    def enter(self, names: Texts, found: IntArray | None = None) -> IntArray:
        """The number of each name; those that are not here yet get the next ones. A name may occur twice. `found` is
        what `find` said of them earlier, if it was asked."""
        numbers = self.find(names) if found is None else found.copy()
        for i in np.flatnonzero(numbers < 0).tolist():
            name = names.data[names.offsets[i] : names.offsets[i + 1]].tobytes()
            numbers[i] = self._number.setdefault(name, self._size)
            self._size = max(self._size, int(numbers[i]) + 1)
        while self._columns and len(self._columns[0]) < self._size:
            self._columns = [np.concatenate([column, np.zeros_like(column)]) for column in self._columns]
        return numbers

    def names(self, numbers: IntArray) -> Texts:
        """The names of some users."""
        return Texts.of_bytes(list(self._number)).take(numbers)

    def read(self, field: int, numbers: IntArray) -> IntArray:
        """A field of some users."""
        found: IntArray = self._columns[field][numbers]
        return found

    def column(self, field: int) -> IntArray:
        """A field of all users, by number. To be looked at, not written into."""
        return self._columns[field][: self._size]

    def write(self, field: int, numbers: IntArray, values: IntArray) -> None:
        """Writes a field of some users, each of whom occurs once."""
        self._log.append((field, numbers, self._columns[field][numbers]))
        self._columns[field][numbers] = values

    def begin(self) -> None:
        self._log = []
        self._known = self._size

    def undo(self) -> None:
        for field, numbers, before in reversed(self._log):
            self._columns[field][numbers] = before
        for name in [name for name, number in self._number.items() if number >= self._known]:
            del self._number[name]
        for column in self._columns:
            column[self._known :] = 0
        self._size = self._known

    def save(self) -> bytes:
        """All of it as secret bytes."""
        names = Texts.of_bytes(sorted(self._number, key=self._number.__getitem__))
        numbers = [np.array([self.fields, self._size], dtype="<i8"), names.offsets.astype("<i8")]
        numbers += [self.column(field).astype("<i8") for field in range(self.fields)]
        return b"".join([_FORMAT, *(part.tobytes() for part in numbers), names.data.tobytes()])

    def load(self, data: bytes) -> None:
        """The way back; StateError, without content, for other bytes."""
        start = len(_FORMAT)
        head = np.frombuffer(data[start : start + 16], dtype="<i8") if data.startswith(_FORMAT) else np.zeros(0)
        if len(head) != 2 or head[0] != self.fields or head[1] < 0:
            raise StateError("these bytes are not a table of users of this statistic; restore from an intact snapshot")
        size, start = int(head[1]), start + 16
        wanted = 8 * ((size + 1) + self.fields * size)
        if len(data) < start + wanted:
            raise StateError("a table of users is cut short; restore from an intact snapshot")
        numbers = np.frombuffer(data[start : start + wanted], dtype="<i8").astype(np.int64)
        offsets, text = numbers[: size + 1], np.frombuffer(data[start + wanted :], dtype=np.uint8)
        if offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] != len(text):
            raise StateError("a table of users is damaged; restore from an intact snapshot")
        names = Texts(text, offsets).names()
        self._number = {name: number for number, name in enumerate(names)}
        if len(self._number) != size:
            raise StateError("a table of users names somebody twice; restore from an intact snapshot")
        space = max(16, size)
        self._columns = [np.zeros(space, dtype=np.int64) for _ in range(self.fields)]
        for field, column in enumerate(self._columns):
            column[:size] = numbers[size + 1 + field * size : size + 1 + (field + 1) * size]
        self._size = self._known = size
        self._log = []
