"""Unknown horizon under a pure budget: epochs of 32, 32^2, 32^3, ... ticks, each with blocks of its own.

optimal-counting 6.1. The reading at a tick is (what closed epochs hold) + (blocks of the epoch in force). A closed
epoch is held by its last row: the noise that its last tick was released with stays. An event lies in one epoch, so that
each of them has the whole budget; later releases add integers that were released already to those of later epochs.

Error: variance V (D1/eps)^2, V = 117 / 1078 / 1078 at tick 2^10 / 2^16 / 2^20 (epoch trees: 1012 / 3570 / 6622), where
blocks that know their horizon have 95 / 451 / 760. Longer epochs would lower late errors and raise early ones: among
epochs that are powers of two these are within 4 % of the best, on average over 2^4 to 2^29 ticks. Time and memory are
those of "pure-blocks"; going to a tick draws the last row of each closed epoch again.
"""

from __future__ import annotations

import math
from dataclasses import replace

from evertally.bounds.tails import Spread
from evertally.contract.ticks import LAST_TICK
from evertally.counting.block_table import sizes_for
from evertally.counting.block_tails import path_radius
from evertally.counting.pieces import Pieces
from evertally.counting.pure_blocks import PureBlocksProcess, float_above
from evertally.noise import Source
from evertally.privacy import Change, PureDP

# Epoch k has 2^(GROWTH (k + 1)) ticks.
GROWTH = 5


class BlockEpochs(Pieces):
    """Noise of a counter without a horizon, by blocks.

    >>> from evertally.noise import simulation
    >>> process = BlockEpochs(PureDP(1), Change(1, 1, 1), columns=1, source=simulation(0).source("demo"))
    >>> process.advance(40).shape, [round(process.spread(2**k).stddev ** 2) for k in (4, 10, 16, 20)]
    ((40, 1), [22, 117, 1078, 1078])
    """

    def __init__(self, charge: PureDP, change: Change, *, columns: int, source: Source) -> None:
        self._charge, self._change, self._source = charge, change, source
        self._unit = float_above(change.l1 / charge.exact_epsilon)
        super().__init__(columns)

    def piece_of(self, tick: int) -> int:
        # With g = 2^GROWTH: before(k) = (g^(k+1) - g)/(g - 1) < tick if and only if g^(k+1) <= (g - 1)(tick + 1).
        return ((((1 << GROWTH) - 1) * (tick + 1)).bit_length() - 1) // GROWTH - 1

    def length(self, piece: int) -> int:
        return 1 << GROWTH * (piece + 1)

    def before(self, piece: int) -> int:
        return sum(map(self.length, range(piece)))

    def _process(self, piece: int, columns: int) -> PureBlocksProcess:
        horizon, lane = self.length(piece), f"epoch-{piece}"
        return PureBlocksProcess(
            self._charge, self._change, horizon=horizon, columns=columns, source=self._source, lane=lane
        )

    def worst(self) -> Spread:
        return self.worst_in(LAST_TICK.bit_length() - 1)

    def worst_in(self, k: int) -> Spread:
        """The widest spread of the ticks 2^k .. 2^(k+1) - 1, which lie in two epochs at most."""
        first, last = 1 << k, (2 << k) - 1
        pieces = {self.piece_of(first), self.piece_of(last)}
        parts = [self._between(piece, first, last) for piece in pieces]
        widest = max(parts, key=lambda part: part.proxy)
        # The widest one need not have the largest weight, nor most roundings: a bound takes all.
        return replace(widest, peak=max(part.peak for part in parts), roundings=max(part.roundings for part in parts))

    def _between(self, piece: int, first: int, last: int) -> Spread:
        start = self.before(piece)
        model = self._model(piece)
        assert isinstance(model, PureBlocksProcess)
        inside = model.worst_between(max(first - start, 1), min(last - start, self.length(piece)))
        return self._with_held(inside, piece)

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        """All ticks of the epoch of `tick` at once; epoch k gets the part 6/(pi (k + 1))^2 of beta."""
        assert tick is not None, "without a horizon the bound is for one tick"
        k = self.piece_of(tick)
        sizes = [sizes_for(self.length(piece)) for piece in range(k + 1)]
        real = path_radius(sizes[k], 6 * beta / (math.pi * (k + 1)) ** 2, tuple(sizes[:k]))
        # One rounding an epoch.
        return self._unit * real + 0.5 * (k + 1)
