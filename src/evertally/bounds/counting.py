"""Error of continual counting, by formula: what each process costs, and what no process can go below.

Units. Gaussian noise: standard deviations per 1/sqrt(2 rho). Laplace noise: per 1/epsilon. One event changes one tick's
total by at most 1; for a larger change multiply (factorization-counting 2.4). A released integer that was rounded has
1/12 more variance, in absolute numbers, which no formula here contains.

Nothing here calibrates noise. The processes compute their own scales, from exact integers and rounded up; these are
the numbers that they are compared with. Functions named `paper_*` reproduce published formulas that are wrong or loose
(factorization-counting 0) and serve display only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evertally.errors import ConfigurationError

FloatArray = NDArray[np.float64]

EULER_GAMMA = 0.5772156649015329
# S_T - ln(T)/pi rises to this limit (factorization-counting 2.2 [R]); the float is above the real number.
SQRT_CONSTANT = math.nextafter((EULER_GAMMA + 4 * math.log(2)) / math.pi, 2)

# Above these the expansions are exact to the last digit of a float, and sums would only take time.
_SUM_UNTIL = 1 << 12
_SERIES_FROM = 1 << 8


# -- the square-root factor (factorization-counting 2.1 and 2.2) ---------------------------------------------------------


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


def g_exact(k: int) -> Fraction:
    """The coefficients of (1 - z)^(1/2), the inverse factor: -f(k)/(2k - 1).

    >>> [str(g_exact(k)) for k in range(4)]
    ['1', '-1/2', '-1/8', '-1/16']
    """
    return -f_exact(k) / (2 * k - 1)


def coefficients(count: int) -> FloatArray:
    """f(0) .. f(count - 1), by a running product.

    >>> coefficients(3).tolist()
    [1.0, 0.5, 0.375]
    """
    k = np.arange(1, count, dtype=np.float64)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])[:count]


def S_exact(T: int) -> Fraction:  # noqa: N802 - the letter of the specification
    """S_T = f(0)^2 + ... + f(T-1)^2 as a fraction: for tests and small T.

    >>> S_exact(2)
    Fraction(5, 4)
    """
    return sum((f_exact(k) ** 2 for k in range(_horizon(T))), Fraction(0))


@lru_cache(maxsize=1024)
def S(T: int) -> float:  # noqa: N802
    """S_T to the precision of a float, for any T: the square of the norm of either square-root factor.

    >>> round(S(4096), 6), round(S(2**44), 6)
    (3.713884, 10.774242)
    """
    T = _horizon(T)
    return math.fsum(coefficients(T) ** 2) if T <= _SUM_UNTIL else S_expansion(T)


def S_expansion(T: int) -> float:  # noqa: N802
    """c0 + ln(T)/pi - 1/(4 pi T) + 5/(192 pi T^2) + 3/(128 pi T^3), off by O(T^-4).

    The terms after the third follow from S_{T+1} - S_T = f(T)^2. Not a bound: use `S_upper` for one.

    >>> abs(S_expansion(256) - S(256)) < 1e-11
    True
    """
    T = _horizon(T)
    return SQRT_CONSTANT + (math.log(T) - (1 / 4 - (5 / 192 + 3 / (128 * T)) / T) / T) / math.pi


def S_upper(T: int) -> float:  # noqa: N802
    """A proved upper bound, c0 + ln(T)/pi (factorization-counting 2.2 [R]), rounded up.

    >>> 0 < S_upper(4096) - S(4096) < 2e-5
    True
    """
    return (SQRT_CONSTANT + math.log(_horizon(T)) / math.pi) * (1 + 2**-50)


def S_mean(T: int) -> float:  # noqa: N802
    """(S_1 + ... + S_T)/T, the mean squared error of the square-root counter over S_T.

    With A = sum k f(k)^2 over k < T, the sum is T S_T - A; and k^2 f(k)^2 = (k - 1/2)^2 f(k-1)^2 telescopes to
    A = T^2 f(T)^2 - S_T/4.

    >>> S_mean(2) == (1 + 1.25) / 2
    True
    """
    return S(T) * (1 + 1 / (4 * T)) - T * f(T) ** 2


# -- the error of every process ------------------------------------------------------------------------------------------


class Formula:
    """The error of one process over the ticks 1..horizon, in its unit."""

    horizon: int

    def variance(self, t: int) -> float:
        """Squared error at tick t."""
        raise TypeError("Formula is what the formulas have in common; use one of its subclasses")

    def worst_tick(self) -> int:
        """The first tick with the largest variance."""
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
        # T itself, or T with one digit lowered and all later ones raised to r - 1. The smaller tick of equals.
        r, candidates = self.radix, [self.horizon]
        for i, digit in enumerate(_digits(self.horizon, r)):
            if digit:
                candidates.append((self.horizon // r**i) * r**i - 1)
        return max(sorted(t for t in candidates if t > 0), key=self.variance)

    def mean_variance(self) -> float:
        r, T = self.radix, self.horizon
        total, unit = 0, 1
        while unit <= T:  # the sum of one digit over 0..T: whole cycles, then the last one
            cycles, rest = divmod(T + 1, unit * r)
            digit, part = divmod(rest, unit)
            total += cycles * unit * r * (r - 1) // 2 + unit * digit * (digit - 1) // 2 + part * digit
            unit *= r
        return self._per_node() * total / T

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
        candidates = [T] + [(T >> h << h) - 1 for h in range(T.bit_length()) if T >> h & 1]
        return max(sorted(t for t in candidates if t > 0), key=self.variance)

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
    >>> epochs.worst_tick(), round(epochs.worst, 3), round(epochs.variance(65535), 1)
    (65534, 18.974, 136.0)
    """

    horizon: int
    pure: bool = False

    def variance(self, t: int) -> float:
        k = t.bit_length() - 1
        open_nodes = (t - 2**k + 1).bit_count()
        return sum(self._per_node(j) for j in range(k)) + self._per_node(k) * open_nodes

    def worst_tick(self) -> int:
        # Within an epoch the worst is that of its tree: all bits set, or the last ticks of an epoch cut by the horizon.
        T, ends = self.horizon, []
        k = T.bit_length() - 1
        for j in range(k):
            ends.append(2 ** (j + 1) - 2 if j else 1)
        s = T - 2**k + 1
        ends += [2**k - 1 + u for u in [s] + [(s >> h << h) - 1 for h in range(s.bit_length()) if s >> h & 1] if u > 0]
        return max(sorted(set(ends)), key=self.variance)

    def mean_variance(self) -> float:
        total = 0.0
        for k, length in _epochs(self.horizon):
            # the formula of a binary tree counts its own levels; ours has k + 1 whatever part of it is used
            nodes = TreeFormula(length).mean_variance() / length.bit_length()
            total += length * (sum(self._per_node(j) for j in range(k)) + self._per_node(k) * nodes)
        return total / self.horizon

    def _per_node(self, k: int) -> int:
        return 2 * (k + 1) ** 2 if self.pure else k + 1


