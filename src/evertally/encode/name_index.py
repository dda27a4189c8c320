"""From names to numbers and back: names in one piece of memory, and a hash table over them. Secret.

The hash of a name is sum_j R_j (byte_j + 1) mod 2^64, mixed, with random R_j that nobody outside knows: two names have
the same one with probability at most 2^-56, so nobody can send names that meet in one place. It decides how long a
search takes and nothing else: names are compared byte by byte, and no two of them are ever taken for one.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.name_kernels import (
    Bytes,
    IntArray,
    distinct_names,
    enter_names,
    fill_slots,
    find_names,
    gather,
    hash_names,
    kernel,
)
from evertally.encode.texts import LONGEST_LABEL, Texts
from evertally.secret import Secret

_LOW = 0xFFFFFFFF
_OWN_SEED = secrets.randbits(127) | 1  # of this process and its forks: hashes are never written down


class NameIndex(Secret):
    """Numbers for names, in the order in which they are entered; `hidden` says by number which are not found any more.

    Whatever a call entered can be cut off again (`truncate`), from wherever it was interrupted.

    >>> index = NameIndex()
    >>> hidden = np.zeros(9, np.uint8)
    >>> index.enter(Texts.of(["pear", "fig", "pear"]), np.array([-1, -1, -1])).tolist()
    [0, 1, 0]
    >>> index.find(Texts.of(["fig", "lime", "pear"]), hidden).tolist(), index.size, index.texts()[1]
    ([1, -1, 0], 2, 'fig')
    """

    def __init__(self, seed: int = 0, names: Texts | None = None, numbers: IntArray | None = None) -> None:
        """With `names`: they are here from the beginning, and those with `numbers` can be found."""
        self._seed = seed
        self._data: Bytes = np.zeros(64, np.uint8) if names is None else grown(names.data, 1)
        self._offsets: IntArray = np.zeros(17, np.int64) if names is None else names.offsets
        self.size = 0 if names is None else len(names)
        which = np.arange(self.size) if numbers is None else numbers
        self._slots = self._filled(which, 1 << max(6, (2 * len(which)).bit_length()))

    def texts(self) -> Texts:
        """All names, by number."""
        return Texts(self._data, self._offsets[: self.size + 1])

    def find(self, names: Texts, hidden: Bytes, some_hidden: bool = True) -> IntArray:
        """The number of each name, -1 for those that are not here. `some_hidden`: whether any are hidden."""
        hashes, count = _hashes(names, self._seed), len(names)
        numbers = np.empty(count, np.int64)
        here = self._slots, self._data, self._offsets
        kernel(find_names, count, names.size)(*fixed(names), hashes, *here, hidden, some_hidden, numbers)
        return numbers

    def enter(self, names: Texts, found: IntArray) -> IntArray:
        """The numbers of all, those that were `found` as -1 entered; a name may be among them twice."""
        which = np.flatnonzero(found < 0)
        if not len(which):
            return found
        numbers = found.copy()
        most = self.size + len(which)
        self._data = grown(self._data, int(self._offsets[self.size] + names.lengths[which].sum()))
        self._offsets = grown(self._offsets, most + 1)
        if 3 * most > 2 * len(self._slots):
            # No slot is lost that an earlier look would have needed: all numbers are entered again, in their order.
            self._slots = self._filled(np.arange(self.size), 1 << (2 * most).bit_length())
        hashes = _hashes(names, self._seed)
        here = self._slots, self._data, self._offsets
        work = kernel(enter_names, len(which), names.size)
        size, _ = work(which, *fixed(names), hashes, *here, self.size, numbers)
        self.size = int(size)
        return numbers

    def truncate(self, size: int) -> None:
        """Cuts off the names from number `size` on. They came into slots that were empty, so the others stay found."""
        self._slots[(self._slots & _LOW) > size] = 0
        self.size = size

    def _filled(self, which: IntArray, length: int) -> IntArray:
        slots = np.zeros(length, np.int64)
        names = self.texts()
        hashes = _hashes(names, self._seed)
        kernel(fill_slots, len(which))(which, hashes[which] if len(which) < len(names) else hashes, slots)
        return slots


def distinct(names: Texts, seed: int = 0) -> tuple[IntArray, Texts]:
    """The names that occur, in the order of their first places, and for each place which of them it is.

    >>> codes, names = distinct(Texts.of(["pear", "fig", "pear"]))
    >>> codes.tolist(), names.list()
    ([0, 1, 0], ['pear', 'fig'])
    """
    count = len(names)
    codes, firsts = np.empty(count, np.int64), np.empty(count, np.int64)
    slots = np.zeros(1 << max(6, (2 * count).bit_length()), np.int64)
    found, _ = kernel(distinct_names, count, names.size)(*fixed(names), _hashes(names, seed), slots, codes, firsts)
    if found < count:
        firsts = firsts[:found]
        names = taken(names.data, names.offsets[firsts], names.lengths[firsts])
    return codes, names


def taken(data: Bytes, starts: IntArray, lengths: IntArray) -> Texts:
    """Names that lie anywhere in a piece of memory, in memory of their own."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    kernel(gather, len(starts), out.size)(fixed(Texts(data, offsets))[0], starts, offsets, out)
    return Texts(out, offsets)


