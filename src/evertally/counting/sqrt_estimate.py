"""How large the noise of a square-root counter is, by formula."""

from __future__ import annotations

import math
from fractions import Fraction

from evertally.bounds.square_root import S
from evertally.bounds.tails import Spread
from evertally.counting.sqrt_factor import GRID_BITS
from evertally.noise import DiscreteGaussian
from evertally.privacy import ZCDP


class SquareRoot:
    """The spreads of a square-root counter by formula: its factor takes seconds to prepare, and may not be chosen."""

    def __init__(self, charge: ZCDP, l2_squared: int | Fraction, horizon: int) -> None:
        self._horizon = horizon
        self._unit = float(l2_squared) / (2 * float(charge.exact_rho))
        # Refused as its noise will be, on a grid of 2^-16: its exact variance is within a millionth of this one.
        for near in (1 - 1e-6, 1 + 1e-6):
            DiscreteGaussian(self._unit * S(horizon) * 4.0**GRID_BITS * near)

    def spread(self, tick: int) -> Spread:
        variance = self._unit * S(self._horizon) * S(tick)
        return Spread("gaussian", variance, variance, math.sqrt(variance), math.sqrt(self._unit), roundings=1)

    def worst(self) -> Spread:
        return self.spread(self._horizon)