@dataclass(frozen=True)
class EpochHybridFormula(Formula):
    """A square-root counter inside each epoch of 1, 2, 4, ... ticks and one over the totals of closed epochs.

    factorization-counting 10.1 [R]. With the share s of rho inside and 1 - s outside, tick t of epoch k has variance
    S_{2^k} S_{t - 2^k + 1}/s + S_K S_k/(1 - s), the second term from epoch 1 on. By default s : 1 - s = S_target : S_K,
    which makes the error at the end of an epoch of `target` ticks at most S_K + S_target. Epochs above 2^`sqrt_epochs`
    ticks use the tree of the best radix in place of the inner square root.

    >>> hybrid = EpochHybridFormula(2**17 - 1)
    >>> round(hybrid.worst, 3), round(hybrid.worst / S(2**16), 2)
    (6.585, 1.43)
    """

    horizon: int
    inner_share: float | None = None
    epochs: int = 32
    target: int = 2**16
    sqrt_epochs: int = 20

    def variance(self, t: int) -> float:
        k = t.bit_length() - 1
        return self._inner(k).variance(t - 2**k + 1) / self._share() + self._outer(k)

    def worst_tick(self) -> int:
        best, worst = 1, self.variance(1)
        for k, length in _epochs(self.horizon):
            inner = self._inner(k)
            last = inner.worst_tick() if length == 2**k else _worst_until(inner, length)
            if self.variance(t := 2**k - 1 + last) > worst:
                best, worst = t, self.variance(t)
        return best

    def mean_variance(self) -> float:
        total = 0.0
        for k, length in _epochs(self.horizon):
            inner = self._inner(k)
            if isinstance(inner, SqrtFormula):
                mean = S(2**k) * S_mean(length)
            else:
                levels = len(_digits(2**k, inner.radix))
                cut = TreeFormula(length, inner.radix)
                mean = cut.mean_variance() * levels / len(_digits(length, inner.radix))
            total += length * (mean / self._share() + self._outer(k))
        return total / self.horizon

    def _share(self) -> float:
        if self.inner_share is not None:
            return self.inner_share
        return S(self.target) / (S(self.target) + S(self.epochs))

    def _inner(self, k: int) -> SqrtFormula | TreeFormula:
        return SqrtFormula(2**k) if k <= self.sqrt_epochs else TreeFormula(2**k, best_radix(2**k))

    def _outer(self, k: int) -> float:
        return S(self.epochs) * S(k) / (1 - self._share()) if k else 0.0