def replaced(names: Texts, which: IntArray, labels: Sequence[str]) -> Texts:
    """The names with others in the place of some.

    >>> replaced(Texts.of(["pear", "fig", "lime"]), np.array([1]), ["quince"]).list()
    ['pear', 'quince', 'lime']
    """
    others = Texts.of(labels)
    starts, lengths = names.offsets[:-1].copy(), names.lengths
    starts[which], lengths[which] = others.offsets[:-1] + len(names.data), others.lengths
    return taken(np.concatenate([names.data, others.data]), starts, lengths)


def grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array with room for `size` entries, zeros at the end; an eighth more than is asked for, so that growing costs
    little on the whole."""
    if size <= len(array):
        return array
    larger = np.zeros(size + size // 8, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def fixed(names: Texts) -> tuple[Bytes, IntArray]:
    """Read-only: memory that can be written to is another type for the compiler, and would be compiled once more."""
    data, offsets = names.data[:], names.offsets[:]
    data.flags.writeable = offsets.flags.writeable = False
    return data, offsets


def _hashes(names: Texts, seed: int) -> IntArray:
    multipliers, lengths = _multipliers(seed), names.lengths
    hashes: IntArray
    with np.errstate(over="ignore"):  # arithmetic mod 2^64 is wanted
        work = kernel(hash_names, len(names), names.size)
        if work is hash_names:  # not compiled; arrays are faster, and take 40 bytes for each byte of the few there are
            first, last = names.offsets[0], names.offsets[-1]
            places = np.arange(first, last) - np.repeat(names.offsets[:-1], lengths)
            terms = multipliers[places % LONGEST_LABEL] * (names.data[first:last].astype(np.int64) + 1)
            sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(terms)])
            hashes = np.diff(sums[names.offsets - first])
        else:
            hashes = np.empty(len(names), np.int64)
            work(*fixed(names), multipliers, hashes)
        # Sums of few R_j lie in rows; linear probing wants them spread.
        hashes ^= (hashes >> 32) & _LOW
        hashes *= np.int64(-0x61C8864680B583EB)
        hashes ^= (hashes >> 29) & 0x7FFFFFFFF
    for i in np.flatnonzero(lengths > LONGEST_LABEL):  # with R_j used twice, names that agree could be found
        name = names.data[names.offsets[i] : names.offsets[i + 1]].tobytes()
        digest = hashlib.blake2b(name, digest_size=8, key=multipliers[:8].tobytes()).digest()
        hashes[i] = int.from_bytes(digest, "little", signed=True)
    return hashes


@lru_cache(maxsize=64)
def _multipliers(seed: int) -> IntArray:
    key = (seed or _OWN_SEED).to_bytes(64, "little", signed=True)
    random = b"".join(
        hashlib.blake2b(i.to_bytes(2, "little"), key=key, person=b"evertally:names").digest()
        for i in range(LONGEST_LABEL // 8)
    )
    multipliers: IntArray = np.frombuffer(random, dtype="<i8").astype(np.int64)
    return multipliers
