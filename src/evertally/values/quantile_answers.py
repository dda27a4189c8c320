"""Prefix counts behind a released row, and everything that is read off them: post-processing, all of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.tails import Spread
from evertally.contract.parts import Accuracy, check_beta
from evertally.contract.release import Release
from evertally.encode.cells import Cells, shown
from evertally.errors import ConfigurationError
from evertally.values.isotonic import isotonic
from evertally.values.quantile_domains import Domain

FloatArray = NDArray[np.float64]

# Floats that transform a row are off by less than this, relative to the counts; an exact count must reach its target.
_SLACK = 1e-9


Counted = tuple[float, Accuracy]  # with its noise


@dataclass(frozen=True)
class Estimate:
    """A count with its noise: `value`, `stddev` (None where none is defined), and where the truth lies.

    `inner` and `outer` count what was surely asked for, and what perhaps was, where cells were asked for in part.
    """

    value: float
    stddev: float | None
    inner: Counted = field(repr=False, compare=False)
    outer: Counted = field(repr=False, compare=False)

    def interval(self, beta: float = 0.05) -> tuple[float, float]:
        """(lower, upper): the true count lies inside with probability at least 1 - beta."""
        check_beta(beta)
        (low, below), (high, above) = self.inner, self.outer
        return max(0.0, low - below.radius(beta)), max(0.0, high + above.radius(beta))


@dataclass(frozen=True)
class Curve:
    """How many values are at most each edge: `counts`, and a band that all of them lie in at once."""

    edges: FloatArray
    counts: FloatArray
    lower: FloatArray
    upper: FloatArray


class Foreign:
    """A combination of numbers of which nothing but a radius each is known."""

    stddev = None

    def __init__(self, each: Accuracy, columns: int, total: float) -> None:
        self._each, self._columns, self._total = each, columns, total

    def radius(self, beta: float) -> float:
        # Of noise that need not be symmetric each side may fail with all of it.
        return self._total * self._each.radius(beta / 2 / self._columns)


def combined(each: Accuracy, columns: int, energy: float, heaviest: float, total: float) -> Accuracy:
    """The accuracy of a weighted sum of the numbers of a row: their squared weights, the largest, the sum of all."""
    if not isinstance(each, Spread):
        return Foreign(each, columns, total)
    return Spread(
        each.law, each.variance * energy, each.proxy * energy, each.peak * heaviest, each.finest, each.roundings * total
    )


class Prefixes:
    """The counts up to each cell, from one row with noise."""

    def __init__(self, domain: Domain, cells: Cells, row: NDArray[np.int64], each: Accuracy) -> None:
        self.domain, self.cells = domain, cells
        self._row, self._each = row, each

    @cached_property
    def raw(self) -> FloatArray:
        """Unbiased, each with the noise of its weights."""
        return self.domain.prefixes(self._row)

    @cached_property
    def monotone(self) -> FloatArray:
        return np.maximum(isotonic(self.raw), 0.0)

    def quantile(self, q: float) -> int:
        """The smallest cell with at least a share q of the values in it and below."""
        counts = self.monotone
        target = q * counts[-1]
        reached = counts >= target - _SLACK * max(1.0, abs(target))
        return int(np.argmax(reached))

    def quantile_cells(self, q: float, beta: float) -> tuple[int, int]:
        """The first and last cell that the quantile may be in.

        It is in cell u if F(u) - q n >= 0 > F(u - 1) - q n. For the true u both hold for the noisy numbers too, up to a
        radius, except with probability beta/2 each (their noise is symmetric); all u for which they do are taken.
        """
        domain, raw = self.domain, self.raw
        excess = raw - q * raw[-1]
        energy = domain.energy - 2 * q * domain.with_total + q * q * domain.energy[-1]
        radius = self._radii(np.maximum(energy, 0.0), beta)
        possible = excess >= -radius
        possible[1:] &= excess[:-1] < radius[:-1]
        found = [*np.flatnonzero(possible).tolist(), self.quantile(q)]
        return min(found), max(found)

    def count(self, first: int, last: int) -> Counted:
        """How many values are in the cells first + 1 .. last, without bias."""
        if last <= first:
            return 0.0, Spread("gaussian", 0.0, 0.0, 0.0, math.inf)
        weights = self.domain.weights(last) - self.domain.weights(first)
        value = (float(self.raw[last]) if last >= 0 else 0.0) - (float(self.raw[first]) if first >= 0 else 0.0)
        return value, self._accuracy(weights)

    def band(self, beta: float) -> tuple[FloatArray, FloatArray]:
        """Where all prefix counts lie at once, except with probability beta: a union over cells, and their order."""
        radius = self._radii(self.domain.energy, beta / self.domain.cells)
        lower = np.maximum.accumulate(np.maximum(self.raw - radius, 0.0))
        upper = np.minimum.accumulate((self.raw + radius)[::-1])[::-1]
        return lower, np.maximum(upper, lower)

    def _accuracy(self, weights: FloatArray) -> Accuracy:
        sizes = np.abs(weights)
        return combined(
            self._each, self.domain.columns, float(weights @ weights), float(sizes.max()), float(sizes.sum())
        )

    def _radii(self, energy: FloatArray, beta: float) -> FloatArray:
        """Radii for F(u), or F(u) - q n, with these squared weights: the widest one; Gaussian ones in proportion."""
        most, total = float(energy.max()), 2 * self.domain.reach
        widest = combined(self._each, self.domain.columns, most, self.domain.heaviest, total).radius(beta)
        if isinstance(self._each, Spread) and self._each.law == "gaussian" and most > 0:
            # Radii are c + z sqrt(energy): rounding and the lattice do not shrink with the weights.
            return widest * np.sqrt(energy / most) + 0.5 * (1 + self._each.roundings * total)
        return np.full(energy.size, widest)


@dataclass(frozen=True)
class QuantileRelease(Release):
    """Quantiles, and whatever else prefix counts say: all from the same numbers with noise, so it costs nothing more.

    >>> import evertally as et
    >>> delays = et.ValueQuantile(edges=range(0, 101, 10), guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1))
    >>> release = delays.step(list(range(5, 105)) * 10)
    >>> release.value
    {0.5: 60.0, 0.95: 100.0, 0.99: 100.0}
    >>> low, high = release.at_most(30).interval()
    >>> low < 260 < high, round(release.between(30, 50).stddev, 1)
    (True, 2.7)
    >>> found, exact = release.cdf().counts, np.array([60, 160, 260, 360, 460, 560, 660, 760, 860, 1000])
    >>> bool(np.abs(found - exact).max() < 30)
    True
    """

    prefixes: Prefixes | None = field(default=None, repr=False, compare=False)

    def quantile(self, q: float) -> float:
        """The quantile of any other share, as those that are released."""
        return float(self._found().cells.upper[self._found().quantile(_share(q))])

    def quantile_interval(self, q: float, beta: float = 0.05) -> tuple[float, float]:
        """(lower, upper): the quantile of a share lies inside with probability at least 1 - beta."""
        check_beta(beta)
        found = self._found()
        first, last = found.quantile_cells(_share(q), beta)
        return float(found.cells.lower[first]), float(found.cells.upper[last])

    def cdf(self, beta: float = 0.05) -> Curve:
        """How many values are at most the upper edge of each cell, monotone, with a band that holds for all edges at
        once with probability at least 1 - beta. Divide by the last count for shares."""
        check_beta(beta)
        found = self._found()
        return Curve(found.cells.upper.copy(), found.monotone.copy(), *found.band(beta))

    def at_most(self, x: float) -> Estimate:
        """How many values are at most x. Between two edges the value is that of the lower one, and the interval covers
        what the cell of x may hold."""
        return self._between(None, x)

    def between(self, a: float, b: float) -> Estimate:
        """How many values are above a and at most b."""
        if not a < b:
            raise ConfigurationError("between(a, b) takes a < b")
        return self._between(a, b)

    def histogram(self, edges: Sequence[float] | None = None) -> dict[str, Estimate]:
        """How many values lie between neighbouring edges: those of the cells, or some of them."""
        found = self._found()
        if edges is None:
            cells = range(found.cells.count)
            counts = [found.count(u - 1, u) for u in cells]
            return {label: _estimate(c, c, c) for label, c in zip(found.cells.labels(), counts, strict=True)}
        bounds = [float(edge) for edge in edges]
        return {f"{shown(a)} to {shown(b)}": self.between(a, b) for a, b in pairwise(bounds)}

    def _between(self, a: float | None, b: float) -> Estimate:
        if any(not math.isfinite(x) for x in (b, *([] if a is None else [a]))):
            raise ConfigurationError("counts are asked for between finite numbers")
        found = self._found()
        (first, first_over), (last, last_over) = (-1, -1) if a is None else found.cells.at(a), found.cells.at(b)
        return _estimate(found.count(first, last), found.count(first_over, last), found.count(first, last_over))

    def _found(self) -> Prefixes:
        assert self.prefixes is not None
        return self.prefixes


def _share(q: float) -> float:
    if not 0 < q <= 1:
        raise ConfigurationError("a quantile is asked for by a share of the values above 0 and at most 1")
    return float(q)


def _estimate(counted: Counted, inner: Counted, outer: Counted) -> Estimate:
    return Estimate(counted[0], counted[1].stddev, inner, outer)
