"""The square-root counter in exact integer arithmetic: the smallest noise of the processes here, at O(T) memory.

factorization-counting 2-5 and 11 (exact tier, steps 2-5, correct rounding); docs/theory/square-root-counter.md.

With integers r_k = round(2^q f(k)) the mechanism is "release y_t = sum_i r_{t-i} x_i + Z_t for every t", Z_t discrete
Gaussian with sigma^2 >= D2^2 N/(2 rho), N = sum_k r_k^2. Privacy [R]: y is rho-zCDP as a whole, also for adaptive
streams: an event's squared shifts of y add up to at most D2^2 N, those of a user whose ticks are apart to what
counting/participation.py says. What leaves is the integer nearest to the unbiased
estimate from y, half up; since L R = (prefix sums), that is (exact sum) + floor(e_t + 1/2) with

    e_t = sum_{i<=t} l_{t-i} Z_i,       l = series of 1/((1 - z) r(z)),

a path that involves no data. It must be *correctly* rounded to be a function of y alone: floats with a proved error
bound decide almost every tick, ball arithmetic the rest, ties included.

Error: variance sigma^2 sum_{k<t} l_k^2, worst S_T/sqrt(2 rho) at t = T with S_T = ln(T)/pi + 1.066. Time O(log T)
amortised per tick and column: noise needs no data, so it is made ahead in blocks that double. Memory 8 d T bytes of
noise, and up to 250 T bytes while the factor and a block are made, whatever d is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.joint import GaussianPath
from evertally.bounds.tails import Spread
from evertally.counting.fourier import Spectrum, error_factor
from evertally.counting.participation import toeplitz_reach
from evertally.counting.process import (
    FloatArray,
    IntArray,
    check_horizon,
    difference_energy,
    round_half_up,
    spread_of,
)
from evertally.counting.sqrt_factor import GRID_BITS, SqrtFactor, sqrt_factor
from evertally.counting.together import by_age
from evertally.noise import DiscreteGaussian, Law, Source, round_up
from evertally.privacy import ZCDP, Change, Participation
from evertally.secret import Secret

_FIRST_BLOCK = 64
_LONGEST_BLOCK = 2**16  # for a run, where the inverse is shorter
_LARGEST_DRAW = 2.0**63  # draws are 64-bit integers

F = TypeVar("F", bound=SqrtFactor)
L = TypeVar("L", bound=Law)


class FactorProcess(Secret, Generic[F, L]):
    """Noise of a Toeplitz factorization whose right factor is an integer matrix: e = L Z, rounded correctly.

    `advance` takes what the exact sums have beyond whole numbers, in parts of `factor.unit`: then what is rounded is
    the sum and e together, never one of them first. Not used directly; see `SqrtProcess` and toeplitz.py.
    """

    def __init__(self, factor: F, law: L, *, horizon: int | None, columns: int, source: Source, lane: str) -> None:
        self.horizon: int | None = horizon
        self.columns = columns
        self.tick = 0
        self._factor = factor
        self.law = law
        self._source = source
        self._lane = lane
        self._energy = np.cumsum(factor.inverse**2)
        self._largest = float(np.max(np.abs(factor.inverse)))
        # The path at ticks block_start+1, ..., and how far each column of it is off at most: floats, or integers where
        # sums are whole numbers, so that the path can be rounded ahead. Secret.
        self._block: NDArray[Any] = np.empty((0, columns))
        self._radius = np.zeros(columns)
        self._block_start = 0

    def advance(self, count: int = 1, rests: IntArray | None = None) -> IntArray:
        start, stop = self.tick, self.tick + count
        check_horizon(self, stop)
        out = np.empty((count, self.columns), dtype=np.int64)
        done = start
        while done < stop:
            if not self._block_start <= done < self._block_start + len(self._block):
                self._make_block(done, stop)
            last = min(stop, self._block_start + len(self._block))
            part, made = slice(done - start, last - start), slice(done - self._block_start, last - self._block_start)
            if self._factor.unit == 1:
                out[part] = self._block[made]
            else:
                rest = np.zeros((last - done, self.columns), dtype=np.int64) if rests is None else rests[part]
                for column in range(self.columns):
                    out[part, column] = self._with_rests(self._block[made, column], done, column, rest[:, column])
            done = last
        self.tick = stop
        return out

    def seek(self, tick: int) -> None:
        self.tick = tick

    def spread(self, tick: int) -> Spread:
        unit = 2.0**-self._factor.bits
        weights = float(self._energy[min(tick, self._energy.size) - 1]) * unit * unit if tick > 0 else 0.0
        return spread_of(self.law, weights, self._largest * unit, roundings=self._factor.roundings)

    def worst(self) -> Spread:
        return self.spread(self._energy.size)

    def widest(self, tick: int) -> Spread:
        return self.spread(tick)  # weights only add up

    def mean_variance(self, tick: int) -> float:
        unit, known = 2.0**-self._factor.bits, self._energy[:tick]
        weights = float(known.sum()) + (tick - known.size) * float(known[-1])
        return self.law.stddev() ** 2 * weights * unit * unit / tick + self._factor.roundings / 12

    exact_windows = True

    def window_spread(self, tick: int, window: int) -> Spread:
        before, unit = tick - window, 2.0**-self._factor.bits
        if before <= 0:
            return self.spread(tick)
        weights = difference_energy(self._factor.inverse, before, tick) * unit * unit
        return spread_of(self.law, weights, self._largest * unit, roundings=2 * self._factor.roundings)

    def covariances(self, ticks: Sequence[int]) -> FloatArray | None:
        """Of the noise of one coordinate at increasing ticks, before rounding; 0 in the diagonal. None where they are
        to be asked for one by one."""
        found = by_age(self._factor.inverse * 2.0**-self._factor.bits, ticks)
        return None if found is None else self.law.stddev() ** 2 * found

    def _with_rests(self, path: FloatArray, start: int, column: int, rests: IntArray) -> IntArray:
        """floor(e + rest/unit + 1/2) at the ticks start+1, ... of a column."""
        # The quotient is below 1, and one rounding off; the sum is rounded once more.
        centre = path + rests / self._factor.unit
        return self._rounded(centre, self._radius[column] + (np.abs(centre) + 2.0) * 2.0**-52, start, column, rests)

    def _rounded(
        self, centre: FloatArray, radius: FloatArray | float, start: int, column: int, rests: IntArray | None = None
    ) -> IntArray:
        rounded, undecided = round_half_up(centre, radius)
        for i in np.flatnonzero(undecided).tolist():
            rounded[i] = self._exactly(start + i + 1, column, 0 if rests is None else int(rests[i]))
        return rounded

    def _exactly(self, tick: int, column: int, rest: int) -> int:
        for first in (max(0, tick - self._factor.inverse.size), 0):  # the last draws, and where they leave it open all
            z = self._source.draws(self._lane, self.law, range(first + 1, tick + 1), 1, column)[:, 0]
            rounded = self._factor.rounded(z, rest, cut=first > 0)
            if rounded is not None:
                return rounded
        raise AssertionError("all draws decide")

    def _make_block(self, start: int, wanted: int) -> None:
        """The path at ticks start+1 .. stop: as many as there were before, or as the inverse has terms, and not fewer
        than are wanted now, within reason."""
        factor, reach = self._factor, self._factor.inverse.size
        ahead = min(max(2 * start, _FIRST_BLOCK), start + max(reach, _FIRST_BLOCK))
        stop = max(ahead, min(wanted, start + max(reach, _LONGEST_BLOCK)))
        if self.horizon is not None:
            stop = min(stop, self.horizon)
        first = max(0, start + 1 - reach)  # draws up to here have no weight any more, or no more than `tail`
        whole = self._factor.unit == 1
        block: NDArray[Any] = np.empty((stop - start, self.columns), dtype=np.int64 if whole else np.float64)
        radii = np.empty(self.columns)
        weights = factor.inverse[: stop - first] * 2.0**-factor.bits
        n = max(1, (weights.size + stop - first - 2).bit_length())
        spectrum = Spectrum(weights, n)
        beyond = factor.tail * 2.0**-factor.bits * _LARGEST_DRAW if stop > reach else 0.0
        for column in range(0, self.columns, 2):  # two real columns in one complex transform
            pair = min(2, self.columns - column)
            z = self._source.draws(self._lane, self.law, range(first + 1, stop + 1), pair, column)
            zf = z.astype(np.float64)
            paths = spectrum.times(zf[:, 0], zf[:, 1] if pair == 2 else None)
            length = math.sqrt(float(np.sum(zf * zf))) * (1 + 1e-6)
            radius = error_factor(n) * spectrum.norm * length + factor.inverse_error * 2.0**-factor.bits * length
            for j in range(pair):
                path = paths[j][start - first : stop - first]
                radii[column + j] = off = radius + beyond
                block[:, column + j] = self._rounded(path, off, start, column + j) if whole else path
        self._block, self._radius, self._block_start = block, radii, start


class SqrtProcess(FactorProcess[SqrtFactor, DiscreteGaussian]):
    """Noise of the square-root counter.

    >>> from evertally.noise import simulation
    >>> process = SqrtProcess(ZCDP(0.5), Change(1, 1, 1), horizon=4096, columns=1, source=simulation(0).source("demo"))
    >>> round(process.worst().stddev, 3)  # 3.714 / sqrt(2 rho), and a little for rounding to integers
    3.725
    """

    def __init__(
        self,
        charge: ZCDP,
        change: Change,
        *,
        horizon: int,
        columns: int,
        source: Source,
        rule: Participation | None = None,
        lane: str = "sqrt",
    ) -> None:
        factor = sqrt_factor(horizon)
        reach = change.l2_squared * factor.column_norm_squared
        if rule is not None:
            reach = toeplitz_reach(factor.r, horizon, rule)
        law = DiscreteGaussian(round_up(reach / (2 * charge.exact_rho)))
        super().__init__(factor, law, horizon=horizon, columns=columns, source=source, lane=lane)

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        largest = self.path().radius(beta / 2, self.worst().radius(beta / self._energy.size) + 1)
        # An integer error above r is an estimate of at least r + 1/2.
        return float(math.ceil(largest + self.smoothing() - 0.5))

    def smoothing(self) -> float:
        """What `path` adds to the draws falls below minus this with probability less than 1e-14, at any tick."""
        return 16 * math.sqrt(float(self._energy[-1])) / 2.0**GRID_BITS

    def path(self) -> GaussianPath:
        """Variances and covariances of the path before it is rounded.

        The draws are discrete. With continuous Gaussian noise of standard deviation 2 added to each they are Gaussian,
        up to a relative exp(-70) (Poisson summation), and what was added is worth less than `smoothing`.
        """
        inverse = self._factor.inverse
        unit = (float(self.law.sigma_squared) + 4.0) / 4.0**GRID_BITS
        return GaussianPath.of(unit * self._energy, unit * np.cumsum(inverse[:-1] * inverse[1:]))
