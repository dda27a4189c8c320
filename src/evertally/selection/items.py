"""A histogram of named items, and its largest counts in a fixed order.

Ties between equal counts are broken by the label, never by position: with an order that does not depend on data an item
that did not change cannot move up when others grow, so neighbours disagree about few items (streaming-selection 4.3). A
partial sort that leaves ties as it finds them (argpartition, a counter's most_common) swaps many at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nsmallest

import numpy as np
from numpy.typing import NDArray

from evertally.noise import ItemSource, item_addresses
from evertally.secret import Secret

IntArray = NDArray[np.int64]

# No count is larger: a score, a threshold and noise on top of it stay inside int64.
LARGEST_COUNT = 2**61


@dataclass(frozen=True, repr=False)
class Items(Secret):
    """Distinct labels, their exact counts, and where their noise lies (`noise.item_addresses`). Secret.

    Over a known domain all declared labels are there, zeros included; over an unknown one those that occurred. Nothing
    that is released may depend on the order of the items.

    >>> from evertally.noise import ZeroNoise
    >>> items = Items.of({"b": 2, "c": 5, "a": 2, "d": 0}, ZeroNoise().source())
    >>> chosen, cut = items.top(2)
    >>> sorted(items.labels[i] for i in chosen), cut
    (['a', 'c'], 2)
    """

    labels: list[str]
    counts: IntArray
    addresses: NDArray[np.uint64]

    def __post_init__(self) -> None:
        if self.counts.dtype != np.int64 or self.counts.shape != (len(self.labels),):
            raise TypeError("counts are a vector of int64, one for each label")
        if self.addresses.shape != (len(self.labels), 2):
            raise TypeError("addresses have two words for each label; use item_addresses")
        if self.counts.size and not 0 <= self.counts.min() <= self.counts.max() <= LARGEST_COUNT:
            raise ValueError("counts lie between 0 and 2^61")

    @classmethod
    def of(cls, histogram: Mapping[str, int], source: ItemSource) -> Items:
        labels = list(histogram)
        counts = np.fromiter(histogram.values(), dtype=np.int64, count=len(labels))
        return cls(labels, counts, item_addresses(source, labels))

    def top(self, kbar: int) -> tuple[IntArray, int]:
        """The first kbar positive items in the order (-count, label), and h_(kbar+1): 0 if there are no more.

        Given as indices, themselves in no particular order. O(n), and a sort of the labels that tie at the cut.
        """
        positive = np.flatnonzero(self.counts)
        if positive.size <= kbar:
            return positive, 0
        counts = self.counts[positive]
        cut = int(np.partition(counts, counts.size - kbar - 1)[counts.size - kbar - 1])
        above = positive[counts > cut]
        tied = nsmallest(kbar - above.size, positive[counts == cut].tolist(), key=self.labels.__getitem__)
        return np.concatenate([above, np.array(tied, dtype=np.int64)]), cut
