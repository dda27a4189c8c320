"""Integer factors of workloads that weigh inputs by their age: public numbers that workload and horizon decide.

factorization-counting 6.10, 2.4 and 11. The workload is A/D, A lower-triangular Toeplitz with integers a_k. R is
Toeplitz with r_k = round(2^q c_k), c the power-series root of A/a_0, and L the series of (A/D)/r. R is an integer
matrix, so noise on R x can be integer noise, calibrated by the norm of the integers used; L is applied to what is
already private. How good the root is decides the error alone. Without a horizon R must end: additions 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import fmpz_poly
from numpy.typing import NDArray

from evertally.counting.fourier import FloatArray, convolve, norm
from evertally.counting.sqrt_factor import (
    GRID_BITS,
    SqrtFactor,
    approximate_inverse,
    certified_inverse,
    rounded_quotient,
    rounded_within,
)
from evertally.counting.workloads import ByAge, Decay, Series, Window
from evertally.errors import ConfigurationError

LONGEST = 2**22
_MOST_WORK = 2**30
# Without a horizon: what draws beyond the reach of the inverse move the path by at most, were they as large as any
# 64-bit integer. Few ticks are that close to a tie.
_TAIL = 2.0**-36
_SQUARE = 1e-9
_LARGEST_COEFFICIENT = 64.0  # of a root that begins with 1: larger ones only grow


@dataclass(frozen=True)
class ToeplitzFactor(SqrtFactor):
    """The factor of a workload. `l1` is the sum of |r_k|, `falls` says that 0 <= ... <= r_1 <= r_0.

    >>> factor = root_factor(Window(2), 4)
    >>> factor.r.tolist(), factor.falls  # the root of 1 + z
    ([65536, 32768, -8192, 4096], False)
    >>> factor.column_norm_squared == sum(x * x for x in factor.r.tolist())
    True
    """

    weights: tuple[int, ...] = ()  # a

    @property
    def l1(self) -> int:
        return sum(abs(int(x)) for x in self.r)

    @property
    def falls(self) -> bool:
        return bool(np.all(np.diff(self.r, append=0) <= 0))

    @property
    def roundings(self) -> int:
        return 0 if self.bits == 0 and self.unit == 1 else 1  # integer weights of integer draws need none

    def rounded(self, z: NDArray[np.int64], rest: int = 0, cut: bool = False) -> int | None:
        top = self._numerator(z)
        if cut and self.tail:  # without a horizon the last draws decide nearly always
            off = self.tail * 2.0 ** (63 - self.bits) * self.unit
            return rounded_within(top, self.r.tolist(), rest, self.unit, off)
        divisor = [int(x) for x in self.r[: z.size]]
        if not any(divisor[1:]):  # noise on single inputs: no series to divide by
            scale = divisor[0]
            return int((2 * top[-1] + (2 * rest + self.unit) * scale) // (2 * self.unit * scale))
        return rounded_quotient(top, divisor, rest, self.unit)

    def _numerator(self, z: NDArray[np.int64]) -> NDArray[np.int64]:
        """A Z, in integers of any size."""
        drawn = fmpz_poly([int(x) for x in z]) * fmpz_poly(list(self.weights[: z.size]))
        return np.array([int(drawn[k]) for k in range(z.size)], dtype=object)


@lru_cache(maxsize=16)
def input_factor(workload: ByAge, horizon: int | None) -> ToeplitzFactor:
    """R = 1: noise on the inputs themselves, whose sums are released."""
    series = workload.series()
    weights = np.array(series.weights[:horizon], dtype=np.float64) / series.unit
    one = np.ones(1, dtype=np.int64)
    return ToeplitzFactor(one, 1, weights, norm(weights) * 2.0**-52, 0, 0.0, series.unit, series.weights)


@lru_cache(maxsize=16)
def root_factor(workload: ByAge, horizon: int | None) -> ToeplitzFactor:
    """The square-root factor, built once; refused where its error would be without bound, or nobody knows it."""
    if horizon is not None and isinstance(workload, Decay) and _outlived(workload, horizon):
        return root_factor(workload, None)
    if horizon is not None and horizon > LONGEST:
        raise ConfigurationError(f'mechanism "root" takes horizons up to {LONGEST}; use "input"')
    series = workload.series()
    tail = 0.0
    if horizon is None:
        r = _endless_coefficients(workload)
        terms, tail = _reach(workload, series, r.size)
        r = np.concatenate([r, np.zeros(max(0, terms - r.size), dtype=np.int64)])
    else:
        terms, r = horizon, _coefficients(workload, series, horizon)
    divisor = r[:terms]
    approximate = approximate_inverse(divisor / 2.0**GRID_BITS)
    if not float(np.max(np.abs(approximate))) < 4.0:
        raise _grows()
    try:
        reciprocal, error = certified_inverse(divisor, approximate)
    except ArithmeticError:
        raise _grows() from None
    weights = np.array(series.weights[:terms], dtype=np.float64) / series.unit
    inverse, each = convolve(reciprocal, weights, 0, terms)
    # Young's inequality for the error of the reciprocal; the weights are one rounding off.
    off = float(np.sum(np.abs(weights))) * (error + 2.0**-52 * norm(reciprocal)) + math.sqrt(terms) * each
    N = sum(int(x) ** 2 for x in r)
    return ToeplitzFactor(r, N, inverse, off * (1 + 1e-6), GRID_BITS, tail, series.unit, series.weights)


def _outlived(workload: Decay, horizon: int) -> bool:
    """Whether the stream is longer than all that matters of its factor; what is left is zero, or as good as that."""
    try:
        return _reach(workload, workload.series(), _endless_coefficients(workload).size)[0] <= horizon
    except ConfigurationError:
        return False


def _coefficients(workload: ByAge, series: Series, terms: int) -> NDArray[np.int64]:
    """r_0..r_(T-1). Any fixed integers would do for privacy; operations that are correctly rounded, in a fixed order,
    make them the same on every IEEE machine."""
    if isinstance(workload, Decay):
        c = _decaying(workload, terms)
    elif isinstance(workload, Window):
        c = _window_root(workload.ticks, terms)
    else:
        c = _polynomial_root(series.weights, terms)
    return _on_the_grid(c)


def _on_the_grid(c: FloatArray) -> NDArray[np.int64]:
    if not float(np.max(np.abs(c))) < _LARGEST_COEFFICIENT:
        raise _grows()
    r: NDArray[np.int64] = np.floor(c * 2**GRID_BITS + 0.5).astype(np.int64)
    return r


def _root_of_prefix_sums(terms: int) -> FloatArray:
    k = np.arange(1, terms, dtype=np.float64)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


def _decaying(workload: Decay, terms: int) -> FloatArray:
    k = np.arange(1, terms, dtype=np.float64)
    factor = workload.factor.numerator / workload.factor.denominator
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k) * factor)])


def _window_root(window: int, terms: int) -> FloatArray:
    """f convolved with the root of 1 - z^W, whose terms are W apart."""
    if terms * terms // window > _MOST_WORK:
        raise ConfigurationError(
            'mechanism "root" takes too long for a window so short and a horizon so long; use "sqrt" or "tree"'
        )
    f = _root_of_prefix_sums(terms)
    c = f.copy()
    for i, start in enumerate(range(window, terms, window), 1):
        c[start:] -= f[i] / (2 * i - 1) * f[: terms - start]
    return c


def _polynomial_root(weights: tuple[int, ...], terms: int) -> FloatArray:
    """The series of (A/a_0)^(1/2), by k c_k = sum_j (3j/2 - k) (a_j/a_0) c_(k-j); its square is checked."""
    if terms * len(weights) > 2**26:
        raise ConfigurationError(
            'mechanism "root" takes too long for so many coefficients and so long a horizon; use "input"'
        )
    a = np.array(weights[1:], dtype=np.float64) / float(weights[0])
    j = np.arange(1, len(weights), dtype=np.float64)
    c = np.zeros(terms)
    c[0] = 1.0
    for k in range(1, terms):
        m = min(k, a.size)
        # fsum is correctly rounded, so that the order in which a machine adds does not matter
        c[k] = math.fsum(((1.5 * j[:m] - k) * a[:m] * c[k - m : k][::-1]).tolist()) / k
        if not abs(c[k]) < _LARGEST_COEFFICIENT:
            raise _grows()
    square, _ = convolve(c, c, 0, terms)
    wanted = np.zeros(terms)
    wanted[: 1 + a.size] = np.concatenate([[1.0], a])[:terms]
    if not float(np.max(np.abs(square - wanted))) <= _SQUARE * max(1.0, float(np.max(np.abs(wanted)))):
        raise _grows()
    return c


def _endless_coefficients(workload: ByAge) -> NDArray[np.int64]:
    """r until it is zero for ever: only a decay has such a factor with an inverse that dies out."""
    if not isinstance(workload, Decay):
        raise ConfigurationError('mechanism "root" needs a horizon for this workload; only a decay does without one')
    terms = 64
    while (r := _coefficients(workload, workload.series(), terms))[-1] != 0:
        terms *= 2
    ends: int = int(np.flatnonzero(r)[-1]) + 1
    return r[:ends]


def _reach(workload: ByAge, series: Series, K: int) -> tuple[int, float]:
    """How many terms of 2^q l are needed, and what all later ones add up to at most (additions 11).

    In the norm ||h|| = sum |h_k| p^k, 1 < p < 1/lam, the root of 1 - lam z is at most 2, and r is off by d with ||d||
    as below. If e = 2 ||d|| <= 1/2, then ||2^q/r|| <= 2/(1 - e) <= 4 and ||2^q l|| <= 4 ||A/D||. Floats with a part in
    a thousand on top: every term is positive, and a few roundings off.
    """
    assert isinstance(workload, Decay)
    lam = workload.factor.numerator / workload.factor.denominator
    a = np.array(series.weights, dtype=np.float64) / series.unit
    for eighths in (4, 3, 2, 1):
        p = math.exp(-math.log(lam) * eighths / 8)
        grown = p**K
        rounding = 2.0 ** (-GRID_BITS - 1) * (grown - 1) / (p - 1)
        cut = (lam * p) ** K / math.sqrt(math.pi * K) / (1 - lam * p)
        if 2 * (rounding + cut) * 1.001 <= 0.5:
            size = 4 * float(np.sum(a * p ** np.arange(a.size))) * 1.001
            wanted = _TAIL * 2.0 ** (GRID_BITS - 63)
            terms = max(K, series_length(size / wanted, p), len(series.weights))
            if terms <= LONGEST:
                return terms, size * p ** (-terms) * 1.001
    raise ConfigurationError(
        'mechanism "root" needs a horizon for a decay so slow: its inverse could not be proved to die out'
    )


def series_length(ratio: float, p: float) -> int:
    """The least n with p^n >= ratio, and one on top for the roundings."""
    return math.ceil(math.log(ratio) / math.log(p)) + 1


def _grows() -> ConfigurationError:
    return ConfigurationError(
        'mechanism "root" does not fit: the root of these coefficients, or its inverse, grows for ever; use "input"'
    )
