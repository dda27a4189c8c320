"""What counts of a user in distinct counts: rules with a memory before the linear engine (users-and-domains 2.1, 2.2).

A rule looks at the user's own earlier events and at nothing else. Everything that a call changes can be taken back, and
nobody is ever forgotten: a user who counted twice would be charged for once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evertally.contract.parts import IntArray
from evertally.encode.owned import OwnedTick
from evertally.encode.texts import Texts
from evertally.encode.user_table import UserTable
from evertally.secret import Secret
from evertally.users.user_rule import UserRule, rank_within

Hash = Callable[[bytes], bytes]
Digest = Callable[[bytes], bytes]

USED_UP = 2**62  # in the place of a cell: no cell is as large


def keyed_numbers(names: Texts, order: Hash, purpose: bytes) -> NDArray[np.uint64]:
    """64 bits for each name: the same for ever under one key, and unpredictable without it."""
    digests = b"".join(order(purpose + name)[:8] for name in names.names())
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


class FirstSeen(UserRule):
    """Everybody counts once, at the first event. The row of a tick: how many were never seen before.

    `most`: only so many users are counted, and kept, at all. `chosen`: which users count, by a fixed function of their
    names; None: all.

    >>> from evertally.encode.owned import owned_tick
    >>> rule = FirstSeen()
    >>> rule.admit(owned_tick(["ann", "bob", "ann"], None, 1)), rule.admit(owned_tick(["bob", "cid"], None, 2))
    (array([2]), array([1]))
    """

    def __init__(
        self, most: int | None = None, chosen: Callable[[Texts], NDArray[np.bool_]] | None = None, limit: int = 2**61
    ) -> None:
        super().__init__(fields=0)
        self._most, self._chosen, self._limit = most, chosen, limit

    @property
    def most(self) -> int | None:
        """How many users count at all; None: all."""
        return self._most

    def admit(self, tick: OwnedTick) -> IntArray:
        names, before = tick.names, len(self.users)
        if self._chosen is not None:
            names = names.take(np.flatnonzero(self._chosen(names)))
        if self._most is not None:
            # Whoever comes when the table is full is not remembered, and finds it full again.
            # Erased users who never came take places, too, and may be more than there were.
            names = names.take(np.flatnonzero(self.users.find(names) < 0)[: max(0, self._most - before)])
        self.users.enter(names)
        # 1-Lipschitz, hence free; it keeps the sums far from the end of int64.
        return np.array([min(len(self.users) - before, self._limit)], dtype=np.int64)

    def erase(self, names: Texts) -> None:
        """The count stays, and nobody of them counts again: whoever is found in the table is not new."""
        super().erase(names)


class FirstPairs(Secret):
    """The first `most` different cells of each user, each once. A cell is a column, or whatever a label has become.

    Two labels that count in one column are one cell: who counted them as two would move that column twice.
    """

    def __init__(self, most: int) -> None:
        self.users, self._most = UserTable(fields=most), most  # a cell + 1 in each field, 0 where there is room

    def offered(self, names: Texts, codes: IntArray, cells: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Of the events (user `codes[i]` of `names`, cell `cells[i]`, -1: none) the pairs that count from now on: the
        number of the user, the cell, and the field for `write`."""
        known = cells >= 0
        codes, cells = codes[known], cells[known]
        _, first = np.unique(codes * (int(cells.max(initial=0)) + 1) + cells, return_index=True)
        first.sort()  # by arrival: which of a user's cells come first is decided by the user's own events
        codes, cells = codes[first], cells[first]
        present = np.unique(codes)
        users = self.users.enter(names.take(present))[np.searchsorted(present, codes)]
        held = np.stack([self.users.read(field, users) for field in range(self._most)])
        new = ~(held == cells + 1).any(axis=0)
        users, cells = users[new], cells[new]
        fields = (held[:, new] > 0).sum(axis=0) + rank_within(users)
        kept = fields < self._most
        return users[kept], cells[kept], fields[kept]

    def write(self, users: IntArray, cells: IntArray, fields: IntArray) -> None:
        """Remembers pairs."""
        for field in np.unique(fields).tolist():
            at = fields == field
            self.users.write(field, users[at], cells[at] + 1)

    def erase(self, names: Texts) -> None:
        """What counted stays. The room of these users is used up, whether they were here or not."""
        users = np.unique(self.users.erase(names))
        for field in range(self._most):
            held = self.users.read(field, users)
            self.users.write(field, users, np.where(held > 0, held, USED_UP))


class FirstCategories(Secret):
    """The first `most` columns of each user count, each once. The row of a tick: new users of each column."""

    def __init__(self, most: int, width: int, limit: int = 2**61) -> None:
        self.pairs, self._width, self._limit = FirstPairs(most), width, limit

    def admit(self, tick: OwnedTick) -> IntArray:
        users, cells, fields = self.pairs.offered(tick.names, tick.codes, tick.cells[:, 0])
        self.pairs.write(users, cells, fields)
        return np.minimum(np.bincount(cells, minlength=self._width), self._limit)

    def recognise(self, digest: Digest) -> None:
        self.pairs.users.recognise(digest)

    def erase(self, names: Texts) -> None:
        self.pairs.erase(names)

    def begin(self, tick: int) -> None:
        self.pairs.users.begin()

    def undo(self, tick: int) -> None:
        self.pairs.users.undo()

    def save(self) -> bytes:
        return self.pairs.users.save()

    def load(self, tick: int, data: bytes) -> None:
        self.pairs.users.load(data)
