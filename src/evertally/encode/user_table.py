"""What is remembered of each user: names in, whole numbers beside them, with a way back to where a call began.

Secret, sizes included. Users have numbers in the order in which they were first seen; a number means nothing outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.name_index import NameIndex, distinct, grown, taken
from evertally.encode.name_kernels import Bytes, IntArray, first_places, kernel
from evertally.encode.texts import Texts
from evertally.encode.user_table_bytes import table_from_bytes, table_to_bytes
from evertally.errors import StateError
from evertally.secret import Secret

Digest = Callable[[bytes], bytes]

_HERE, _FORGOTTEN, _ERASED = 0, 1, 2  # what `hidden` says of a user
_HIDDEN = -1  # in the log, in the place of a field


@dataclass(repr=False, eq=False)
class _Now(Secret):
    """All that a table holds, so that one assignment replaces it."""

    index: NameIndex
    columns: list[IntArray]
    hidden: Bytes
    tombs: dict[bytes, int] = field(default_factory=dict)  # the numbers of erased users, by the digests of their names
    known: int = 0  # how many there were when the call began
    forgotten: int = 0
    touched: bool = False  # since the call began
    log: list[tuple[int, IntArray, NDArray[Any]]] = field(default_factory=list)  # what was written there before


class UserTable(Secret):
    """Users by name, and `fields` whole numbers about each of them, all 0 for a newcomer.

    `begin` marks where a call begins, and `undo` goes back there, from wherever it was interrupted; it can itself be
    interrupted, and done again. Everything else is between the two. Numbers of users may change at `begin`, and at no
    other time: what is remembered for longer belongs into a field.

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

    Arrays and no Python objects: about 100 ns for a user of a large tick, and 8 bytes a field, the name, and about 30
    bytes a user. `seed`: what the hash table is keyed by, which decides its speed and nothing else; 0: one that this
    process drew.
    """

    def __init__(self, fields: int, seed: int = 0) -> None:
        self.fields = fields
        self._seed = seed
        self._digest: Digest | None = None
        self._now = _Now(NameIndex(seed), [np.zeros(16, np.int64) for _ in range(fields)], np.zeros(16, np.uint8))

    def __len__(self) -> int:
        """How many users there are, erased ones included, forgotten ones not."""
        return self._now.index.size - self._now.forgotten

    def find(self, names: Texts) -> IntArray:
        """The number of each name, -1 for those that are not here."""
        now = self._now
        numbers = now.index.find(names, now.hidden, now.forgotten > 0)
        if now.tombs:
            for i in np.flatnonzero(numbers < 0).tolist():
                name = names.data[names.offsets[i] : names.offsets[i + 1]].tobytes()
                numbers[i] = now.tombs.get(self._digested(name), -1)
        return numbers

    def users_of(self, names: Texts) -> tuple[IntArray, Texts, IntArray]:
        """The users of a tick, event by event, as `owners` gives them: codes and different names, in the order of their
        first events; and the number of each. Nobody is looked up twice, so it costs less where most names are known."""
        found, size = self.find(names), self._now.index.size
        new = np.flatnonzero(found < 0)
        numbers = found
        if new.size:
            numbers = found.copy()
            numbers[new] = size + distinct(taken(names.data, names.offsets[new], names.lengths[new]))[0]
        codes, firsts = np.empty(len(names), np.int64), np.empty(len(names), np.int64)
        count = kernel(first_places, len(names))(numbers, np.zeros(size + len(new), np.int64), codes, firsts)
        if count == len(names):
            return codes, names, found
        firsts = firsts[:count]
        return codes, taken(names.data, names.offsets[firsts], names.lengths[firsts]), found[firsts]

    def enter(self, names: Texts, found: IntArray | None = None) -> IntArray:
        """The number of each name; those that are not here yet get the next ones. A name may occur twice. `found`: what
        `find` said of them, if it was asked and nobody was entered since."""
        now = self._now
        found = self.find(names) if found is None else found
        newcomers = int(np.count_nonzero(found < 0))
        if newcomers:
            now.touched = True
            self._make_room(now.index.size + newcomers)
        return now.index.enter(names, found)

    def names(self, numbers: IntArray) -> Texts:
        """The names of some users. Of an erased one, the digest."""
        texts = self._now.index.texts()
        return taken(texts.data, texts.offsets[numbers], texts.lengths[numbers])

    def present(self) -> IntArray:
        """The numbers of all users who are here, neither forgotten nor erased."""
        return np.flatnonzero(self._now.hidden[: self._now.index.size] == _HERE)

    def read(self, field: int, numbers: IntArray) -> IntArray:
        """A field of some users."""
        found: IntArray = self._now.columns[field][numbers]
        return found

    def column(self, field: int) -> IntArray:
        """A field of all users, by number; 0 for forgotten ones. To be looked at, not written into."""
        return self._now.columns[field][: self._now.index.size]

    def write(self, field: int, numbers: IntArray, values: IntArray) -> None:
        """Writes a field of some users, each of whom occurs once."""
        self._put(field, self._now.columns[field], numbers, values)

    def forget(self, numbers: IntArray) -> None:
        """Forgets some users altogether: whoever comes back is a newcomer. Their memory is given back at a later
        `begin`. Erased users stay: they are never forgotten."""
        now = self._now
        numbers = np.unique(numbers[now.hidden[numbers] == _HERE])
        for i in range(self.fields):
            self.write(i, numbers, np.zeros(len(numbers), np.int64))
        self._put(_HIDDEN, now.hidden, numbers, np.full(len(numbers), _FORGOTTEN, np.uint8))
        now.forgotten += len(numbers)

    def recognise(self, digest: Digest) -> None:
        """Says how the names of erased users are digested. Needed by whoever loads a table with erased users."""
        self._digest = digest

    def erase(self, names: Texts, digest: Digest | None = None) -> IntArray:
        """Replaces names by their digests, and gives their numbers. Fields stay. Between calls: there is no way back.

        The names are in no memory of the table any more. Whoever comes under such a name is recognised by its digest:
        the number is the old one, and `erased` tells. Those who were never here are not to be counted later, either.
        `digest` (if `recognise` did not say it) is keyed, and the key is not kept here.
        """
        self._digest = digest or self._digest
        self.begin()
        now, index = self._now, self._now.index
        digests = [self._digested(name) for name in names.names()]
        tombs, size = dict(now.tombs), index.size
        for one, number in zip(digests, self.find(names).tolist(), strict=True):
            if number >= 0:
                tombs[one] = number
            elif one not in tombs:
                tombs[one] = size
                size += 1
        hidden, columns = grown(now.hidden, size).copy(), [grown(column, size).copy() for column in now.columns]
        hidden[list(tombs.values())] = _ERASED
        # Names of forgotten users are left out, too: the same name may be among them.
        old, new = index.texts(), Texts.of_bytes(list(tombs))
        starts, lengths = np.zeros(size, np.int64), np.zeros(size, np.int64)
        here = np.flatnonzero(hidden[:size] == _HERE)
        starts[here], lengths[here] = old.offsets[here], old.lengths[here]
        places = np.array(list(tombs.values()), np.int64)
        starts[places], lengths[places] = new.offsets[:-1] + len(old.data), new.lengths
        texts = taken(np.concatenate([old.data, new.data]), starts, lengths)
        self._now = _Now(NameIndex(self._seed, texts, here), columns, hidden, tombs, size, now.forgotten)
        return np.array([tombs[one] for one in digests], np.int64)

    def emptied(self) -> UserTable:
        """A new table with nobody but the erased, who are recognised there, too."""
        made, digests = UserTable(self.fields, self._seed), list(self._now.tombs)
        made._digest = self._digest
        if digests:
            nothing = [np.zeros(len(digests), np.int64)] * self.fields
            made.load(table_to_bytes(Texts.of_bytes(digests), nothing, np.arange(len(digests))))
        return made

    @property
    def erased_any(self) -> bool:
        """Whether anybody was erased."""
        return bool(self._now.tombs)

    def erased(self, numbers: IntArray) -> NDArray[np.bool_]:
        """Which of these users are erased; numbers of -1 are nobody's."""
        if not self._now.tombs:
            return np.zeros(len(numbers), np.bool_)
        found: NDArray[np.bool_] = (self._now.hidden[numbers] == _ERASED) & (numbers >= 0)
        return found

    def begin(self) -> None:
        now = self._now
        size = now.index.size
        if 2 * now.forgotten > size:
            now = self._without_forgotten(now)
            size = now.index.size
        self._now = _Now(now.index, now.columns, now.hidden, now.tombs, size, now.forgotten)

    def undo(self) -> None:
        now = self._now
        if not now.touched:
            return
        for i, numbers, before in reversed(now.log):
            part: NDArray[Any] = now.hidden if i == _HIDDEN else now.columns[i]
            part[numbers] = before
        for column in now.columns:
            column[now.known :] = 0
        now.hidden[now.known :] = _HERE
        now.index.truncate(now.known)
        now.forgotten = int(np.count_nonzero(now.hidden == _FORGOTTEN))
        self._now = _Now(now.index, now.columns, now.hidden, now.tombs, now.known, now.forgotten)

    def save(self) -> bytes:
        """All of it as secret bytes, the same for the same users, fields and order of arrival."""
        now = self._now if not self._now.forgotten else self._without_forgotten(self._now)
        size = now.index.size
        erased = np.array(sorted(now.tombs.values()), np.int64)
        return table_to_bytes(now.index.texts(), [column[:size] for column in now.columns], erased)

    def load(self, data: bytes) -> None:
        """The way back; StateError, without content, for other bytes."""
        texts, columns, erased = table_from_bytes(data, self.fields)
        size = len(texts)
        hidden = np.zeros(max(16, size), np.uint8)
        hidden[erased] = _ERASED
        digests = [name.tobytes() for name in (texts.data[texts.offsets[i] : texts.offsets[i + 1]] for i in erased)]
        here = np.flatnonzero(hidden[:size] == _HERE)
        index = NameIndex(self._seed, texts, here)
        if not (index.find(texts, hidden)[here] == here).all():
            raise StateError("a table of users names somebody twice; restore from an intact snapshot")
        columns = [grown(column, 16) for column in columns]
        self._now = _Now(index, columns, hidden, dict(zip(digests, erased.tolist(), strict=True)), size)

    def _digested(self, name: bytes) -> bytes:
        if self._digest is None:
            raise StateError("a table has erased users, and nobody said how to recognise them")
        return self._digest(name)

    def _make_room(self, size: int) -> None:
        now = self._now
        now.hidden = grown(now.hidden, size)
        now.columns = [grown(column, size) for column in now.columns]

    def _put(self, i: int, part: NDArray[Any], numbers: IntArray, values: NDArray[Any]) -> None:
        now = self._now
        now.touched = True
        now.log.append((i, numbers.copy(), part[numbers]))
        part[numbers] = values

    def _without_forgotten(self, now: _Now) -> _Now:
        size = now.index.size
        left = np.flatnonzero(now.hidden[:size] != _FORGOTTEN)
        number = np.cumsum(now.hidden[:size] != _FORGOTTEN) - 1
        old = now.index.texts()
        texts = taken(old.data, old.offsets[left], old.lengths[left])
        hidden = np.append(now.hidden[left], np.zeros(16, np.uint8))
        columns = [np.append(column[left], np.zeros(16, np.int64)) for column in now.columns]
        tombs = {digest: int(number[old_number]) for digest, old_number in now.tombs.items()}
        index = NameIndex(self._seed, texts, np.flatnonzero(hidden[: len(left)] == _HERE))
        return _Now(index, columns, hidden, tombs, len(left))
