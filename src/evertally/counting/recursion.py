"""Noise by a recursion: e_t = (Z_t - sum_{0<k<K} r_k e_{t-k}) / r_0, correctly rounded, with integer coefficients r.

users-and-domains 1.4, 1.5; factorization-counting 11. The mechanism behind it is "release y = R a + Z", R Toeplitz
with the integers r, Z integer noise; e = R^-1 Z. What leaves is a + floor(e + h/2 + 1/2), h an integer that is the same
at all ticks (a shared draw, or 0). It is rounded correctly (floats with a proved bound, balls where they leave it
open), so the release is a function of y and h.

The coefficients that are taken: r_0 > 0, r_k <= 0 for k >= 1, sum r >= 0. Then R^-1 has no negative entry. If the sum
is positive, the error of the floats stays bounded for ever; if it is 0 (the factor of running sums, times 1 - z), the
error of each tick is added to that of the last, and a horizon is needed.

Time and memory O(K d) for a tick, and nothing that depends on how long the stream is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evertally.bounds.tails import Spread
from evertally.counting.process import (
    FloatArray,
    IntArray,
    check_horizon,
    difference_energy,
    round_half_up,
    spread_of,
)
from evertally.counting.sqrt_factor import rounded_quotient
from evertally.errors import StateError
from evertally.noise import Law, Source
from evertally.secret import Secret

_UNIT = 2.0**-53


def inverse_series(r: Sequence[int], terms: int) -> FloatArray:
    """The series of 1/r(z), in floats: errors are quoted by it, nothing private rests on it.

    >>> inverse_series((2, -1), 4).tolist()
    [0.5, 0.25, 0.125, 0.0625]
    """
    known = np.array(r[1:], dtype=np.float64)
    found = np.zeros(terms if known.size else 1)
    found[0] = 1 / r[0]
    for k in range(1, found.size):
        reach = min(k, known.size)
        found[k] = -float(np.dot(known[:reach], found[k - reach : k][::-1])) / r[0]
    return found


class RecursiveProcess(Secret):
    """Noise e = R^-1 Z for a law of Z that somebody has chosen so that it hides what it has to.

    `inverse` is the series of 1/r(z) in floats, as far as it matters (with a horizon: no more terms than that).

    >>> from evertally.noise import DiscreteGaussian, simulation
    >>> noise = RecursiveProcess((4, -2), DiscreteGaussian(100), inverse_series((4, -2), 60), horizon=None, columns=1,
    ...                          source=simulation(0).source("demo"), lane="path")
    >>> round(noise.worst().variance, 3), noise.advance(3).shape
    (8.333, (3, 1))
    """

    def __init__(
        self,
        coefficients: Sequence[int],
        law: Law,
        inverse: FloatArray,
        *,
        horizon: int | None,
        columns: int,
        source: Source,
        lane: str,
    ) -> None:
        r = self.coefficients = tuple(coefficients)
        if not (r[0] > 0 and all(x <= 0 for x in r[1:]) and sum(r) >= 0):
            raise ArithmeticError("a recursion needs r_0 > 0, no other coefficient above 0, and a sum of at least 0")
        if sum(r) == 0 and horizon is None:
            raise ArithmeticError("coefficients that add up to 0 forget no error: the recursion needs a horizon")
        if r[0] >= 1 << 53:
            raise ArithmeticError("coefficients must be exact as floats")
        self.horizon, self.columns, self.tick, self.law = horizon, columns, 0, law
        self._source, self._lane = source, lane
        self._inverse = inverse
        self._energy = np.cumsum(inverse**2)
        self._largest = np.maximum.accumulate(inverse)
        self._later = np.array(r[1:], dtype=np.float64)[:, None]
        self._gain = -sum(r[1:]) / r[0] * (1 + 4 * _UNIT)
        self._recent = np.zeros((len(r) - 1, columns))  # e of the last ticks, newest first: secret
        self._radius = np.zeros(columns)  # how far each of them is off at most

    def advance(self, count: int = 1) -> IntArray:
        check_horizon(self, self.tick + count)
        first = self.tick + 1
        z = self._source.draws(self._lane, self.law, range(first, first + count), self.columns)
        halves = self._halves()
        out = np.empty((count, self.columns), dtype=np.int64)
        for i in range(count):
            out[i] = self._next(z[i], first + i, halves)
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
        if tick < 1:
            return spread_of(self.law, 0.0, float(self._largest[0]), roundings=1)
        last = min(tick, self._energy.size) - 1
        return spread_of(self.law, float(self._energy[last]), float(self._largest[last]), roundings=1)

    def worst(self) -> Spread:
        return self.spread(self._energy.size if self.horizon is None else self.horizon)

    def widest(self, tick: int) -> Spread:
        return self.spread(tick)  # weights only add up

    exact_windows = True

    def window_spread(self, tick: int, window: int) -> Spread:
        """Exact: a draw counts l_k - l_(k - window), where l is the series of 1/r(z)."""
        before = tick - window
        if before <= 0:
            return self.spread(tick)
        squares = difference_energy(self._inverse, before, tick)
        # No entry of the series is below 0, so no difference of two is larger than the larger one.
        largest = float(self._largest[min(tick, self._largest.size) - 1])
        return spread_of(self.law, squares, largest, roundings=2)

    def _halves(self) -> IntArray | None:
        """h of each column; None: 0."""
        return None

    def _next(self, z: IntArray, tick: int, halves: IntArray | None) -> IntArray:
        centre, radius = self._enclose(z)
        if halves is None:
            rounded, undecided = round_half_up(centre, radius)
            for column in np.flatnonzero(undecided).tolist():
                rounded[column] = self._exactly(tick, column, 0)
            return rounded
        odd = halves & 1
        # One more addition, of a half at most.
        rounded, undecided = round_half_up(centre + odd / 2, radius + (np.abs(centre) + 1) * 2 * _UNIT)
        for column in np.flatnonzero(undecided).tolist():
            rounded[column] = self._exactly(tick, column, int(odd[column]))
        return rounded + (halves >> 1)

    def _enclose(self, z: IntArray) -> tuple[FloatArray, FloatArray]:
        """e of the next tick, and how far it is off at most.

        The sum has fewer than K terms, each rounded twice, and a division; the errors of the last ticks come in with
        weights |r_k|/r_0, which add up to 1 at most.
        """
        start = z.astype(np.float64)
        terms = self._later * self._recent
        total = start - terms.sum(axis=0)
        centre = total / float(self.coefficients[0])
        size = (np.abs(start) + np.abs(terms).sum(axis=0)) / self.coefficients[0]
        fresh = (2 * len(terms) + 8) * _UNIT * size * (1 + 2.0**-40)
        # The largest error so far covers all that is remembered.
        radius = np.maximum(self._radius, (self._gain * self._radius + fresh) * (1 + 8 * _UNIT))
        if len(self._recent):
            self._recent[1:] = self._recent[:-1].copy()
            self._recent[0] = centre
        self._radius = radius
        return centre, radius

    def _exactly(self, tick: int, column: int, odd: int) -> int:
        """floor(e + odd/2 + 1/2), however close to a tie."""
        z = self._source.draws(self._lane, self.law, range(1, tick + 1), 1, column)[:, 0]
        r = self.coefficients
        if len(r) == 1:  # independent noise: the series ends after one term
            return (2 * int(z[-1]) + (odd + 1) * r[0]) // (2 * r[0])
        return rounded_quotient(2 * z, list(r), rest=odd, unit=2)
