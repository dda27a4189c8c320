"""Formulas of parameterized-histograms as the paper prints them, to be shown beside the right ones.

Some are loose, some are wrong (parameterized-histograms 8). They calibrate nothing, and `*_sigma` here is not private.
"""

from __future__ import annotations

import math


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


def paper_alpha_SV(*, k: int, c_max: int, T: int, beta: float, epsilon: float) -> float:  # noqa: N802
    """alpha_SV of Algorithm 8, tau taken as wide as mu.

    >>> round(paper_alpha_SV(k=1, c_max=1000, T=10**6, beta=0.1, epsilon=1.0), 2)
    346.94
    """
    return 12 / epsilon * (math.log(6 * k * c_max / beta) + math.log(6 * T / beta))


def paper_alpha_U(*, k: int, c_max: int, beta: float, epsilon: float) -> float:  # noqa: N802
    """alpha_U of Algorithm 8.

    >>> round(paper_alpha_U(k=10, c_max=1000, beta=0.1, epsilon=1.0), 2)
    756.69
    """
    return 6 * k / epsilon * math.log(3 * k * c_max / beta)


def paper_alpha_U_gaussian(*, k: int, c_max: int, beta: float, epsilon: float, delta: float) -> float:  # noqa: N802
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


def paper_alpha_Gamma(m: int, *, d: int, T: int, beta: float, epsilon: float) -> float:  # noqa: N802
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
