"""Which items are present: inserted and deleted, by name, with or without a limit on how often they come and go."""

from __future__ import annotations

import numpy as np

from evertally.counting.process import IntArray
from evertally.encode.texts import Texts
from evertally.encode.updates import Arrivals
from evertally.encode.user_table import UserTable
from evertally.secret import Secret

_COPIES, _FLIPS = 0, 1
_MOST_COPIES = 2**62  # more are not counted: a sum in 64 bits is never passed


class PresenceRule(Secret):
    """Records of a tick to the change of how many items are present at its end.

    With `copies` an item is present while more of it was inserted than deleted, without while the last record said so.
    A deletion where there is nothing does nothing. With `most`, an item whose presence has changed so often, from the
    end of a tick to the end of a later one, stays as it is for ever (users-and-domains 2.5), so it is never forgotten.

    >>> rule = PresenceRule(copies=False, most=2)
    >>> def play(signs, names):
    ...     rule.begin(0)
    ...     return rule.admit(Arrivals(np.zeros(len(signs), int), np.array(signs), names)).tolist()
    >>> play([1, 1, -1], ["ann", "bob", "bob"]), play([-1], ["ann"]), play([1], ["ann"])
    ([1], [-1], [0])
    """

    def __init__(self, *, copies: bool, most: int | None) -> None:
        self._copies, self._most = copies, most
        self._items = UserTable(fields=2)

    def begin(self, tick: int) -> None:
        self._items.begin()

    def undo(self, tick: int) -> None:
        self._items.undo()

    def admit(self, arrivals: Arrivals) -> IntArray:
        items, signs = self._items, arrivals.signs.tolist()
        names = [name for name in arrivals.names if name is not None]
        assert len(names) == len(signs), "items are named"
        # Only an insertion makes an item known.
        items.enter(Texts.of([name for name, sign in zip(names, signs, strict=True) if sign > 0]))
        numbers = items.find(Texts.of(names))
        touched = np.unique(numbers[numbers >= 0])
        copies, flips = items.read(_COPIES, touched), items.read(_FLIPS, touched)
        now = dict(zip(touched.tolist(), copies.tolist(), strict=True))
        for number, sign in zip(numbers.tolist(), signs, strict=True):
            if number >= 0:
                now[number] = self._moved(now[number], sign)
        after = np.fromiter(now.values(), np.int64, len(now))
        if self._most is not None:
            after = np.where(flips < self._most, after, copies)
        changed = (after > 0).astype(np.int64) - (copies > 0)
        items.write(_COPIES, touched, after)
        items.write(_FLIPS, touched, flips + np.abs(changed))
        return np.array([changed.sum()], dtype=np.int64)

    def _moved(self, copies: int, sign: int) -> int:
        if not self._copies:
            return int(sign > 0)
        return max(0, min(_MOST_COPIES, copies + sign))

    def save(self) -> bytes:
        return self._items.save()

    def load(self, tick: int, data: bytes) -> None:
        self._items.load(data)
