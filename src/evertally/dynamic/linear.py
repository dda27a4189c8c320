"""L: the signed linear counter (dynamic-data 13.1). Exact sums of what is present, plus noise that never sees data.

The row of a tick is the sum over its updates of +-(column of the strategy); the linear engine releases running sums at
every tick, empty or not. There is no partition, no staleness, and nothing depends on how much happened: the error is
that of the noise process, O(log T), for the `Change` that `charges.py` says.

Time for a tick: O(updates x entries of a column) and one step of the noise process; memory: what lives (presence.py),
the sums, and the noise process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.bounds.tails import Spread
from evertally.contract.parts import Played
from evertally.counting.linear import LinearEngine
from evertally.counting.process import NoiseProcess
from evertally.counting.survey import widest
from evertally.dynamic.parts import FloatArray, IntArray
from evertally.dynamic.strategies import Strategy


@dataclass(frozen=True)
class Combination:
    """How far a linear combination of columns with independent noise of one law may be off.

    >>> one = Spread("gaussian", variance=4.0, proxy=4.0, peak=2.0, finest=2.0)
    >>> round(Combination.of(one, np.array([1.0, -1.0, 0.0])).stddev ** 2, 9)
    8.0
    """

    column: Spread
    l1: float
    l2_squared: float
    largest: float
    plain: bool  # all weights 1, -1 or 0: the noise stays on the integers

    @classmethod
    def of(cls, column: Spread, weights: FloatArray) -> Combination:
        size = np.abs(weights)
        plain = bool(np.all((size == 0) | (size == 1)))
        if not size.any():
            return cls(column, 0.0, 0.0, 0.0, plain)
        return cls(column, float(size.sum()), float(np.sum(size * size)), float(size.max()), plain)

    @property
    def stddev(self) -> float:
        """Standard deviation; each column was rounded by itself."""
        return self.column.stddev * math.sqrt(self.l2_squared)

    def radius(self, beta: float) -> float:
        """What the error exceeds with probability at most beta."""
        if self.l2_squared == 0:
            return 0.0
        if self.plain and self.l1 == 1:
            return self.column.radius(beta)
        c = self.column
        # Off the integers the tail of the normal law is not proved for discrete draws; Chernoff's bound is.
        finest = c.finest if self.plain and not c.roundings else 0.0
        scaled = Spread(
            c.law,
            c.variance * self.l2_squared,
            c.proxy * self.l2_squared,
            c.peak * self.largest,
            finest,
        )
        return scaled.radius(beta) + 0.5 * c.roundings * self.l1


class LinearAccuracy:
    """The error at one tick: of each column (`stddev`, `radius`), and of any query (`of`)."""

    def __init__(self, column: Spread, strategy: Strategy) -> None:
        self._column, self._strategy = column, strategy

    @property
    def stddev(self) -> float:
        return self._column.stddev

    def radius(self, beta: float) -> float:
        return self._column.radius(beta)

    def of(self, query: Any) -> Combination:
        """That of one query."""
        return Combination.of(self._column, self._strategy.weights(query))


class UpdateEngine(LinearEngine):
    """A linear engine whose ticks are updates. `shown`: the queries that `error_bound` is about; None: each column.

    >>> from evertally.counting.tree import TreeProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import Change, PureDP
    >>> def noise():
    ...     return TreeProcess(PureDP(1), Change(2, 2, 1), horizon=9, columns=2, source=ZeroNoise().source())
    >>> from evertally.dynamic.families import Points
    >>> from evertally.dynamic.parts import Updates
    >>> from evertally.dynamic.strategies import Identity
    >>> engine = UpdateEngine(noise, Identity(Points(["a", "b"])))
    >>> updates = Updates(np.array([1, 1, 0]), np.array([1, 1, -1]), np.array([1, 2, 3]))
    >>> engine.play([updates], engine.start()).rows.tolist()
    [[-1, 2]]
    """

    def __init__(
        self, make: Callable[[], NoiseProcess], strategy: Strategy, shown: Sequence[Any] | None = None
    ) -> None:
        super().__init__(make)
        self._strategy = strategy
        self._shown = None if shown is None else [strategy.weights(query) for query in shown]

    def play(self, batch: Any, state: IntArray) -> Played:
        rows = [self._strategy.encode(updates.cells, updates.signs) for updates in batch]
        return super().play(np.stack(rows), state)

    def accuracy(self, tick: int) -> LinearAccuracy:
        return LinearAccuracy(self.noise.spread(tick), self._strategy)

    def widest(self, tick: int) -> LinearAccuracy | None:
        top = widest(self.noise, tick)
        return None if top is None else LinearAccuracy(top, self._strategy)

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        if self._shown is None:
            return super().error_bound(beta, tick, trust_largest)
        # All columns together, or query by query and tick by tick: half of beta for each, so that both hold.
        columns = super().error_bound(beta / 2, tick, trust_largest)
        horizon = self.noise.horizon
        column = self.noise.worst() if tick is None else self.noise.spread(tick)
        share = beta / 2 / len(self._shown)
        share = share / horizon if horizon is not None else 6 * share / (math.pi * (tick or 1)) ** 2
        answers = [Combination.of(column, weights) for weights in self._shown]
        return max(min(answer.l1 * columns, answer.radius(share)) for answer in answers)