@lru_cache(maxsize=128)
def best_radix(horizon: int, pure: bool = False) -> int:
    """The radix (up to 256) whose tree has the smallest worst error; the smaller one of equals.

    >>> best_radix(65536), best_radix(65536, pure=True)
    (4, 17)
    """
    largest = max(2, min(horizon, 256))
    return min(range(2, largest + 1), key=lambda r: _worst_variance(TreeFormula(horizon, r, pure)))


# -- what no factorization can go below (factorization-counting 7.1) -----------------------------------------------------


def mathias_lower(T: int) -> float:
    """Mathias' lower bound on the worst factor of any factorization, (1/2 + 1/(2T)) ghat(T).

    >>> round(mathias_lower(4096), 6)
    3.129653
    """
    return (0.5 + 0.5 / _horizon(T)) * _ghat(T)


def mathias_upper(T: int) -> float:
    """Mathias' upper bound on the least worst factor, ghat(T)/2 + 1/2.

    >>> round(mathias_upper(4096), 6)
    3.628889
    """
    return _ghat(T) / 2 + 0.5


def matousek_nikolov_talwar(T: int) -> float:
    """Another lower bound, (2 + ln((2T + 1)/3))/pi.

    >>> round(matousek_nikolov_talwar(65536), 4)
    4.0377
    """
    return (2 + math.log((2 * _horizon(T) + 1) / 3)) / math.pi


def lb(T: int) -> float:
    """The better of the two lower bounds: no mechanism with Gaussian noise on a factorization has a smaller worst error.

    For the T of its table, `frontier.optimal_factor` knows the least factor to six digits.

    >>> round(S(65536) / lb(65536), 3)
    1.138
    """
    return max(mathias_lower(T), matousek_nikolov_talwar(T))


@lru_cache(maxsize=256)
def _ghat(T: int) -> float:
    """(1/T) sum_j csc((2j - 1) pi/(2T)); beyond 2^12 its expansion, off by less than 1e-15."""
    if T <= _SUM_UNTIL:
        j = np.arange(1, T + 1, dtype=np.float64)
        return math.fsum(1 / np.sin((2 * j - 1) * (math.pi / (2 * T)))) / T
    return (2 / math.pi) * (math.log(T) + EULER_GAMMA + math.log(8 / math.pi)) + math.pi / (36 * T * T)


# -- published formulas, for display only --------------------------------------------------------------------------------


def paper_psi(T: int) -> float:
    """Psi(T) of the ICML 2023 paper, claimed to bound S_T. It does not, for any T >= 11 (E3): never calibrate with it.

    >>> S(10) < paper_psi(10), S(11) > paper_psi(11)
    (True, True)
    """
    return 1 - (1 - EULER_GAMMA) / math.pi + math.log(_horizon(T)) / math.pi + 2 / T


def paper_C(epsilon: float, delta: float) -> float:  # noqa: N802
    """C of the ICML 2023 paper. It contains the sqrt(2) of a tail bound, so it is no standard deviation (E5).

    >>> round(paper_C(0.8, 1e-10), 6)
    12.053139
    """
    if not (0 < epsilon < 1 and 0 < delta < 1):
        raise ConfigurationError("the paper's constant is for epsilon and delta between 0 and 1")
    return 2 / epsilon * math.sqrt(4 / 9 + math.log(math.sqrt(2 / math.pi) / delta))


# -- helpers -------------------------------------------------------------------------------------------------------------


def _horizon(T: int) -> int:
    if T < 1:
        raise ConfigurationError(f"a horizon has at least one tick; got {T}")
    return T


def _digits(t: int, radix: int) -> list[int]:
    """Digits in base `radix`, lowest first."""
    digits = [t % radix]
    while t := t // radix:
        digits.append(t % radix)
    return digits


def _refined(h: int) -> float:
    return 2.0**h / (2.0 ** (h + 1) - 1.0)


def _epochs(horizon: int) -> list[tuple[int, int]]:
    """(k, number of ticks of epoch k among 1..horizon)."""
    last = horizon.bit_length() - 1
    return [(k, min(2**k, horizon - 2**k + 1)) for k in range(last + 1)]


def _worst_until(formula: SqrtFormula | TreeFormula, length: int) -> int:
    if isinstance(formula, SqrtFormula):
        return length
    return TreeFormula(length, formula.radix).worst_tick()


def _worst_variance(formula: Formula) -> float:
    return formula.variance(formula.worst_tick())
