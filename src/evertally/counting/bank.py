"""The bank: counting within 0.3 % of the least error that Gaussian noise can have, from four to ten numbers of state.

optimal-counting 1-4 [R, reviewed twice]. One exact real normal number z_t a tick and coordinate (noise/reals.py) feeds
Q one-pole filters,

    nu = r_t z_t,  x_t = sum_k a_k e_k + nu,  e_k <- a_k e_k + K_k nu,  release = exact sum + floor(sigma x_t + 1/2).

x = L z with L lower triangular and invertible, so the release is a function of y = R x_data + sigma z, R = L^-1 A: all
releases together are rho-zCDP, adaptive streams included, if sigma^2 >= D2^2 S/(2 rho) and S bounds the squared columns
of R (bank_certificate.py). Alone under an (eps, delta) promise sigma^2 >= D2^2 S/mu^2, mu by the exact Gaussian curve.
The coefficients are what they are: exact dyadic numbers, found by floats, whose error costs accuracy alone.

The path is rounded correctly: floats with proved bounds decide almost every tick; where they do not, double words go
through the path of that coordinate again, and what those leave open balls decide, reading more bits at the same
addresses (bank_path.py). So any machine, block size or restart gives the same integers.

Error: standard deviation sigma sqrt(var_t), at most 2.966 / 4.272 / 5.157 over sqrt(2 rho) at T = 2^10 / 2^16 / 2^20.
Time about 30 ns a tick and coordinate; memory 8 Q bytes a coordinate and 20-150 KB of coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from evertally.bounds.tails import Spread
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_moments import moments_of
from evertally.counting.bank_path import BankPath, not_a_bank
from evertally.counting.bank_schedule import Bank, build_bank
from evertally.counting.column_memory import ColumnMemory
from evertally.counting.process import FloatArray, IntArray, check_horizon
from evertally.errors import ConfigurationError
from evertally.noise import Source
from evertally.noise.reals import RealLaw
from evertally.privacy import ZCDP, ApproxDP, Change
from evertally.privacy.conversions import gaussian_mu
from evertally.secret import Secret

LONGEST_BANK = 2**24
_LONGEST_JOINT = 2**20  # ticks for which the law of the whole path is looked at
_FORMAT = b"evertally-bank-1"


class FilteredNoise(Secret):
    """Noise of a bank, whichever it is: what banks with and without a horizon share."""

    bank: Bank
    sigma: float
    horizon: int | None

    def __init__(self, charge: ZCDP | ApproxDP, change: Change, *, columns: int, source: Source, lane: str) -> None:
        self.columns = columns
        self._needed = Fraction(change.l2_squared) / mu_squared(charge)
        self._source, self._lane = source, lane

    def _use(self, bank: Bank, sensitivity: Fraction) -> None:
        """Takes coefficients; `sensitivity` is the certified S of exactly these."""
        self.bank = bank
        self.sigma = root_above(self._needed * sensitivity)
        moments = self._moments = moments_of(bank)
        # optimal-counting 3.3: |x_t| <= 9 sum_i |L_ti| but for 1e-18, and sum |L_ti| <= sqrt(T var_t).
        if not self.sigma * 9 * math.sqrt(bank.horizon * moments.widest(bank.horizon)) < 2.0**50:
            raise ConfigurationError(
                "the noise would leave the range of exact numbers; choose another budget or horizon"
            )
        law = RealLaw("normal", f"bank {self.sigma.hex()} {bank.digest}")
        self.tick = 0
        self._path = BankPath(bank, self.sigma, law, self.columns, self._source, self._lane)

    def advance(self, count: int = 1) -> IntArray:
        start, stop = self.tick, self.tick + count
        check_horizon(self, stop)
        rows = self._path.rows(start, stop)
        self.tick = stop
        return rows

    def seek(self, tick: int) -> None:
        self.tick = tick

    def kept(self) -> ColumnMemory:
        return self._path.kept(self.tick)

    def take(self, tick: int, kept: ColumnMemory) -> None:
        self._path.take(tick, kept)
        self.tick = tick

    def spread(self, tick: int) -> Spread:
        return self._spread(self._moments.variance(tick) if tick else 0.0)

    def worst(self) -> Spread:
        return self._spread(self._moments.widest(self.bank.horizon))

    def widest(self, tick: int) -> Spread:
        return self._spread(self._moments.widest(tick))

    def mean_variance(self, tick: int) -> float:
        return self._spread(self._moments.mean(tick)).stddev ** 2

    exact_windows = True

    def window_spread(self, tick: int, window: int) -> Spread:
        """Exact (optimal-counting 7)."""
        before = tick - window
        if before <= 0:
            return self.spread(tick)
        both = self._moments.variance(tick) + self._moments.variance(before)
        return self._spread(max(both - 2 * self._moments.covariance(before, tick), 0.0), roundings=2)

    def covariances(self, ticks: Sequence[int]) -> FloatArray:
        """Of the noise of one coordinate at increasing ticks, before rounding; 0 in the diagonal."""
        return self.sigma * self.sigma * self._moments.covariances(ticks)

    def _spread(self, variance: float, roundings: int = 1) -> Spread:
        v = variance * self.sigma * self.sigma
        return Spread("gaussian", v, v, math.sqrt(v), math.inf, roundings)


class BankProcess(FilteredNoise):
    """Noise of the bank.

    >>> from evertally.noise import simulation
    >>> process = BankProcess(ZCDP(0.5), Change(1, 1, 1), horizon=4096, columns=1, source=simulation(0).source("demo"))
    >>> round(process.worst().stddev, 3)  # 3.394 is the least possible; and a little for rounding to integers
    3.415
    """

    def __init__(
        self,
        charge: ZCDP | ApproxDP,
        change: Change,
        *,
        horizon: int,
        columns: int,
        source: Source,
        lane: str = "bank",
        bank: Bank | None = None,
    ) -> None:
        super().__init__(charge, change, columns=columns, source=source, lane=lane)
        self.horizon = horizon
        self._take(build_bank(horizon) if bank is None else bank)

    def _take(self, bank: Bank) -> None:
        assert bank.horizon == self.horizon, "a bank is made for one horizon"
        self._use(bank, Fraction(_sensitivity(bank)))

    def settle_as(self, other: Any) -> None:
        """Coefficients are settled once, at the beginning of a stream; made anew, it goes on with its own."""
        if isinstance(other, BankProcess) and other.bank is not self.bank:
            self._take(other.bank)

    def settled(self) -> bytes:
        return self.bank.to_bytes()

    def settle(self, settled: bytes) -> None:
        bank = Bank.from_bytes(settled)
        if bank.horizon != self.horizon:
            raise not_a_bank()
        if bank.digest != self.bank.digest:  # those that it has built itself are certified already
            self._take(bank)

    def memory(self) -> bytes:
        """Coefficients and states."""
        bank = self.settled()
        return _FORMAT + len(bank).to_bytes(8, "little") + bank + self._path.memory(self.tick)

    def recall(self, tick: int, memory: bytes) -> None:
        start = len(_FORMAT) + 8
        if not memory.startswith(_FORMAT) or len(memory) < start:
            raise not_a_bank()
        stop = start + int.from_bytes(memory[len(_FORMAT) : start], "little")
        self.settle(memory[start:stop])
        self._path.recall(tick, memory[stop:])
        self.seek(tick)

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        assert self.horizon is not None
        plain = self.worst().radius(beta / self.horizon)
        if not 2 <= self.horizon <= _LONGEST_JOINT:
            return plain
        path = self._moments.path(self.sigma)
        # An integer error above r is an estimate of at least r + 1/2.
        return min(plain, float(math.ceil(path.radius(beta / 2, plain + 1) - 0.5)))


def mu_squared(charge: ZCDP | ApproxDP) -> Fraction:
    """How far apart (squared, in units of sigma) two neighbouring worlds may be (optimal-counting 2.2).

    >>> mu_squared(ZCDP(0.5)), round(float(mu_squared(ApproxDP(1, 1e-6))), 5)
    (Fraction(1, 1), 0.05603)
    """
    if isinstance(charge, ZCDP):
        return 2 * charge.exact_rho
    return gaussian_mu(charge.exact_epsilon, charge.exact_delta) ** 2


@lru_cache(maxsize=24)
def _sensitivity(bank: Bank) -> float:
    return certified(bank)


def root_above(value: Fraction) -> float:
    """A float not below the square root, by exact comparison.

    >>> Fraction(root_above(Fraction(2))) ** 2 >= 2
    True
    """
    if not Fraction(1, 2**400) < value < 2**400:
        raise ConfigurationError("the noise would leave the range of exact numbers; choose another budget")
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root
