"""From labels to numbers and back: a hash table over packed labels.

A Python dictionary would do, but a million labels a second are more than it finds (three or four places of memory for
each, one after the other). Here all hashes are made first, then all places are looked at, then all labels are compared:
loops whose steps do not wait for each other.

The hash of a label is sum_j R_j (byte_j + 1) mod 2^64 with secret random R_j. Two labels have the same one with
probability at most 2^-56, so nobody who does not know the key can send labels that meet in one place. Labels with equal
hashes are told apart by comparing them: no two labels are ever taken for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.counting.process import IntArray
from evertally.encode.name_index import fixed
from evertally.encode.name_kernels import kernel
from evertally.encode.texts import LONGEST_LABEL, Texts
from evertally.secret import Secret

_HASH, _NUMBER = 0, 1  # what a slot holds; the number counts from 1, 0 is an empty slot
_SKIPPED = 20  # low bits of a hash that play no part in its place: differences of bytes are even too often


class ItemIndex(Secret):
    """Numbers for labels, in the order in which they are entered.

    >>> index = ItemIndex(lambda message: bytes(16))
    >>> index.enter(Texts.of(["pear", "fig"]))
    >>> index.find(Texts.of(["fig", "lime", "pear"])).tolist(), len(index), index.labels[1]
    ([1, -1, 0], 2, 'fig')
    """

    def __init__(self, order: Callable[[bytes], bytes]) -> None:
        random = b"".join(order(b"index" + i.to_bytes(2, "little")) for i in range(LONGEST_LABEL // 2))
        self._multipliers = np.frombuffer(random, dtype="<i8", count=LONGEST_LABEL).astype(np.int64)
        self._slots = np.zeros((64, 2), dtype=np.int64)
        self._data = np.zeros(0, dtype=np.uint8)
        self._offsets = np.zeros(1, dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def labels(self) -> Texts:
        """All labels, by number."""
        return Texts(self._data, self._offsets[: self._count + 1])

    def find(self, texts: Texts) -> IntArray:
        """The number of each label, -1 if it has none."""
        hashes = self._hashes(texts)
        numbers = np.full(len(texts), -1, dtype=np.int64)
        places = self._places(hashes)
        left = np.arange(len(texts))
        while left.size:
            self._kernel(_probe, left, hashes, self._slots, places, numbers)
            found = left[numbers[left] >= 0]
            same = np.ones(len(texts), dtype=np.bool_)
            mine = self._offsets[numbers[found]], self._offsets[numbers[found] + 1]
            self._kernel(_compare, found, *fixed(texts), self._data, *mine, same)
            left = np.flatnonzero(~same)  # another label with this hash: look further
            numbers[left] = -1
            places[left] = (places[left] + 1) & (len(self._slots) - 1)
        return numbers

    def enter(self, texts: Texts) -> None:
        """Gives numbers to distinct labels that have none."""
        first, self._count = self._count, self._count + len(texts)
        start, lengths = self._offsets[first], texts.lengths
        self._offsets = grown(self._offsets, self._count + 1)
        self._offsets[first + 1 : self._count + 1] = start + np.cumsum(lengths)
        stop = self._offsets[self._count]
        self._data = grown(self._data, int(stop))
        self._data[start:stop] = texts.data[texts.offsets[0] : texts.offsets[-1]]
        if 3 * self._count > 2 * len(self._slots):
            size = 1 << (2 * self._count).bit_length()
            self._slots = np.zeros((size, 2), dtype=np.int64)
            first, texts = 0, self.labels
        hashes = self._hashes(texts)
        self._kernel(_fill, np.arange(len(texts)), hashes, self._places(hashes), self._slots, first)

    def _hashes(self, texts: Texts) -> IntArray:
        hashes = np.zeros(len(texts), dtype=np.int64)
        self._kernel(_hash, np.arange(len(texts)), *fixed(texts), self._multipliers, hashes)
        return hashes

    def _places(self, hashes: IntArray) -> IntArray:
        places: IntArray = (hashes >> _SKIPPED) & (len(self._slots) - 1)
        return places

    @staticmethod
    def _kernel(function: Callable[..., None], which: IntArray, *arguments: Any) -> None:
        with np.errstate(over="ignore"):  # arithmetic mod 2^64 is wanted
            kernel(function, which.size)(which, *arguments)


def grown(array: NDArray[Any], size: int, axis: int = 0) -> NDArray[Any]:
    """The array with room for `size` entries along an axis, zeros at the end; an eighth more than is asked for, so that
    growing costs little on the whole."""
    if size <= array.shape[axis]:
        return array
    shape = list(array.shape)
    shape[axis] = size + size // 8
    larger = np.zeros(shape, dtype=array.dtype)
    larger[tuple(slice(0, length) for length in array.shape)] = array
    return larger


# The loops, interpreted and compiled alike: for each q in `which`.
def _hash(which: IntArray, data: NDArray[np.uint8], offsets: IntArray, multipliers: IntArray, hashes: IntArray) -> None:
    for q in which:
        start = offsets[q]
        total = np.int64(0)
        for j in range(offsets[q + 1] - start):
            total += multipliers[j] * (np.int64(data[start + j]) + 1)
        hashes[q] = total


def _probe(which: IntArray, hashes: IntArray, slots: IntArray, places: IntArray, numbers: IntArray) -> None:
    """From its place on, the first slot with the hash, or an empty one."""
    for q in which:
        place = places[q]
        while slots[place, _NUMBER] and slots[place, _HASH] != hashes[q]:
            place = (place + 1) & (slots.shape[0] - 1)
        places[q] = place
        numbers[q] = slots[place, _NUMBER] - 1


def _compare(
    which: IntArray,
    data: NDArray[np.uint8],
    offsets: IntArray,
    known: NDArray[np.uint8],
    starts: IntArray,
    stops: IntArray,
    same: NDArray[np.bool_],
) -> None:
    for i in range(which.size):
        q = which[i]
        length = offsets[q + 1] - offsets[q]
        if stops[i] - starts[i] != length:
            same[q] = False
            continue
        for j in range(length):
            if known[starts[i] + j] != data[offsets[q] + j]:
                same[q] = False
                break


def _fill(which: IntArray, hashes: IntArray, places: IntArray, slots: IntArray, first: int) -> None:
    for q in which:
        place = places[q]
        while slots[place, _NUMBER]:
            place = (place + 1) & (slots.shape[0] - 1)
        slots[place, _HASH] = hashes[q]
        slots[place, _NUMBER] = first + q + 1
