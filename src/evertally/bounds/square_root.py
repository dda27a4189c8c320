"""The square-root factor of the prefix-sum matrix: its coefficients f(k) = binom(2k, k)/4^k, and the square S_T of its
norm.

factorization-counting 2.1 and 2.2. These are reference numbers in floats; the square-root counter itself is calibrated
by the integers that it uses (counting/sqrt_factor.py), never by a float from here.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evertally.integers import whole

FloatArray = NDArray[np.float64]

EULER_GAMMA = 0.5772156649015329
# S_T - ln(T)/pi rises to this limit (factorization-counting 2.2 [R]); the float is above the real number.
SQRT_CONSTANT = math.nextafter((EULER_GAMMA + 4 * math.log(2)) / math.pi, 2)

# Above these the expansions are exact to the last digit of a float, and sums would only take time.
_SUM_UNTIL = 1 << 12


def coefficients(count: int) -> FloatArray:
    """f(0) .. f(count - 1), by a running product.

    >>> coefficients(3).tolist()
    [1.0, 0.5, 0.375]
    """
    k = np.arange(1, count, dtype=np.float64)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])[:count]


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

    The terms after the third follow from S_{T+1} - S_T = f(T)^2. Not a bound; c0 + ln(T)/pi is one.

    >>> abs(S_expansion(256) - S(256)) < 1e-11
    True
    """
    T = whole_horizon(T)
    return SQRT_CONSTANT + (math.log(T) - (1 / 4 - (5 / 192 + 3 / (128 * T)) / T) / T) / math.pi


def whole_horizon(T: int) -> int:
    """T, or an error if it is no horizon."""
    return whole("horizon", T, 1)
