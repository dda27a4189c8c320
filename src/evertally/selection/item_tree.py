"""Tree noise by item: the process of counting/tree.py for items that are named, not numbered, and may come late.

Every item has its own noise in every block of the tree, drawn once and the same for ever, because it is a function of
(key, block, label). An item that arrives at tick t gets the noise of *all* blocks that tile 1..t, also of those that
ended before it came: its noise must be that of an item known from tick 1, or the noise would reveal when it arrived
(streaming-selection 7.1). Nothing is drawn in advance, and nothing needs to be stored to be drawn again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.selection import digit_sum
from evertally.bounds.tails import Spread
from evertally.counting.process import IntArray, spread_of
from evertally.counting.tree import blocks, largest_digit_sum, level
from evertally.noise import ItemSource, Law
from evertally.secret import Secret
from evertally.selection.item_index import grown


class ItemTree(Secret):
    """Noise of all items at ticks 1, 2, ...; one draw for each item and tick, memory 8 L bytes an item.

    >>> from evertally.noise import DiscreteGaussian, item_addresses, simulation
    >>> source = simulation(1).source("doc")
    >>> early, late = (ItemTree(DiscreteGaussian(9), radix=3, depth=3, source=source) for _ in range(2))
    >>> pear, both = item_addresses(source, ["pear"]), item_addresses(source, ["fig", "pear"])
    >>> for t in range(1, 8):
    ...     a, b = early.advance(pear), late.advance(both[:1] if t < 6 else both)
    >>> bool(a[0] == b[1])
    True
    """

    def __init__(self, law: Law, *, radix: int, depth: int, source: ItemSource, lane: str = "items") -> None:
        self.law, self.radix = law, radix
        self._source, self._lane = source, lane
        self.tick = self._items = 0
        # noise of the latest tick with v trailing zero digits, for each v and item
        self._latest = np.zeros((depth, 0), dtype=np.int64)

    @property
    def depth(self) -> int:
        """Levels of the tree."""
        return len(self._latest)

    @property
    def noise(self) -> IntArray:
        current: IntArray = self._latest[level(self.tick, self.radix), : self._items]
        return current

    def advance(self, addresses: NDArray[np.uint64]) -> IntArray:
        """The noise of the next tick, given the addresses of all items: those of the last tick first, new ones last."""
        self._join(addresses)
        self.tick += 1
        noise = self._draws(self.tick, addresses)
        parent = self.tick - self.radix ** level(self.tick, self.radix)
        if parent:
            noise += self._latest[level(parent, self.radix), : self._items]
        self._latest[level(self.tick, self.radix), : self._items] = noise
        return noise

    def seek(self, tick: int, addresses: NDArray[np.uint64]) -> None:
        """Goes to the state after `tick`, with these items."""
        self.tick, self._items = tick, 0
        self._join(addresses)

    def keep(self, numbers: IntArray) -> None:
        """Forgets all items but these, which get new numbers in the same order."""
        self._latest, self._items = self._latest[:, numbers], len(numbers)

    def spread(self, tick: int) -> Spread:
        return spread_of(self.law, digit_sum(tick, self.radix), 1.0)

    def worst(self, horizon: int) -> Spread:
        return spread_of(self.law, largest_digit_sum(horizon, self.radix), 1.0)

    def _join(self, addresses: NDArray[np.uint64]) -> None:
        first, self._items = self._items, len(addresses)
        self._latest = grown(self._latest, self._items, axis=1)
        if first == self._items:
            return
        noise = np.zeros(self._items - first, dtype=np.int64)
        for block in reversed(blocks(self.tick, self.radix)):
            noise += self._draws(block, addresses[first:])
            self._latest[level(block, self.radix), first : self._items] = noise

    def _draws(self, block: int, addresses: NDArray[np.uint64]) -> IntArray:
        return self._source.item_draws(self._lane, self.law, block, addresses)
