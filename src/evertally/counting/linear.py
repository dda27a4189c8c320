"""The linear engine: exact running sums plus a noise process that never sees data.

Privacy: factorization-counting 1.4 and 11, price-of-continual-release 3.2, adaptive streams included. Inputs are
bounded by 1-Lipschitz functions of each tick's total (clip), which cannot raise a sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from evertally.bounds.tails import Spread
from evertally.contract.parts import Accuracy, Played
from evertally.contract.rows import Rows, dense, from_bytes, to_bytes
from evertally.counting.process import IntArray, NoiseProcess, Settled, go_to, path_bound, remembered
from evertally.counting.survey import widest
from evertally.secret import Secret

_WIDE = 128  # columns from which rows are added up one by one


class LinearEngine(Secret):
    """Rows in, noisy running sums out. Its state is the exact sums.

    >>> from evertally.counting.accumulate import AccumulatingProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import Change, PureDP
    >>> def noise():
    ...     return AccumulatingProcess(PureDP(1), Change(2, 2, 1), horizon=9, columns=2, source=ZeroNoise().source())
    >>> engine = LinearEngine(noise)
    >>> engine.play(np.array([[1, 0], [2, 5]]), engine.start()).rows.tolist()
    [[1, 0], [3, 5]]
    """

    def __init__(self, make: Callable[[], NoiseProcess]) -> None:
        self._make = make
        self.noise = make()
        self.width = self.noise.columns

    def start(self) -> IntArray:
        return np.zeros(self.noise.columns, dtype=np.int64)

    def begin(self, tick: int) -> None:
        # The noise of a tick does not depend on how one got there; but it must be that of this tick, wherever somebody
        # who looked at the process has left it: the noise of a past tick would publish what came since.
        if self.noise.tick != tick:
            self.noise.seek(tick)

    def play(self, batch: Rows, state: IntArray) -> Played:
        if len(batch) == 1 and type(batch) is np.ndarray:
            # One tick, in the way that takes numpy least time.
            values = batch + state[None, :]
            return Played(values + self.noise.advance(1), None, values[0], True)
        values = running(batch, state)
        sums = values[-1].copy()
        values += self.noise.advance(len(values))
        return Played(values, None, sums)

    def play_number(self, total: int, before: int) -> tuple[int, int]:
        after = before + total
        return after + self.noise.advance(1).item(), after

    def go_back(self, tick: int, state: IntArray) -> None:
        # A process that was interrupted may be anywhere, and in any state.
        noise = self._make()
        if isinstance(noise, Settled):
            noise.settle_as(self.noise)
        noise.seek(tick)
        self.noise = noise

    def accuracy(self, tick: int) -> Accuracy:
        return self.noise.spread(tick)

    def widest(self, tick: int) -> Accuracy | None:
        return widest(self.noise, tick)

    def window(self, tick: int, window: int) -> Spread:
        return self.noise.window_spread(tick, window)

    def combined(self, weights: Mapping[int, float]) -> Spread | None:
        """The law of a weighted sum of releases, where the process knows more of it than its variance."""
        known = getattr(self.noise, "combined_spread", None)
        return None if known is None else known(weights)

    @property
    def exact_windows(self) -> bool:
        """Whether `window` is the law of the difference, and no bound on it."""
        return bool(getattr(self.noise, "exact_windows", False))

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        """By the law of the path (`path_bound`; docs/theory/additions.md, 8)."""
        return path_bound(self.noise, beta, tick)

    def save(self, state: IntArray) -> list[bytes]:
        return [to_bytes(state), *remembered(self.noise)]

    def load(self, tick: int, parts: list[bytes]) -> IntArray:
        go_to(self.noise, tick, parts[1:])
        return from_bytes(parts[0])


def running(batch: Rows, state: IntArray) -> IntArray:
    """Running sums from `state` on.

    >>> running(np.array([[1, 0], [2, 5]]), np.array([10, 20])).tolist()
    [[11, 20], [13, 25]]
    """
    rows = dense(batch)
    if rows.shape[1] < _WIDE:
        values: IntArray = np.cumsum(rows, axis=0)
        values += state
        return values
    # Row by row: numpy's own sum goes down one column at a time, through all of the memory for each.
    values = np.empty_like(rows)
    for i, row in enumerate(rows):
        state = np.add(state, row, out=values[i])
    return values


class JointSums(LinearEngine):
    """d counters behind one answer: a query of the noisy sums is off by at most their largest noise.

    M1-M3 of price-of-continual-release 3.2-3.4, for every noise process. `factor` is 2 where the answer is a column:
    the chosen and the best column may both be off.
    """

    def __init__(self, make: Callable[[], NoiseProcess], factor: int = 1) -> None:
        super().__init__(make)
        self._factor = factor

    def accuracy(self, tick: int) -> Accuracy:
        return Largest(self.noise, tick, self._factor)

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        return self._factor * path_bound(self.noise, beta, tick)


class Largest:
    """The largest noise of all columns at a tick; no standard deviation, for the answer is no single noise."""

    stddev = None

    def __init__(self, noise: NoiseProcess, tick: int, factor: int) -> None:
        self._noise, self._tick, self._factor = noise, tick, factor

    def radius(self, beta: float) -> float:
        return self._factor * self._noise.spread(self._tick).radius(beta / self._noise.columns)
