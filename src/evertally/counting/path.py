"""Noise for presence: what is there now, where nothing stays longer than W ticks (dynamic-data 13.2).

users-and-domains 1.4 [R, reviewed twice]. The input is the path itself, a_t = how many are there. y = R a + Z with
integer coefficients r (path_factor.py) and discrete Gaussians Z of variance D2^2 c(W)/(2 rho): rho-zCDP as a whole, for
adaptive streams, because one run of at most W ticks moves R a by at most sqrt(c(W)). What leaves is the integer nearest
to R^-1 y, half up: the exact number plus floor(e_t + 1/2),

    e_t = (Z_t - sum_{0<k<K} r_k e_{t-k}) / r_0,

a path that involves no data. It is rounded correctly (floats with a proved bound, balls where they leave it open), so
the release is a function of y.

**It hides runs, and nothing else.** What is inserted and never deleted is a run without end, of unbounded cost. So this
process is in no list that a counter takes noise from; it is made from a `Runs`, by the code that ends every run.

Error: standard deviation sqrt(c(W) S/(2 rho)), S = sum l_k^2, the same at all ticks, with or without a horizon: factor
1.90 for W = 7, 3.33 for W = 168. Time and memory O(K d) for a tick, K <= 681.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evertally.bounds.tails import Spread
from evertally.counting.path_factor import best_factor
from evertally.counting.process import FloatArray, IntArray, check_horizon, round_half_up, spread_of, window_bound
from evertally.counting.sqrt_factor import rounded_quotient
from evertally.errors import StateError
from evertally.noise import DiscreteGaussian, Source, round_up
from evertally.privacy import ZCDP
from evertally.secret import Secret

_UNIT = 2.0**-53


@dataclass(frozen=True)
class Runs:
    """How far one step of the neighbouring relation moves paths of presence: like `squared` runs, none of which is
    longer than `longest` ticks. Who makes one says that a door ends every run in time."""

    squared: int
    longest: int


class PathProcess(Secret):
    """Noise of the path process.

    >>> from evertally.noise import simulation
    >>> noise = PathProcess(ZCDP(0.5), Runs(1, 7), horizon=None, columns=1, source=simulation(0).source("demo"))
    >>> round(noise.worst().stddev, 2), noise.advance(3).shape
    (1.92, (3, 1))
    """

    def __init__(
        self, charge: ZCDP, runs: Runs, *, horizon: int | None, columns: int, source: Source, lane: str = "path"
    ) -> None:
        assert type(runs) is Runs, "a Change says nothing about runs"
        self.horizon, self.columns, self.tick = horizon, columns, 0
        factor = self.factor = best_factor(runs.longest)
        self.law = DiscreteGaussian(round_up(runs.squared * factor.cost(runs.longest) / (2 * charge.exact_rho)))
        self._source, self._lane = source, lane
        self._inverse = factor.inverse()
        self._energy = np.cumsum(self._inverse**2)
        self._later = np.array(factor.r[1:], dtype=np.float64)[:, None]  # integers below 2^16, exactly
        self._gain = -sum(factor.r[1:]) / factor.r[0] * (1 + 4 * _UNIT)
        self._recent = np.zeros((len(factor.r) - 1, columns))  # e of the last ticks, newest first: secret
        self._radius = np.zeros(columns)  # how far each of them is off at most

    @staticmethod
    def memory_for(longest: int, columns: int) -> int:
        """Bytes of noise that are kept."""
        return 8 * columns * len(best_factor(longest).r)

    def advance(self, count: int = 1) -> IntArray:
        check_horizon(self, self.tick + count)
        first = self.tick + 1
        z = self._source.draws(self._lane, self.law, range(first, first + count), self.columns)
        out = np.empty((count, self.columns), dtype=np.int64)
        for i in range(count):
            out[i] = self._next(z[i], first + i)
        self.tick += count
        return out

    def seek(self, tick: int) -> None:
        self._recent[:] = 0.0
        self._radius[:] = 0.0
        for start in range(0, tick, 1024):
            stop = min(tick, start + 1024)
            for z in self._source.draws(self._lane, self.law, range(start + 1, stop + 1), self.columns):
                self._enclose(z)
        self.tick = tick

    def memory(self) -> bytes:
        return np.concatenate([self._recent.ravel(), self._radius]).astype("<f8").tobytes()

    def recall(self, tick: int, memory: bytes) -> None:
        kept = np.frombuffer(memory, dtype="<f8").astype(np.float64)
        if kept.size != self._recent.size + self.columns:
            raise StateError("these bytes are not the noise of this process; restore from an intact snapshot")
        self._recent = kept[: self._recent.size].reshape(self._recent.shape).copy()
        self._radius = kept[self._recent.size :].copy()
        self.tick = tick

    def spread(self, tick: int) -> Spread:
        weights = float(self._energy[min(tick, self._energy.size) - 1]) if tick > 0 else 0.0
        return spread_of(self.law, weights, float(self._inverse[0]), roundings=1)

    def worst(self) -> Spread:
        return self.spread(self._energy.size if self.horizon is None else self.horizon)

    def widest(self, tick: int) -> Spread:
        return self.spread(tick)  # weights only add up

    def window_spread(self, tick: int, window: int) -> Spread:
        return window_bound(self, tick, window)

    def _next(self, z: IntArray, tick: int) -> IntArray:
        rounded, undecided = round_half_up(*self._enclose(z))
        for column in np.flatnonzero(undecided).tolist():
            rounded[column] = self._exactly(tick, column)
        return rounded

    def _enclose(self, z: IntArray) -> tuple[FloatArray, FloatArray]:
        """e of the next tick, and how far it is off at most.

        The sum has fewer than K terms, each rounded twice, and a division; the errors of the last ticks come in with
        weights |r_k|/r_0, which add up to less than 1, so that they stay bounded for ever.
        """
        start = z.astype(np.float64)
        terms = self._later * self._recent
        total = start - terms.sum(axis=0)
        centre = total / float(self.factor.r[0])
        size = (np.abs(start) + np.abs(terms).sum(axis=0)) / self.factor.r[0]
        fresh = (2 * len(terms) + 8) * _UNIT * size * (1 + 2.0**-40)
        # The largest error so far covers all that is remembered.
        radius = np.maximum(self._radius, (self._gain * self._radius + fresh) * (1 + 8 * _UNIT))
        if len(self._recent):
            self._recent[1:] = self._recent[:-1].copy()
            self._recent[0] = centre
        self._radius = radius
        return centre, radius

    def _exactly(self, tick: int, column: int) -> int:
        z = self._source.draws(self._lane, self.law, range(1, tick + 1), 1, column)[:, 0]
        r = self.factor.r
        if len(r) == 1:  # independent noise: the series ends after one term
            return (2 * int(z[-1]) + r[0]) // (2 * r[0])
        return rounded_quotient(z, list(r))


def path_deviation(longest: int) -> float:
    """The factor sqrt(c(W) S) of the best coefficients: standard deviation times sqrt(2 rho).

    >>> [round(path_deviation(W), 2) for W in (7, 24, 168)]
    [1.9, 2.45, 3.33]
    """
    factor = best_factor(longest)
    return math.sqrt(factor.cost(longest) * float(np.sum(factor.inverse() ** 2)))
