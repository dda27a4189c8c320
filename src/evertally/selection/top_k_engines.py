"""Three engines that name k columns and their counts.

A released row has four parts of k integers: the named columns, their noisy counts, and, for MetaAlgo, how many blocks
did not release that column and the sum of the smallest counts that those blocks did release (0 for the others).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from evertally.bounds.selection import L, digit_sum
from evertally.contract.parts import Played
from evertally.contract.rows import Rows, dense
from evertally.counting.linear import LinearEngine
from evertally.counting.process import IntArray, NoiseProcess, spread_of
from evertally.noise import Law
from evertally.secret import Secret
from evertally.selection.meta import MetaAlgo
from evertally.selection.sparse_gumbel import SparseGumbel

E = TypeVar("E", bound=SparseGumbel | MetaAlgo)


@dataclass(frozen=True)
class TopKAccuracy:
    """How far the counts of one release may be off. No standard deviation: the named columns depend on the noise.

    `noise(beta)` bounds the noise of all its counts; `lost(beta)` what one block may have lost beyond the smallest
    count that it released.
    """

    noise: Callable[[float], float]
    lost: Callable[[float], float] | None = None
    stddev: None = None

    def radius(self, beta: float) -> float:
        """A bound on the noise of all counts of the release."""
        return self.noise(beta if self.lost is None else beta / 2)

    def loss(self, beta: float) -> float:
        """A bound on what a block lost, above its smallest released count."""
        return 0.0 if self.lost is None else self.lost(beta / 2)


def picks(columns: IntArray, counts: IntArray) -> IntArray:
    """Released rows of an engine that loses nothing."""
    nothing = np.zeros_like(columns)
    return np.hstack([columns, counts, nothing, nothing])


class _Around(Secret, Generic[E]):
    """What a worker leaves to the engine that it shows."""

    def __init__(self, engine: E, k: int, horizon: int) -> None:
        self.engine: E = engine
        self._k, self._horizon, self.width = k, horizon, 4 * k

    @property
    def tick(self) -> int:
        return self.engine.tick

    def state(self) -> list[bytes]:
        return self.engine.state()

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.engine.load(tick, parts)


class Switching(_Around[SparseGumbel]):
    """sparseGumb. Counts are off by their own noise; which columns are named has a theorem under assumptions only
    (streaming-selection 6.3)."""

    def __init__(self, engine: SparseGumbel, k: int, counters: int, horizon: int) -> None:
        super().__init__(engine, k, horizon)
        # Every counter that may ever run: which of them is in force at a tick depends on their noise.
        self._counters = counters

    def advance(self, rows: Rows) -> tuple[IntArray, None]:
        return picks(*self.engine.advance(rows)), None

    def accuracy(self, tick: int) -> TopKAccuracy:
        return TopKAccuracy(lambda beta: self.engine.spread(tick).radius(beta / self._counters))

    def error_bound(self, beta: float, tick: int | None) -> float:
        return self.engine.spread(tick).radius(beta / (self._counters * self._horizon))


class EveryColumn(LinearEngine):
    """KnownBase (streaming-selection 3.4): a counter for every column, and the k largest of what they released."""

    def __init__(self, make: Callable[[], NoiseProcess], labels: Sequence[str], k: int) -> None:
        super().__init__(make)
        self._by_name = np.array(sorted(range(len(labels)), key=lambda j: labels[j]), dtype=np.int64)
        self._k = k
        self.width = 4 * k

    def play(self, batch: Rows, state: IntArray) -> Played:
        played = super().play(batch, state)
        values: IntArray = played.rows
        # A stable order of the columns by name leaves ties to the name.
        best = np.argsort(-values[:, self._by_name], axis=1, kind="stable")[:, : self._k]
        columns = self._by_name[best]
        return Played(picks(columns, np.take_along_axis(values, columns, axis=1)), None, played.state)

    def accuracy(self, tick: int) -> TopKAccuracy:
        return TopKAccuracy(lambda beta: self.noise.spread(tick).radius(beta / self.noise.columns))


@dataclass(frozen=True)
class BlockNoise:
    """The noise of one block: the law of its counts, and the scale of its selection (None: all are released)."""

    law: Law
    gumbel: float | None

    def radius(self, blocks: int, beta: float) -> float:
        """What the noise of a sum over so many blocks exceeds with probability at most beta."""
        return spread_of(self.law, blocks, 1.0).radius(beta)


class Blocks(_Around[MetaAlgo]):
    """MetaAlgo over a known domain, and the k largest of its sums.

    A column u that a block did not release has v_u <= v_j for every column j that it released, v the count plus Gumbel
    noise. So the block's count of u is at most the smallest released count, plus the noise of that count, plus the
    largest difference of two Gumbel variates: this bounds what is lost, from released numbers. [D], accuracy only.
    """

    def __init__(
        self, engine: MetaAlgo, labels: Sequence[str], k: int, noise: BlockNoise, horizon: int, growth: int | None
    ) -> None:
        super().__init__(engine, k, horizon)
        self._labels, self._noise, self._growth = labels, noise, growth
        self._column = {label: j for j, label in enumerate(labels)}

    def advance(self, rows: Rows) -> tuple[IntArray, None]:
        values = np.empty((len(rows), 4, self._k), dtype=np.int64)
        for i, row in enumerate(dense(rows)):
            self.engine.step(row)
            for place, (label, count) in enumerate(self.engine.top(self._k)):
                values[i, :, place] = self._column[label], count, *self.engine.missed(label)
        return values.reshape(len(values), -1), None

    def accuracy(self, tick: int) -> TopKAccuracy:
        cells, d = digit_sum(tick, self.engine.radix), len(self._labels)

        def noise(beta: float) -> float:
            return self._noise.radius(cells, beta / d)

        def lost(beta: float) -> float:
            assert self._noise.gumbel is not None
            events = 3 * d * cells / beta
            highest, lowest = math.log(events), math.log(math.log(events))
            return self._noise.radius(1, 1 / events) + self._noise.gumbel * (highest + lowest)

        return TopKAccuracy(noise, lost if self._noise.gumbel is not None else None)

    def error_bound(self, beta: float, tick: int | None) -> float:
        worst = self._horizon if tick is None else tick
        d, r = len(self._labels), self.engine.radix
        cells = (r - 1) * L(worst, r) if tick is None else digit_sum(tick, r)
        noise = self._noise.radius(cells, beta / (d * self._horizon))
        # Before any data nothing is known about what blocks lose, except that it was counted.
        return noise + (math.inf if self.loses_unseen else worst * (self._growth or 0) if self._noise.gumbel else 0)

    @property
    def loses_unseen(self) -> bool:
        """Whether blocks may lose counts that nothing declared bounds."""
        return self._noise.gumbel is not None and self._growth is None
