"""Users who count in a column at most once: the first labels of each of them (users-and-domains 1.2 and 5.1).

Kept by user, row and bucket, not by label: two labels of a user that share a bucket count once there, and no name of a
label is remembered. In every row the first so many buckets of a user count, each with what its first event adds; the
rule looks at that user's own events alone, in their order of arrival.
"""

from __future__ import annotations

import numpy as np

from evertally.contract.parts import IntArray
from evertally.encode.owned import OwnedTick, without_erased
from evertally.encode.texts import Texts
from evertally.encode.user_table import Digest, UserTable
from evertally.errors import StateError
from evertally.secret import Secret


class OncePerUser(Secret):
    """Ticks of events with their users, as `LabelDoor.cells` reads them, to rows of what counts."""

    def __init__(self, width: int, places: int, each: int, most: int, limit: int) -> None:
        self._width, self._places, self._each, self._most, self._limit = width, places, each, most, limit
        self._users = UserTable(fields=places)  # how many buckets of each place are used
        self._pairs = UserTable(fields=0)  # (user, column), by number

    def begin(self, tick: int) -> None:
        self._users.begin()
        self._pairs.begin()

    def undo(self, tick: int) -> None:
        self._users.undo()
        self._pairs.undo()

    def admit(self, arrivals: OwnedTick) -> IntArray:
        arrivals, row = without_erased(arrivals, self._users), np.zeros(self._width, dtype=np.int64)
        if not len(arrivals):
            return row
        users = self._users.enter(arrivals.names)[arrivals.codes]
        cells = arrivals.cells.reshape(len(arrivals), 2, self._places, self._each)
        for place in range(self._places):
            columns, amounts = cells[:, 0, place].ravel(), cells[:, 1, place].ravel()
            there = np.flatnonzero(columns >= 0)
            self._admit(place, np.repeat(users, self._each)[there], columns[there], amounts[there], row)
        return np.clip(row, -self._limit, self._limit)

    def _admit(self, place: int, users: IntArray, columns: IntArray, amounts: IntArray, row: IntArray) -> None:
        """In order of arrival: the first of each (user, column), of those that are new, as far as there is room."""
        _, firsts = np.unique(users * self._width + columns, return_index=True)
        firsts.sort()
        users, columns, amounts = users[firsts], columns[firsts], amounts[firsts]
        names = _pairs(users, columns)
        new = np.flatnonzero(self._pairs.find(names) < 0)
        order = new[np.argsort(users[new], kind="stable")]
        who, starts, counts = np.unique(users[order], return_index=True, return_counts=True)
        rank = np.arange(len(order)) - np.repeat(starts, counts)
        used = self._users.read(place, who)
        kept = order[rank < np.repeat(self._most - used, counts)]
        self._pairs.enter(names.take(kept))
        self._users.write(place, who, np.minimum(self._most, used + counts))
        np.add.at(row, columns[kept], amounts[kept])

    def recognise(self, digest: Digest) -> None:
        self._users.recognise(digest)

    def erase(self, names: Texts) -> None:
        """What counted stays, by numbers that say nothing without the names."""
        self._users.erase(names)

    def save(self) -> bytes:
        users = self._users.save()
        return len(users).to_bytes(8, "little") + users + self._pairs.save()

    def load(self, tick: int, data: bytes) -> None:
        if len(data) < 8:
            raise StateError("a table of users is cut short; restore from an intact snapshot")
        middle = 8 + int.from_bytes(data[:8], "little")
        self._users.load(data[8:middle])
        self._pairs.load(data[middle:])


def _pairs(users: IntArray, columns: IntArray) -> Texts:
    """(user, column) as names of sixteen bytes."""
    data = np.stack([users, columns], axis=1).astype("<i8").view(np.uint8).ravel()
    return Texts(data, np.arange(0, 16 * len(users) + 1, 16, dtype=np.int64))
