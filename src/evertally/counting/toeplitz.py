"""Noise for sums that weigh inputs by their age: decays, windows, any public coefficients.

factorization-counting 6.10, 2.4 (S1 and S2) and 11; additions 11. With the integers r of toeplitz_factor.py the
mechanism is "release y = R x + Z": Z discrete Gaussian with sigma^2 >= D2^2 N/(2 rho), N = sum_k r_k^2, is rho-zCDP as
a whole, for adaptive streams; discrete Laplace of scale D1 (sum_k |r_k|)/eps is eps-DP. What leaves is the multiple of
the resolution next to the unbiased estimate L y, half up: the exact sum and e = L Z, rounded together, so that it is a
function of y.

`Lagged` is the other way to a window: the difference of two running totals, of which each is private already.

Error: sigma^2 sum_k l_k^2, at worst S D2/sqrt(2 rho) with S = sum_k c_k^2. Time O(log T) amortised per tick and column.
Memory 8 d T bytes; without a horizon 8 d times the terms of L that matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evertally.bounds.tails import Spread
from evertally.contract.parts import FEW_TICKS
from evertally.counting.epochs import EpochProcess
from evertally.counting.honaker import HonakerProcess
from evertally.counting.process import Budget, IntArray, NoiseProcess, Remembering, Settled, check_range, window_bound
from evertally.counting.sqrt import FactorProcess, SqrtProcess
from evertally.counting.survey import widest
from evertally.counting.toeplitz_factor import ToeplitzFactor
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law, Source, round_up
from evertally.privacy import Change, PureDP
from evertally.secret import Secret


class ToeplitzProcess(FactorProcess[ToeplitzFactor, Law]):
    """Noise of a factor.

    >>> from evertally.counting.toeplitz_factor import root_factor
    >>> from evertally.counting.workloads import Window
    >>> from evertally.noise import simulation
    >>> from evertally.privacy import ZCDP
    >>> noise = ToeplitzProcess(ZCDP(0.5), Change(1, 1, 1), root_factor(Window(64), 1000), horizon=1000, columns=1,
    ...                         source=simulation(0).source("demo"))
    >>> round(noise.worst().variance ** 0.5, 3)  # S of a window of 64 ticks
    2.675
    """

    def __init__(
        self,
        charge: Budget,
        change: Change,
        factor: ToeplitzFactor,
        *,
        horizon: int | None,
        columns: int,
        source: Source,
        lane: str = "toeplitz",
    ) -> None:
        law = law_of(charge, change, factor)
        super().__init__(factor, law, horizon=horizon, columns=columns, source=source, lane=lane)
        check_range(self)


def law_of(charge: Budget, change: Change, factor: ToeplitzFactor) -> Law:
    """The law of each draw: what one change moves R x by is at most its own size times the norm of a whole column of
    the integers used, whichever ticks it is in (S1, S2)."""
    if isinstance(charge, PureDP):
        return DiscreteLaplace(round_up(change.l1 * factor.l1 / charge.exact_epsilon))
    return DiscreteGaussian(round_up(change.l2_squared * factor.column_norm_squared / (2 * charge.exact_rho)))


class Lagged(Secret):
    """The noise of a running total minus its own noise `window` ticks ago.

    >>> from evertally.counting.tree import TreeProcess
    >>> from evertally.noise import simulation
    >>> from functools import partial
    >>> make = partial(TreeProcess, PureDP(1.0), Change(1, 1, 1), horizon=9, columns=1,
    ...                source=simulation(0).source("demo"))
    >>> total, last = make().advance(9), Lagged(make, 4).advance(9)
    >>> bool((last[4:] == total[4:] - total[:-4]).all()), bool((last[:4] == total[:4]).all())
    (True, True)
    """

    def __init__(self, make: Callable[[], NoiseProcess], window: int) -> None:
        self._now, self._before, self._window = make(), make(), window
        self.columns, self.horizon, self.tick = self._now.columns, self._now.horizon, 0

    def advance(self, count: int = 1) -> IntArray:
        noise = self._now.advance(count).copy()
        late = min(count, self.tick + count - self._window)  # ticks of these that have a tick to look back on
        if late > 0:
            noise[count - late :] -= self._before.advance(late)
        self.tick += count
        return noise

    def seek(self, tick: int) -> None:
        self._now.seek(tick)
        self._before.seek(max(0, tick - self._window))
        self.tick = tick

    def settle_as(self, other: Any) -> None:
        """Both go on with numbers that were settled when the stream began, where the process has such numbers."""
        if isinstance(other, Lagged):
            for mine, its in ((self._now, other._now), (self._before, other._before)):
                if isinstance(mine, Settled):
                    mine.settle_as(its)

    def spread(self, tick: int) -> Spread:
        # Two cases are a little wider than they are, as such streams have always stated them: what they publish stays
        # the same, bit for bit, and so does what "auto" takes.
        window = min(tick, self._window)
        if isinstance(self._now, HonakerProcess | EpochProcess):
            return window_bound(self._now, tick, window)
        stated = self._now.window_spread(tick, window)
        if window == tick and isinstance(self._now, FactorProcess):
            return replace(stated, roundings=2 * stated.roundings)
        return stated

    def widest(self, tick: int) -> Spread | None:
        if isinstance(self._now, SqrtProcess):
            return self.spread(tick)  # weights only add up
        if tick <= self._window:
            return widest(self._now, tick)
        if tick > FEW_TICKS:
            return None
        return max((self.spread(t) for t in range(1, tick + 1)), key=lambda spread: spread.stddev)

    def worst(self) -> Spread:
        if self.horizon is not None and (isinstance(self._now, SqrtProcess) or self.horizon <= self._window):
            return self.spread(self.horizon)  # the weights of the square root only add up
        return self._now.worst() + self._now.worst()  # as if independent

    def window_spread(self, tick: int, window: int) -> Spread:
        return window_bound(self, tick, window)  # four totals; nobody asks, for weighed sums have no differences


class LaggedMemory(Lagged):
    """The same, of a process that remembers: snapshots keep both of its states, coefficients included."""

    _now: Any
    _before: Any

    def memory(self) -> bytes:
        now: bytes = self._now.memory()
        return len(now).to_bytes(8, "little") + now + bytes(self._before.memory())

    def recall(self, tick: int, memory: bytes) -> None:
        ends = 8 + int.from_bytes(memory[:8], "little")
        self._now.recall(tick, memory[8:ends])
        self._before.recall(max(0, tick - self._window), memory[ends:])
        self.tick = tick


def lagged(make: Callable[[], NoiseProcess], window: int) -> Lagged:
    """The noise of a window, by whichever process."""
    return (LaggedMemory if isinstance(make(), Remembering) else Lagged)(make, window)
