"""Convolution by a fast Fourier transform whose error is bounded, not hoped for.

Library transforms come without a proved error bound, and a rounding decision needs one. This is the textbook radix-2
transform in float64 with twiddle factors from ball arithmetic, for which the bound below holds
(docs/theory/square-root-counter.md, section 4; the argument is Percival's).

Theorem. Let N = 2^n, u = 2^-53, and let every twiddle be within BETA of the true root of unity. The cyclic convolution
computed here differs from the true one in every entry by at most ||x|| ||y|| error_factor(n), with Euclidean norms and
    error_factor(n) = ((1 + u)(1 + sqrt(5) u)(1 + BETA))^(3n) (1 + sqrt(5) u) - 1.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from evertally.balls import certain

FloatArray = NDArray[np.float64]

_UNIT = 2.0**-53
_SHARP = 2.0**-70  # of the balls around roots of unity: rounded to floats they are within u of the truth
# A twiddle is the product of two table entries, each within u of its root: sqrt(5) u + 2 u and second-order terms.
BETA = 5 * _UNIT


def error_factor(n: int) -> float:
    """The factor of the theorem, rounded up: its logarithm, the exponential of it, and a part in 10^6 on top.

    >>> error_factor(21) < 6e-14
    True
    """
    exponent = 3 * n * (_UNIT + math.sqrt(5) * _UNIT + BETA) + math.sqrt(5) * _UNIT
    return math.expm1(exponent) * (1 + 1e-6)


def norm(x: FloatArray) -> float:
    """Euclidean norm, rounded up: the float sum of n squares is within n units of the true one."""
    return math.sqrt(float(np.dot(x, x))) * (1 + (x.size + 4) * _UNIT)


def convolve(x: FloatArray, y: FloatArray, start: int, stop: int) -> tuple[FloatArray, float]:
    """Entries start..stop-1 of the convolution of x and y, and a bound on the error of each.

    >>> values, radius = convolve(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 0, 3)
    >>> np.rint(values).tolist(), radius < 1e-13
    ([3.0, 10.0, 8.0], True)
    """
    return product_of(x, y)[start:stop], error_factor(_size(x, y)) * norm(x) * norm(y)


def product_of(x: FloatArray, y: FloatArray) -> FloatArray:
    """The convolution of x and y, and zeros, without a bound on its error."""
    return Spectrum(x, _size(x, y)).times(y, None)[0]


def _size(x: FloatArray, y: FloatArray) -> int:
    return max(1, (x.size + y.size - 2).bit_length())


class Spectrum:
    """The transform of one real vector, kept to be convolved with several others."""

    def __init__(self, x: FloatArray, n: int) -> None:
        self._x, self._n = x, n
        self._re = np.zeros(1 << n)
        self._im = np.zeros(1 << n)
        self._re[: x.size] = x
        _kernels().forward(self._re, self._im, *twiddles(n))

    @cached_property
    def norm(self) -> float:
        return norm(self._x)

    def times(self, y: FloatArray, z: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """The cyclic convolutions with y and with z, by one transform of y + iz; the bound is
        error_factor(n) * self.norm * norm of y + iz for both."""
        re, im = np.zeros(1 << self._n), np.zeros(1 << self._n)
        re[: y.size] = y
        if z is not None:
            im[: z.size] = z
        table = twiddles(self._n)
        kernels = _kernels()
        kernels.forward(re, im, *table)
        kernels.multiply(re, im, self._re, self._im)
        kernels.backward(re, im, *table)
        return re, im


@lru_cache(maxsize=3)
def twiddles(n: int) -> tuple[FloatArray, FloatArray]:
    """exp(-i pi k/h) at index h + k for k < h and h = 1, 2, 4, ..., N/2, as real and imaginary parts."""
    top = 1 << max(0, n - 1)
    low_bits = (n - 1) // 2 if n > 1 else 0
    low = 1 << low_bits

    def roots(steps: range) -> list[complex] | None:
        pairs = [arb.sin_cos_pi_fmpq(fmpq(k, top)) for k in steps]
        if any(part.rad() > _SHARP for pair in pairs for part in pair):
            return None
        return [complex(float(cosine), -float(sine)) for sine, cosine in pairs]

    fine = np.array(certain(lambda: roots(range(low)), 80))
    coarse = np.array(certain(lambda: roots(range(0, top, low)), 80))
    re, im = np.empty(2 * top), np.empty(2 * top)
    a, b, c, d = coarse.real[:, None], coarse.imag[:, None], fine.real[None, :], fine.imag[None, :]
    re[top:] = (a * c - b * d).ravel()
    im[top:] = (a * d + b * c).ravel()
    h = top // 2
    while h >= 1:
        re[h : 2 * h], im[h : 2 * h] = re[2 * h : 4 * h : 2], im[2 * h : 4 * h : 2]
        h //= 2
    return re, im


@lru_cache(maxsize=1)
def _kernels() -> Any:
    from evertally.counting import fourier_kernels

    return fourier_kernels
