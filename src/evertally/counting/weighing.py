"""Engines for public weights: exact sums that weigh inputs by age or by tick, plus a process that never sees data.

Privacy: factorization-counting 6.10, 2.4 and 11; additions 11. Exact sums are integers in parts of a public unit; what
they have beyond whole numbers is rounded together with the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from evertally.contract.parts import Accuracy, Played
from evertally.contract.rows import Rows, dense, from_bytes, to_bytes
from evertally.counting.bank_decay import DecayBankProcess
from evertally.counting.linear import LinearEngine
from evertally.counting.process import IntArray, NoiseProcess, check_range, go_to, path_bound, remembered
from evertally.counting.sqrt import FactorProcess
from evertally.counting.workloads import Series


class Scaled:
    """An accuracy in public units: those of a row times a public number."""

    def __init__(self, accuracy: Accuracy, by: float) -> None:
        self._accuracy, self._by = accuracy, by

    @property
    def stddev(self) -> float | None:
        stddev = self._accuracy.stddev
        return None if stddev is None else stddev * self._by

    def radius(self, beta: float) -> float:
        return self._accuracy.radius(beta) * self._by


class AgeEngine(LinearEngine):
    """sum_k weights_k x_(t-k) / unit, plus noise. Its state is the inputs that still weigh something, oldest first.

    >>> from functools import partial
    >>> from evertally.counting.toeplitz import ToeplitzProcess
    >>> from evertally.counting.toeplitz_factor import input_factor
    >>> from evertally.counting.workloads import Window
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import Change, PureDP
    >>> noise = partial(ToeplitzProcess, PureDP(1), Change(1, 1, 1), input_factor(Window(2), None), horizon=None,
    ...                 columns=1, source=ZeroNoise().source())
    >>> engine = AgeEngine(noise, Window(2).series(), None)
    >>> engine.play(np.array([[1], [2], [5]]), engine.start()).rows.tolist()
    [[1], [3], [7]]
    """

    differences = False

    def __init__(self, make: Callable[[], NoiseProcess], series: Series, horizon: int | None) -> None:
        super().__init__(make)
        self._weights = np.array(series.weights[:horizon], dtype=np.int64)
        self._even = bool(np.all(self._weights == self._weights[0]))
        self._unit, self._step = series.unit, float(series.step)

    def start(self) -> IntArray:
        return np.zeros((self._weights.size - 1, self.width), dtype=np.int64)

    def play(self, batch: Rows, state: IntArray) -> Played:
        inputs = np.concatenate([state, dense(batch)])
        sums = self._sums(inputs)
        count = len(sums)
        if isinstance(self.noise, FactorProcess | DecayBankProcess) and self._unit > 1:
            sums, rests = np.divmod(sums, self._unit)
            sums += self.noise.advance(count, rests)
        else:
            sums += self.noise.advance(count)
        return Played(sums, None, inputs[count:].copy())

    def _sums(self, inputs: IntArray) -> IntArray:
        # The door keeps totals so small that no sum leaves 64 bits; what wraps around on the way comes back.
        size = self._weights.size
        if self._even:
            total = np.cumsum(np.concatenate([np.zeros((1, self.width), dtype=np.int64), inputs]), axis=0)
            even: IntArray = self._weights[0] * (total[size:] - total[:-size])
            return even
        if len(inputs) == size:
            return (self._weights[::-1] @ inputs)[None, :]
        return np.stack([np.convolve(column, self._weights, "valid") for column in inputs.T], axis=1)

    def accuracy(self, tick: int) -> Accuracy:
        return Scaled(self.noise.spread(tick), self._step)

    def widest(self, tick: int) -> Accuracy | None:
        top = super().widest(tick)
        return None if top is None else Scaled(top, self._step)

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        return path_bound(self.noise, beta, tick) * self._step

    def save(self, state: IntArray) -> list[bytes]:
        return [to_bytes(state.ravel()), *remembered(self.noise)]

    def load(self, tick: int, parts: list[bytes]) -> IntArray:
        go_to(self.noise, tick, parts[1:])
        return from_bytes(parts[0]).reshape(-1, self.width)


class WeightedEngine(LinearEngine):
    """alpha_t sum_(j<=t) beta_j x_j, plus the noise of a running total, times alpha_t.

    >>> from evertally.counting.accumulate import AccumulatingProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import Change, PureDP
    >>> def noise():
    ...     return AccumulatingProcess(PureDP(1), Change(2, 4, 2), horizon=3, columns=1, source=ZeroNoise().source())
    >>> engine = WeightedEngine(noise, (1, 0, 2), (1, 1, 10))
    >>> engine.play(np.array([[1], [2], [5]]), engine.start()).rows.tolist()
    [[1], [1], [110]]
    """

    differences = False

    def __init__(self, make: Callable[[], NoiseProcess], beta: tuple[int, ...], alpha: tuple[int, ...] | None) -> None:
        super().__init__(make)
        self._beta = np.array(beta, dtype=np.int64)
        self._alpha = np.ones(len(beta), dtype=np.int64) if alpha is None else np.array(alpha, dtype=np.int64)
        check_range(self.noise, int(self._alpha.max()))

    def play(self, batch: Rows, state: IntArray) -> Played:
        inputs = dense(batch)
        ticks = slice(self.noise.tick, self.noise.tick + len(inputs))
        played = super().play(inputs * self._beta[ticks, None], state)
        return Played(played.rows * self._alpha[ticks, None], None, played.state)

    def accuracy(self, tick: int) -> Accuracy:
        return Scaled(self.noise.spread(tick), float(self._alpha[tick - 1]))

    def widest(self, tick: int) -> Accuracy | None:
        top = super().widest(tick)
        if top is None or top.stddev is None:
            return None
        alpha = np.abs(self._alpha[:tick])
        if np.all(alpha == alpha[0]):
            return Scaled(top, float(alpha[0]))
        # Largest weights first, until no tick that is left can be farther off than the one that was found.
        best, where = -1.0, 1
        for t in (np.argsort(-alpha, kind="stable") + 1).tolist():
            if float(alpha[t - 1]) * top.stddev <= best:
                break
            own = float(alpha[t - 1]) * self.noise.spread(t).stddev
            best, where = (own, t) if own > best else (best, where)
        return self.accuracy(where)

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        largest = int(np.max(self._alpha[: self.noise.horizon])) if tick is None else int(self._alpha[tick - 1])
        return path_bound(self.noise, beta, tick) * largest


class AverageEngine(LinearEngine):
    """Noisy running totals divided by the number of ticks, in whole steps of 1/`parts`: post-processing alone.

    >>> from evertally.counting.accumulate import AccumulatingProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import Change, PureDP
    >>> def noise():
    ...     return AccumulatingProcess(PureDP(1), Change(1, 1, 1), horizon=3, columns=1, source=ZeroNoise().source())
    >>> engine = AverageEngine(noise, 10)
    >>> engine.play(np.array([[1], [2], [5]]), engine.start()).rows.tolist()
    [[10], [15], [27]]
    """

    differences = False

    def __init__(self, make: Callable[[], NoiseProcess], parts: int) -> None:
        super().__init__(make)
        self._parts = parts
        check_range(self.noise, 2 * parts)

    def play(self, batch: Rows, state: IntArray) -> Played:
        first = self.noise.tick + 1
        played = super().play(batch, state)
        t = np.arange(first, first + len(played.rows), dtype=np.int64)[:, None]
        return Played((2 * self._parts * played.rows + t) // (2 * t), None, played.state)

    def accuracy(self, tick: int) -> Accuracy:
        return Averaged(self.noise.spread(tick), tick, self._parts)

    def widest(self, tick: int) -> Accuracy | None:
        top = super().widest(tick)
        if top is None or top.stddev is None:
            return None
        # A tick counts a t-th of the widest total at most, so the search ends after a few.
        best, where = -1.0, 1
        for t in range(1, tick + 1):
            if top.stddev / t <= best:
                break
            own = self.noise.spread(t).stddev / t
            best, where = (own, t) if own > best else (best, where)
        return self.accuracy(where)

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        if tick is not None:
            return path_bound(self.noise, beta, tick) / tick + 0.5 / self._parts
        first, whole = path_bound(self.noise, beta, 1), path_bound(self.noise, beta)
        return max(first, whole / 2) + 0.5 / self._parts  # from the second tick on at most half of the largest error


class Averaged:
    """The accuracy of a total divided by the tick, and rounded to a grid."""

    def __init__(self, total: Accuracy, tick: int, parts: int) -> None:
        self._total, self._tick, self._parts = total, tick, parts

    @property
    def stddev(self) -> float | None:
        stddev = self._total.stddev
        return None if stddev is None else math.hypot(stddev / self._tick, 1 / (self._parts * math.sqrt(12)))

    def radius(self, beta: float) -> float:
        return self._total.radius(beta) / self._tick + 0.5 / self._parts
