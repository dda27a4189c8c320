"""A histogram that is good for a planned number of inserts and never full: parameterized-histograms 3.5.

Blocks of n, n, 2n, 4n, ... inserts, each with a noise process of its own that is the best one for its length. When a
block is full its last noise stays, and the next block starts. For n = 1 these are the epochs of H4.

Privacy [R], the argument of 3.5: an insert lies in one block, so every block has the whole budget; the block of an
insert follows from the public number of closes. Which n is chosen changes the depth of the trees, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from evertally.bounds.tails import Spread
from evertally.counting.pieces import Pieces
from evertally.counting.process import NoiseProcess


class BlockProcess(Pieces):
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
    >>> H.advance(10).shape, [H.piece_of(j) for j in (1, 3, 4, 6, 7, 12, 13)]
    ((10, 1), [0, 0, 1, 1, 2, 2, 3])
    """

    def __init__(self, inner: Callable[[int, int, int], NoiseProcess], *, first: int, columns: int) -> None:
        self.first, self._process_of = first, inner
        super().__init__(columns)

    def piece_of(self, tick: int) -> int:
        return ((tick - 1) // self.first).bit_length()

    def length(self, piece: int) -> int:
        return self.first << max(0, piece - 1)

    def before(self, piece: int) -> int:
        return 0 if piece == 0 else self.first << (piece - 1)

    def _process(self, piece: int, columns: int) -> NoiseProcess:
        return self._process_of(piece, self.length(piece), columns)

    def share(self, insert: int) -> float:
        """Its part of a failure probability: half of it goes to the first block, a quarter to the second, and so on."""
        block = self.piece_of(insert)
        return 0.5 ** (block + 1) / self.length(block)

    def worst(self) -> Spread:
        raise ValueError("blocks never end, so there is no widest spread; ask for one block")
