"""Which items survive where an event has too many: the secret order, version 2 (additions 13).

A pseudo-random function F, SipHash-2-4, under keys that follow from the stream's for this tick alone:

    D_i = F_K(label i)                         128 bits, once for each label of a tick
    E   = sum over its items of F_L(D_i, w_i)  two words, each mod 2^64: what the event holds, in any order
    r_i = F_E(D_i)                             64 bits; the items with the smallest r_i stay

So who stays is a function of tick, own content and label, and to those without the key as good as drawn by lot. Where
single items are protected E = F_L() is the same for all events of a tick, and their content plays no part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from evertally.encode.cut_kernels import compiled
from evertally.encode.labels import Codes
from evertally.encode.siphash import siphash
from evertally.encode.texts import Texts
from evertally.secret import Secret

CUTTING = 2  # the version of the order that new streams take; those of version 1 go on with theirs (encode/door.py)
_AT_ONCE = 1 << 13  # items
_FEW = 256  # items; fewer are looked at in plain Python, some 20 us each, and without a compiler


class SecretOrder(Secret):
    """The order of one stream; `derive` makes keys of purposes.

    >>> order = SecretOrder(lambda purpose: siphash(b"only for doctest", purpose, 16), by_label=False)
    >>> names, weights = Texts.of(["pear", "fig", "lime"]), np.array([1, 1, 2])
    >>> order.kept(np.array([0, 3]), np.array([0, 1, 2]), weights, names, tick=7, most=2).tolist()
    [True, True, False]
    """

    def __init__(self, derive: Callable[[bytes], bytes], by_label: bool) -> None:
        self._derive, self._by_label = derive, by_label
        self._compiled = False

    def kept(self, starts: Codes, code: Codes, weight: Codes, labels: Texts, tick: int, most: int) -> NDArray[np.bool_]:
        """Which items stay. Event i has those from starts[i] up to starts[i + 1], all of them different labels and more
        than `most`; `code` are numbers of labels."""
        kept = np.zeros(len(code), np.bool_)
        if len(code) < _FEW and not self._compiled:
            names, bits = labels.take(code).names(), weight.tolist()
            for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                first = self.first(names[start:stop], bits[start:stop], tick, most)
                kept[[start + i for i in first]] = True
            return kept
        self._compiled = True
        used = np.zeros(len(labels), np.bool_)
        used[code] = True
        d0, d1 = np.empty(len(labels), np.uint64), np.empty(len(labels), np.uint64)
        of_labels, of_events = self._keys(tick)
        data, offsets = labels.data[:], labels.offsets[:]
        data.flags.writeable = offsets.flags.writeable = False  # one type for the compiler, as in name_index
        compiled("digest_labels")(data, offsets, np.flatnonzero(used), *_words(of_labels), d0, d1)
        key = _words(siphash(of_events, b"", 16) if self._by_label else of_events)
        keep = compiled("keep_first")
        start = 0
        while start < len(starts) - 1:  # in pieces that stay in the processor's cache
            stop = max(start + 1, int(np.searchsorted(starts, starts[start] + _AT_ONCE, side="right")) - 1)
            here = slice(int(starts[start]), int(starts[stop]))
            bounds = starts[start : stop + 1] - starts[start]
            keep(bounds, code[here], weight[here], d0, d1, *key, self._by_label, most, kept[here])
            start = stop
        return kept

    def first(self, names: Sequence[bytes], weights: Sequence[int], tick: int, most: int) -> list[int]:
        """The places of the items of one event that stay, as the order is defined."""
        of_labels, of_events = self._keys(tick)
        digests = [siphash(of_labels, name, 16) for name in names]
        if self._by_label:
            event = siphash(of_events, b"", 16)
        else:
            parts = [
                siphash(of_events, digest + (weight % 2**64).to_bytes(8, "little"), 16)
                for digest, weight in zip(digests, weights, strict=True)
            ]
            event = b"".join(
                (sum(int.from_bytes(part[at : at + 8], "little") for part in parts) % 2**64).to_bytes(8, "little")
                for at in (0, 8)
            )

        def rank(i: int) -> tuple[int, ...]:
            return tuple(
                int.from_bytes(word, "little") for word in (siphash(event, digests[i]), digests[i][:8], digests[i][8:])
            )

        return sorted(range(len(names)), key=rank)[:most]

    def _keys(self, tick: int) -> tuple[bytes, bytes]:
        return self._derive(b"cut 2 labels %d" % tick), self._derive(b"cut 2 events %d" % tick)


def weight_words(weights: Sequence[float]) -> NDArray[np.int64]:
    """Weights as the order reads them: whole ones as integers, whatever type they have, others as the bits of a float.

    >>> weight_words([2.0, -1.0, 0.5]).tolist() == [2, -1, 0x3FE << 52]
    True
    """
    numbers = np.array(weights)
    if numbers.dtype == np.int64:
        return numbers
    whole = (np.abs(numbers) < 2.0**52) & (np.trunc(numbers) == numbers)
    return np.where(whole, np.where(whole, numbers, 0.0).astype(np.int64), numbers.view(np.int64))


def _words(key: bytes) -> tuple[np.uint64, np.uint64]:
    return np.uint64(int.from_bytes(key[:8], "little")), np.uint64(int.from_bytes(key[8:16], "little"))
