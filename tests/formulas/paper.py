"""Formulas as the papers print them, to be compared with the right ones.

factorization-counting 0, price-of-continual-release 3, parameterized-histograms 3 to 5.

Some are loose, some are wrong (parameterized-histograms 8). They calibrate nothing, and `*_sigma` here is not private.
"""

from __future__ import annotations

import math

from evertally.bounds.square_root import EULER_GAMMA, whole_horizon
from evertally.errors import ConfigurationError


def paper_tree_error(n: int, beta: float, *, d: int, epsilon: float) -> float:
    """Lemma 52 for d columns, 4 d log2(n) log2(2dn/beta)/epsilon: 0 at n = 1, and printed with too large an epsilon.

    >>> round(paper_tree_error(1000, 0.1 / 3, d=10, epsilon=1.0), 1)
    7651.6
    """
    return 4 * d * math.log2(n) * math.log2(2 * d * n / beta) / epsilon


def paper_gaussian_tree_error(n: int, beta: float, *, epsilon: float, delta: float) -> float:
    """Lemma 53: a one-sided tail, and log n for sqrt(m lev). Too small below n of about 1000.

    >>> round(paper_gaussian_tree_error(10, 0.05, epsilon=1.0, delta=1e-6), 1)
    57.3
    """
    return 2 * math.sqrt(math.log(n / beta) * math.log(1.25 / delta)) * math.log2(n) / epsilon


def paper_slack(*, k: int, c_max: int, T: int, beta: float, epsilon: float) -> float:
    """C of Algorithm 8: valid, and larger than alpha_SV + alpha_U.

    >>> round(paper_slack(k=1, c_max=1000, T=10**6, beta=0.1, epsilon=1.0), 2)
    520.42
    """
    return 18 / epsilon * (k * math.log(6 * k * c_max / beta) + math.log(6 * T / beta))


def paper_alpha_SV(*, k: int, c_max: int, T: int, beta: float, epsilon: float) -> float:
    """alpha_SV of Algorithm 8, tau taken as wide as mu.

    >>> round(paper_alpha_SV(k=1, c_max=1000, T=10**6, beta=0.1, epsilon=1.0), 2)
    346.94
    """
    return 12 / epsilon * (math.log(6 * k * c_max / beta) + math.log(6 * T / beta))


def paper_alpha_U(*, k: int, c_max: int, beta: float, epsilon: float) -> float:
    """alpha_U of Algorithm 8.

    >>> round(paper_alpha_U(k=10, c_max=1000, beta=0.1, epsilon=1.0), 2)
    756.69
    """
    return 6 * k / epsilon * math.log(3 * k * c_max / beta)


def paper_alpha_U_gaussian(*, k: int, c_max: int, beta: float, epsilon: float, delta: float) -> float:
    """alpha_U of Algorithm 13: a product of logarithms became the logarithm of a product. Wrong, too small (8.9).

    >>> round(paper_alpha_U_gaussian(k=1, c_max=1000, beta=0.1, epsilon=1.0, delta=1e-6), 2)
    30.7
    """
    return 6 / epsilon * math.sqrt(k * (math.log(12 * k * c_max / (beta * delta)) + 2 * epsilon / 3))


def paper_update_sigma(*, k: int, epsilon: float, delta: float) -> float:
    """Update noise of Algorithm 13; Algorithm 16 prints it for the histogram too, where it is not private (8.2).

    >>> round(paper_update_sigma(k=1, epsilon=1.0, delta=1e-6), 3)
    16.901
    """
    return math.sqrt(18 * k * (math.log(4 / delta) + 2 * epsilon / 3)) / epsilon


def paper_doubling_sigma(*, d: int, epsilon: float, delta: float) -> float:
    """Histogram noise of Algorithm 15, made for epsilon and used as epsilon/2: not private (8.1).

    >>> round(paper_doubling_sigma(d=10, epsilon=1.0, delta=1e-6), 3)
    17.326
    """
    return math.sqrt(2 * d * (math.log(2 / delta) + epsilon / 2)) / epsilon


