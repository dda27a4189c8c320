"""Unknown horizon: epochs of 1, 2, 4, ... ticks, each with a process of its own.

Epoch k covers the ticks 2^k .. 2^(k+1) - 1. The reading at a tick is (what closed epochs hold) + (inner process), and
the last noise of each closed epoch stays. An event lies in one epoch: the whole budget for every epoch (trees:
price-of-continual-release 9.1 [R], parameterized-histograms 3.5 [R]).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from evertally.bounds.joint import GridLaw
from evertally.bounds.tails import Spread
from evertally.contract.ticks import LAST_TICK
from evertally.counting.pieces import Pieces
from evertally.counting.process import IntArray, NoiseProcess, kind_and_scale
from evertally.counting.tree import TreeProcess

# After this many epochs the stream ends: 2^32 - 1 ticks, 136 years of seconds.
EPOCHS = LAST_TICK.bit_length()


class EpochProcess(Pieces):
    """Noise of a counter without a horizon.

    >>> from evertally.noise import simulation
    >>> from evertally.privacy import Change, PureDP
    >>> source = simulation(0).source("demo")
    >>> def inner(k, columns):
    ...     return TreeProcess(PureDP(1.0), Change(1, 1, 1), horizon=2**k, columns=columns, source=source, radix=2,
    ...                        lane=f"epoch-{k}")
    >>> EpochProcess(inner, columns=1).advance(10).shape
    (10, 1)
    """

    def __init__(self, inner: Callable[[int, int], NoiseProcess], *, columns: int) -> None:
        self._process_of = inner
        inner(EPOCHS - 1, 1)  # the widest noise of all: what cannot be drawn is refused now, not when its epoch begins
        super().__init__(columns)

    def piece_of(self, tick: int) -> int:
        return tick.bit_length() - 1

    def length(self, piece: int) -> int:
        return 1 << piece

    def before(self, piece: int) -> int:
        return (1 << piece) - 1

    def _process(self, piece: int, columns: int) -> NoiseProcess:
        return self._process_of(piece, columns)

    def _last_of(self, piece: int) -> IntArray:
        closed = self._process(piece, self.columns)
        # One block, without the others that going there step by step would draw.
        return closed.at(self.length(piece)) if isinstance(closed, TreeProcess) else super()._last_of(piece)

    def worst(self) -> Spread:
        return self.worst_in(EPOCHS - 1)

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        """All ticks of the epoch of `tick` at once; epoch k gets the part 6/(pi (k + 1))^2 of beta."""
        assert tick is not None
        k = tick.bit_length() - 1
        return self._in_epoch(6 * beta / (math.pi * (k + 1)) ** 2, k)

    def _in_epoch(self, beta: float, k: int) -> float:
        inner = self._model(k)
        union = self.worst_in(k).radius(beta / 2**k)
        if isinstance(inner, TreeProcess):
            law = inner.maximum(self.worst_in(k).radius(1e-9 / 2**k))
            for closed in range(k):
                model = self._model(closed)
                assert isinstance(model, TreeProcess)
                # A closed epoch is one block, its last; nothing more of it is left.
                law = law.moved(GridLaw.draw(*kind_and_scale(model.law), law.step))
            return min(union, law.radius(beta / 2))
        return union
