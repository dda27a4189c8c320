"""Addressed random bits: a pure function of (subkey, lane, law, node, coordinate or item, round), 128 bits each.

Derivation, version 2 (frozen by test vectors; any change is a new version: a changed bit redraws noise):

    page key  = BLAKE2b-256(key = subkey, person = "evertally:page", lane, law, node >> 16, coordinate >> 16)
    bits      = AES-256(page key, node : 8 bytes | coordinate : 4 bytes | round : 4 bytes), all little-endian

By item, where labels are not known in advance and noise must not depend on the order in which they arrive:

    address   = first 12 bytes of BLAKE2b-128(key = subkey, person = "evertally:label", label in UTF-8)
    item key  = BLAKE2b-256(key = subkey, person = "evertally:items", lane, law, node)
    bits      = AES-256(item key, address : 12 bytes | round : 4 bytes)

The law that the bits are drawn for is part of the key: the same bits at two scales reveal data, and two laws can never
read the same ones, whatever a caller, a planner or a later version mixes up.

Domain separation (docs/theory/samplers.md, section 5). The path that led to the subkey, the lane, the law and the page
enter BLAKE2b under an injective encoding; inside a page the block is the full address, and AES is a permutation, so
distinct addresses use distinct cipher inputs under one key or independent keys. AES used this way is a pseudorandom
permutation where a function is wanted: a page has at most 2^32 round-0 blocks, so the switch costs at most 2^64/2^129 =
2^-65 a page, on top of the advantage against AES and BLAKE2b themselves. Later rounds are reached with probability
below 2^-76 a draw at the worst scale and do not change the picture. 2^48 draws in full pages cost 2^-49 in all.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from itertools import pairwise
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from evertally.secret import Secret

FORMAT_VERSION = 2
PAGE_BITS = 16
_LIVE_PAGES = 256

Words = NDArray[np.uint64]


class Keystream(Secret):
    """The random bits of one lane of one mechanism, for one law.

    >>> stream = Keystream(bytes(32), "tree", "DiscreteLaplace(scale=Fraction(10, 1))")
    >>> (stream.words([7], 0, 1) == stream.words([6, 7], 0, 1)[1:]).all()
    np.True_
    """

    def __init__(self, subkey: bytes, lane: str, law: str) -> None:
        self._subkey = subkey
        self._prefix = b"".join(len(part).to_bytes(8, "little") + part for part in (lane.encode(), law.encode()))
        self._pages: OrderedDict[tuple[bytes | int, ...], Any] = OrderedDict()

    def words(self, nodes: NDArray[np.int64] | list[int], first: int, count: int, round_: int = 0) -> Words:
        """Two 64-bit words for each (node, coordinate): shape (nodes, count, 2)."""
        if first < 0 or first + count > 1 << 32 or not 0 <= round_ < 1 << 32:
            raise ValueError("coordinates and rounds lie between 0 and 2^32 - 1: an address must not wrap around")
        index = np.asarray(nodes, dtype=np.int64)
        words = np.empty((index.size, count, 2), dtype="<u8")
        words[:, :, 0] = index[:, None]
        words[:, :, 1] = np.arange(first, first + count, dtype=np.uint64) | np.uint64(round_ << 32)
        pages = index >> PAGE_BITS
        turns = (np.flatnonzero(pages[1:] != pages[:-1]) + 1).tolist() if index.size > 1 else []
        for start, stop in pairwise([0, *turns, index.size] if words.size else []):
            for page in range(first >> PAGE_BITS, ((first + count - 1) >> PAGE_BITS) + 1):
                left = max(first, page << PAGE_BITS) - first
                right = min(first + count, (page + 1) << PAGE_BITS) - first
                part = words[start:stop, left:right]
                encrypted = self._cipher(b"evertally:page", int(pages[start]), page).update(part.tobytes())
                part[...] = np.frombuffer(encrypted, dtype="<u8").reshape(part.shape)
        return words

    def item_words(self, node: int, items: Words, round_: int = 0) -> Words:
        """Two 64-bit words for each item, given by its address (`item_addresses`): shape (items, 2)."""
        if items.dtype != np.uint64 or items.ndim != 2 or items.shape[1] != 2:
            raise TypeError("addresses of items are uint64 of shape (items, 2); use item_addresses")
        if (items[:, 1] >> np.uint64(32)).any() or not 0 <= round_ < 1 << 32:
            raise ValueError("an address of an item has 96 bits, a round 32: nothing must reach into the other's place")
        blocks = items.astype("<u8")
        blocks[:, 1] |= np.uint64(round_ << 32)
        encrypted = self._cipher(b"evertally:items", node).update(blocks.tobytes())
        return np.frombuffer(encrypted, dtype="<u8").reshape(blocks.shape)

    def _cipher(self, person: bytes, *numbers: int) -> Any:
        page: tuple[bytes | int, ...] = (person, *numbers)
        cipher = self._pages.get(page)
        if cipher is None:
            message = self._prefix + b"".join(number.to_bytes(8, "little") for number in numbers)
            key = hashlib.blake2b(message, key=self._subkey, digest_size=32, person=person).digest()
            # One block per address and no block twice: this is counter mode with our own counter, not ECB of a text.
            cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
            self._pages[page] = cipher
            if len(self._pages) > _LIVE_PAGES:
                self._pages.popitem(last=False)
        else:
            self._pages.move_to_end(page)
        return cipher
