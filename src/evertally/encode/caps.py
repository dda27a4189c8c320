"""What the rules share that keep some of a user's events: a table of users, and what each tick changed in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import Codes, require_column
from evertally.encode.name_kernels import first_seen, kernel
from evertally.encode.owners import named, owners
from evertally.encode.spelled import Named
from evertally.encode.texts import Texts
from evertally.encode.user_table import Digest, UserTable
from evertally.errors import ConfigurationError, ReplayRefused, StateError
from evertally.secret import Secret

IntArray = NDArray[np.int64]
Kept = NDArray[np.bool_]

_LARGE = 8  # times the events of a tick: a table with more users is large


@dataclass(frozen=True, repr=False, eq=False)
class UserTick(Secret):
    """What one tick changed: what was remembered of its users before and after it, a row for each. Secret.

    Rows, not differences: to enter them twice is to enter them once, so that whoever was interrupted while doing so
    does it again. `numbers`: where the table had them when the tick was looked at and it had `known` users, -1 for
    newcomers.
    """

    tick: int = 0
    names: Texts = field(default_factory=lambda: Texts.of([]))
    numbers: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    before: IntArray = field(default_factory=lambda: np.empty((0, 0), np.int64))
    after: IntArray = field(default_factory=lambda: np.empty((0, 0), np.int64))
    known: int = -1


class Cap(Secret, ABC):
    """Keeps some events of each user, by a rule that looks at that user's own events and at the clock. See `UserCap`.

    A subclass says how many whole numbers it remembers of a user (all 0 for a newcomer), and `_decide`. Asked again
    about the last tick it answers from the state before that tick and changes nothing, so a tick can be replayed.
    `look` answers without counting: whoever releases the tick sets `last` when it is released.
    """

    format: bytes
    fields: int

    def __init__(self) -> None:
        self.last = UserTick()  # the last tick that counts; replaced as a whole
        self._table = UserTable(self.fields)  # as it is after all earlier ticks, and perhaps after the last one
        self._entered: tuple[UserTick, IntArray] = (
            self.last,
            self.last.numbers,
        )  # the tick that the table has, and where
        self._torn = False  # whether many ticks were being counted at once

    @abstractmethod
    def _decide(self, codes: Codes, before: IntArray, tick: int) -> tuple[Kept, IntArray]:
        """Which events are kept, and what is remembered after them of the users that `codes` point at."""

    @abstractmethod
    def _options(self) -> list[int]:
        """The public numbers of the rule."""

    @classmethod
    @abstractmethod
    def _of_options(cls, options: Sequence[int]) -> Self:
        """The rule with these numbers, without a memory."""

    def keep(self, users: Any, tick: int) -> Kept:
        """One truth value per event: whether it is kept."""
        kept, self.last = self.look(users, tick)
        return kept

    def look(self, users: Any, tick: int) -> tuple[Kept, UserTick]:
        """What `keep` would say, and what the tick would change."""
        require_column(users, "users")
        if tick < self.last.tick:
            raise ReplayRefused(f"the user cap has passed tick {self.last.tick}; tick {tick} cannot be asked again")
        self._settle()
        replay = tick == self.last.tick
        codes, names, numbers = self._users(users)
        before = self._rows(numbers, replay)
        owned = codes >= 0
        if owned.all():
            kept, after = self._decide(codes, before, tick)
        else:
            kept = np.zeros(len(codes), np.bool_)
            kept[owned], after = self._decide(codes[owned], before, tick)
        erased = self._table.erased(numbers)
        if erased.any():
            if replay:  # who counted then, and was erased since, counts again
                erased &= ~np.isin(numbers, self._entered[1])
            kept[owned] &= ~erased[codes[owned]]
            others = np.flatnonzero(~erased)
            names, numbers, before, after = names.take(others), numbers[others], before[others], after[others]
        return kept, self.last if replay else UserTick(tick, names, numbers, before, after, len(self._table))

    def keep_ticks(self, users: Any, edges: Sequence[tuple[int, int, int]]) -> Kept:
        """What `keep` says of several ticks in turn, whose events lie one behind the other; of each tick its number,
        where it begins and where it ends. Users are looked up once for all of them.

        It leaves behind what tick after tick would, to the byte. After a call that was interrupted the cap refuses to
        go on: some of the ticks might have been counted.
        """
        self._settle()
        require_column(users, "users")
        self._torn = True
        first, ticks = self.last.tick, [tick for tick, _, _ in edges]
        one_by_one = len(edges) < 2 or self._table.erased_any or any(a >= b for a, b in pairwise([first, *ticks]))
        if one_by_one:
            parts = []
            for tick, start, stop in edges:
                self._torn = False
                parts.append(self.keep(users[start:stop], tick))
                self._torn = True
            kept = np.concatenate([np.zeros(0, np.bool_), *parts])
        else:
            kept = self._keep_at_once(users, edges)
        self._torn = False
        return kept

    def _keep_at_once(self, users: Any, edges: Sequence[tuple[int, int, int]]) -> Kept:
        codes, names = owners(users)  # by their first events: so the table would number them, tick after tick
        earlier = int(codes[: edges[-1][1]].max(initial=-1)) + 1  # who came before the last tick
        numbers = self._table.find(names)
        rows, kept = self._rows(numbers, replay=False), np.zeros(len(codes), np.bool_)
        for tick, start, stop in edges:
            here, order = codes[start:stop], np.empty(len(names), np.int64)
            count = kernel(first_seen, len(here))(here, np.full(len(names), -1, np.int64), order)
            who, owned = order[:count], np.flatnonzero(here >= 0)
            before = rows[who]
            kept[start + owned], after = self._decide(here[owned], before, tick)
            rows[who] = after
        rows[who] = before  # the last tick goes into the table when the next call comes
        numbers[:earlier] = self._table.enter(names.take(np.arange(earlier)), numbers[:earlier])
        for i in range(self.fields):
            self._table.write(i, numbers[:earlier], rows[:earlier, i])
        self._table.begin()
        self.last = UserTick(tick, names.take(who), numbers[who], before, after, len(self._table))
        return kept

    def _users(self, users: Any) -> tuple[Codes, Texts, IntArray]:
        """For each event the place of its user, -1 for none; different names, in the order of their first events; and
        where the table has them."""
        read = named(users)
        # Otherwise there is more to set up than to look up; and erased users are found by digests of names.
        if isinstance(read, Named) and _LARGE * len(read.texts) > len(self._table) and not self._table.erased_any:
            codes, names, numbers = self._table.users_of(read.texts)
            return codes if read.rows is None else np.append(codes, -1)[read.rows], names, numbers
        codes, names = owners(users if read is None else read)
        return codes, names, self._table.find(names)

    def recognise(self, digest: Digest) -> None:
        """Says how names of erased users are digested; see `UserTable.erase`."""
        self._table.recognise(digest)

    def erase(self, names: Texts) -> None:
        """Replaces names by their digests: none of these users' later events is kept. Can be interrupted, and done
        again. The last tick is asked again as before; `last` names nobody afterwards."""
        self._settle()
        self._table.erase(names)
        last, entered = self._entered
        self.last = UserTick(last.tick, Texts.of([]), entered, last.before, last.after, len(self._table))
        self._entered = self.last, entered

    def to_bytes(self) -> bytes:
        """The whole state as secret bytes (it names users), the same bytes for the same state."""
        self._settle()
        options, (last, entered) = self._options(), self._entered
        head = np.array([len(options), *options, last.tick, len(entered)], dtype="<i8")
        rows = np.concatenate([entered, last.before.ravel()]).astype("<i8")
        return b"".join([self.format, head.tobytes(), rows.tobytes(), self._table.save()])

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The cap that `to_bytes` described; StateError when the bytes are not such a description."""
        if not blob.startswith(cls.format):
            raise StateError("these bytes are not the state of a user cap")
        numbers = _Numbers(blob, len(cls.format))
        options = numbers.take(numbers.one())
        tick, count = numbers.one(), numbers.one()
        entered = np.array(numbers.take(count), np.int64)
        before = np.array(numbers.take(count * cls.fields), np.int64).reshape(count, cls.fields)
        try:
            cap = cls._of_options(options)
        except (ConfigurationError, ValueError):
            raise StateError("the state of a user cap is damaged") from None
        cap._table.load(blob[numbers.place :])
        known = not count or 0 <= entered.min() <= entered.max() < len(cap._table)
        if tick < 0 or not known or len(np.unique(entered)) != count:
            raise StateError("the state of a user cap counts users of its last tick that it does not know")
        after = cap._rows(entered, replay=False)
        cap.last = UserTick(tick, Texts.of([]), entered, before, after, len(cap._table))
        cap._entered = cap.last, entered
        return cap

    def _settle(self) -> None:
        """The last tick goes into the table, however often, to the same effect."""
        if self._torn:
            raise StateError("this user cap was interrupted while it counted; restore it from its last state")
        last, table = self.last, self._table
        if self._entered[0] is last:
            return
        table.undo()  # what an interrupted call left of this
        numbers = table.enter(last.names, last.numbers if last.known == len(table) else None)
        for i in range(last.after.shape[1]):
            table.write(i, numbers, last.after[:, i])
        table.begin()
        self._entered = last, numbers

    def _rows(self, numbers: IntArray, replay: bool) -> IntArray:
        """What is remembered of these users, of those without a number nothing; before the last tick, if asked so."""
        rows = np.empty((len(numbers), self.fields), np.int64)
        strangers = np.flatnonzero(numbers < 0)
        last, entered = self._entered
        for i in range(self.fields):
            column = self._table.column(i)
            if replay and len(entered):
                column = column.copy()
                column[entered] = last.before[:, i]
            rows[:, i] = column[numbers] if len(column) else 0
        rows[strangers] = 0
        return rows


class _Numbers:
    """Reads whole numbers in turn; StateError, without content, when the bytes run out."""

    def __init__(self, blob: bytes, place: int) -> None:
        self._blob, self.place = blob, place

    def one(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> list[int]:
        if not 0 <= 8 * count <= len(self._blob) - self.place:
            raise StateError("the state of a user cap is cut short")
        found: list[int] = np.frombuffer(self._blob, "<i8", count, self.place).tolist()
        self.place += 8 * count
        return found
