"""The loops of the order by content (encode/content_order.py): SipHash-2-4 with 128 bits of many texts and of many rows
of words. Compiled by numba where there are many; few are computed as arrays, by the same functions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.cut_kernels import _A, _B, _C, _D, _EE, IntArray, Word, Words, absorb, finish, linked, rounds
from evertally.encode.name_index import fixed
from evertally.encode.texts import Texts

__all__ = ["digests_of_rows", "digests_of_texts", "rounds"]

_FEW = 256  # texts or rows; so few need no compiler
_AS_A_TEXT = 64  # bytes
_AT_ONCE = 512  # rows, whose states stay in the processor's first cache
_8, _56, _255, _ALL = np.uint64(8), np.uint64(56), np.uint64(255), np.uint64(2**64 - 1)
_was_compiled: set[str] = set()


def digest_texts(data: NDArray[np.uint8], offsets: IntArray, k0: Word, k1: Word, low: Words, high: Words) -> None:
    """128 bits of each text. With unsigned places the compiler makes one load of the loop over eight bytes."""
    size = np.uint64(data.size)
    for q in range(low.size):
        at, stop = np.uint64(offsets[q]), np.uint64(offsets[q + 1])
        last = (stop - at & _255) << _56
        a, b, c, d = k0 ^ _A, k1 ^ _B ^ _EE, k0 ^ _C, k1 ^ _D
        while at + _8 <= stop:
            word = np.uint64(0)
            for k in range(8):
                word |= np.uint64(data[at + np.uint64(k)]) << np.uint64(8 * k)
            a, b, c, d = absorb(a, b, c, d, word)
            at += _8
        if at + _8 <= size and at < stop:
            word = np.uint64(0)
            for k in range(8):
                word |= np.uint64(data[at + np.uint64(k)]) << np.uint64(8 * k)
            last |= word & _ALL >> (_8 - (stop - at)) * _8
        else:
            shift = np.uint64(0)
            while at < stop:
                last |= np.uint64(data[at]) << shift
                at += np.uint64(1)
                shift += _8
        a, b, c, d = absorb(a, b, c, d, last)
        low[q], high[q] = finish(a, b, c, d)


def digest_rows(words: NDArray[np.uint64], k0: Word, k1: Word, low: Words, high: Words) -> None:
    """128 bits of each column of a matrix of words. Word by word for many at once, in the lanes of vector registers."""
    blocks, n = words.shape
    last = np.uint64(8 * blocks & 255) << _56
    a, b = np.empty(_AT_ONCE, np.uint64), np.empty(_AT_ONCE, np.uint64)
    c, d = np.empty(_AT_ONCE, np.uint64), np.empty(_AT_ONCE, np.uint64)
    for first in range(0, n, _AT_ONCE):
        count = np.uint64(min(_AT_ONCE, n - first))
        a[:], b[:], c[:], d[:] = k0 ^ _A, k1 ^ _B ^ _EE, k0 ^ _C, k1 ^ _D
        for i in range(blocks):
            row = words[i, first:]
            for j in range(count):
                a[j], b[j], c[j], d[j] = absorb(a[j], b[j], c[j], d[j], row[j])
        here, there = low[first:], high[first:]
        for j in range(count):
            e, f, g, h = absorb(a[j], b[j], c[j], d[j], last)
            here[j], there[j] = finish(e, f, g, h)


def digests_of_texts(texts: Texts, key: bytes) -> NDArray[np.uint64]:
    """SipHash-2-4-128 of each text, as a matrix of two rows: the low words and the high ones.

    >>> from evertally.encode.siphash import siphash
    >>> key = bytes(range(16))
    >>> digests_of_texts(Texts.of(["pear", "strawberry"]), key)[:, 1].tobytes() == siphash(key, b"strawberry", 16)
    True
    """
    found = np.empty((2, len(texts)), np.uint64)
    if _compiles("digest_texts", max(len(texts), texts.size // _AS_A_TEXT)):
        _compiled("digest_texts")(*fixed(texts), *_halves(key), *found)
        return found
    blocks = texts.lengths // 8 + 1
    padded = np.zeros((len(texts), 8 * int(blocks.max(initial=0))), np.uint8)
    for row, name, size in zip(padded, texts.names(), texts.lengths.tolist(), strict=True):
        row[:size] = np.frombuffer(name, np.uint8)
        row[size // 8 * 8 + 7] = size & 255
    state = _begun(key, len(texts))
    for i, words in enumerate(padded.view("<u8").T.astype(np.uint64)):
        a, b, c, d = state
        after = absorb(a, b, c, d, words)
        state = [np.where(blocks > i, new, old) for new, old in zip(after, state, strict=True)]
    found[0], found[1] = finish(*state)
    return found


def digests_of_rows(words: NDArray[np.uint64], key: bytes) -> NDArray[np.uint64]:
    """The same of the words of each column of a matrix.

    >>> from evertally.encode.siphash import siphash
    >>> key, words = bytes(range(16)), np.array([[1, 2], [3, 4]], np.uint64)
    >>> digests_of_rows(words, key)[:, 1].tobytes() == siphash(key, words[:, 1].tobytes(), 16)
    True
    """
    found = np.empty((2, words.shape[1]), np.uint64)
    if _compiles("digest_rows", words.shape[1]):
        _compiled("digest_rows")(np.ascontiguousarray(words), *_halves(key), *found)
        return found
    state = _begun(key, words.shape[1])
    for row in (*words, np.full(words.shape[1], (8 * len(words) & 255) << 56, np.uint64)):
        a, b, c, d = state
        state = list(absorb(a, b, c, d, row))
    found[0], found[1] = finish(*state)
    return found


def _begun(key: bytes, count: int) -> list[Words]:
    k0, k1 = _halves(key)
    return [np.full(count, word) for word in (k0 ^ _A, k1 ^ _B ^ _EE, k0 ^ _C, k1 ^ _D)]


def _halves(key: bytes) -> tuple[np.uint64, np.uint64]:
    return np.uint64(int.from_bytes(key[:8], "little")), np.uint64(int.from_bytes(key[8:16], "little"))


def _compiles(name: str, count: int) -> bool:
    return count >= _FEW or (count > 0 and name in _was_compiled)


@lru_cache(maxsize=2)
def _compiled(name: str) -> Any:
    made = linked(globals(), "rounds", "absorb", "finish", name)
    _was_compiled.add(name)
    return made
