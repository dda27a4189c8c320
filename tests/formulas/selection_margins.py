"""Margins of UnkGauss and sparseGumb in the letters of streaming-selection 3.3, 4.3 and 6.3."""

from __future__ import annotations

import math

from evertally.bounds.selection import L
from evertally.theory.selection import Tail, _quantile


def best_radix_formula(T: int) -> int:
    """r* = argmin (r - 1) L^2 (3.3), the smaller one of equals. `best_radix` uses the true digit sums.

    >>> [best_radix_formula(T) for T in (100, 1000, 1024, 10**9)]
    [5, 4, 6, 4]
    """
    best, r = 2, 3
    while r <= T and r - 1 < (best - 1) * L(T, best) ** 2:  # L >= 1: no larger radix can win
        if (r - 1) * L(T, r) ** 2 < (best - 1) * L(T, best) ** 2:
            best = r
        r += 1
    return best


def unk_gauss_margin(*, tau: float, delta: float, tail: Tail = "gaussian") -> float:
    """UnkGauss: how far the noisy threshold lies above h_(kbar+1) + 1 (4.3; 10.4 for `tail="chernoff"`).

    >>> round(unk_gauss_margin(tau=1, delta=0.05), 5), round(unk_gauss_margin(tau=1, delta=0.05, tail="chernoff"), 5)
    (2.32617, 3.46164)
    """
    return math.sqrt(2) * tau * _quantile(delta, tail)


def alpha_1(d: int, s: int, *, tau: float, beta: float) -> float:
    """How far behind the largest a selected item may be: tau2 ln(3d/beta), tau2 = sqrt(s + 1) tau (6.3).

    >>> round(alpha_1(100, 5, tau=math.sqrt(6), beta=0.05))
    52
    """
    return math.sqrt(s + 1) * tau * math.log(3 * d / beta)


def alpha_BM(T: int, r: int, s: int, *, tau: float, beta: float) -> float:
    """How far all counts of one selected item may be off: tau L sqrt(2 (s + 1)(r - 1) ln(6T/beta)) (6.3).

    >>> round(alpha_BM(1000, 4, 5, tau=math.sqrt(6), beta=0.05))
    251
    """
    return tau * L(T, r) * math.sqrt(2 * (s + 1) * (r - 1) * math.log(6 * T / beta))


def alpha_AT(T: int, d: int, s: int, *, tau: float, beta: float) -> float:
    """How far the tests of the sparse vector may be off: 8 tau sqrt(s) ln(6dT/beta) (6.3).

    >>> round(alpha_AT(1000, 100, 5, tau=math.sqrt(6), beta=0.05))
    714
    """
    return 8 * tau * math.sqrt(s) * math.log(6 * d * T / beta)


def eta_theorem(T: int, d: int, r: int, s: int, *, tau: float, beta: float) -> float:
    """The margin of the theorem, alpha_2 + alpha_BM + alpha_AT with alpha_2 = alpha_1 (6.3): too large for small T.

    >>> round(eta_theorem(1000, 100, 4, 5, tau=math.sqrt(6), beta=0.05))
    1018
    """
    return (
        alpha_1(d, s, tau=tau, beta=beta)
        + alpha_BM(T, r, s, tau=tau, beta=beta)
        + alpha_AT(T, d, s, tau=tau, beta=beta)
    )
