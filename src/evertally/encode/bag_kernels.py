"""The loops over events that are laid out flat (encode/bags.py), compiled by numba where they are long."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def merge_events(
    lengths: IntArray,
    items: IntArray,
    weights: IntArray,
    max_per_event: int,
    max_weight: int,
    signed: bool,
    place: IntArray,
    counts: IntArray,
    code: IntArray,
    low: IntArray,
    high: IntArray,
    starts: IntArray,
) -> int:
    """Merges the items of each event by adding, then clips; -1 is no item. Without `weights` each weighs 1.

    What an event with at most `max_per_event` items has is added to `counts`. The others go on to `code` and `low`, one
    behind the other, each beginning at an entry of `starts`, the last of which is the end of them all; how many there
    are. `place` is room for one number of each label. Weights of an item are up to 2^62 and may be many: they are added
    up in two parts, `low` of 31 bits and `high`; what is clipped, at 2^40 at most, is in `low` alone.
    """
    first, n, cut = 0, 0, 0
    weighted = weights.size > 0
    for e in range(lengths.size):
        top = n
        for k in range(first, first + lengths[e]):
            c = items[k]
            w = weights[k] if weighted else 1
            if c < 0 or (w <= 0 and not signed):
                continue
            at = place[c]
            # Whatever an earlier event left in `place`: in n .. top there are only items of this one.
            if n <= at < top and code[at] == c:
                low[at] += w & 0x7FFFFFFF
                high[at] += w >> 31
            else:
                place[c] = top
                code[top] = c
                low[top] = w & 0x7FFFFFFF
                high[top] = w >> 31
                top += 1
        first += lengths[e]
        m = n
        for j in range(n, top):
            above = min(max(high[j] + (low[j] >> 31), -0x10000), 0x10000)  # beyond 2^46, which is more than any bound
            w = min(max((above << 31) + (low[j] & 0x7FFFFFFF), -max_weight), max_weight)
            if w != 0:
                code[m] = code[j]
                low[m] = w
                m += 1
        if m - n <= max_per_event:
            for j in range(n, m):
                counts[code[j]] += low[j]
        else:
            starts[cut] = n
            cut += 1
            n = m
    starts[cut] = n
    return cut


def add_kept(code: IntArray, weight: IntArray, kept: NDArray[np.bool_], counts: IntArray) -> None:
    """Adds up the weights of the items that stay."""
    for j in range(code.size):
        counts[code[j]] += weight[j] * kept[j]


def keep_last(lengths: IntArray, keys: IntArray, last: IntArray, weights: IntArray) -> None:
    """Of equal keys of one event only the last one weighs something. `last` is -1 for each key."""
    stop = keys.size
    for e in range(lengths.size - 1, -1, -1):
        for k in range(stop - 1, stop - lengths[e] - 1, -1):
            if last[keys[k]] == e:
                weights[k] = 0
            last[keys[k]] = e
        stop -= lengths[e]
