"""The loops of the index of names, compiled by numba where they are long, interpreted where they are short.

A slot of the hash table is one number: above its low 32 bits a part of the hash, in them the number of the name,
counted from 1; 0 is an empty slot. Numbers are int64 wherever they can be: numba makes a float of an unsigned number
and a signed one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.noise.jit import jit_once

IntArray = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_COMPILE_FROM = 256  # names in one call; fewer are interpreted, some microseconds each, but no compiler
_AS_A_NAME = 64  # bytes; loops over bytes take microseconds for each, and one text may have millions
_compiled: set[Callable[..., Any]] = set()


def kernel(function: Callable[..., Any], names: int, size: int = 0) -> Callable[..., Any]:
    """The function, compiled if there are many names, or many bytes of them that it goes through one by one, or if it
    has been compiled before. numba costs seconds once."""
    if max(names, size // _AS_A_NAME) < _COMPILE_FROM and function not in _compiled:
        return function
    found: Callable[..., Any] = jit_once(function)
    _compiled.add(function)
    return found


def hash_names(data: Bytes, offsets: IntArray, multipliers: IntArray, hashes: IntArray) -> None:
    for q in range(hashes.size):
        start = offsets[q]
        total = np.int64(0)
        for j in range(min(offsets[q + 1] - start, multipliers.size)):
            total += multipliers[j] * (np.int64(data[start + j]) + 1)
        hashes[q] = total


def find_names(
    data: Bytes,
    offsets: IntArray,
    hashes: IntArray,
    slots: IntArray,
    known: Bytes,
    starts: IntArray,
    hidden: Bytes,
    some_hidden: bool,
    numbers: IntArray,
) -> np.int64:
    """The number of each name, -1 if it is not here.

    In blocks, and before each step that depends on what it finds in memory a loop that only fetches it: there the
    processor waits for many places at once. What the loops give is of no use, and keeps the compiler from leaving them
    out.
    """
    last, fetched = slots.size - 1, np.int64(0)
    for first in range(0, hashes.size, 1024):
        stop = min(first + 1024, hashes.size)
        for q in range(first, stop):
            fetched ^= slots[hashes[q] & last]
        for q in range(first, stop):
            place = hashes[q] & last
            while slots[place] != 0 and (slots[place] ^ hashes[q]) >> 32 != 0:
                place = (place + 1) & last
            numbers[q] = (slots[place] & 0xFFFFFFFF) - 1
        for q in range(first, stop):
            fetched ^= starts[numbers[q] + 1]
        for q in range(first, stop):
            fetched ^= np.int64(known[min(starts[max(numbers[q], 0)], known.size - 1)])
        for q in range(first, stop):
            number = numbers[q]
            if number < 0:
                continue
            start, length = offsets[q], offsets[q + 1] - offsets[q]
            place = -1
            while number >= 0:
                at = starts[number]
                same = starts[number + 1] - at == length and not (some_hidden and hidden[number] != 0)
                j = 0
                while same and j < length:
                    if at + j + 8 > known.size or start + j + 8 > data.size:
                        same = known[at + j] == data[start + j]
                        j += 1
                        continue
                    # Eight bytes at once, of which the last may be behind the name. With unsigned places the compiler
                    # makes one load of each loop.
                    ours, asked, here, there = np.uint64(0), np.uint64(0), np.uint64(at + j), np.uint64(start + j)
                    for k in range(8):
                        ours |= np.uint64(known[here + np.uint64(k)]) << np.uint64(8 * k)
                    for k in range(8):
                        asked |= np.uint64(data[there + np.uint64(k)]) << np.uint64(8 * k)
                    same = (ours ^ asked) << np.uint64(64 - 8 * min(length - j, 8)) == np.uint64(0)
                    j += 8
                if same:
                    break
                # Another name with this part of the hash, or one that is forgotten: look further.
                if place < 0:
                    place = hashes[q] & last
                    while (slots[place] & 0xFFFFFFFF) - 1 != number:
                        place = (place + 1) & last
                place = (place + 1) & last
                while slots[place] != 0 and (slots[place] ^ hashes[q]) >> 32 != 0:
                    place = (place + 1) & last
                number = (slots[place] & 0xFFFFFFFF) - 1
            numbers[q] = number
    return fetched


def enter_names(
    which: IntArray,
    data: Bytes,
    offsets: IntArray,
    hashes: IntArray,
    slots: IntArray,
    known: Bytes,
    starts: IntArray,
    first: int,
    numbers: IntArray,
) -> tuple[int, np.int64]:
    """Enters names that are not here, numbers from `first` on; a name may be among them twice. How many there are then,
    and what was fetched (as in `find_names`).

    A name is written before its slot: whoever is interrupted in between has entered nothing.
    """
    last, size, fetched = slots.size - 1, first, np.int64(0)
    for i in range(which.size):
        if i % 1024 == 0:
            for other in which[i : i + 1024]:
                fetched ^= slots[hashes[other] & last]
        q = which[i]
        start, length = offsets[q], offsets[q + 1] - offsets[q]
        place, number = hashes[q] & last, np.int64(-1)
        while slots[place] != 0 and number < 0:
            other = (slots[place] & 0xFFFFFFFF) - 1
            if other >= first and (slots[place] ^ hashes[q]) >> 32 == 0:  # those before are known to be others
                at = starts[other]
                same = starts[other + 1] - at == length
                j = 0
                while same and j < length:
                    same = known[at + j] == data[start + j]
                    j += 1
                if same:
                    number = other
            if number < 0:
                place = (place + 1) & last
        if number < 0:
            number = np.int64(size)
            at = starts[size]
            for j in range(length):
                known[at + j] = data[start + j]
            starts[size + 1] = at + length
            slots[place] = (hashes[q] & -0x100000000) | (number + 1)
            size += 1
        numbers[q] = number
    return size, fetched


def fill_slots(which: IntArray, hashes: IntArray, slots: IntArray) -> np.int64:
    """Slots of distinct names; hashes of those in `which`, in this order. Fetched in blocks, as in `find_names`."""
    last, fetched = slots.size - 1, np.int64(0)
    for first in range(0, which.size, 1024):
        stop = min(first + 1024, which.size)
        for i in range(first, stop):
            fetched ^= slots[hashes[i] & last]
        for i in range(first, stop):
            place = hashes[i] & last
            while slots[place] != 0:
                place = (place + 1) & last
            slots[place] = (hashes[i] & -0x100000000) | (which[i] + 1)
    return fetched


def gather(data: Bytes, starts: IntArray, offsets: IntArray, out: Bytes) -> None:
    """Pieces of `data`, one behind the other: piece i begins at starts[i], and goes to offsets[i] of `out`."""
    for i in range(starts.size):
        for j in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + j] = data[starts[i] + j]


def rank_codes(codes: IntArray, counts: IntArray, ranks: IntArray) -> None:
    """For each entry, how many earlier ones have its code; `counts` are zeros, one for each code."""
    for i in range(codes.size):
        ranks[i] = counts[codes[i]]
        counts[codes[i]] += 1


def keep_first(codes: IntArray, most: int, counts: IntArray, kept: NDArray[np.bool_]) -> None:
    """Which entries are kept until each code has `most`; `counts` says how many it has, and is raised."""
    for i in range(codes.size):
        kept[i] = counts[codes[i]] < most
        counts[codes[i]] += kept[i]


def distinct_names(
    data: Bytes, offsets: IntArray, hashes: IntArray, slots: IntArray, codes: IntArray, firsts: IntArray
) -> tuple[int, np.int64]:
    """Numbers for names in the order of their first places, which go to `firsts`. How many there are, and what was
    fetched (as in `find_names`)."""
    last, count, fetched = slots.size - 1, 0, np.int64(0)
    for first in range(0, hashes.size, 1024):
        stop = min(first + 1024, hashes.size)
        for q in range(first, stop):
            fetched ^= slots[hashes[q] & last]
        for q in range(first, stop):
            start, length = offsets[q], offsets[q + 1] - offsets[q]
            place, code = hashes[q] & last, np.int64(-1)
            while slots[place] != 0:
                if (slots[place] ^ hashes[q]) >> 32 == 0:
                    other = (slots[place] & 0xFFFFFFFF) - 1
                    at = offsets[firsts[other]]
                    same = offsets[firsts[other] + 1] - at == length
                    j = 0
                    while same and j < length:
                        same = data[at + j] == data[start + j]
                        j += 1
                    if same:
                        code = other
                        break
                place = (place + 1) & last
            if code < 0:
                code = np.int64(count)
                firsts[count] = q
                slots[place] = (hashes[q] & -0x100000000) | (code + 1)
                count += 1
            codes[q] = code
    return count, fetched


def first_seen(codes: IntArray, numbers: IntArray, order: IntArray) -> int:
    """New codes, in the order in which the old ones occur, in their place; -1 stays. `numbers` are -1, one for each old
    code; `order` gets the old codes. How many there are."""
    count = 0
    for i in range(codes.size):
        old = codes[i]
        if old < 0:
            continue
        if numbers[old] < 0:
            numbers[old] = count
            order[count] = old
            count += 1
        codes[i] = numbers[old]
    return count


def first_places(numbers: IntArray, seen: IntArray, codes: IntArray, firsts: IntArray) -> int:
    """Codes for numbers in the order in which they occur, and where each occurs first. `seen` is zeros, one for each
    number. How many there are."""
    count = 0
    for i in range(numbers.size):
        code = seen[numbers[i]]
        if code == 0:
            firsts[count] = i
            count += 1
            code = np.int64(count)
            seen[numbers[i]] = code
        codes[i] = code - 1
    return count


def write_decimals(values: IntArray, offsets: IntArray, data: Bytes) -> None:
    """Whole numbers in decimal, one behind the other. `data` has room for 20 bytes each."""
    at = 0
    for i in range(values.size):
        offsets[i] = at
        # Digits of a number that is not positive: the smallest one has no counterpart.
        rest = values[i] if values[i] < 0 else -values[i]
        if values[i] < 0:
            data[at] = 45
            at += 1
        digits, tens = 1, (rest + 9) // 10
        while tens < 0:
            digits, tens = digits + 1, (tens + 9) // 10
        for j in range(digits):
            tens = (rest + 9) // 10
            data[at + digits - 1 - j] = 48 + (tens * 10 - rest)
            rest = tens
        at += digits
    offsets[values.size] = at
