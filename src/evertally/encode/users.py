"""The lifetime cap of user-level privacy: the first w events of a user count, the rest contribute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import Codes, as_list, canonical, coded, is_arrow, label_bytes, require_column
from evertally.errors import ReplayRefused, StateError
from evertally.integers import whole
from evertally.secret import Secret

_FORMAT = b"evertally-users-1\n"


@dataclass(frozen=True, repr=False)
class UserTick(Secret):
    """What one tick changed: the counts of its users before and after it. Secret.

    Counts, not differences: to enter them twice is to enter them once, so that whoever was interrupted while doing so
    does it again.
    """

    tick: int = 0
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)


class UserCap(Secret):
    """Keeps the first `max_events` events of each user over the whole life of the stream.

    The rule looks at nothing but that user's own events, in their order of arrival, and at none of their
    content: an event that turns out empty or invalid uses up one of its user's places all the same. (A cap
    that skipped invalid events would let a user's kept positions move when one event changes, and the charge
    would double.) An event without a user is not kept. Nor is one with several: one owner's cap would decide about
    the other's event, the effect cascades, and no charge is known. (That is said of a record, silently. A column
    whose *type* is a list of users, as an Arrow column may have, is a mistake in the call, and refused.)

    >>> cap = UserCap(max_events=2)
    >>> cap.keep(["ann", "bob", "ann", "ann", None], tick=1).tolist()
    [True, True, True, False, False]
    >>> cap.keep(["bob", "bob", "ann"], tick=2).tolist()
    [True, False, False]

    Asked again about the last tick it answers from the state before that tick and changes nothing, so a tick
    can be replayed. `look` answers without counting: whoever releases the tick sets `last` when it is released.
    """

    def __init__(self, max_events: int) -> None:
        self.max_events = whole("max_events", max_events, 1, 2**31 - 1)
        self.last = UserTick()  # the last tick that counts; replaced as a whole
        self._used: dict[str, int] = {}  # the counts after all earlier ticks, and perhaps after the last one

    def keep(self, users: Any, tick: int) -> NDArray[np.bool_]:
        """One truth value per event: whether it is among the first `max_events` of its user."""
        kept, self.last = self.look(users, tick)
        return kept

    def look(self, users: Any, tick: int) -> tuple[NDArray[np.bool_], UserTick]:
        """What `keep` would say, and what the tick would change."""
        require_column(users, "users")
        codes, names = owners(users)
        if tick < self.last.tick:
            raise ReplayRefused(f"the user cap has passed tick {self.last.tick}; tick {tick} cannot be asked again")
        replay = tick == self.last.tick
        if not replay:
            self._used.update(self.last.after)
        known = self.last.before if replay else {}
        before = [known.get(name, self._used.get(name, 0)) for name in names]
        room = np.array([self.max_events - used for used in before] + [0], np.int64)  # code -1 (no user) finds the 0
        kept = _rank_within_code(codes) < room[codes]
        if replay:
            return kept, self.last
        added = np.bincount(codes[kept], minlength=len(names)).tolist()
        after = {name: used + more for name, used, more in zip(names, before, added, strict=True)}
        return kept, UserTick(tick, dict(zip(names, before, strict=True)), after)

    def to_bytes(self) -> bytes:
        """The whole state as secret bytes (it names users), the same bytes for the same state."""
        parts = [_FORMAT, self.max_events.to_bytes(4, "big"), self.last.tick.to_bytes(8, "big")]
        for table in ({**self._used, **self.last.after}, self.last.before):
            parts.append(len(table).to_bytes(8, "big"))
            for name in sorted(table):
                raw = label_bytes(name)
                parts += [len(raw).to_bytes(4, "big"), raw, table[name].to_bytes(4, "big")]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, blob: bytes) -> UserCap:
        """The cap that `to_bytes` described; StateError when the bytes are not such a description."""
        if not blob.startswith(_FORMAT):
            raise StateError("these bytes are not the state of a user cap")
        reader = _Reader(blob, len(_FORMAT))
        cap = cls(reader.number(4))
        tick = reader.number(8)
        cap._used = reader.table()
        before = reader.table()
        reader.finish()
        if not before.keys() <= cap._used.keys():
            raise StateError("the state of a user cap counts users of its last tick that it does not know")
        cap.last = UserTick(tick, before, {name: cap._used[name] for name in before})
        return cap


def owners(users: Any) -> tuple[Codes, list[str]]:
    """Codes into a list of distinct canonical user names, -1 for events without a user."""
    coded_users = coded(users)
    if coded_users is None:
        if is_arrow(users) and _is_nested(users):
            raise TypeError("users must hold one user per event; a column of several users for each is refused")
        values = as_list(users)
        coded_users = np.arange(len(values)), values
    codes, values = coded_users
    number: dict[str, int] = {}
    recoded = np.full(len(values) + 1, -1, np.int64)  # the last entry is where code -1 points
    for i, value in enumerate(values):
        name = canonical(value)
        if name is not None:
            recoded[i] = number.setdefault(name, len(number))
    return recoded[codes], list(number)


def _is_nested(users: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_nested(users.type))


def _rank_within_code(codes: Codes) -> Codes:
    """For each entry, how many earlier entries have the same code."""
    order = np.argsort(codes, kind="stable")
    in_order = codes[order]
    starts = np.flatnonzero(np.r_[True, in_order[1:] != in_order[:-1]]) if len(codes) else np.empty(0, np.int64)
    lengths = np.diff(np.r_[starts, len(codes)])
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return rank


class _Reader:
    """Reads the fields of `to_bytes` in turn; StateError, without content, when the bytes run out."""

    def __init__(self, blob: bytes, position: int) -> None:
        self._blob = blob
        self._position = position

    def take(self, length: int) -> bytes:
        raw = self._blob[self._position : self._position + length]
        if len(raw) != length:
            raise StateError("the state of a user cap is cut short")
        self._position += length
        return raw

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "big")

    def table(self) -> dict[str, int]:
        table: dict[str, int] = {}
        for _ in range(self.number(8)):
            name = self.take(self.number(4)).decode("utf-8", "surrogatepass")
            table[name] = self.number(4)
        return table

    def finish(self) -> None:
        if self._position != len(self._blob):
            raise StateError("the state of a user cap has trailing bytes")
