"""How large a noise path gets: one bound for all ticks at once, from the law of the path and not tick by tick.

`Spread.radius` with a share of beta for every tick (a union bound) pays for T ticks as if they had nothing in common
and were all as wide as the widest. What is here knows how ticks are made (docs/theory/additions.md, 8):

* trees: the largest prefix sum obeys a recursion over the levels, computed on a grid (`tree_maximum`);
* Honaker's tree: the same recursion, where independence is replaced by positive association (`refined_maximum`);
* Gaussian paths with known covariances: Hunter's bound, ticks one by one minus neighbours in pairs (`GaussianPath`).

Numbers on the grid are rounded towards larger noise at every step, so that each result is a bound. All are bounds on
P(max noise > x); the laws are symmetric, so the probability for |noise| is at most twice that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Kind = Literal["gaussian", "laplace"]

_FINENESS = 128  # points of the grid in one standard deviation of a draw
_FAR = 1e-13  # what may be beyond the grid, and what a transform may have lost; added to a tail at every step
_EXTENT = {"gaussian": 8.0, "laplace": 23.0}  # standard deviations of a draw, at least, within which all but _FAR lies


def of_column(beta: float, columns: int) -> float:
    """The failure probability of one column, if all may fail with beta together: their noise is independent.

    >>> of_column(0.05, 1), round(of_column(0.05, 10), 6)
    (0.05, 0.005116)
    """
    return beta if columns == 1 else -math.expm1(math.log1p(-beta) / columns)


def above(kind: Kind, scale: float, k: Floats) -> Floats:
    """P(Z > k) at whole numbers k, for the discrete Laplace law of scale b or the discrete Gaussian law of scale sigma.

    >>> above("laplace", 1.0, np.array([-1.0, 0.0, 1.0])).round(4).tolist()
    [0.7311, 0.2689, 0.0989]
    >>> above("gaussian", 1.0, np.array([0.0, 1.0])).round(4).tolist()
    [0.3005, 0.0586]
    """
    if kind == "laplace":
        tail = np.exp(-(np.maximum(k, -k - 1) + 1) / scale) / (1 + math.exp(-1 / scale))
        return np.asarray(np.where(k >= 0, tail, 1 - tail))
    if scale > 1000:
        # Poisson summation: masses are those of the density up to exp(-2 pi^2 sigma^2); the sum over k' > k is the
        # integral from k + 1/2 up to a relative 1/(24 sigma^2) times a few, which the last factor covers.
        return np.asarray(normal_above((k + 0.5) / scale) * (1 + 100 / scale**2))
    extent = math.ceil(12 * scale) + 2
    masses = np.exp(-0.5 * (np.arange(-extent, extent + 1) / scale) ** 2)
    tails = np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0) / masses.sum()
    places = np.clip(k + extent, 0, 2 * extent).astype(np.int64)
    return np.asarray(np.where(k < -extent, 1.0, tails[places]))


def normal_above(z: Floats) -> Floats:
    """P(N(0, 1) > z).

    >>> normal_above(np.array([0.0, 2.0])).round(5).tolist()
    [0.5, 0.02275]
    """
    return np.asarray(0.5 * _erfc(np.asarray(z, dtype=np.float64) / math.sqrt(2)), dtype=np.float64)


_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def deviation(kind: Kind, scale: float) -> float:
    """Standard deviation of a draw, about."""
    return scale * math.sqrt(2) if kind == "laplace" else scale


@dataclass(frozen=True)
class GridLaw:
    """The law of a number, rounded up to multiples of `step`: masses[i] is the mass of (i - zero) step.

    What is missing to 1 counts as infinitely large.
    """

    masses: Floats
    zero: int
    step: float

    @classmethod
    def of(cls, tail: Callable[[Floats], Floats], extent: int, step: float) -> GridLaw:
        """From P(Z > x), up to `extent` steps away."""
        tails = tail(np.arange(-extent, extent + 1, dtype=np.float64) * step)
        return cls(np.maximum(np.append(1.0, tails[:-1]) - tails, 0.0), extent, step)

    @classmethod
    def draw(cls, kind: Kind, scale: float, step: float, weight: float = 1.0) -> GridLaw:
        """A draw times a weight."""
        extent = math.ceil(_EXTENT[kind] * deviation(kind, scale) * weight / step) + 2
        return cls.of(lambda x: above(kind, scale, np.floor(x / weight + 1e-9)), extent, step)

    def plus(self, other: GridLaw) -> GridLaw:
        """The sum of independent numbers."""
        return GridLaw(_convolved(self.masses, other.masses), self.zero + other.zero, self.step)

    def sum_of(self, count: int) -> GridLaw:
        """The sum of so many independent ones."""
        size = (self.masses.size - 1) * count + 1
        n = 1 << (size - 1).bit_length()
        masses = np.maximum(np.fft.irfft(np.fft.rfft(self.masses, n) ** count, n)[:size], 0.0)
        return GridLaw(masses, self.zero * count, self.step)

    def times(self, factor: float) -> GridLaw:
        """A multiple, rounded up again."""
        places = np.ceil((np.arange(self.masses.size) - self.zero) * factor - 1e-9).astype(np.int64)
        zero = int(-places[0])
        masses = np.bincount(places + zero, weights=self.masses).astype(np.float64)
        return GridLaw(masses, zero, self.step)

    def coarser(self, times: int) -> GridLaw:
        """On a grid of `times` as large steps."""
        law = self.times(1 / times)
        return GridLaw(law.masses, law.zero, self.step * times)


@dataclass(frozen=True)
class GridMaximum:
    """P(M <= i step) for i = 0, 1, ..., rounded down, of a maximum M that is at least 0."""

    below: Floats
    step: float

    @classmethod
    def nothing(cls, extent: float, step: float) -> GridMaximum:
        """M = 0, on a grid up to `extent`."""
        return cls(np.ones(math.ceil(extent / step) + 2), step)

    def moved(self, law: GridLaw) -> GridMaximum:
        """M + Z for an independent Z; places below 0 are not told."""
        size = self.below.size
        # Beyond the grid the probability is at least what it is at its end.
        extended = np.append(self.below, np.full(law.zero, self.below[-1]))
        moved = _convolved(law.masses, extended)[law.zero : law.zero + size]
        return GridMaximum(np.clip(moved - _FAR, 0.0, 1.0), self.step)

    def and_also(self, other: GridMaximum) -> GridMaximum:
        """The larger of two that are independent, or positively associated."""
        return GridMaximum(self.below * other.below, self.step)

    def tail(self, x: float) -> float:
        """P(M > x) at most."""
        place = math.floor(x / self.step + 1e-9)
        return 1.0 if place < 0 else float(1.0 - self.below[min(place, self.below.size - 1)])

    def radius(self, beta: float, offset: float = 0.0) -> float:
        """A number r with P(M > r - offset) <= beta, inf if the grid ends before that."""
        enough = np.flatnonzero(1.0 - self.below <= beta)
        return math.inf if not enough.size else float(enough[0]) * self.step + offset


def _convolved(a: Floats, b: Floats) -> Floats:
    size = a.size + b.size - 1
    n = 1 << (size - 1).bit_length()
    return np.maximum(np.fft.irfft(np.fft.rfft(a, n) * np.fft.rfft(b, n), n)[:size], 0.0)


def grid_step(kind: Kind, scale: float) -> int:
    """A whole number of units, so that small noise is not rounded at all."""
    return max(1, math.floor(deviation(kind, scale) / _FINENESS))


@lru_cache(maxsize=64)
def tree_maximum(kind: Kind, scale: float, radix: int, horizon: int, extent: float, step: int) -> GridMaximum:
    """The largest noise of an r-ary tree over the ticks 0 (noise 0) to T, one-sided.

    A subtree of r^h ticks: M_h = max(Q_0, X_1 + Q_1, X_1 + X_2 + Q_2, ...) with r independent Q of the law of M_(h-1)
    and independent blocks X, exactly; the last subtree of each level is cut where the digits of T say so.

    >>> law = tree_maximum("laplace", 4.0, 2, 15, 400.0, 1)
    >>> law.radius(0.05 / 2), law.radius(0.0005 / 2)
    (29.0, 51.0)
    """
    draw = GridLaw.draw(kind, scale, step)
    full = partial = GridMaximum.nothing(extent, step)
    while horizon:
        horizon, digit = divmod(horizon, radix)
        for _ in range(digit):
            partial = full.and_also(partial.moved(draw))
        if horizon:
            whole = full
            for _ in range(radix - 1):
                whole = full.and_also(whole.moved(draw))
            full = whole
    return partial


@lru_cache(maxsize=64)
def refined_maximum(kind: Kind, scale: float, horizon: int, extent: float) -> GridMaximum:
    """The largest noise of Honaker's tree before it is rounded to integers, one-sided.

    M_h = max(M_left, N_left + M_right): both arguments rise with every draw, hence are associated (Harris), and the
    probability that both are below x is at least the product. N_h = a_h Z + b_h (N_left + N_right), on a finer grid.
    """
    step = deviation(kind, scale) / _FINENESS
    finer = 8
    node = GridLaw.draw(kind, scale, step / finer)
    full = partial = GridMaximum.nothing(extent, step)
    h = 0
    while horizon:
        coarse = node.coarser(finer)
        if horizon & 1:
            partial = full.and_also(partial.moved(coarse))
        horizon >>= 1
        if horizon:
            full = full.and_also(full.moved(coarse))
            h += 1
            own, children = 2.0**h / (2.0 ** (h + 1) - 1), (2.0**h - 1) / (2.0 ** (h + 1) - 1)
            mixed = node.plus(node).times(children)
            node = GridLaw.draw(kind, scale, step / finer, own).plus(mixed)
    return partial


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_RATIO = 1.04  # ticks of one group, last to first


@dataclass(frozen=True)
class GaussianPath:
    """Ticks in groups: how many, the largest and the smallest variance, the least correlation of neighbours.

    >>> path = GaussianPath.of(np.array([1.0, 1.0]), np.array([0.9]))
    >>> float(path.tail(2.0)) < 2 * 0.02276
    True
    """

    counts: Floats
    largest: Floats
    smallest: Floats
    correlation: Floats

    @classmethod
    def of(cls, variances: Floats, covariances: Floats) -> GaussianPath:
        """From the variances of the ticks and the covariances of each with the next; both are grouped."""
        last = variances.size - 1  # has no next tick, so it is a group of its own
        edges = [0]
        while edges[-1] < last:
            edges.append(min(last, max(edges[-1] + 1, int(edges[-1] * _RATIO))))
        edges.append(last + 1)
        starts = np.array(edges[:-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            neighbours = np.append(covariances / np.sqrt(variances[:-1] * variances[1:]), -1.0)
        after = np.append(variances[1:], variances[-1])
        return cls(
            np.diff(np.array(edges)).astype(np.float64),
            np.maximum.reduceat(variances, starts),
            np.minimum.reduceat(np.minimum(variances, after), starts),
            np.minimum.reduceat(neighbours, starts),
        )

    def tail(self, x: float) -> float:
        """P(some tick above x) <= sum P(A_t) - sum P(A_t and A_(t+1)) (Hunter 1976; the pairs are a tree)."""
        single = self.counts * normal_above(x / np.sqrt(self.largest))
        together = self.counts * _both_above(x / np.sqrt(self.smallest), self.correlation)
        return float(np.sum(single - np.minimum(together, single)))

    def radius(self, beta: float, high: float) -> float:
        """The least x with tail(x) <= beta, from above; `high` is one that suffices."""
        low = 0.0
        while high - low > 1e-3 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.tail(middle) <= beta else (middle, high)
        return high


def _both_above(z: Floats, correlation: Floats) -> Floats:
    """P(X > z, Y > z) for standard normal X, Y, from below: the integral up to z + 6 over P(Y > z | X)."""
    r = np.clip(correlation, 0.0, 1 - 1e-9)[:, None]
    u = z[:, None] + 3 * (_NODES + 1)
    density = np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)
    given = normal_above((z[:, None] - r * u) / np.sqrt(1 - r * r))
    inner = 3 * (density * given) @ _WEIGHTS
    return np.asarray(np.where(correlation > 0, inner * (1 - 1e-6), 0.0))