def paper_alpha_Gamma(m: int, *, d: int, T: int, beta: float, epsilon: float) -> float:
    """Error of the doubling mechanism's columns after m closes, base-2 logarithms.

    >>> round(paper_alpha_Gamma(1, d=10, T=10**6, beta=0.1, epsilon=1.0), 1)
    709.7
    """
    return 4 * d / epsilon * math.sqrt(2 * m) * math.log2(3 * d * math.log2(T) / beta)


def paper_segments(*, d: int, c_max: int, T: int, beta: float, epsilon: float, delta: float = 0.0) -> float:
    """L, the number of closes of the doubling mechanism, before the minimum with log2 T. One too small (8.11).

    >>> [round(paper_segments(d=10, c_max=1000, T=10**6, beta=0.1, epsilon=1.0, delta=x), 1) for x in (0.0, 1e-6)]
    [39.4, 58.1]
    """
    twice = math.log2(math.log2(T / beta))
    if delta == 0:
        return math.log2(20 * d * c_max / epsilon**2) + 4 * twice + math.log2(math.log2(3 * d * math.log2(T) / beta))
    return math.log2(24 * d * c_max / epsilon**2) + 8 * twice + math.log2(math.log(2 / delta) + epsilon / 2)


def paper_psi(T: int) -> float:
    """Psi(T) of the ICML 2023 paper, claimed to bound S_T. It does not, for any T >= 11 (E3): never calibrate with it.

    >>> from evertally.bounds.square_root import S
    >>> S(10) < paper_psi(10), S(11) > paper_psi(11)
    (True, True)
    """
    return 1 - (1 - EULER_GAMMA) / math.pi + math.log(whole_horizon(T)) / math.pi + 2 / T


def paper_C(epsilon: float, delta: float) -> float:
    """C of the ICML 2023 paper. It contains the sqrt(2) of a tail bound, so it is no standard deviation (E5).

    >>> round(paper_C(0.8, 1e-10), 6)
    12.053139
    """
    if not (0 < epsilon < 1 and 0 < delta < 1):
        raise ConfigurationError("the paper's constant is for epsilon and delta between 0 and 1")
    return 2 / epsilon * math.sqrt(4 / 9 + math.log(math.sqrt(2 / math.pi) / delta))


def paper_m_max_sum(T: int, *, rho: float | None = None, epsilon: float | None = None) -> int:
    """The paper's number of releases for MaxSum; 0 means the trivial mechanism. Give rho or epsilon.

    >>> paper_m_max_sum(1024, rho=0.0174689), paper_m_max_sum(1024, epsilon=1.0), paper_m_max_sum(1024, epsilon=1e-9)
    (13, 12, 0)
    """
    return _paper_m(T, math.log(T), math.log(T), rho, epsilon)


def paper_m_select(T: int, d: int, *, rho: float | None = None, epsilon: float | None = None) -> int:
    """The same for SumSelect; the pure one is balanced the same way, the paper does not spell it out.

    >>> paper_m_select(1024, 8, rho=0.0174689), paper_m_select(1024, 8, epsilon=1.0)
    (6, 10)
    """
    return _paper_m(T, math.log(d * T), math.log(d * T) ** 2, rho, epsilon)


def _paper_m(T: int, pure_log: float, zcdp_log: float, rho: float | None, epsilon: float | None) -> int:
    if (rho is None) == (epsilon is None):
        raise ConfigurationError("give either rho or epsilon")
    if T == 1:
        return 0
    if epsilon is not None:
        return math.floor(math.sqrt(epsilon * T / pure_log)) if epsilon > pure_log / T else 0
    assert rho is not None
    return math.floor((rho * T**2 / zcdp_log) ** (1 / 3)) if rho > zcdp_log / T**2 else 0


def paper_tree_select(T: int, d: int, *, rho: float) -> float:
    """The paper's bound for M3g, with its constant 20 (2 sqrt(10) would do).

    >>> round(paper_tree_select(1024, 8, rho=0.5), 1)
    1867.9
    """
    return 20 * math.sqrt(d * (math.log2(T) + 1) ** 2 * math.log(d * T) / (2 * rho))
