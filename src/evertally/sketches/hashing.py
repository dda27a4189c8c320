"""Keyed hashes of many labels at once: which bucket of a row a label falls into, and with which sign.

SipHash-1-3 (Aumasson and Bernstein 2012) of all labels together, in numpy, and from its 64 bits a bucket and a sign for
each row. The key is public: privacy holds for every hash and every stream (users-and-domains 5.1); it is there so that
nobody can put labels together beforehand that meet in a bucket.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evertally.encode.texts import Texts
from evertally.secret import Secret

Words = NDArray[np.uint64]
IntArray = NDArray[np.int64]
Key = tuple[int, int]

_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


class SipHash:
    """The hash of n messages side by side, word by word. `rounds`: of a word, and at the end.

    >>> hashed = SipHash((0x0706050403020100, 0x0F0E0D0C0B0A0908), 1, rounds=(2, 4))
    >>> for word in (0x0706050403020100, 0x0F0E0D0C0B0A0908):  # the paper's example: bytes 0, 1, ..., 14, their number
    ...     hashed.take(np.array([word], dtype=np.uint64))
    >>> hex(int(hashed.end()[0]))
    '0xa129ca6149be45e5'
    """

    def __init__(self, key: Key, count: int, rounds: tuple[int, int] = (1, 3)) -> None:
        self._v = [np.full(count, start ^ key[i % 2], dtype=np.uint64) for i, start in enumerate(_START)]
        self._rounds = rounds

    def take(self, words: Words, which: IntArray | None = None) -> None:
        """The next word of each message, or of those that have one."""
        v = self._v if which is None else [part[which] for part in self._v]
        v[3] = v[3] ^ words
        _mix(v, self._rounds[0])
        v[0] = v[0] ^ words
        if which is None:
            self._v = v
        else:
            for part, taken in zip(self._v, v, strict=True):
                part[which] = taken

    def end(self) -> Words:
        v = list(self._v)
        v[2] = v[2] ^ np.uint64(0xFF)
        _mix(v, self._rounds[1])
        return v[0] ^ v[1] ^ v[2] ^ v[3]


def _turned(x: Words, bits: int) -> Words:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def _mix(v: list[Words], rounds: int) -> None:
    for _ in range(rounds):
        v[0] = v[0] + v[1]
        v[2] = v[2] + v[3]
        v[1] = _turned(v[1], 13) ^ v[0]
        v[3] = _turned(v[3], 16) ^ v[2]
        v[0] = _turned(v[0], 32) + v[3]
        v[2] = v[2] + v[1]
        v[1] = _turned(v[1], 17) ^ v[2]
        v[3] = _turned(v[3], 21) ^ v[0]
        v[2] = _turned(v[2], 32)


def hashed_texts(key: Key, texts: Texts) -> Words:
    """64 bits for each label."""
    lengths, starts = texts.lengths, texts.offsets[:-1]
    hashed, full = SipHash(key, len(texts)), lengths // 8
    data = texts.data if len(texts.data) else np.zeros(1, dtype=np.uint8)
    for j in range(int(full.max(initial=-1)) + 1):
        which = np.flatnonzero(full >= j)
        place = 8 * j + np.arange(8)
        inside = place < lengths[which, None]
        cells = data[np.minimum(starts[which, None] + place, len(data) - 1)]
        words = np.ascontiguousarray(np.where(inside, cells, 0), dtype=np.uint8).view("<u8")[:, 0].astype(np.uint64)
        # The last word has what is left, and the length in its highest byte.
        last = full[which] == j
        words[last] |= (lengths[which][last].astype(np.uint64) & np.uint64(0xFF)) << np.uint64(56)
        hashed.take(words, None if len(which) == len(texts) else which)
    return hashed.end()


def hashed_words(key: Key, words: Sequence[Words]) -> Words:
    """64 bits for each row of some words side by side."""
    hashed = SipHash(key, len(words[0]))
    for column in words:
        hashed.take(column)
    hashed.take(np.full(len(words[0]), (8 * len(words) & 0xFF) << 56, dtype=np.uint64))
    return hashed.end()


class Rows(Secret):
    """Which bucket of each of some rows a hash falls into, and with which sign; all signs are 1 without `signs`.

    >>> rows = Rows(b"public", "level 3", rows=3, width=8, signs=True)
    >>> buckets, signs = rows.of(np.array([5, 5, 6], dtype=np.uint64))
    >>> buckets.shape, bool((buckets[0] == buckets[1]).all()), set(np.abs(signs).ravel().tolist())
    ((3, 3), True, {1})
    """

    def __init__(self, seed: bytes, name: str, rows: int, width: int, signs: bool) -> None:
        self.rows, self.width, self.signs = rows, width, signs
        self._keys = [np.uint64(derived(seed, f"{name}, row {i}")[0]) for i in range(rows)]

    def of(self, hashes: Words) -> tuple[IntArray, IntArray]:
        """(labels, rows) buckets and signs."""
        buckets = np.empty((len(hashes), self.rows), dtype=np.int64)
        signs = np.ones((len(hashes), self.rows), dtype=np.int64)
        for i, key in enumerate(self._keys):
            x = _scattered(hashes ^ key)
            buckets[:, i] = ((x >> np.uint64(33)) * np.uint64(self.width)) >> np.uint64(31)
            if self.signs:
                signs[:, i] -= 2 * (x & np.uint64(1)).astype(np.int64)
        return buckets, signs


def _scattered(x: Words) -> Words:
    """Every bit of the result depends on every bit of x (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def derived(seed: bytes, name: str) -> Key:
    """A key of its own for each use of a seed."""
    found = hashlib.blake2b(name.encode(), key=seed, digest_size=16, person=b"evertally:sketch").digest()
    return int.from_bytes(found[:8], "little"), int.from_bytes(found[8:], "little")
