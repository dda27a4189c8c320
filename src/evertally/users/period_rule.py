"""Who was active in the period that runs, each counted once."""

from __future__ import annotations

import numpy as np

from evertally.counting.process import IntArray
from evertally.encode.owned import OwnedTick, without_erased
from evertally.encode.texts import Texts
from evertally.encode.user_table import Digest, UserTable
from evertally.errors import StateError
from evertally.secret import Secret

_LAST, _USED = 0, 1  # the last period that counted, and how many did


class PeriodRule(Secret):
    """Ticks of users to the change of the number that is shown: of the period that runs, or of the last that is over.

    With `most`, only the first so many active periods of a user count, and everybody is remembered for ever. Without,
    a period knows nothing of the one before: who was active in it is forgotten, unless erased.
    """

    def __init__(self, period: int, *, so_far: bool, most: int | None) -> None:
        self._period, self._so_far, self._most = period, so_far, most
        self._users = UserTable(fields=0 if most is None else 2)
        self._counts = (0, 0)  # counted in this period, and shown last
        self._mark = (self._users, self._counts)

    def begin(self, tick: int) -> None:
        self._users.begin()
        self._mark = (self._users, self._counts)

    def undo(self, tick: int) -> None:
        self._users, self._counts = self._mark
        self._users.undo()

    def admit(self, arrivals: OwnedTick) -> IntArray:
        period, place = divmod(arrivals.tick - 1, self._period)
        counted, shown = self._counts
        if place == 0:
            counted = 0
            if self._most is None:
                self._users = self._users.emptied()
        counted += self._newly(without_erased(arrivals, self._users), period + 1)
        now = counted if self._so_far or place == self._period - 1 else shown
        self._counts = (counted, now)
        return np.array([now - shown], dtype=np.int64)

    def _newly(self, arrivals: OwnedTick, period: int) -> int:
        users = self._users
        if self._most is None:
            known = len(users)
            users.enter(arrivals.names)
            return len(users) - known
        numbers = users.enter(arrivals.names)
        counts = (users.read(_LAST, numbers) != period) & (users.read(_USED, numbers) < self._most)
        fresh = numbers[counts]
        users.write(_LAST, fresh, np.full(len(fresh), period))
        users.write(_USED, fresh, users.read(_USED, fresh) + 1)
        return len(fresh)

    def recognise(self, digest: Digest) -> None:
        self._users.recognise(digest)

    def erase(self, names: Texts) -> None:
        # They stay in the number of the period that runs, and are in none that follows (trap 7).
        self._users.erase(names)

    def save(self) -> bytes:
        return np.array(self._counts, dtype="<i8").tobytes() + self._users.save()

    def load(self, tick: int, data: bytes) -> None:
        if len(data) < 16:
            raise StateError("these bytes are no table of users of a period; restore from an intact snapshot")
        counted, shown = np.frombuffer(data[:16], dtype="<i8").tolist()
        users = self._users.emptied()
        users.load(data[16:])
        self._users, self._counts = users, (counted, shown)
        self._mark = (users, self._counts)
