"""Who is in which cohort, and who was active in the period that runs."""

from __future__ import annotations

import numpy as np

from evertally.counting.process import IntArray
from evertally.encode.owned import OwnedTick, without_erased
from evertally.encode.texts import Texts
from evertally.encode.user_table import Digest, UserTable
from evertally.secret import Secret
from evertally.users.retention_table import Cells

_COHORT, _ACTIVE = 0, 1  # the period of the first event, and the last period with an event


class CohortRule(Secret):
    """Ticks of users to what changes in the table: nothing but at the end of a period, when its cells are added.

    A user's cohort is that of the first event, for ever: a table that forgets somebody puts them into two rows
    (users-and-domains 2.4, traps 7 and 16). So it forgets nobody.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells, self._users = cells, UserTable(fields=2)

    def begin(self, tick: int) -> None:
        self._users.begin()

    def undo(self, tick: int) -> None:
        self._users.undo()

    def admit(self, arrivals: OwnedTick) -> IntArray:
        cells, users = self._cells, self._users
        arrivals = without_erased(arrivals, users)
        row = np.zeros(1 + len(cells), dtype=np.int64)
        period = (arrivals.tick - 1) // cells.period + 1
        if period > cells.periods:  # a last period that is never over
            return row
        known = len(users)
        numbers = users.enter(arrivals.names)
        newcomers = numbers[numbers >= known]
        users.write(_COHORT, newcomers, np.full(len(newcomers), period))
        users.write(_ACTIVE, numbers, np.full(len(numbers), period))
        if arrivals.tick == period * cells.period:
            row[0] = 1
            ages = period - users.column(_COHORT)[users.column(_ACTIVE) == period]
            places = cells.ending(period)  # the oldest cohort first
            found = np.bincount(ages[ages < len(places)], minlength=len(places))
            row[1 + places] = found[::-1]
        return row

    def recognise(self, digest: Digest) -> None:
        self._users.recognise(digest)

    def erase(self, names: Texts) -> None:
        """Cells that are over stay. They are in none that is not, nor in that of the period that runs: any part of a
        user's cells is within what is paid for a whole row."""
        numbers = np.unique(self._users.erase(names))
        self._users.write(_ACTIVE, numbers, np.zeros_like(numbers))

    def save(self) -> bytes:
        return self._users.save()

    def load(self, tick: int, data: bytes) -> None:
        self._users.load(data)
