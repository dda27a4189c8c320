"""The bank: counting within 0.3 % of the least error that Gaussian noise can have, from four to ten numbers of state.

optimal-counting 1-4 [R, reviewed twice]. One exact real normal number z_t a tick and coordinate (noise/reals.py) feeds
Q one-pole filters,

    nu = r_t z_t,  x_t = sum_k a_k e_k + nu,  e_k <- a_k e_k + K_k nu,  release = exact sum + floor(sigma x_t + 1/2).

x = L z with L lower triangular and invertible, so the release is a function of y = R x_data + sigma z, R = L^-1 A: all
releases together are rho-zCDP, adaptive streams included, if sigma^2 >= D2^2 S/(2 rho) and S bounds the squared columns
of R (bank_certificate.py). The coefficients are what they are: exact dyadic numbers, found by floats, whose error costs
accuracy alone.

The path is rounded correctly: floats with proved bounds decide almost every tick, and where they do not, balls go
through the path of that coordinate again, reading more bits at the same addresses. So any machine, block size or
restart gives the same integers.

Error: standard deviation sigma sqrt(var_t), at most 2.966 / 4.272 / 5.157 over sqrt(2 rho) at T = 2^10 / 2^16 / 2^20.
Time about 30 ns a tick and coordinate; memory 8 Q bytes a coordinate and 20-150 KB of coefficients.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from evertally.balls import at_precision
from evertally.bounds.joint import GaussianPath
from evertally.bounds.tails import Spread
from evertally.counting import bank_kernels as kernels
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_schedule import Bank, build_bank
from evertally.counting.process import FloatArray, IntArray, check_horizon
from evertally.errors import ConfigurationError, StateError
from evertally.noise import Source
from evertally.noise.reals import RealLaw
from evertally.privacy import ZCDP, Change
from evertally.secret import Secret

LONGEST_BANK = 2**24
_BLOCK = 512  # columns that share their error bounds
_AHEAD = 1 << 12  # numbers made ahead where there are few columns
_LONGEST_JOINT = 2**20  # ticks for which the law of the whole path is looked at
_LAST_RESORT = 2**15  # bits
_FORMAT = b"evertally-bank-1"


class BankProcess(Secret):
    """Noise of the bank.

    >>> from evertally.noise import simulation
    >>> process = BankProcess(ZCDP(0.5), Change(1, 1, 1), horizon=4096, columns=1, source=simulation(0).source("demo"))
    >>> round(process.worst().stddev, 3)  # 3.394 is the least possible; and a little for rounding to integers
    3.415
    """

    def __init__(
        self,
        charge: ZCDP,
        change: Change,
        *,
        horizon: int,
        columns: int,
        source: Source,
        lane: str = "bank",
        bank: Bank | None = None,
    ) -> None:
        self.horizon: int | None = horizon
        self.columns = columns
        self._needed = Fraction(change.l2_squared) / (2 * charge.exact_rho)
        self._source, self._lane = source, lane
        self._use(build_bank(horizon) if bank is None else bank)

    def _use(self, bank: Bank) -> None:
        """Takes coefficients; nothing has been drawn yet."""
        self.bank = bank
        assert bank.horizon == self.horizon, "a bank is made for one horizon"
        self.sigma = _root_above(self._needed * Fraction(_sensitivity(bank)))
        # optimal-counting 3.3: |x_t| <= 9 sum_i |L_ti| but for 1e-18, and sum |L_ti| <= sqrt(T var_t).
        if not self.sigma * 9 * math.sqrt(bank.horizon * _moments(bank).top) < 2.0**50:
            raise ConfigurationError(
                "the noise would leave the range of exact numbers; choose another budget or horizon"
            )
        self._law = RealLaw("normal", f"bank {self.sigma.hex()} {bank.digest}")
        self._ends = np.cumsum(bank.lengths)
        self.tick = 0
        self._restart()

    def _restart(self) -> None:
        Q = self.bank.states
        blocks = -(-self.columns // _BLOCK)
        self._e = np.zeros((Q, self.columns))  # the states after tick `_made`: secret, like all noise
        self._err, self._big = np.zeros((blocks, Q)), np.zeros((blocks, Q))
        self._made = self._start = 0
        self._rows = np.empty((0, self.columns), dtype=np.int64)  # the noise of ticks _start+1 .. _made
        self._before = self._states()

    def advance(self, count: int = 1) -> IntArray:
        start, stop = self.tick, self.tick + count
        check_horizon(self, stop)
        out = np.empty((count, self.columns), dtype=np.int64)
        done = start
        while done < stop:
            if done == self._made:
                self._make(stop - done)
            last = min(stop, self._made)
            out[done - start : last - start] = self._rows[done - self._start : last - self._start]
            done = last
        self.tick = stop
        return out

    def seek(self, tick: int) -> None:
        if not self._start <= tick <= self._made:
            if tick < self._start:
                self._restart()
            while self._made < tick:
                self._make(tick - self._made)
        self.tick = tick

    def memory(self) -> bytes:
        """Coefficients and states, as of a tick not far back. Any floats with true bounds lead to the same noise."""
        bank = self.bank.to_bytes()
        here = self.tick == self._made
        e, err, big = self._states() if here else self._before
        numbers = b"".join(part.astype("<f8").tobytes() for part in (e, err, big))
        head = [len(bank), self._made if here else self._start]
        return _FORMAT + np.array(head, dtype="<i8").tobytes() + bank + numbers

    def recall(self, tick: int, memory: bytes) -> None:
        if not memory.startswith(_FORMAT) or len(memory) < len(_FORMAT) + 16:
            raise _not_a_bank()
        head = np.frombuffer(memory[len(_FORMAT) : len(_FORMAT) + 16], dtype="<i8")
        start = len(_FORMAT) + 16
        bank = Bank.from_bytes(memory[start : start + int(head[0])])
        if bank.horizon != self.horizon:
            raise _not_a_bank()
        self._use(bank)
        kept = memory[start + int(head[0]) :]
        sizes = [self._e.size, self._err.size, self._big.size]
        if len(kept) != 8 * sum(sizes) or not 0 <= int(head[1]) <= tick:
            raise _not_a_bank()
        numbers = np.frombuffer(kept, dtype="<f8").astype(np.float64)
        e, err, big = np.split(numbers, np.cumsum(sizes)[:-1])
        self._e, self._err, self._big = (
            part.reshape(like.shape).copy() for part, like in ((e, self._e), (err, self._err), (big, self._big))
        )
        self._made = self._start = int(head[1])
        self._before = self._states()
        self.seek(tick)

    def _states(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self._e.copy(), self._err.copy(), self._big.copy()

    def _make(self, wanted: int) -> None:
        """The noise of the next ticks: those that are wanted now, a few more where there are few columns."""
        assert self.horizon is not None
        ahead = max(1, _AHEAD // self.columns)
        count = min(self.horizon - self._made, max(ahead, min(wanted, max(1, (1 << 20) // self.columns))))
        if ahead > 1:
            self._before = self._states()
        first = self._made + 1
        held = np.searchsorted(self._ends, np.arange(self._made, self._made + count), side="right")
        a, K, r = (np.ascontiguousarray(part[held]) for part in (self.bank.a, self.bank.K, self.bank.r))
        rows = np.empty((count, self.columns), dtype=np.int64)
        e, err, big = self._e.copy() if ahead > 1 else self._e, self._err.copy(), self._big.copy()
        run = kernels.compiled("filtered")
        for block, start in enumerate(range(0, self.columns, _BLOCK)):
            stop = min(self.columns, start + _BLOCK)
            z = self._source.reals(self._lane, self._law, range(first, first + count), stop - start, start)
            part, out = np.ascontiguousarray(e[:, start:stop]), np.empty((count, stop - start), dtype=np.int64)
            left = run(z.value, z.radius, z.size, a, K, r, self.sigma, first - 1, part, err[block], big[block], out)
            e[:, start:stop] = part
            if left:
                for t, column in np.argwhere(out == kernels.REDO).tolist():
                    out[t, column] = self._settled(first + t, start + column)
            rows[:, start:stop] = out
        self._e, self._err, self._big = e, err, big
        self._rows, self._start, self._made = rows, self._made, self._made + count

    def _settled(self, tick: int, column: int) -> int:
        """floor(sigma x_t + 1/2) by balls, from as many bits of every z as it takes: never fresh ones."""
        z = self._source.reals(self._lane, self._law, range(1, tick + 1), 1, column)
        bits = 128
        while bits <= _LAST_RESORT:
            precision = bits + 64
            rounded = at_precision(precision, lambda: self._by_balls(z, tick, bits))  # noqa: B023
            if rounded is not None:
                return rounded
            bits *= 2
        raise ArithmeticError("2^15 bits of every address leave a tick open: the source of noise is broken")

    def _by_balls(self, z: object, tick: int, bits: int) -> int | None:
        e = [arb(0)] * self.bank.states
        x, t = arb(0), 0
        for i, length in enumerate(self.bank.lengths.tolist()):
            a, K = [arb(v) for v in self.bank.a[i].tolist()], [arb(v) for v in self.bank.K[i].tolist()]
            r = arb(float(self.bank.r[i]))
            for _ in range(min(length, tick - t)):
                nu = r * z.refine(t, 0, bits)  # type: ignore[attr-defined]
                faded = [p * q for p, q in zip(a, e, strict=True)]
                x = sum(faded, nu)
                e = [p + q * nu for p, q in zip(faded, K, strict=True)]
                t += 1
            if t == tick:
                break
        rounded = (arb(self.sigma) * x + arb(1) / 2).floor().unique_fmpz()
        return None if rounded is None else int(rounded)

    def spread(self, tick: int) -> Spread:
        return self._spread(self._variance(tick) if tick else 0.0)

    def worst(self) -> Spread:
        return self._spread(_moments(self.bank).top)

    def window_spread(self, tick: int, window: int) -> Spread:
        """Exact (optimal-counting 7): var_t + var_s - 2 sum_k (prod of a_k over (s, t]) Cov(e_k,s, x_s), s = t - W."""
        before = tick - window
        if before <= 0:
            return self.spread(tick)
        i, C = self._covariance(before - 1)
        a, K, r = self.bank.a[i], self.bank.K[i], self.bank.r[i]
        with_x = (np.outer(a, a) * C).sum(axis=1) + K * r * r
        fade = np.ones(self.bank.states)
        starts = self._ends - self.bank.lengths
        for j in range(len(self._ends)):
            inside = min(tick, int(self._ends[j])) - max(before, int(starts[j]))
            if inside > 0:
                fade *= self.bank.a[j] ** inside
        variance = self._variance(tick) + self._variance(before) - 2 * float(fade @ with_x)
        return self._spread(max(variance, 0.0), roundings=2)

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        assert self.horizon is not None
        plain = self.worst().radius(beta / self.horizon)
        if self.horizon > _LONGEST_JOINT or self.horizon < 2:
            return plain
        path = _moments(self.bank).path(self.sigma)
        # An integer error above r is an estimate of at least r + 1/2.
        return min(plain, float(math.ceil(path.radius(beta / 2, plain + 1) - 0.5)))

    def _spread(self, variance: float, roundings: int = 1) -> Spread:
        v = variance * self.sigma * self.sigma
        return Spread("gaussian", v, v, math.sqrt(v), math.inf, roundings)

    def _variance(self, tick: int) -> float:
        return _moments(self.bank).variance(tick)

    def _covariance(self, tick: int) -> tuple[int, FloatArray]:
        """Of the states after a tick, for z of variance 1; and the segment of the next tick."""
        i = int(np.searchsorted(self._ends, tick, side="right"))
        C = _moments(self.bank).starts[i].copy()
        a, K, r = self.bank.a[i], self.bank.K[i], self.bank.r[i]
        fade, fresh = np.outer(a, a), np.outer(K, K) * r * r
        for _ in range(tick - int(self._ends[i] - self.bank.lengths[i])):
            C = C * fade + fresh
        return i, C


class Moments:
    """Variances of a bank for z of variance 1: accuracy only."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self.starts = np.empty((len(bank.lengths), bank.states, bank.states))
        self._ends = np.cumsum(bank.lengths)
        self._known: tuple[int, FloatArray] = (-1, np.empty(0))  # the variances of one segment
        self.top = float(kernels.compiled("variances")(bank.a, bank.K, bank.r, bank.lengths, self.starts).max())

    def variance(self, tick: int) -> float:
        i = int(np.searchsorted(self._ends, tick))
        segment, known = self._known
        if segment != i:
            b = self._bank
            known = kernels.compiled("segment_variances")(b.a[i], b.K[i], b.r[i], b.lengths[i], self.starts[i].copy())
            self._known = i, known
        return float(known[tick - 1 - int(self._ends[i] - self._bank.lengths[i])])

    def path(self, sigma: float) -> GaussianPath:
        T = self._bank.horizon
        variances, covariances = np.empty(T), np.empty(T)
        bank = self._bank
        kernels.compiled("neighbours")(bank.a, bank.K, bank.r, bank.lengths, variances, covariances)
        return GaussianPath.of(sigma * sigma * variances, sigma * sigma * covariances[:-1])


@lru_cache(maxsize=24)
def _moments(bank: Bank) -> Moments:
    return Moments(bank)


@lru_cache(maxsize=24)
def _sensitivity(bank: Bank) -> float:
    return certified(bank)


def _root_above(value: Fraction) -> float:
    """A float not below the square root, by exact comparison."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def _not_a_bank() -> StateError:
    return StateError("these bytes are not the memory of a bank; restore from an intact snapshot")
