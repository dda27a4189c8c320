"""How large the largest of many noise values typically is: a prediction, where `Spread.radius` is a promise.

The expected number of values above x is N(x) = sum of counts times tails. Values that come in clusters (a running noise
stays high for a while) count as one, and the number of clusters is about Poisson: the largest value is below x with
probability exp(-theta N(x)), and its median is where theta N(x) = ln 2. Tails are saddle points, good to a few per cent
of x far out. Accuracy only: nothing here bounds anything, and no privacy depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.tails import Spread

Floats = NDArray[np.float64]

# Neighbouring ticks share most of their noise, so that high values come in clusters. Measured on trees, Honaker trees
# and square roots from 10^3 to 10^5 ticks: within 8 per cent of the median largest value, mostly within 5.
_THETA = {"gaussian": 0.4, "laplace": 0.15}
_ROOT = np.sqrt(2 * np.pi)


class TypicalTails:
    """P(noise > x) for many spreads of one law at once.

    >>> one = TypicalTails([Spread("laplace", variance=2.0, proxy=1.0, peak=1.0, finest=1.0)])
    >>> bool(0.8 < one.above(np.array([10.0]))[0] / (0.5 * np.exp(-10.0)) < 1.25)
    True
    """

    def __init__(self, spreads: Sequence[Spread]) -> None:
        self._gaussian = spreads[0].law == "gaussian"
        self.theta = _THETA[spreads[0].law]
        self._variance = np.array([max(spread.stddev**2, 1e-12) for spread in spreads])
        self._proxy = np.array([max(spread.proxy, 1e-12) for spread in spreads])
        self._peak = np.array([max(spread.peak, 1e-6) for spread in spreads])
        self._stddev = np.sqrt(self._variance)
        self._draws = self._proxy / self._peak**2
        self._draws_squared = self._draws * self._draws

    def above(self, x: Floats) -> Floats:
        """One probability for each spread and its own x, or one x for all; x below 0 counts as 0."""
        x = np.maximum(x, 0.0)
        if self._gaussian:
            z = x / self._stddev
            return np.asarray(np.exp(-0.5 * z * z) * _mills(z))
        # A sum of Laplace draws: K(s) = -n ln(1 - s^2), with n = proxy/peak^2 draws of scale `peak`.
        n, y = self._draws, x / self._peak
        s = y / (n + np.sqrt(self._draws_squared + y * y))
        s2 = s * s
        rest = 1 - s2
        curvature = 2 * n * (1 + s2) / (rest * rest)
        exponent = np.maximum(-n * np.log1p(-s2) - s * y, -700.0)
        return np.asarray(np.exp(exponent) * _mills(s * np.sqrt(curvature)))


def _mills(z: Floats) -> Floats:
    """exp(z^2/2) P(N(0,1) > z) for z >= 0, within 0.3 per cent (Boyd's approximation)."""
    return np.asarray(1 / (_ROOT * (0.661 * z + 0.339 * np.sqrt(z * z + 5.51))))


def largest_where(expected: Callable[[float], float], level: float, high: float) -> float:
    """The x at which a falling number of exceedances passes `level`; 0 if it is below from the start.

    >>> round(largest_where(lambda x: 100 * 0.5**x, 1.0, high=4.0), 2)
    6.64
    """
    low = 0.0
    if expected(low) <= level:
        return 0.0
    while expected(high) > level:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) > level else (low, middle)
    return high
