"""Who is active: the last tick of each user, and how many users were last seen at each of the last ticks.

users-and-domains 2.3. A user who was last seen at tick s is active, in a window of W ticks, at s .. s + W - 1: so the
number of active users is a sum over the ticks of the window of how many were last seen there. A user leaves exactly
when W ticks have passed without an event, never earlier: runs that are shorter than a window are not charged for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evertally.contract.parts import IntArray
from evertally.encode.owned import OwnedTick
from evertally.encode.texts import Texts
from evertally.users.user_rule import UserRule, rank_within


class ActiveRule(UserRule):
    """Users in, changes of the number of active users out: one for each window and category, windows first.

    `most`: the first so many categories of a user count (0: there are none). `active`: the first so many active ticks
    of a user count. All windows share one table.

    Who was silent for the longest window is forgotten, exactly: a later path does not depend on the past. With `most`
    or `active` nobody is, for what counted of a user is remembered for life.

    >>> from evertally.encode.owned import owned_tick
    >>> rule = ActiveRule([1, 3])
    >>> [rule.admit(owned_tick(users, None, t + 1)).tolist() for t, users in enumerate(["ab", "a", "", "", "b"])]
    [[2, 2], [-1, 0], [-1, 0], [0, -1], [1, 0]]
    """

    def __init__(self, windows: Sequence[int], width: int = 1, most: int = 0, active: int | None = None) -> None:
        self._windows, self._width, self._most, self._active = list(windows), width, most, active
        self._longest = max(windows)
        # Fields of a user: the categories, each plus 1; the last tick in each of them; how many ticks counted.
        self._last, self._used = most, most + max(1, most)
        super().__init__(fields=self._used + (active is not None))
        # Row s mod W: how many were last seen at tick s, by category. Replaced, never written into.
        self._seen = self._before = np.zeros((self._longest, width), dtype=np.int64)

    def admit(self, tick: OwnedTick) -> IntArray:
        t, seen = tick.tick, self._seen.copy()
        before = self._counted(seen, t - 1)
        seen[t % self._longest] = 0  # last seen as long ago as the longest window: active no more
        users, cells, fields = self._places(tick)
        for field in np.unique(fields).tolist():
            at = fields == field
            last = self.users.read(field, users[at])
            still = last > max(0, t - self._longest)
            np.subtract.at(seen, (last[still] % self._longest, cells[at][still]), 1)
            self.users.write(field, users[at], np.full(int(at.sum()), t))
        seen[t % self._longest] += np.bincount(cells, minlength=self._width)
        changes: IntArray = self._counted(seen, t) - before
        self._seen = seen
        self._forget(t)
        return changes.ravel()

    def _forget(self, tick: int) -> None:
        """Forgets the silent, when they are as many as the active: a look at all users costs O(1) a user then."""
        if self._most or self._active is not None or len(self.users) < 2 * int(self._seen.sum()) + 64:
            return
        silent = self.users.column(self._last) <= tick - self._longest
        self.users.forget(np.flatnonzero(silent))

    def _places(self, tick: OwnedTick) -> tuple[IntArray, IntArray, IntArray]:
        """Who was active, in which category, and in which field the last tick of that is: each once."""
        if self._most:
            return self._by_category(tick)
        users = self.users.enter(tick.names)
        users = users[~self.users.erased(users)]
        if self._active is not None:
            used = self.users.read(self._used, users)
            users, used = users[used < self._active], used[used < self._active]
            self.users.write(self._used, users, used + 1)
        return users, np.zeros_like(users), np.full_like(users, self._last)

    def _by_category(self, tick: OwnedTick) -> tuple[IntArray, IntArray, IntArray]:
        known = tick.cells[:, 0] >= 0
        codes, cells = tick.codes[known], tick.cells[known, 0]
        _, first = np.unique(codes * self._width + cells, return_index=True)
        first.sort()  # by arrival: which categories of a user come first is decided by the user's own events
        codes, cells = codes[first], cells[first]
        present = np.unique(codes)
        users = self.users.enter(tick.names.take(present))[np.searchsorted(present, codes)]
        left = ~self.users.erased(users)
        users, cells = users[left], cells[left]
        held = np.stack([self.users.read(field, users) for field in range(self._most)])
        places = np.where((held == cells + 1).any(axis=0), (held == cells + 1).argmax(axis=0), -1)
        new = places < 0
        places[new] = (held[:, new] > 0).sum(axis=0) + rank_within(users[new])
        kept = places < self._most
        for field in np.unique(places[kept & new]).tolist():
            at = kept & new & (places == field)
            self.users.write(field, users[at], cells[at] + 1)
        return users[kept], cells[kept], places[kept] + self._last

    def _counted(self, seen: IntArray, tick: int) -> IntArray:
        """Active users, by window and category."""
        rows = [np.arange(tick - window + 1, tick + 1) % self._longest for window in self._windows]
        return np.stack([seen[row].sum(axis=0) for row in rows])

    def begin(self, tick: int) -> None:
        super().begin(tick)
        self._before = self._seen

    def undo(self, tick: int) -> None:
        super().undo(tick)
        self._seen = self._before

    def erase(self, names: Texts) -> None:
        # They leave when their window is over, as if silent, and never come again (trap 7).
        super().erase(names)

    def load(self, tick: int, data: bytes) -> None:
        super().load(tick, data)
        seen = np.zeros_like(self._seen)
        for place in range(max(1, self._most)):
            last = self.users.column(self._last + place)
            cells = self.users.column(place) - 1 if self._most else np.zeros_like(last)
            still = last > max(0, tick - self._longest)
            np.add.at(seen, (last[still] % self._longest, cells[still]), 1)
        self._seen = self._before = seen
