"""The lifetime cap of user-level privacy: the first w events of a user count, the rest contribute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from evertally.encode.caps import Cap, IntArray, Kept, UserTick
from evertally.encode.labels import Codes
from evertally.encode.name_kernels import keep_first, kernel
from evertally.encode.texts import Texts
from evertally.errors import StateError
from evertally.integers import whole

_EARLIER = b"evertally-users-1\n"


class UserCap(Cap):
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

    format = b"evertally-users-2\n"
    fields = 1  # how many of the user's events were kept

    def __init__(self, max_events: int) -> None:
        self.max_events = whole("max_events", max_events, 1, 2**31 - 1)
        super().__init__()

    def _decide(self, codes: Codes, before: IntArray, tick: int) -> tuple[Kept, IntArray]:
        kept, after = np.empty(len(codes), np.bool_), before.copy()
        kernel(keep_first, len(codes))(codes, self.max_events, after[:, 0], kept)
        return kept, after

    def _options(self) -> list[int]:
        return [self.max_events]

    @classmethod
    def _of_options(cls, options: Sequence[int]) -> Self:
        (max_events,) = options
        return cls(max_events)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The cap that `to_bytes` described, also that of an earlier version; StateError for any other bytes."""
        return super().from_bytes(_renewed(blob) if blob.startswith(_EARLIER) else blob)


def _renewed(blob: bytes) -> bytes:
    """The state of a cap as it is written now, from what the version wrote that kept users in dictionaries."""
    reader = _Reader(blob, len(_EARLIER))
    cap = UserCap(reader.number(4))
    tick = reader.number(8)
    used, before = reader.table(), reader.table()
    reader.finish()
    if not before.keys() <= used.keys():
        raise StateError("the state of a user cap counts users of its last tick that it does not know")

    def rows(names: list[bytes], counts: dict[bytes, int]) -> UserTick:
        after = np.array([[used[name]] for name in names], np.int64).reshape(-1, 1)
        earlier = np.array([[counts.get(name, 0)] for name in names], np.int64).reshape(-1, 1)
        return UserTick(tick, Texts.of_bytes(names), np.full(len(names), -1), earlier, after)

    cap.last = rows(list(used), used)
    cap._settle()
    cap.last = rows(list(before), before)
    return cap.to_bytes()


class _Reader:
    """Reads the fields of an earlier `to_bytes` in turn; StateError, without content, when the bytes run out."""

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

    def table(self) -> dict[bytes, int]:
        table: dict[bytes, int] = {}
        for _ in range(self.number(8)):
            name = self.take(self.number(4))
            table[name] = self.number(4)
        return table

    def finish(self) -> None:
        if self._position != len(self._blob):
            raise StateError("the state of a user cap has trailing bytes")
