"""Error bounds of the trivial, tree and recompute mechanisms: price-of-continual-release 3.

`alpha(beta)` holds at all ticks at once with probability 1 - beta, if a tick moves the answer by at most 1 (`drift`).
Guarantees enter as the epsilon or rho that a mechanism really gets. `discrete` noise is what is shipped; without it the
numbers are those of the specification.
"""

from __future__ import annotations

import math
from typing import Literal

from evertally.bounds.recompute import releases
from evertally.bounds.tails import laplace_radius
from formulas.partition_blocks import gaussian_max
from formulas.partition_blocks import lev as h
from formulas.partition_blocks import m as b

Selection = Literal["exponential", "permute-and-flip"]


def trivial_max_sum(T: int) -> float:
    """M0 for MaxSum: answer t/2 (price-of-continual-release 3.1).

    >>> trivial_max_sum(1000)
    500.0
    """
    return T / 2


def trivial_select(T: int, d: int) -> float:
    """M0 for SumSelect: answer a fixed column.

    >>> trivial_select(1000, 1), trivial_select(1000, 2)
    (0.0, 1000.0)
    """
    return 0.0 if d == 1 else float(T)


def A_g(T: int, d: int, *, rho: float, beta: float, change: int | None = None) -> float:
    """M1g and M2g: all prefix sums of d columns from a Gaussian tree; hence MaxSum (price-of-continual-release 3.2).

    `change` is the squared L2 norm that one event moves a row by, d unless the rows are restricted.

    >>> round(A_g(1024, 8, rho=0.5, beta=1 / 3), 2)
    137.89
    """
    return gaussian_max(d * T, beta, sigma=tree_sigma(T, d, rho=rho, change=change) * math.sqrt(b(T)))


def A_l(T: int, d: int, *, epsilon: float, beta: float, change: int | None = None) -> float:
    """M1l and M2l: the same from a Laplace tree; `change` is an L1 norm.

    >>> round(A_l(1024, 8, epsilon=1.0, beta=1 / 3), 1)
    2201.1
    """
    scale = (change or d) * h(T) / epsilon
    return laplace_radius(b(T) * scale * scale, scale, beta / (d * T))


def tree_sigma(T: int, d: int, *, rho: float, change: int | None = None) -> float:
    """Standard deviation of a node of the Gaussian tree.

    >>> round(tree_sigma(1024, 8, rho=0.5), 4)
    9.3808
    """
    return math.sqrt((change or d) * h(T) / (2 * rho))


def tree_select_gaussian(T: int, d: int, *, rho: float, beta: float, change: int | None = None) -> float:
    """M3g, SumSelect from the Gaussian tree: the difference of two columns (price-of-continual-release 3.4).

    >>> round(tree_select_gaussian(1024, 8, rho=0.5, beta=1 / 3), 2)
    206.0
    """
    if d == 1:
        return 0.0
    pairs = 2 * math.sqrt(math.log(d * (d - 1) * T / beta)) * tree_sigma(T, d, rho=rho, change=change) * math.sqrt(b(T))
    return min(pairs, 2 * A_g(T, d, rho=rho, beta=beta, change=change))


def tree_select_laplace(T: int, d: int, *, epsilon: float, beta: float, change: int | None = None) -> float:
    """M3l, SumSelect from the Laplace tree: twice A_l.

    >>> tree_select_laplace(1024, 1, epsilon=1.0, beta=1 / 3)
    0.0
    """
    return 0.0 if d == 1 else 2 * A_l(T, d, epsilon=epsilon, beta=beta, change=change)


def recompute_gaussian(
    T: int, r: int, *, rho: float, beta: float, sensitivity: float = 1.0, drift: float = 1.0, coordinates: int = 1
) -> float:
    """M4g and M5g: f is released every r ticks, m = ceil(T/r) times (price-of-continual-release 3.5 and 3.6).

    `sensitivity` in L2, `drift` per tick. A vector has several `coordinates`.

    >>> round(recompute_gaussian(1024, 49, rho=0.0174689, beta=1 / 3), 2)
    124.25
    """
    m = releases(T, r)
    return drift * (r - 1) + gaussian_max(m * coordinates, beta, sigma=sensitivity * math.sqrt(m / (2 * rho)))


def recompute_laplace(
    T: int,
    r: int,
    *,
    epsilon: float,
    beta: float,
    sensitivity: float = 1.0,
    drift: float = 1.0,
    coordinates: int = 1,
    discrete: bool = True,
) -> float:
    """M4l and M5l: the same with Laplace noise, `sensitivity` in L1.

    The tail exp(-x/b) of the discrete law holds at integers only, so its radius is rounded up
    (price-of-continual-release 2.2).

    >>> round(recompute_laplace(1024, 64, epsilon=1.0, beta=1 / 3, discrete=False), 2)
    124.94
    >>> recompute_laplace(1024, 64, epsilon=1.0, beta=1 / 3)
    125.0
    """
    m = releases(T, r)
    radius = sensitivity * m / epsilon * math.log(m * coordinates / beta)
    return drift * (r - 1) + (math.ceil(radius) if discrete else radius)


def recompute_select_pure(T: int, r: int, d: int, *, epsilon: float, beta: float) -> float:
    """M6p: a private selection every r ticks with epsilon/m each (price-of-continual-release 3.7).

    The exponential mechanism and permute-and-flip have the same bound.

    >>> round(recompute_select_pure(1024, 114, 8, epsilon=1.0, beta=1 / 3), 2)
    209.76
    """
    m = releases(T, r)
    return _selected(r, m, d, epsilon / m, beta)


def recompute_select_zcdp(T: int, r: int, d: int, *, rho: float, beta: float, selection: Selection) -> float:
    """M6z: rho/m for each selection. It costs epsilon'^2/2, or epsilon'^2/8 for the exponential mechanism alone.

    >>> round(recompute_select_zcdp(1024, 114, 8, rho=0.0174689, beta=1 / 3, selection="permute-and-flip"), 2)
    285.55
    >>> round(recompute_select_zcdp(1024, 79, 8, rho=0.0174689, beta=1 / 3, selection="exponential"), 2)
    188.78
    """
    m = releases(T, r)
    per_rho = {"exponential": 8, "permute-and-flip": 2}[selection]
    return _selected(r, m, d, math.sqrt(per_rho * rho / m), beta)


def _selected(r: int, m: int, d: int, per_selection: float, beta: float) -> float:
    return 0.0 if d == 1 else (r - 1) + 2 / per_selection * math.log(d * m / beta)
