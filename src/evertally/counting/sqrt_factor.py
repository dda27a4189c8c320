"""The integer square-root factor and its certified inverse: public numbers that depend on the horizon alone.

factorization-counting 2.1, 2.2 and 11. The prefix-sum matrix is L R, R Toeplitz with r_k = round(2^q f(k)),
f(k) = binom(2k, k)/4^k, and L Toeplitz with the power series l of 1/((1 - z) r(z)). R is an integer matrix, so noise
on R x can be integer noise; L is applied to what is already private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import arb, arb_series, fmpz
from numpy.typing import NDArray

from evertally.balls import decided, with_terms
from evertally.counting.fourier import FloatArray, Spectrum, convolve, error_factor, norm, product_of

GRID_BITS = 16  # q: the loss against the real factor is 3e-7 at T = 2^16 (factorization-counting 11, step 2)

_FIXED_POINT = 60


@dataclass(frozen=True)
class SqrtFactor:
    """r, the squared norm of R's largest column, and 2^q l as floats with a bound on their error.

    >>> factor = sqrt_factor(4)
    >>> factor.r.tolist(), factor.column_norm_squared
    ([65536, 32768, 24576, 20480], 6392119296)
    >>> factor.inverse.tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """

    r: NDArray[np.int64]
    column_norm_squared: int
    inverse: FloatArray
    inverse_error: float  # Euclidean norm of (inverse - truth), at most
    bits: int  # q
    tail: float = 0.0  # what the terms of 2^q l beyond `inverse` add up to at most, in absolute values
    unit: int = 1  # sums come in parts of a whole: see `rounded`

    @property
    def roundings(self) -> int:
        """How often what is released was rounded."""
        return 1

    def rounded(self, z: NDArray[np.int64], rest: int = 0, cut: bool = False) -> int | None:
        """floor(e + rest/unit + 1/2) for the estimate e after all draws so far, however close to a tie. `cut`: they are
        as many of the last draws as `inverse` has terms; None if that leaves it open."""
        assert rest == 0, "running totals of integers are integers"
        assert not cut, "no draw of a running total is ever forgotten"
        return exact_rounding(z)


def coefficients(horizon: int) -> NDArray[np.int64]:
    """r_0..r_{T-1}. Any fixed integers would do for privacy, as long as the norm is that of the integers used;
    a running product of correctly rounded quotients is the same on every IEEE machine."""
    k = np.arange(1, horizon, dtype=np.float64)
    f = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    r: NDArray[np.int64] = np.floor(f * 2**GRID_BITS + 0.5).astype(np.int64)
    return r


@lru_cache(maxsize=24)
def sqrt_factor(horizon: int) -> SqrtFactor:
    """The factor of a horizon, built once: O(T log T)."""
    r = coefficients(horizon)
    approximate = np.cumsum(approximate_inverse(r / 2.0**GRID_BITS))
    inverse, error = certified_inverse(np.diff(r, prepend=0), approximate)
    # Squares of at most 2^32, fewer than 2^30 of them: 64 bits hold the sum.
    return SqrtFactor(r, int(np.dot(r, r)), inverse, error, GRID_BITS)


def approximate_inverse(r: FloatArray) -> FloatArray:
    """The series of 1/r(z) by Newton's iteration in floats. No claim of accuracy is made here."""
    T = r.size
    g = np.array([1.0 / r[0]])
    while g.size < T:
        size = min(2 * g.size, T)
        product = product_of(g, r[:size])[:size]
        correction = product_of(g, product[g.size :])[: size - g.size]
        g = np.concatenate([g, -correction])
    return g


