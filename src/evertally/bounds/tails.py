"""How far a noise value can be off: standard deviations and tail radii from public numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# From this scale on, a sum of discrete Gaussians is a lattice Gaussian up to a relative 1e-30 and more, so its tail is
# the normal one taken half a lattice step earlier.
SMOOTH = 3.0


@dataclass(init=False, unsafe_hash=True)
class Spread:
    """The public law of one noise value, a weighted sum of independent draws. A value that is never changed.

    One is made for every release, and a data class that forbids changes takes twice as long.

    `proxy` is the sum of (weight * scale)^2, `peak` the largest weight * scale, `finest` the smallest scale of a draw
    (sigma or b); `variance` is the true variance.
    `finest` is infinite where draws are real numbers. `roundings`: how many terms were rounded to integers afterwards
    (a rounding to parts of one counts as such a part; one that is multiplied by w counts w times, and w^2 times in
    `rounded`, the part of the variance, which is the same where nothing is multiplied).

    >>> coin = Spread("gaussian", variance=100.0, proxy=100.0, peak=10.0, finest=10.0)
    >>> coin.stddev, round(coin.radius(0.05), 2)
    (10.0, 20.1)
    """

    law: Literal["gaussian", "laplace"]
    variance: float
    proxy: float
    peak: float
    finest: float
    roundings: float = 0
    rounded: float = 0

    def __init__(
        self,
        law: Literal["gaussian", "laplace"],
        variance: float,
        proxy: float,
        peak: float,
        finest: float,
        roundings: float = 0,
        rounded: float | None = None,
    ) -> None:
        self.law, self.variance, self.proxy = law, variance, proxy
        self.peak, self.finest, self.roundings = peak, finest, roundings
        self.rounded = roundings if rounded is None else rounded

    def __add__(self, other: Spread) -> Spread:
        """The spread of a sum of independent values."""
        if self.law != other.law:
            raise ValueError("spreads of different laws do not add")
        return Spread(
            self.law,
            self.variance + other.variance,
            self.proxy + other.proxy,
            max(self.peak, other.peak),
            min(self.finest, other.finest),
            self.roundings + other.roundings,
            self.rounded + other.rounded,
        )

    @property
    def stddev(self) -> float:
        """Rounding to the nearest integer adds the variance of a uniform law on one unit."""
        return math.sqrt(self.variance + self.rounded / 12)

    def radius(self, beta: float) -> float:
        """A number that |noise| exceeds with probability at most `beta`."""
        if not 0 < beta < 1:
            raise ValueError("beta is a probability between 0 and 1")
        if self.proxy == 0:
            return 0.0
        half = 0.5 * self.roundings
        if self.law == "laplace":
            return laplace_radius(self.proxy, self.peak, beta) + half
        chernoff = self.chernoff(math.log(2 / beta))
        if self.finest < SMOOTH:
            return chernoff
        # Real normal numbers (`finest` infinite) have no lattice.
        lattice = 0.0 if math.isinf(self.finest) else 0.5
        return min(chernoff, -NormalDist().inv_cdf(beta / 2) * math.sqrt(self.proxy) + half + lattice)

    def chernoff(self, log_odds: float) -> float:
        """Chernoff's radius for beta = 2 exp(-log_odds), which may be far below the smallest float."""
        if self.proxy == 0:
            return 0.0
        half = 0.5 * self.roundings
        if self.law == "laplace":
            return laplace_chernoff(self.proxy, self.peak, log_odds) + half
        return math.sqrt(2 * self.proxy * log_odds) + half


@runtime_checkable
class KnowsTail(Protocol):
    """A spread that knows more of its law than two numbers."""

    def above(self, x: Floats) -> Floats:
        """A bound on P(noise > x) before rounding, for each x >= 0."""


def laplace_radius(proxy: float, peak: float, beta: float) -> float:
    """Tail of a weighted sum of Laplace draws: price-of-continual-release 2.2, with weights.

    The moment generating function of w Lap(b) at s is 1/(1 - (w b s)^2), also an upper bound for the discrete law.
    With theta = peak * s < 1 and -ln(1 - y) <= y * (-ln(1 - theta^2)/theta^2) for y <= theta^2, Chernoff's bound is
    2 exp(-(proxy/peak^2) ln(1 - theta^2) - theta x/peak); equal weights make it the bound of the specification.

    >>> round(laplace_radius(10.0, 1.0, 1 / (3 * 8192)), 4)  # Y(10, 1/(3*8192)) of the specification
    25.0128
    """
    n = proxy / peak**2
    if abs(n - 1) <= 1e-12:
        # One draw (several draws below the peak are not one):
        # P(|Z| > k) <= exp(-k/b) at integers k only (price-of-continual-release 2.2).
        return float(math.ceil(peak * math.log(1 / beta)))
    return laplace_chernoff(proxy, peak, math.log(2 / beta))


def laplace_chernoff(proxy: float, peak: float, log_odds: float) -> float:
    """The bound of `laplace_radius` for beta = 2 exp(-log_odds)."""
    n = proxy / peak**2

    def bound(theta: float) -> float:
        return (log_odds - n * math.log1p(-theta * theta)) / theta

    # bound falls, then rises, in theta; a theta that is not quite the best one still gives a valid bound.
    low, high = 0.0, 1.0
    for _ in range(80):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if bound(a) < bound(b) else (a, high)
    return peak * bound((low + high) / 2)
