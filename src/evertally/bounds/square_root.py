"""The square-root factor of the prefix-sum matrix: its coefficients f(k) and the square S_T of its norm.

factorization-counting 2.1 and 2.2. These are reference numbers in floats and fractions; the square-root counter itself
is calibrated by the integers that it uses (counting/sqrt_factor.py), never by a float from here.
"""

from __future__ import annotations

import math
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
_SERIES_FROM = 1 << 10


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
    return sum((f_exact(k) ** 2 for k in range(whole_horizon(T))), Fraction(0))


@lru_cache(maxsize=1024)
def S(T: int) -> float:  # noqa: N802
    """S_T to the precision of a float, for any T: the square of the norm of either square-root factor.

    >>> round(S(4096), 6), round(S(2**44), 6)
    (3.713884, 10.774242)
    """
    T = whole_horizon(T)
    return math.fsum(coefficients(T) ** 2) if T <= _SUM_UNTIL else S_expansion(T)


def S_expansion(T: int) -> float:  # noqa: N802
    """c0 + ln(T)/pi - 1/(4 pi T) + 5/(192 pi T^2) + 3/(128 pi T^3), off by O(T^-4).

    The terms after the third follow from S_{T+1} - S_T = f(T)^2. Not a bound: use `S_upper` for one.

    >>> abs(S_expansion(256) - S(256)) < 1e-11
    True
    """
    T = whole_horizon(T)
    return SQRT_CONSTANT + (math.log(T) - (1 / 4 - (5 / 192 + 3 / (128 * T)) / T) / T) / math.pi


def S_upper(T: int) -> float:  # noqa: N802
    """A proved upper bound, c0 + ln(T)/pi (factorization-counting 2.2 [R]), rounded up.

    >>> 0 < S_upper(4096) - S(4096) < 2e-5
    True
    """
    return (SQRT_CONSTANT + math.log(whole_horizon(T)) / math.pi) * (1 + 2**-50)


def S_mean(T: int) -> float:  # noqa: N802
    """(S_1 + ... + S_T)/T, the mean squared error of the square-root counter over S_T.

    With A = sum k f(k)^2 over k < T, the sum is T S_T - A; and k^2 f(k)^2 = (k - 1/2)^2 f(k-1)^2 telescopes to
    A = T^2 f(T)^2 - S_T/4.

    >>> S_mean(2) == (1 + 1.25) / 2
    True
    """
    return S(T) * (1 + 1 / (4 * T)) - T * f(T) ** 2


def whole_horizon(T: int) -> int:
    """T, or an error if it is no horizon."""
    if T < 1:
        raise ConfigurationError(f"a horizon has at least one tick; got {T}")
    return T
