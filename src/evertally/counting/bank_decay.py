"""Exponential decay on a bank: the least error of a decaying sum over a known horizon.

optimal-counting 7 and 2; additions 11, "On a bank" [R]. What is summed up is `Decay.series()`: integer weights a_k over
a unit D = 2^24, so the exact sum n_t is an integer. The bank of lam (a dyadic number next to the factor) makes
v_t = floor(D sigma x_t + 1/2), and n_t + v_t = floor(n_t + D sigma x_t + 1/2) is the mechanism of optimal-counting 2.1,
on sums of other weights; the multiple of the resolution next to it is post-processing. No delta, and nothing that is
rounded by itself. The path never sees data.

Privacy: y = L^-1 W' x + sigma z with W' = W H, so sigma^2 >= D2^2 S (sum |h_k|)^2/(2 rho): S of this bank with lam in
its certificate, h in exact integers (`spill`: 1 + 3e-5 at 0.99, 1.0013 at 0.9999 and 2^16 ticks). Changes of several
ticks by S2.

Error: within 0.3 % of the least that Gaussian noise can have; that of the root factor is 13 % larger where the horizon
is short for the decay, and no larger from about 20/(1 - factor) ticks on. Time: that of a bank whose noise is decided
to 2^-24 of a count, so that slower tiers (bank_path.py) are needed 2^24 times as often as for running totals. Memory
8 Q bytes a coordinate and 20-150 KB of coefficients.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from evertally.bounds.tails import Spread
from evertally.counting.bank import BankProcess
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_decay_schedule import build_decay_bank, spill
from evertally.counting.bank_schedule import Bank
from evertally.counting.process import IntArray
from evertally.counting.workloads import Decay
from evertally.noise import Source
from evertally.privacy import ZCDP, ApproxDP, Change

_LONGEST_JOINT = 2**20  # ticks for which the law of the whole path is looked at


class DecayBankProcess(BankProcess):
    """Noise of a decaying sum, in steps of its resolution.

    >>> from evertally.noise import simulation
    >>> process = DecayBankProcess(ZCDP(0.5), Change(1, 1, 1), Decay("0.99"), horizon=256, columns=1,
    ...                            source=simulation(0).source("demo"))
    >>> round(process.worst().variance ** 0.5, 3)  # 2.092 is the least possible; 2.137 by the root factor
    2.096
    """

    def __init__(
        self,
        charge: ZCDP | ApproxDP,
        change: Change,
        workload: Decay,
        *,
        horizon: int,
        columns: int,
        source: Source,
        lane: str = "bank-by-age",
        bank: Bank | None = None,
    ) -> None:
        series = workload.series()
        self._lam = nearest(workload)
        self._parts, self._unit = series.step.denominator, series.unit
        self._grown = _grown(workload, horizon)
        made = build_decay_bank(horizon, self._lam) if bank is None else bank
        super().__init__(charge, change, horizon=horizon, columns=columns, source=source, lane=lane, bank=made)

    def _take(self, bank: Bank) -> None:
        assert bank.horizon == self.horizon, "a bank is made for one horizon"
        # sigma in parts of the unit, in which sums are integers
        self._use(bank, Fraction(_sensitivity(bank, self._lam)) * (self._grown * self._unit) ** 2)

    def advance(self, count: int = 1, rests: IntArray | None = None) -> IntArray:
        """`rests`: what the exact sums have beyond whole steps, in parts of the unit; rounded together with the noise.

        floor((rest + v parts)/D + 1/2), without leaving 64 bits."""
        whole, left = np.divmod(super().advance(count), self._unit)
        left *= self._parts
        left += self._unit // 2
        if rests is not None:
            left += rests
        rounded: IntArray = whole * self._parts + left // self._unit
        return rounded

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        """Truths lie between the steps, so that an error is no integer: half a step is added, not rounded up to."""
        assert self.horizon is not None
        worst = self.worst()
        plain = worst.radius(beta / self.horizon)
        if not 2 <= self.horizon <= _LONGEST_JOINT:
            return plain
        path = self._moments.path(self.sigma * self._parts / self._unit)
        return min(plain, path.radius(beta / 2, plain + 1) + worst.roundings / 2)

    def _spread(self, variance: float, roundings: float = 1) -> Spread:
        finest = self._parts / self._unit
        v = variance * (self.sigma * finest) ** 2
        return Spread("gaussian", v, v, math.sqrt(v), math.inf, roundings * (1 + finest))


def nearest(workload: Decay) -> float:
    """lam: the float next to the factor. Below 1, since the slowest decay that is taken is far from it."""
    return workload.factor.numerator / workload.factor.denominator


@lru_cache(maxsize=24)
def _grown(workload: Decay, horizon: int) -> Fraction:
    series = workload.series()
    weights = [weight // series.step.denominator for weight in series.weights[:horizon]]
    return spill(weights, series.unit, nearest(workload), horizon)


@lru_cache(maxsize=24)
def _sensitivity(bank: Bank, lam: float) -> float:
    return certified(bank, lam)
