"""The square-root factor in fractions, and the proved bound of its norm: factorization-counting 2.1 and 2.2."""

from __future__ import annotations

import math
from fractions import Fraction

from benchmarks.formulas import f_exact

from evertally.bounds.square_root import SQRT_CONSTANT, whole_horizon


def g_exact(k: int) -> Fraction:
    """The coefficients of (1 - z)^(1/2), the inverse factor: -f(k)/(2k - 1).

    >>> [str(g_exact(k)) for k in range(4)]
    ['1', '-1/2', '-1/8', '-1/16']
    """
    return -f_exact(k) / (2 * k - 1)


def S_exact(T: int) -> Fraction:
    """S_T = f(0)^2 + ... + f(T-1)^2 as a fraction: for tests and small T.

    >>> S_exact(2)
    Fraction(5, 4)
    """
    return sum((f_exact(k) ** 2 for k in range(whole_horizon(T))), Fraction(0))


def S_upper(T: int) -> float:
    """A proved upper bound, c0 + ln(T)/pi (factorization-counting 2.2 [R]), rounded up.

    >>> from evertally.bounds.square_root import S
    >>> 0 < S_upper(4096) - S(4096) < 2e-5
    True
    """
    return (SQRT_CONSTANT + math.log(whole_horizon(T)) / math.pi) * (1 + 2**-50)
