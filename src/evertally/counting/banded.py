"""The square-root factor, cut off after p terms: less noise where a user takes part often, and in separated ticks.

users-and-domains 1.3 [R, reviewed twice] and 6. r_k = round(2^q f(k)) for k < p and 0 beyond: still not rising, so what
separated ticks of one user move is known exactly (counting/participation.py), and ticks that are p or more apart do not
add up at all. What is released is as for the square root (counting/sqrt.py): the exact sum plus floor(e_t + 1/2),
e = L Z with l the series of 1/((1 - z) r(z)), rounded correctly.

For one event, or a group of them, the square root and the bank are better; so this process is for separated users
alone. Error: sqrt(Delta sum l_k^2/(2 rho)); for 52 ticks of a year's days, a week apart, factor 57.8 where the square
root has 72.6 and a group 153. Time O(log T) amortised per tick and column, memory 8 d T bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evertally.counting.participation import toeplitz_reach
from evertally.counting.sqrt import FactorProcess
from evertally.counting.sqrt_factor import (
    GRID_BITS,
    SqrtFactor,
    approximate_inverse,
    certified_inverse,
    coefficients,
    rounded_quotient,
)
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, Source, round_up
from evertally.privacy import ZCDP, Participation

_MULTIPLES = (1, 2, 4, 8, 16, 32)  # of the separation: where another kept tick begins to add up


@dataclass(frozen=True)
class BandedFactor(SqrtFactor):
    """The first `band` coefficients of the square root.

    >>> factor = banded_factor(4, 2)
    >>> factor.r.tolist(), factor.inverse.tolist()
    ([65536, 32768, 0, 0], [1.0, 0.5, 0.75, 0.625])
    """

    band: int = 1

    def rounded(self, z: NDArray[np.int64], rest: int = 0, cut: bool = False) -> int | None:
        assert rest == 0, "running totals of integers are integers"
        assert not cut, "no draw of a running total is ever forgotten"
        series = np.diff(_banded(z.size + 1, self.band), prepend=0)  # of one term no series can be divided by
        return rounded_quotient(z, [int(x) for x in series])


def _banded(horizon: int, band: int) -> NDArray[np.int64]:
    r = coefficients(horizon)
    r[band:] = 0
    return r


@lru_cache(maxsize=24)
def banded_factor(horizon: int, band: int) -> BandedFactor:
    """The factor of a horizon and a band, built once: O(T log T)."""
    r = _banded(horizon, band)
    inverse, error = certified_inverse(np.diff(r, prepend=0), np.cumsum(approximate_inverse(r / 2.0**GRID_BITS)))
    return BandedFactor(r, sum(int(x) ** 2 for x in r[:band]), inverse, error, GRID_BITS, band=band)


def bands(horizon: int, rule: Participation) -> list[int]:
    """The public list that a band is chosen from."""
    return sorted({min(horizon, rule.separation * n) for n in _MULTIPLES})


@lru_cache(maxsize=64)
def best_band(horizon: int, rule: Participation) -> int:
    """The band of least worst standard deviation, by public numbers. Whoever begins a stream keeps it: another machine
    may add up floats in another order."""

    def squared(band: int) -> float:
        r = _banded(horizon, band)
        inverse = np.cumsum(approximate_inverse(r / 2.0**GRID_BITS))
        return float(toeplitz_reach(r, horizon, rule)) * float(np.sum(inverse**2))

    return min(bands(horizon, rule), key=squared)


class BandedProcess(FactorProcess[BandedFactor, DiscreteGaussian]):
    """Noise of a banded factor, for users whose ticks are apart.

    >>> from evertally.noise import simulation
    >>> from evertally.privacy import Change
    >>> weekly = Participation(Change(1, 1, 1), ticks=52, separation=7)
    >>> process = BandedProcess(ZCDP(0.5), weekly, horizon=365, columns=1, source=simulation(0).source("demo"))
    >>> process.band, round(process.worst().stddev, 2)
    (28, 57.75)
    """

    def __init__(
        self,
        charge: ZCDP,
        rule: Participation,
        *,
        horizon: int,
        columns: int,
        source: Source,
        band: int | None = None,
        lane: str = "banded",
    ) -> None:
        self.band = best_band(horizon, rule) if band is None else band
        if not 1 <= self.band <= horizon:
            raise ConfigurationError(f"a band has 1 to {horizon} coefficients, the ticks of the horizon")
        factor = banded_factor(horizon, self.band)
        law = DiscreteGaussian(round_up(toeplitz_reach(factor.r, horizon, rule) / (2 * charge.exact_rho)))
        super().__init__(factor, law, horizon=horizon, columns=columns, source=source, lane=lane)
