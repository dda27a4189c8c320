"""The loops of the secret order (encode/cutting.py), compiled by numba: SipHash-2-4 of many short messages.

Loops over items are straight on, and their indices unsigned: so the compiler sees that items do not depend on each
other, and works on several at once in the lanes of vector registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.noise.jit import jit

IntArray = NDArray[np.int64]
Words = NDArray[np.uint64]
Word = Any  # np.uint64; numba makes a float of an unsigned number and a signed one, so nothing else may meet it

_A, _B, _C, _D = (
    np.uint64(int.from_bytes(part, "big")) for part in (b"somepseu", b"dorandom", b"lygenera", b"tedbytes")
)
_EE, _DD, _FF = np.uint64(0xEE), np.uint64(0xDD), np.uint64(0xFF)
_13, _16, _17, _21, _32 = (np.uint64(bits) for bits in (13, 16, 17, 21, 32))
_51, _48, _47, _43 = (np.uint64(64 - bits) for bits in (13, 16, 17, 21))
SHORT = 32  # items of an event that are compared all with all: then no branch is guessed wrongly
_16_BYTES, _24_BYTES = np.uint64(16 << 56), np.uint64(24 << 56)  # the last block of messages of whole words


def rounds(a: Word, b: Word, c: Word, d: Word) -> tuple[Word, Word, Word, Word]:
    """Two rounds."""
    for _ in range(2):
        a = a + b
        b = (b << _13 | b >> _51) ^ a
        a = a << _32 | a >> _32
        c = c + d
        d = (d << _16 | d >> _48) ^ c
        a = a + d
        d = (d << _21 | d >> _43) ^ a
        c = c + b
        b = (b << _17 | b >> _47) ^ c
        c = c << _32 | c >> _32
    return a, b, c, d


def absorb(a: Word, b: Word, c: Word, d: Word, word: Word) -> tuple[Word, Word, Word, Word]:
    """A block of the message."""
    a, b, c, d = rounds(a, b, c, d ^ word)
    return a ^ word, b, c, d


def finish(a: Word, b: Word, c: Word, d: Word) -> tuple[Word, Word]:
    """The 128 bits at the end."""
    a, b, c, d = rounds(a, b, c ^ _EE, d)
    a, b, c, d = rounds(a, b, c, d)
    low = a ^ b ^ c ^ d
    a, b, c, d = rounds(a, b ^ _DD, c, d)
    a, b, c, d = rounds(a, b, c, d)
    return low, a ^ b ^ c ^ d


def digest_labels(
    data: NDArray[np.uint8], offsets: IntArray, which: IntArray, k0: Word, k1: Word, d0: Words, d1: Words
) -> None:
    """128 bits of each of some labels."""
    for q in which:
        start, stop = offsets[q], offsets[q + 1]
        a, b, c, d = k0 ^ _A, k1 ^ _B ^ _EE, k0 ^ _C, k1 ^ _D
        word, bits = np.uint64(0), 0
        for j in range(start, stop):
            word |= np.uint64(data[j]) << np.uint64(bits)
            bits += 8
            if bits == 64:
                a, b, c, d = absorb(a, b, c, d, word)
                word, bits = np.uint64(0), 0
        a, b, c, d = absorb(a, b, c, d, word | np.uint64((stop - start) & 255) << np.uint64(56))
        d0[q], d1[q] = finish(a, b, c, d)


def keep_first(
    starts: IntArray,
    code: IntArray,
    weight: IntArray,
    d0: Words,
    d1: Words,
    k0: Word,
    k1: Word,
    by_label: bool,
    most: int,
    kept: NDArray[np.bool_],
) -> None:
    """Marks the `most` items of each event that come first in its secret order. The key is that of sums, or with
    `by_label` the sum itself."""
    n = np.uint64(code.size)
    x0, x1, rank = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64)
    e0, e1 = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for j in range(n):
        x0[j], x1[j] = d0[code[j]], d1[code[j]]
    if by_label:
        e0[:], e1[:] = k0, k1
    else:
        for j in range(n):
            a, b, c, d = absorb(k0 ^ _A, k1 ^ _B ^ _EE, k0 ^ _C, k1 ^ _D, x0[j])
            a, b, c, d = absorb(a, b, c, d, x1[j])
            a, b, c, d = absorb(a, b, c, d, np.uint64(weight[j]))
            a, b, c, d = absorb(a, b, c, d, _24_BYTES)
            e0[j], e1[j] = finish(a, b, c, d)
        for q in range(starts.size - 1):
            low = high = np.uint64(0)
            for j in range(starts[q], starts[q + 1]):
                low, high = low + e0[j], high + e1[j]
            e0[starts[q] : starts[q + 1]] = low
            e1[starts[q] : starts[q + 1]] = high
    for j in range(n):
        a, b, c, d = absorb(e0[j] ^ _A, e1[j] ^ _B, e0[j] ^ _C, e1[j] ^ _D, x0[j])
        a, b, c, d = absorb(a, b, c, d, x1[j])
        a, b, c, d = absorb(a, b, c, d, _16_BYTES)
        a, b, c, d = rounds(a, b, c ^ _FF, d)
        a, b, c, d = rounds(a, b, c, d)
        rank[j] = a ^ b ^ c ^ d
    item = np.arange(code.size)
    for q in range(starts.size - 1):
        if starts[q + 1] - starts[q] <= SHORT:
            first, stop = np.uint64(starts[q]), np.uint64(starts[q + 1])
            ties = np.uint64(0)
            for j in range(first, stop):
                less = np.uint64(0)
                for i in range(first, stop):
                    less += np.uint64(rank[i] < rank[j])
                    ties += np.uint64(rank[i] == rank[j])
                kept[j] = less < np.uint64(most)
            if ties == stop - first:
                continue
        choose(item, rank, x0, x1, starts[q], starts[q + 1], most)
        kept[starts[q] : starts[q + 1]] = False
        for i in range(starts[q], starts[q] + most):
            kept[item[i]] = True


def choose(item: IntArray, rank: Words, x0: Words, x1: Words, start: int, stop: int, most: int) -> None:
    """What comes first goes to the front, by parts around a pivot: ranks are as good as random, whatever lies there."""
    low, high, wanted = start, stop - 1, start + most
    while low < high:
        pivot, i, j = item[(low + high) // 2], low, high
        while i <= j:
            while before(rank, x0, x1, item[i], pivot):
                i += 1
            while before(rank, x0, x1, pivot, item[j]):
                j -= 1
            if i <= j:
                item[i], item[j] = item[j], item[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break


def before(rank: Words, x0: Words, x1: Words, i: int, j: int) -> bool:
    """By rank; of equal ones, which nobody will see, by the digest of the label."""
    if rank[i] != rank[j]:
        return bool(rank[i] < rank[j])
    return bool(x0[i] < x0[j] or (x0[i] == x0[j] and x1[i] < x1[j]))


@lru_cache(maxsize=4)
def compiled(name: str) -> Any:
    """One of the functions here as machine code, with what it calls."""
    return linked(globals(), "rounds", "absorb", "finish", "before", "choose", name)


def linked(module: Mapping[str, Any], *names: str) -> Any:
    """The last of some functions of a module as machine code, with the others, which it calls. They may come from
    elsewhere."""
    found: dict[str, Any] = dict(module)
    for inner in names:
        function = module[inner]
        assert isinstance(function, FunctionType)
        for constant, value in function.__globals__.items():
            found.setdefault(constant, value)
        made = FunctionType(function.__code__, found, inner)
        found[inner] = jit(made, error_model="numpy", forceinline=inner != names[-1])
    return found[names[-1]]
