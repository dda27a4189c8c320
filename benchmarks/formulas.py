"""The error of every counting process, by formula.

Units. Gaussian noise: standard deviations per 1/sqrt(2 rho). Laplace noise: per 1/epsilon. One event changes one tick's
total by at most 1; for a larger change multiply (factorization-counting 2.4). A released number that was rounded to an
integer has 1/12 more variance, in absolute terms, which no formula here contains.

Nothing here calibrates noise: the processes compute their own scales, from exact integers and rounded up. These are
the numbers that they are compared with.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from evertally.bounds.square_root import S
from evertally.errors import ConfigurationError

_SERIES_FROM = 1 << 10


class Formula(ABC):
    """The error of one process over the ticks 1..horizon, in its unit."""

    horizon: int

    @abstractmethod
    def variance(self, t: int) -> float:
        """Squared error at tick t."""

    def worst_tick(self) -> int:
        """A tick with the largest variance."""
        return max(range(1, self.horizon + 1), key=self.variance)

    def mean_variance(self) -> float:
        """Mean of the variance over all ticks."""
        return math.fsum(self.variance(t) for t in range(1, self.horizon + 1)) / self.horizon

    def stddev(self, t: int) -> float:
        """Standard deviation at tick t."""
        return math.sqrt(self.variance(t))

    @property
    def worst(self) -> float:
        """The largest standard deviation."""
        return math.sqrt(self.variance(self.worst_tick()))

    @property
    def rms(self) -> float:
        """The root of the mean variance over all ticks."""
        return math.sqrt(self.mean_variance())


@dataclass(frozen=True)
class TreeFormula(Formula):
    """The tree of radix r: digitsum(t) nodes make a prefix, an event lies in L = (digits of T) of them.

    streaming-selection 3.3, price-of-continual-release 3.2; factorization-counting 8.1 for r = 2.
    Gaussian: variance L digitsum(t). Laplace: 2 L^2 digitsum(t).

    >>> tree = TreeFormula(4096, radix=2)
    >>> round(tree.worst, 4), round(tree.rms, 4), tree.worst_tick()
    (12.49, 8.8319, 4095)
    >>> round(TreeFormula(4096, radix=17, pure=True).worst ** 2)
    810
    """

    horizon: int
    radix: int = 2
    pure: bool = False

    def variance(self, t: int) -> float:
        return self._per_node() * sum(_digits(t, self.radix))

    def worst_tick(self) -> int:
        return _largest_digit_sum(self.horizon, self.radix)

    def mean_variance(self) -> float:
        return self._per_node() * _mean_digit_sum(self.horizon, self.radix)

    def _per_node(self) -> int:
        L = len(_digits(self.horizon, self.radix))
        return 2 * L * L if self.pure else L


@dataclass(frozen=True)
class HonakerFormula(Formula):
    """The binary tree with causal refinement: a bit h of t adds 2^h/(2^(h+1) - 1) of a node's variance.

    factorization-counting 8.3.

    >>> refined = HonakerFormula(65536)
    >>> round(refined.worst, 3), round(refined.rms, 3)
    (12.233, 8.65)
    """

    horizon: int
    pure: bool = False

    def variance(self, t: int) -> float:
        return self._per_node() * math.fsum(_refined(h) for h in range(t.bit_length()) if t >> h & 1)

    def worst_tick(self) -> int:
        T = self.horizon
        lowered = [(T >> h << h) - 1 for h in range(T.bit_length()) if T >> h & 1]
        return max([T, *(t for t in lowered if t > 0)], key=self.variance)

    def mean_variance(self) -> float:
        total, T = 0.0, self.horizon
        for h in range(T.bit_length()):
            cycles, rest = divmod(T + 1, 2 << h)
            total += _refined(h) * ((cycles << h) + max(0, rest - (1 << h)))
        return self._per_node() * total / T

    def _per_node(self) -> int:
        L = self.horizon.bit_length()
        return 2 * L * L if self.pure else L


@dataclass(frozen=True)
class SqrtFormula(Formula):
    """The square-root counter: variance S_T S_t, worst at the end (factorization-counting 4).

    >>> root = SqrtFormula(4096)
    >>> round(root.worst, 4), round(root.rms, 4)
    (3.7139, 3.5513)
    """

    horizon: int

    def variance(self, t: int) -> float:
        return S(self.horizon) * S(t)

    def worst_tick(self) -> int:
        return self.horizon

    def mean_variance(self) -> float:
        return S(self.horizon) * S_mean(self.horizon)


@dataclass(frozen=True)
class EpochTreeFormula(Formula):
    """Binary trees over epochs of 1, 2, 4, ... ticks; the last noise of every closed epoch stays.

    price-of-continual-release 9.1. Tick t lies in epoch k = floor(log2 t). A closed epoch j adds one node of a tree
    with j + 1 levels; the open one has popcount(t - 2^k + 1) nodes of a tree with k + 1 levels. `horizon` is how far we
    look; the process itself has none.

    >>> epochs = EpochTreeFormula(65535)
    >>> epochs.worst_tick(), round(epochs.worst, 3), epochs.variance(65535)
    (65534, 18.974, 136)
    """

    horizon: int
    pure: bool = False

    def variance(self, t: int) -> float:
        k = t.bit_length() - 1
        open_nodes = (t - (1 << k) + 1).bit_count()
        return sum(self._per_node(j) for j in range(k)) + self._per_node(k) * open_nodes

    def worst_tick(self) -> int:
        ends = [(1 << k) - 1 + _largest_digit_sum(length, 2) for k, length in _epochs(self.horizon)]
        return max(ends, key=self.variance)

    def mean_variance(self) -> float:
        total = 0.0
        for k, length in _epochs(self.horizon):
            nodes = _mean_digit_sum(length, 2)
            total += length * (sum(self._per_node(j) for j in range(k)) + self._per_node(k) * nodes)
        return total / self.horizon

    def _per_node(self, k: int) -> int:
        return 2 * (k + 1) ** 2 if self.pure else k + 1


@lru_cache(maxsize=128)
def best_radix(horizon: int, pure: bool = False) -> int:
    """The radix (up to 256) whose tree has the smallest worst error; the smaller one of equals.

    >>> best_radix(65536), best_radix(65536, pure=True)
    (5, 17)
    """

    def worst(r: int) -> float:
        tree = TreeFormula(horizon, r, pure)
        return tree.variance(tree.worst_tick())

    return min(range(2, max(2, min(horizon, 256)) + 1), key=worst)


def _digits(t: int, radix: int) -> list[int]:
    """Digits in base `radix`, lowest first."""
    digits = [t % radix]
    while t := t // radix:
        digits.append(t % radix)
    return digits


def _largest_digit_sum(T: int, r: int) -> int:
    """A tick t <= T with the largest digit sum: T, or T with one digit lowered and all later ones raised to r - 1."""
    lowered = [int(T - T % r**i - 1) for i, digit in enumerate(_digits(T, r)) if digit]
    return max([T, *(t for t in lowered if t > 0)], key=lambda t: sum(_digits(t, r)))


def _mean_digit_sum(T: int, r: int) -> float:
    """Mean digit sum of 1..T."""
    total, unit = 0, 1
    while unit <= T:  # one digit over 0..T: it runs through whole cycles, then through a part of the last
        cycles, rest = divmod(T + 1, unit * r)
        digit, part = divmod(rest, unit)
        total += unit * (cycles * r * (r - 1) + digit * (digit - 1)) // 2 + part * digit
        unit *= r
    return total / T


def _refined(h: int) -> float:
    return 2.0**h / (2.0 ** (h + 1) - 1.0)


def _epochs(horizon: int) -> list[tuple[int, int]]:
    """(k, number of ticks of epoch k among 1..horizon)."""
    last = horizon.bit_length() - 1
    return [(k, min(2**k, horizon - 2**k + 1)) for k in range(last + 1)]


def f(k: int) -> float:
    """f(k) = binom(2k, k)/4^k, the k-th coefficient of (1 - z)^(-1/2).

    >>> [f(k) for k in range(4)], round(f(10**6), 12)
    ([1.0, 0.5, 0.375, 0.3125], 0.000564189513)
    """
    if k < _SERIES_FROM:
        return float(f_exact(k))
    # A quotient of float Gamma functions would lose eight digits here.
    series = 1 - (1 - (1 + (5 - 21 / (32 * k)) / (8 * k)) / (16 * k)) / (8 * k)
    return series / math.sqrt(math.pi * k)


def f_exact(k: int) -> Fraction:
    """f(k) as a fraction.

    >>> f_exact(7)
    Fraction(429, 2048)
    """
    if k < 0:
        raise ConfigurationError(f"coefficients are numbered from 0; got {k}")
    return Fraction(math.comb(2 * k, k), 4**k)


def S_mean(T: int) -> float:  # noqa: N802
    """(S_1 + ... + S_T)/T, the mean squared error of the square-root counter over S_T.

    With A = sum k f(k)^2 over k < T, the sum is T S_T - A; and k^2 f(k)^2 = (k - 1/2)^2 f(k-1)^2 telescopes to
    A = T^2 f(T)^2 - S_T/4.

    >>> S_mean(2) == (1 + 1.25) / 2
    True
    """
    return S(T) * (1 + 1 / (4 * T)) - T * f(T) ** 2