def certified_inverse(divisor: NDArray[np.int64], approximate: FloatArray) -> tuple[FloatArray, float]:
    """The series of 2^q/s for an integer series s that begins with 2^q, and the norm of its error.

    With an approximation h on the grid 2^-60 and e = 1 - s h / 2^q, the truth is h/(1 - e) = h + h e + ...
    The residual e is computed *exactly*: h is cut into limbs so short that the bounded error of the convolution is
    below 1/2, and the limbs' integer results are put together modulo 2^64. Then h e by a bounded convolution, and
    the rest of the series is at most ||h e|| ||e|| / (1 - ||e||_1) in every entry.
    """
    T = divisor.size
    h = np.rint(approximate * 2.0**_FIXED_POINT).astype(np.int64)
    n = max(1, (2 * T - 2).bit_length())
    spectrum = Spectrum(divisor.astype(np.float64), n)

    # A limb of w bits has entries of at most 2^(w-1): choose w so that the bound on the error is below 1/4 for two of
    # them in one transform.
    w = 15
    while error_factor(n) * spectrum.norm * 2.0 ** (w - 1) * math.sqrt(2 * T) > 0.25:
        w -= 1
        if w < 3:  # shorter limbs would never end
            raise _too_far_off()
    residual = np.zeros(T, dtype=np.uint64)
    residual[0] = np.uint64((1 << (GRID_BITS + _FIXED_POINT)) % 2**64)
    rest, shift = h, 0
    while rest.any():
        limb, rest = _limb(rest, w)
        other, rest = _limb(rest, w)
        for product in spectrum.times(limb.astype(np.float64), other.astype(np.float64)):
            if shift < 64:
                residual -= np.rint(product[:T]).astype(np.int64).astype(np.uint64) << np.uint64(shift)
            shift += w
    # The residual is a small signed number; modulo 2^64 it is exact if it is below 2^63, which floats can tell:
    hf = h / 2.0**_FIXED_POINT
    estimate = spectrum.times(hf, None)[0][:T] / 2.0**GRID_BITS
    estimate[0] -= 1.0
    slack = error_factor(n) * spectrum.norm * norm(hf) / 2.0**GRID_BITS * (1 + 1e-6)
    if not (np.max(np.abs(estimate)) + slack) * 2.0 ** (GRID_BITS + _FIXED_POINT) < 2.0**62:
        raise _too_far_off()
    e = residual.astype(np.int64) / 2.0 ** (GRID_BITS + _FIXED_POINT)
    correction, correction_error = convolve(hf, e, 0, T)
    correction_error *= 1.2  # both factors were rounded to floats: 2 u against the bound's 27 u and more
    inverse = hf + correction
    l1 = float(np.sum(np.abs(e))) * (1 + 1e-6)
    if not l1 < 0.5:
        raise _too_far_off()
    entry = correction_error + (norm(correction) + math.sqrt(T) * correction_error) * norm(e) / (1 - l1)
    # conversions and the last addition: three roundings of numbers that are at most twice the result
    return inverse, (math.sqrt(T) * entry + 6 * 2.0**-53 * norm(inverse)) * (1 + 1e-6)


def _limb(h: NDArray[np.int64], w: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(limb, rest): h = limb + rest 2^w, a limb of w bits with its sign."""
    limb = ((h + (1 << (w - 1))) & ((1 << w) - 1)) - (1 << (w - 1))
    return limb, (h - limb) >> w


def _too_far_off() -> ArithmeticError:
    return ArithmeticError("the approximate inverse is too far off to be certified; please report the horizon")


def exact_rounding(z: NDArray[np.int64]) -> int:
    """floor(e + 1/2) for e = sum_i l_{t-i} Z_i, t = len(z), however close to a tie."""
    return rounded_quotient(z, [int(x) for x in np.diff(coefficients(z.size), prepend=0)])


def rounded_quotient(z: NDArray[np.int64], series: list[int], rest: int = 0, unit: int = 1) -> int:
    """floor((e + rest)/unit + 1/2) for the last coefficient e of Z divided by an integer power series s, s_0 > 0.

    e is a multiple of s_0^(-t), t = len(z): if a ball of growing precision never excludes the boundary, it will at last
    isolate that multiple, ties included.
    """
    bits = 128
    while (rounded := _rounded(z, series, rest, unit, 0.0, bits)) is None:
        bits *= 2
    return rounded


def rounded_within(z: NDArray[np.int64], series: list[int], rest: int, unit: int, off: float) -> int | None:
    """The same where e is known up to `off`, if that decides it."""
    return _rounded(z, series, rest, unit, off, 160)


def _rounded(z: NDArray[np.int64], series: list[int], rest: int, unit: int, off: float, bits: int) -> int | None:
    return with_terms(z.size, lambda: decided(lambda: _by_balls(z, series, rest, unit, off), bits))


def _by_balls(z: NDArray[np.int64], divisor: list[int], rest: int, unit: int, off: float) -> int | None:
    t = z.size
    quotient = 1 / arb_series(divisor[:t], prec=t)
    if quotient.prec < t:  # code outside this library has changed the length of series meanwhile
        return None
    # What is left out at the end is zero exactly.
    e = sum((weight * int(z[t - 1 - k]) for k, weight in enumerate(quotient.coeffs()) if k < t), arb(0))
    if off:
        e += arb(0, off)
    rounded = ((e + rest) / unit + arb(1) / 2).floor().unique_fmpz()
    if rounded is not None:
        return int(rounded)
    if off:
        return None
    whole = fmpz(divisor[0]) ** t
    exact = (e * whole).unique_fmpz()
    if exact is None:
        return None
    return int((2 * exact + (2 * rest + unit) * whole) // (2 * unit * whole))
