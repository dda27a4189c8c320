"""Error of the histograms that a partition inserts into, and the tails they rest on: parameterized-histograms 3.

`err(n, beta)` is a number that no column of no output exceeds in n inserts, with probability 1 - beta. The functions
here take n and beta first, so `functools.partial(errL, d=10, epsilon=0.5)` is such an `err`. Noise is independent of
the inserts: the numbers hold for inserts that were chosen after seeing outputs.

Gaussian noise enters by `variance`, that of one unit of L2 change. Nothing here calibrates a mechanism: these are
floats to compare with. Time O(1) (O(log j) for epochs), no memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from evertally.errors import ConfigurationError

Err = Callable[[int, float], float]


def lev(n: int) -> int:
    """Levels of a binary tree over n inserts, floor(log2 n) + 1: the nodes that one insert lies in.

    >>> lev(1), lev(1000), lev(1024)
    (1, 10, 11)
    """
    return _counted(n).bit_length()


def m(n: int) -> int:
    """The most nodes that make up a prefix of at most n inserts, floor(log2(n + 1)).

    >>> m(1), m(1000), m(1023)
    (1, 9, 10)
    """
    return (_counted(n) + 1).bit_length() - 1


def laplace_max(count: int, beta: float, *, scale: float, discrete: bool = True) -> float:
    """`count` Laplace variables stay within this, with probability 1 - beta.

    Continuous: b ln(count/beta). The discrete law has P(|Y| >= k) = 2 q^k/(1 + q) with q = exp(-1/b), which puts
    2/(1 + q) inside the logarithm (parameterized-histograms 8, trap 8.4). It matters for small b.

    >>> round(laplace_max(10**6, 0.1 / 3, scale=8.0, discrete=False), 3)
    137.734
    >>> round(laplace_max(10**6, 0.1 / 3, scale=8.0), 3)
    138.218
    """
    outcomes = 2 / (1 + math.exp(-1 / scale)) if discrete else 1.0
    return scale * math.log(outcomes * count / beta)


def gaussian_max(count: int, beta: float, *, sigma: float) -> float:
    """The same for Gaussian variables, discrete or not: sigma sqrt(2 ln(2 count/beta)).

    >>> round(gaussian_max(1000, 0.1 / 3, sigma=16.9007), 1)
    79.3
    """
    return sigma * math.sqrt(2 * math.log(2 * count / beta))


def laplace_sum(squares: float, peak: float, p: float) -> float:
    """Lemma 2: a sum of Laplace variables with scales b_i exceeds this with probability p.

    `squares` is the sum of b_i^2 and `peak` the largest b_i. It holds for the discrete law too, at every radius
    (parameterized-histograms 8, trap 8.4).

    >>> round(laplace_sum(9 * 200.0**2, 200.0, (0.1 / 3) / (10 * 1000)), 1)
    7526.3
    """
    L = math.log(2 / p)
    return math.sqrt(8 * L) * max(math.sqrt(squares), peak * math.sqrt(L))


def errL(n: int, beta: float, *, d: int, epsilon: float) -> float:
    """H1, the Laplace tree: m(n) nodes with scale d lev(n)/epsilon (parameterized-histograms 3.2).

    >>> round(errL(1000, 0.1 / 3, d=10, epsilon=0.5), 1)
    7526.3
    """
    b = d * lev(n) / epsilon
    return laplace_sum(m(n) * b * b, b, beta / (d * n))


def errG(n: int, beta: float, *, d: int, variance: float) -> float:
    """H2, the Gaussian tree: m(n) nodes with variance d lev(n) times that of one unit (parameterized-histograms 3.3).

    >>> round(errG(10, 0.05, d=1, variance=classic_variance(0.999999, 1e-6)), 1)
    63.5
    """
    return gaussian_max(d * n, beta, sigma=math.sqrt(variance * d * lev(n) * m(n)))


def alpha_Gamma(m: int, J: int, beta: float, *, d: int, epsilon: float) -> float:
    """H0, accumulated Laplace noise: all columns after m of at most J inserts (parameterized-histograms 3.1).

    >>> [round(alpha_Gamma(m, 21, 0.1 / 3, d=10, epsilon=0.5), 1) for m in (0, 1, 5, 10, 20)]
    [0.0, 534.1, 534.1, 549.7, 777.3]
    """
    b = d / epsilon
    return laplace_sum(m * b * b, b, beta / (d * J)) if m else 0.0


def alpha_Gamma_gaussian(m: int, J: int, beta: float, *, d: int, variance: float) -> float:
    """H0 with Gaussian noise: sigma sqrt(2 m ln(2 d J/beta)).

    >>> unit = classic_variance(0.5, 1e-6 * math.exp(-0.5))
    >>> [round(alpha_Gamma_gaussian(m, 21, 0.1 / 3, d=10, variance=unit), 1) for m in (1, 5, 10, 20)]
    [148.2, 331.4, 468.6, 662.8]
    """
    return gaussian_max(d * J, beta, sigma=math.sqrt(variance * d * m))


def err4(j: int, beta: float, *, d: int, epsilon: float) -> float:
    """H4, epochs of Laplace trees: all j at once, with no bound on their number (parameterized-histograms 3.5).

    >>> round(err4(1, 0.1, d=1, epsilon=1.0), 2), round(err4(1000, 0.1, d=1, epsilon=1.0), 1)
    (9.88, 489.6)
    """
    if j == 0:
        return 0.0
    scales = [d * (i + 1) / epsilon for i in range(j.bit_length())]
    squares = math.fsum(b * b for b in scales[:-1]) + len(scales) * scales[-1] ** 2
    return laplace_sum(squares, scales[-1], summable(beta, j) / d)


def err4_gaussian(j: int, beta: float, *, d: int, variance: float) -> float:
    """H4 with Gaussian trees: sqrt(2 ln(2d/beta_j) V), V the variance of all nodes in use.

    >>> round(err4_gaussian(1, 0.1, d=1, variance=0.5), 2), round(err4_gaussian(1000, 0.1, d=1, variance=0.5), 2)
    (1.87, 50.1)
    """
    levels = range(1, j.bit_length() + 1)
    squares = sum(levels[:-1]) + len(levels) ** 2
    return gaussian_max(d, summable(beta, j), sigma=math.sqrt(variance * d * squares)) if j else 0.0


def summable(beta: float, i: int) -> float:
    """6 beta/(pi^2 i^2): shares of a failure probability for i = 1, 2, ... that add up to beta.

    >>> round(sum(summable(0.1, i) for i in range(1, 10**4)), 4)
    0.1
    """
    return 6 * beta / (math.pi * i) ** 2


def zcdp_variance(rho: float) -> float:
    """Variance per unit of L2 change for rho-zCDP, 1/(2 rho): the right one for the discrete Gaussian.

    >>> zcdp_variance(0.5)
    1.0
    """
    return 1 / (2 * rho)


def classic_variance(epsilon: float, delta: float) -> float:
    """2 ln(1.25/delta)/epsilon^2: continuous noise, and proved for epsilon < 1 only (parameterized-histograms 3.3).

    >>> round(math.sqrt(10 * classic_variance(0.5, 1e-6 * math.exp(-0.5))), 3)
    34.104
    """
    if not 0 < epsilon < 1:
        raise ConfigurationError("the classic Gaussian variance is proved for epsilon below 1; use zcdp_variance")
    return 2 * math.log(1.25 / delta) / epsilon**2


def analytic_variance(epsilon: float, delta: float) -> float:
    """The least variance of *continuous* Gaussian noise for (epsilon, delta), to ten digits. [U] for discrete noise.

    A reference for simulations: the discrete Gaussian needs more (parameterized-histograms 3.3).

    >>> round(math.sqrt(10 * analytic_variance(0.5, 1e-6 * math.exp(-0.5))), 3)
    26.146
    """

    def spent(sigma: float) -> float:
        a, b = 1 / (2 * sigma), epsilon * sigma
        return 0.5 * math.erfc((b - a) / math.sqrt(2)) - 0.5 * math.exp(epsilon) * math.erfc((b + a) / math.sqrt(2))

    low, high = 0.0, 1.0
    while spent(high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-11 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > delta else (low, middle)
    return high * high


def _counted(n: int) -> int:
    if n < 1:
        raise ConfigurationError(f"a tree holds at least one insert; got {n}")
    return n
