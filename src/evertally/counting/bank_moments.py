"""How far the noise of a bank spreads: variances in closed form, segment by segment. Accuracy only, so plain floats.

Within a segment the covariance of the states is C_i = alpha^i C_0 + fresh (1 - alpha^i)/(1 - alpha), entry by entry,
with alpha = a_x a_y and fresh = K_x K_y r^2; the variance of x is r^2 + sum alpha C. So a variance costs the same at
tick 2^30 as at tick 1, and no loop runs over ticks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.joint import GaussianPath
from evertally.counting import bank_kernels as kernels
from evertally.counting.bank_schedule import Bank
from evertally.counting.process import FloatArray

_SAMPLES = 33  # ticks of a segment that are looked at for its widest; what lies between differs by less than 1e-6
_STRIDE = 32
_TOGETHER = _STRIDE * _STRIDE  # variances made at once
_STRETCHES = 64  # so many are kept: a window asks for two ticks that may be far apart


class Moments:
    """Variances of a bank for z of variance 1.

    >>> from evertally.counting.bank_schedule import build_bank
    >>> moments = moments_of(build_bank(64))
    >>> bool(moments.variance(1) < moments.variance(64) <= moments.widest(64))
    True
    """

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._ends: list[int] = np.cumsum(bank.lengths).tolist()
        a, K = bank.a, bank.K
        # 1 - a_x a_y without cancellation
        self._gap = (1 - a)[:, :, None] + a[:, :, None] * (1 - a)[:, None, :]
        self._alpha = a[:, :, None] * a[:, None, :]
        self._log = np.log(np.maximum(self._alpha, 1e-300))
        self._fresh = K[:, :, None] * K[:, None, :] * (bank.r * bank.r)[:, None, None]
        self._before = np.zeros((len(bank.lengths), bank.states, bank.states))  # of the states, before each segment
        for i, length in enumerate(bank.lengths.tolist()[:-1]):
            self._before[i + 1] = self._states(i, np.array([length]))[0]
        self._tops = np.array([self._most(i, length) for i, length in enumerate(bank.lengths.tolist())])
        self._decay = np.log(np.maximum(a, 1e-300))
        self._known: tuple[int, int, list[float]] = (0, 0, [])  # the variances of ticks first .. last
        self._stretch = lru_cache(_STRETCHES)(self._made)  # public: of numbers that follow from ticks alone
        self._widest = lru_cache(_STRETCHES)(self._looked_through)

    def variance(self, tick: int) -> float:
        """Of x at a tick."""
        first, last, known = self._known
        if not first <= tick <= last:
            i = bisect_left(self._ends, tick)
            start = self._start(i)
            # Always the same ones together: how a variance is rounded must not depend on which was asked for first.
            self._known = first, _, known = self._stretch(i, start + 1 + (tick - start - 1) // _TOGETHER * _TOGETHER)
        return known[tick - first]

    def _made(self, i: int, first: int) -> tuple[int, int, list[float]]:
        """The variances of a stretch of ticks of segment i, with its ends."""
        start, length = self._start(i), int(self._bank.lengths[i])
        last = min(start + length, first + _TOGETHER - 1)
        made = self._run(i, first - start) if length > _STRIDE else self._at(i, np.arange(1, length + 1))
        return first, last, made[: last + 1 - first].tolist()

    def widest(self, tick: int, since: int = 1) -> float:
        """The largest variance of the ticks `since` .. `tick`. Whoever chooses a process asks for the same again."""
        return self._widest(tick, since)

    def _looked_through(self, tick: int, since: int) -> float:
        i, j = bisect_left(self._ends, since), bisect_left(self._ends, tick)
        if i == j:
            return max(self._most(i, tick - self._start(i), since - self._start(i)), self.variance(since))
        inside = self._tops[i + 1 : j].max(initial=0.0)
        first = self._most(i, int(self._bank.lengths[i]), since - self._start(i))
        return float(max(first, inside, self._most(j, tick - self._start(j))))

    def mean(self, tick: int) -> float:
        """The mean variance of the ticks 1 .. tick: geometric sums, segment by segment."""
        last = bisect_left(self._ends, tick)
        ticks = self._bank.lengths[: last + 1].astype(np.float64)
        ticks[-1] = tick - self._start(last)
        n, gap, log = ticks[:, None, None], self._gap[: last + 1], self._log[: last + 1]
        with np.errstate(invalid="ignore", divide="ignore"):
            old = np.where(gap > 0, -np.expm1(n * log) / gap, n)  # sum of alpha^i, i < n
            # sum of (1 - alpha^i)/(1 - alpha); where nothing is forgotten its first terms, without cancellation
            new = np.where(n * gap > 1e-4, (n - old) / gap, n * (n - 1) / 2 * (1 - gap * (n - 2) / 3))
        states = old * self._before[: last + 1] + new * self._fresh[: last + 1]
        inside = (self._alpha[: last + 1] * states).sum(axis=(1, 2))
        return float((inside + ticks * self._bank.r[: last + 1] ** 2).sum()) / tick

    def covariance(self, before: int, tick: int) -> float:
        """Of x at two ticks (optimal-counting 7): what is left of the states of `before` at `tick`."""
        return float(self._left(before, tick) @ self._with_states(before))

    def _with_states(self, tick: int) -> FloatArray:
        """The covariance of x with each state, at a tick."""
        i = bisect_left(self._ends, tick)
        C = self._states(i, np.array([tick - self._start(i) - 1]))[0]
        return np.asarray((self._alpha[i] * C).sum(axis=1) + self._bank.K[i] * self._bank.r[i] ** 2)

    def _left(self, before: int, tick: int) -> FloatArray:
        """What is left at `tick` of each state of `before`."""
        i = bisect_left(self._ends, before)
        j = bisect_left(self._ends, tick, i)
        if i == j:
            return np.asarray(np.exp((tick - before) * self._decay[i]))
        inside = self._bank.lengths[i : j + 1].astype(np.float64)
        inside[0], inside[-1] = self._ends[i] - before, tick - self._start(j)
        return np.asarray(np.exp(inside @ self._decay[i : j + 1]))

    def covariances(self, ticks: Sequence[int]) -> FloatArray:
        """Of x at increasing ticks, all pairs; 0 in the diagonal. One product of what is left from tick to tick."""
        found = np.zeros((len(ticks), len(ticks)))
        left = [self._left(before, tick) for before, tick in pairwise(ticks)]
        for i, tick in enumerate(ticks[:-1]):
            found[i, i + 1 :] = np.cumprod(left[i:], axis=0) @ self._with_states(tick)
        return found + found.T

    def path(self, sigma: float) -> GaussianPath:
        bank = self._bank
        variances, covariances = np.empty(bank.horizon), np.empty(bank.horizon)
        kernels.compiled("neighbours")(bank.a, bank.K, bank.r, bank.lengths, variances, covariances)
        return GaussianPath.of(sigma * sigma * variances, sigma * sigma * covariances[:-1])

    def _start(self, i: int) -> int:
        return self._ends[i] - int(self._bank.lengths[i])

    def _states(self, i: int, ticks: NDArray[np.int64]) -> FloatArray:
        """The covariance of the states after so many ticks of a segment."""
        grown = ticks[:, None, None] * self._log[i]
        with np.errstate(invalid="ignore", divide="ignore"):
            added = np.where(self._gap[i] > 0, -np.expm1(grown) / self._gap[i], ticks[:, None, None])
        return np.asarray(np.exp(grown) * self._before[i] + self._fresh[i] * added)

    def _at(self, i: int, ticks: NDArray[np.int64]) -> FloatArray:
        """The variance of x at these ticks of a segment, the first of which is 1."""
        inside = (self._alpha[i] * self._states(i, ticks - 1)).sum(axis=(1, 2))
        return np.asarray(inside + self._bank.r[i] ** 2)

    def _run(self, i: int, first: int) -> FloatArray:
        """The variances of x at many ticks in a row: with S(m) = (1 - alpha^m)/(1 - alpha) after m ticks
        C = alpha^m C_0 + fresh S(m), and S(m + n) = S(m) + alpha^m S(n). So two powers make all of them."""
        alpha, fresh = self._alpha[i].ravel(), self._fresh[i].ravel()
        before = self._states(i, np.array([first - 1]))[0].ravel()
        steps = np.arange(_STRIDE)[:, None]
        (fine, fine_sums), (coarse, coarse_sums) = self._powers(i, steps), self._powers(i, _STRIDE * steps)
        inside = coarse @ (alpha * (fine * before + fresh * fine_sums)).T + (coarse_sums @ (alpha * fresh))[:, None]
        return np.asarray(inside.ravel() + self._bank.r[i] ** 2)

    def _powers(self, i: int, ticks: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """alpha^m and S(m), entry by entry, for m = ticks (n, 1)."""
        grown = ticks * self._log[i].ravel()
        gap = self._gap[i].ravel()
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.exp(grown), np.where(gap > 0, -np.expm1(grown) / gap, ticks)

    def _most(self, i: int, last: int, first: int = 1) -> float:
        ticks = np.unique(np.linspace(first, last, min(last - first + 1, _SAMPLES)).astype(np.int64))
        return float(self._at(i, ticks).max())


@lru_cache(maxsize=24)
def moments_of(bank: Bank) -> Moments:
    return Moments(bank)
