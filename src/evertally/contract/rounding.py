"""Rounding amounts to whole steps without a bias, by coins that belong to the event.

Each amount is rounded up with the probability of its fraction of a step. The coin of an event lies at an address of its
own: tick, amount, user (where users are told apart) and number among the equal events of that tick and user. No other
event is in it, so that neighbouring streams use the same coins for everything that they share, and differ by the
rounded amount of one event (docs/theory/additions.md, 12). The same events of the same tick always have the same coins,
in whatever order they come: a replay finds the same sums.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evertally.encode.texts import Texts
from evertally.noise import Source
from evertally.noise.keystream import Keystream
from evertally.secret import Secret

IntArray = NDArray[np.int64]
Rounding = Literal["random", "nearest"]
ROUNDINGS = ("random", "nearest")

_LANE, _LAW = "rounding of amounts", "64 bits"


class Rounder(Secret):
    """Places on a grid (`AmountGrid.places`) to whole steps between `low` and `high`; NaN to 0.

    >>> from evertally.noise import simulation
    >>> rounder = Rounder(simulation(1).source("doc"), 0, 50, "random")
    >>> halves = rounder.steps(np.full(10_000, 2.5), tick=1)
    >>> sorted(set(halves.tolist())), bool(abs(halves.sum() - 25_000) < 300)
    ([2, 3], True)
    >>> rounder.steps(np.array([2.0, 99.0, np.nan]), tick=1).tolist()
    [2, 50, 0]
    """

    def __init__(self, source: Source, low: int, high: int, rounding: Rounding) -> None:
        self._low, self._high, self._random = low, high, rounding == "random"
        self._key = source.order(b"rounding of amounts")
        self._coins = Keystream(self._key, _LANE, _LAW)

    def steps(
        self, places: NDArray[np.float64], tick: int, codes: IntArray | None = None, names: Texts | None = None
    ) -> IntArray:
        """The steps of each event. `codes` and `names`: whose they are, where users are told apart."""
        with np.errstate(all="ignore"):
            near = np.clip(np.nan_to_num(places), self._low, self._high)
            down = np.floor(near if self._random else near + 0.5)
            part = near - down if self._random else np.zeros_like(near)
        steps = down.astype(np.int64)
        between = np.flatnonzero(part)
        if between.size:
            whose = None if codes is None else codes[between]
            words = self._words(near[between], tick, whose, names)
            steps[between] += words < np.ceil(part[between] * 2.0**53).astype(np.uint64)
        # In integers: what bounds an event comes after all rounding.
        bounded: IntArray = np.clip(steps, self._low, self._high)
        return bounded

    def _words(
        self, places: NDArray[np.float64], tick: int, codes: IntArray | None, names: Texts | None
    ) -> NDArray[np.uint64]:
        """53 random bits for each event."""
        bits = places.view(np.uint64)
        number = _numbers_among_equals(bits, np.zeros(len(bits), dtype=np.int64) if codes is None else codes)
        addresses = np.empty((len(bits), 2), dtype=np.uint64)
        addresses[:, 0], addresses[:, 1] = bits, number & 0xFFFFFFFF
        if codes is not None:
            assert names is not None
            present, place = np.unique(codes, return_inverse=True)
            # Two users whose digests agree share coins, which is nobody's loss: their numbers stay apart.
            digests = b"".join(map(self._digest, names.take(present).names()))
            addresses[:, 0] ^= np.frombuffer(digests, dtype="<u8").astype(np.uint64)[place]
        words: NDArray[np.uint64] = self._coins.item_words(tick, addresses)[:, 0] >> np.uint64(11)
        return words

    def _digest(self, name: bytes) -> bytes:
        return hashlib.blake2b(name, key=self._key, digest_size=8, person=b"evertally:round").digest()


def _numbers_among_equals(bits: NDArray[np.uint64], codes: IntArray) -> IntArray:
    """For each event, how many equal ones (same amount, same user) come before it.

    >>> _numbers_among_equals(np.array([5, 7, 5, 5], dtype=np.uint64), np.array([0, 0, 1, 0])).tolist()
    [0, 0, 0, 1]
    """
    order = np.lexsort((bits, codes))  # stable
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = (np.diff(codes[order]) != 0) | (bits[order][1:] != bits[order][:-1])
    first = np.flatnonzero(starts)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    return numbers
