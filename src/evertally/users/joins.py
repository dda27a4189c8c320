"""Events that follow an earlier event of the same user: orders after an advertisement, visits after a discharge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evertally.applications.encoder import EncodedEngine
from evertally.contract.forms import LabelledForm
from evertally.contract.options import option, statistic
from evertally.contract.owned import OwnedDoor
from evertally.contract.parts import Blueprint, IntArray
from evertally.contract.ticks import LONGEST_HORIZON, last_tick
from evertally.counting.linear import LinearEngine
from evertally.counting.process import NoiseProcess
from evertally.encode.door import declared_labels
from evertally.encode.owned import OwnedTick, without_erased
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.privacy import Change, Neighbours
from evertally.statistics.linear_options import Linear
from evertally.users.labels import column_reader
from evertally.users.user_rule import UserRule

_MOST_COLUMNS = 62  # those that counted of a user are bits of one number, where each counts once


class Followed(UserRule):
    """Counts events that follow. It remembers of each user the tick of the last event that others follow, how many
    pairs have counted, and in which columns; it looks at nothing else.

    Cells are columns of what is counted, or `len(columns)` for an event that others follow, -1 for neither.
    """

    def __init__(self, columns: int, most: int, within: int | None, once: bool, limit: int = 2**61) -> None:
        super().__init__(fields=3)
        self._columns, self._most, self._within, self._once = columns, most, within, once
        self._limit = limit

    def admit(self, tick: OwnedTick) -> IntArray:
        tick, row = without_erased(tick, self.users), np.zeros(self._columns, dtype=np.int64)
        cells = tick.cells[:, 0]
        told = cells >= 0
        present, codes = np.unique(tick.codes[told], return_inverse=True)
        users = self.users.enter(tick.names.take(present))
        last, used, seen = (self.users.read(field, users).tolist() for field in range(3))
        for code, cell in zip(codes.tolist(), cells[told].tolist(), strict=True):
            if cell == self._columns:
                last[code] = tick.tick
                continue
            late = self._within is not None and tick.tick - last[code] > self._within
            if not last[code] or late or used[code] >= self._most or (self._once and seen[code] >> cell & 1):
                continue
            used[code] += 1
            seen[code] |= 1 << cell if self._once else 0
            row[cell] += 1
        for field, values in enumerate((last, used, seen)):
            self.users.write(field, users, np.array(values, dtype=np.int64))
        # 1-Lipschitz, hence free; it keeps the sums far from the end of int64.
        return np.minimum(row, self._limit)

    def erase(self, names: Texts) -> None:
        """Pairs that counted stay; what others of these users' events followed is followed no more."""
        super().erase(names)


@statistic
class JoinedEvents(Linear):
    """How many events follow an earlier event of the same user: orders after an impression, by what was ordered.

    An event with a label of `then` counts in the column of that label if one with a label of `after` came before it, in
    an earlier tick or earlier in the same one, from the same user, at most `within` ticks ago. Of each user the first
    `max_pairs` count, in the tick of the later event. With `once` each column counts a user at most once.

    Theorem (users-and-domains 7, joins [R], unit user): a user who is there or not moves (m, m^2, m), all pairs in one
    column; with `once` (m, m, 1), by U1; twice that where a user is replaced. One *event* could exchange all pairs of
    its user, so unit="event" is refused. Exactness tier "exact". Error: that of `Counter` times m (`once`: sqrt(m)).
    Time O(events), memory three numbers and a name for each user, for ever.

    >>> import evertally as et
    >>> orders = et.JoinedEvents(after=["shown"], then=["order"], max_pairs=2, guarantee=et.ZCDP(0.5), horizon=100,
    ...                          key=et.simulation(1))
    >>> release = orders.step_events(["shown", "order", "order"], users=["ann", "ann", "bob"])
    >>> orders.sensitivity, list(release.value)
    (Change(l1=2, l2_squared=4, linf=2), ['order'])
    """

    after: Sequence[Any] = option("Labels of events that others follow.")
    then: Sequence[Any] = option("Labels of events that are counted where they follow, one column each.")
    max_pairs: int = option("How many events of a user count in the whole stream: the first ones.", default=1)
    within: int | None = option("How many ticks later an event still follows; None: for ever.", default=None)
    once: bool = option("Whether a column counts a user at most once.", default=False)
    unit: Any = option('What is protected: everything of one "user".', default="user")

    @classmethod
    def user_rule(cls, options: Mapping[str, Any]) -> str:
        m = options.get("max_pairs", 1)
        which = "the first event that follows" if m == 1 else f"the first {m} events that follow"
        return which + (", each kind once" if options.get("once") else "")

    @property
    def noise(self) -> NoiseProcess:
        """The noise process behind the counts; it never sees a user."""
        engine: Any = self._engine
        assert isinstance(engine.inner, LinearEngine)
        return engine.inner.noise

    def _blueprint(self) -> Blueprint:
        if self.unit != "user":
            raise ConfigurationError('joins are proved for unit="user": without one event all later pairs may move')
        if self.max_events_per_user is not None:
            raise ConfigurationError("max_pairs bounds a user here: leave out max_events_per_user")
        relation = Neighbours.parse(self.neighbours)
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError('users are there or not, or replaced: neighbours are "add_remove" or "replace"')
        then, after = declared_labels(self.then), declared_labels(self.after)
        if set(then) & set(after):
            raise ConfigurationError("a label is in after or in then, not in both")
        width = len(then)
        if self.once and width > _MOST_COLUMNS:
            raise ConfigurationError(f"with once there are up to {_MOST_COLUMNS} labels in then")
        m = self.max_pairs = whole("max_pairs", self.max_pairs, 1, 2**31)
        within = self.within = None if self.within is None else whole("within", self.within, 0, LONGEST_HORIZON)
        once = self.once
        if once:
            m = min(m, width)
        moved = Change(m, m, 1) if once else Change(m, m * m, m)
        loose = None
        if relation is Neighbours.REPLACE:
            moved, loose = _times(moved, 2), _times(moved, 4)
        self.then, self.after = list(then), list(after)
        read = column_reader([*then, *after], other=False)

        def cells(events: Any) -> IntArray:
            return np.minimum(read(events), width)

        rows = self._linear(
            "JoinedEvents",
            width,
            moved,
            self._contributing(user_rule=self.user_rule(self._given("max_pairs", "once"))),
            self._given("after", "then", "max_pairs", "within", "once", "unit"),
            lambda source, limit: OwnedDoor(cells),
            LabelledForm(then),
            settled=self._given("after", "then"),
            loose=loose,
        )
        most, limit = self.max_pairs, 2**61 // last_tick(self.horizon)
        return replace(
            rows,
            owned=True,
            engine=lambda source: EncodedEngine(Followed(width, most, within, once, limit), rows.engine(source)),
        )


def _times(change: Change, squares: int) -> Change:
    """Two users, one of them taken away: amounts double, squares do where no entry of the Gram matrix is negative."""
    return Change(2 * change.l1, squares * change.l2_squared, 2 * change.linf)
