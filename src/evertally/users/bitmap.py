"""Distinct users in a fixed amount of memory: a map of bits (users-and-domains 2.6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.contract.parts import IntArray
from evertally.encode.owned import OwnedTick
from evertally.encode.texts import Texts
from evertally.errors import StateError
from evertally.secret import Secret
from evertally.users.distinct_rules import Hash, keyed_numbers

_FORMAT = b"evertally-bitmap-1\n"


class Bitmap(Secret):
    """Every user sets one of `bits` bits, by a keyed hash of the name that stays for life. The row of a tick: bits that
    were not set before.

    One user there or not: +1 at his first tick, and -1 when another one sets his bit. So it costs (2, 2, 1), more than
    a table of names. Nothing is ever cleared.
    """

    def __init__(self, bits: int, order: Hash) -> None:
        self._bits, self._order = bits, order
        self._map = np.zeros(-(-bits // 8), dtype=np.uint8)
        self._log: list[IntArray] = []  # bits that this call sets

    def places(self, names: Texts) -> IntArray:
        """The bit of each user."""
        number, M = keyed_numbers(names, self._order, b"bit of a user:"), np.uint64(self._bits)
        # The number times M/2^64, in two halves that fit into 64 bits as long as M is at most 2^32.
        high, low = number >> np.uint64(32), number & np.uint64(0xFFFFFFFF)
        found: NDArray[np.uint64] = (high * M + ((low * M) >> np.uint64(32))) >> np.uint64(32)
        return found.astype(np.int64)

    def admit(self, tick: OwnedTick) -> IntArray:
        places = np.unique(self.places(tick.names))
        new = places[(self._map[places >> 3] >> (places & 7).astype(np.uint8)) & 1 == 0]
        self._log.append(new)  # first: whatever is interrupted from here on is taken back
        np.bitwise_or.at(self._map, new >> 3, _masks(new))
        return np.array([new.size], dtype=np.int64)

    def begin(self, tick: int) -> None:
        self._log = []

    def undo(self, tick: int) -> None:
        for new in self._log:
            np.bitwise_and.at(self._map, new >> 3, ~_masks(new))

    def save(self) -> bytes:
        return _FORMAT + self._bits.to_bytes(8, "little") + self._map.tobytes()

    def load(self, tick: int, data: bytes) -> None:
        head = _FORMAT + self._bits.to_bytes(8, "little")
        if not data.startswith(head) or len(data) != len(head) + self._map.size:
            raise StateError("these bytes are not the bits of this statistic; restore from an intact snapshot")
        self._map = np.frombuffer(data[len(head) :], dtype=np.uint8).copy()
        self._log = []


def _masks(places: IntArray) -> NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (places & 7).astype(np.uint8))
