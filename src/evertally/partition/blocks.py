"""A histogram that is good for a planned number of inserts and never full: parameterized-histograms 3.5.

Blocks of n, n, 2n, 4n, ... inserts, each with a noise process of its own that is the best one for its length. When a
block is full its last noise stays, and the next block starts. For n = 1 these are the epochs of H4.

Privacy [R], the argument of 3.5: an insert lies in one block, so every block has the whole budget; the block of an
insert follows from the public number of closes. Which n is chosen changes the depth of the trees, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evertally.bounds.tails import Spread
from evertally.counting.process import IntArray, NoiseProcess, window_bound
from evertally.secret import Secret


class BlockProcess(Secret):
    """Noise of H in blocks. `inner(k, length, columns)` makes the process of block k.

    Time and memory are those of the block in force; `seek` visits the closed blocks once.

    >>> from evertally.counting.accumulate import AccumulatingProcess
    >>> from evertally.noise import simulation
    >>> from evertally.privacy import Change, PureDP
    >>> source = simulation(0).source("demo")
    >>> def inner(k, length, columns):
    ...     return AccumulatingProcess(PureDP(1), Change(1, 1, 1), horizon=length, columns=columns, source=source,
    ...                                lane=f"block-{k}")
    >>> H = BlockProcess(inner, first=3, columns=1)
    >>> H.advance(10).shape, [H.block_of(j) for j in (1, 3, 4, 6, 7, 12, 13)]
    ((10, 1), [0, 0, 1, 1, 2, 2, 3])
    """

    horizon: int | None = None

    def __init__(self, inner: Callable[[int, int, int], NoiseProcess], *, first: int, columns: int) -> None:
        self.columns = columns
        self.first = first
        self._make_inner = inner
        self._models: dict[int, NoiseProcess] = {}  # one-column processes, to ask for spreads
        self._held: IntArray
        self._inner: NoiseProcess
        self.seek(0)

    def block_of(self, insert: int) -> int:
        """The block of insert number `insert`, which counts from 1."""
        return ((insert - 1) // self.first).bit_length()

    def length(self, block: int) -> int:
        """How many inserts a block takes."""
        return self.first << max(0, block - 1)

    def before(self, block: int) -> int:
        """How many inserts come before a block."""
        return 0 if block == 0 else self.first << (block - 1)

    def share(self, insert: int) -> float:
        """Its part of a failure probability: half of it goes to the first block, a quarter to the second, and so on."""
        block = self.block_of(insert)
        return 0.5 ** (block + 1) / self.length(block)

    def advance(self, count: int = 1) -> IntArray:
        out = np.empty((count, self.columns), dtype=np.int64)
        done = 0
        while done < count:
            left = self.before(self._block + 1) - self.tick
            part = min(left, count - done)
            noise = self._inner.advance(part)
            out[done : done + part] = noise + self._held
            self.tick += part
            done += part
            if part == left:
                self._held = self._held + noise[-1]
                self._block += 1
                self._inner = self._make_inner(self._block, self.length(self._block), self.columns)
        return out

    def seek(self, tick: int) -> None:
        self.tick = tick
        self._block = self.block_of(tick + 1)
        self._held = np.zeros(self.columns, dtype=np.int64)
        for k in range(self._block):
            closed = self._make_inner(k, self.length(k), self.columns)
            closed.seek(self.length(k) - 1)
            self._held = self._held + closed.advance(1)[0]
        self._inner = self._make_inner(self._block, self.length(self._block), self.columns)
        self._inner.seek(tick - self.before(self._block))

    def spread(self, tick: int) -> Spread:
        k = self.block_of(tick)
        return self._with_held(self._model(k).spread(tick - self.before(k)), k)

    def worst(self) -> Spread:
        raise ValueError("blocks never end, so there is no widest spread; ask for one block")

    def worst_in_block(self, block: int) -> Spread:
        """The widest spread over the inserts of a block; it grows with the block."""
        return self._with_held(self._model(block).worst(), block)

    def window_spread(self, tick: int, window: int) -> Spread:
        return window_bound(self, tick, window)

    def _with_held(self, spread: Spread, block: int) -> Spread:
        for closed in range(block):
            spread = spread + self._model(closed).spread(self.length(closed))
        return spread

    def _model(self, block: int) -> NoiseProcess:
        if block not in self._models:
            self._models[block] = self._make_inner(block, self.length(block), 1)
        return self._models[block]
