"""The square-root counter in exact integer arithmetic: the smallest noise of the processes here, at O(T) memory.

factorization-counting 2-5 and 11 (exact tier, steps 2-5, correct rounding); docs/theory/square-root-counter.md.

With integers r_k = round(2^q f(k)) the mechanism is "release y_t = sum_i r_{t-i} x_i + Z_t for every t", Z_t discrete
Gaussian with sigma^2 >= D2^2 N/(2 rho), N = sum_k r_k^2. Privacy [R]: y is rho-zCDP as a whole, also for adaptive
streams: an event's squared shifts of y add up to at most D2^2 N. What leaves is the integer nearest to the unbiased
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

import numpy as np

from evertally.bounds.joint import GaussianPath
from evertally.bounds.tails import Spread
from evertally.counting.fourier import Spectrum, error_factor
from evertally.counting.process import IntArray, check_horizon, round_half_up, spread_of
from evertally.counting.sqrt_factor import GRID_BITS, exact_rounding, sqrt_factor
from evertally.noise import DiscreteGaussian, Source, round_up
from evertally.privacy import ZCDP, Change
from evertally.secret import Secret

_FIRST_BLOCK = 64


class SqrtProcess(Secret):
    """Noise of the square-root counter.

    >>> from evertally.noise import simulation
    >>> process = SqrtProcess(ZCDP(0.5), Change(1, 1, 1), horizon=4096, columns=1, source=simulation(0).source("demo"))
    >>> round(process.worst().stddev, 3)  # 3.714 / sqrt(2 rho), and a little for rounding to integers
    3.725
    """

    def __init__(
        self, charge: ZCDP, change: Change, *, horizon: int, columns: int, source: Source, lane: str = "sqrt"
    ) -> None:
        self.horizon: int | None = horizon
        self.columns = columns
        self.tick = 0
        self._factor = sqrt_factor(horizon)
        sigma_squared = change.l2_squared * self._factor.column_norm_squared / (2 * charge.exact_rho)
        self.law = DiscreteGaussian(round_up(sigma_squared))
        self._source = source
        self._lane = lane
        self._energy = np.cumsum(self._factor.inverse**2)
        self._block = np.empty((0, columns), dtype=np.int64)  # noise of the ticks block_start+1, ...: secret
        self._block_start = 0

    def advance(self, count: int = 1) -> IntArray:
        start, stop = self.tick, self.tick + count
        check_horizon(self, stop)
        out = np.empty((count, self.columns), dtype=np.int64)
        done = start
        while done < stop:
            if not self._block_start <= done < self._block_start + len(self._block):
                self._make_block(done, stop)
            last = min(stop, self._block_start + len(self._block))
            out[done - start : last - start] = self._block[done - self._block_start : last - self._block_start]
            done = last
        self.tick = stop
        return out

    def seek(self, tick: int) -> None:
        self.tick = tick

    def spread(self, tick: int) -> Spread:
        weights = float(self._energy[tick - 1]) / 4.0**GRID_BITS if tick > 0 else 0.0
        return spread_of(self.law, weights, 2.0**-GRID_BITS, roundings=1)

    def worst(self) -> Spread:
        return self.spread(self._energy.size)

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        largest = self.path().radius(beta / 2, self.worst().radius(beta / self._energy.size) + 1)
        # An integer error above r is an estimate of at least r + 1/2.
        return float(math.ceil(largest + self.smoothing() - 0.5))

    def smoothing(self) -> float:
        """What `path` adds to the draws falls below minus this with probability less than 1e-14, at any tick."""
        return 16 * math.sqrt(float(self._energy[-1])) / 2.0**GRID_BITS

    def path(self, more: float = 0.0) -> GaussianPath:
        """Variances and covariances of the path before it is rounded, with `more` variance that all ticks share.

        The draws are discrete. With continuous Gaussian noise of standard deviation 2 added to each they are Gaussian,
        up to a relative exp(-70) (Poisson summation), and what was added is worth less than `smoothing`.
        """
        inverse = self._factor.inverse
        unit = (float(self.law.sigma_squared) + 4.0) / 4.0**GRID_BITS
        return GaussianPath.of(unit * self._energy + more, unit * np.cumsum(inverse[:-1] * inverse[1:]) + more)

    def window_spread(self, tick: int, window: int) -> Spread:
        inverse = self._factor.inverse[:tick]
        older = np.concatenate([np.zeros(window), inverse[: tick - window]])
        weights = float(np.sum((inverse - older) ** 2)) / 4.0**GRID_BITS
        return spread_of(self.law, weights, 2.0**-GRID_BITS, roundings=2)

    def _make_block(self, start: int, wanted: int) -> None:
        """Noise of the ticks start+1 .. stop, stop at least twice start and not below what is wanted now."""
        assert self.horizon is not None
        stop = min(self.horizon, max(2 * start, wanted, _FIRST_BLOCK))
        block = np.empty((stop - start, self.columns), dtype=np.int64)
        n = max(1, (2 * stop - 2).bit_length())
        spectrum = Spectrum(self._factor.inverse[:stop] / 2.0**GRID_BITS, n)
        for column in range(0, self.columns, 2):  # two real columns in one complex transform
            pair = min(2, self.columns - column)
            z = self._source.draws(self._lane, self.law, range(1, stop + 1), pair, column)
            zf = z.astype(np.float64)
            paths = spectrum.times(zf[:, 0], zf[:, 1] if pair == 2 else None)
            length = math.sqrt(float(np.sum(zf * zf))) * (1 + 1e-6)
            radius = error_factor(n) * spectrum.norm * length + self._factor.inverse_error / 2.0**GRID_BITS * length
            for j in range(pair):
                rounded, undecided = round_half_up(paths[j][start:stop], radius)
                for i in np.flatnonzero(undecided):
                    rounded[i] = exact_rounding(z[: start + int(i) + 1, j])
                block[:, column + j] = rounded
        self._block, self._block_start = block, start
