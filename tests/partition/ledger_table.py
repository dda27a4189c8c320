"""Which noise every algorithm draws, in one table: parameterized-histograms 2.4, 3, 5.2, 5.4 and 7.2.

`halves`: tau Lap(4/eps), mu Lap(8/eps), H at eps/2 with delta e^(-eps/2). `thirds`: tau Lap(6/eps), mu Lap(12/eps), an
update Lap(3k/eps) or Gaussian at (eps/3, delta e^(-eps/3)/2), H at eps/3 with delta e^(-2 eps/3)/2. Two levels have
half of everything each. A column that one event moves by up to B scales all of it; the number of cells that one event
moves counts in H only (1.7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import mpmath
from partition_reference import LARGEST, MEAN, Queries, columns

from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law
from evertally.partition import Configuration, Terms, TwoLevelPlan, bounded, doubling, noisy_ladders
from evertally.partition.rebased import intervals, rebased
from evertally.privacy import ApproxDP, Change, PureDP

D = 4  # columns
PURE = PureDP(1)
APPROXIMATE = ApproxDP(1, Fraction(1, 10**6), adversary="oblivious")
COLUMNS = columns(D)

Promise = PureDP | ApproxDP
Shares = Literal["halves", "thirds"]


@dataclass(frozen=True)
class Line:
    """An algorithm: how it is configured, and how the shares of its levels are named."""

    number: str
    promise: Promise
    make: Callable[[Promise, Change], Configuration | TwoLevelPlan]
    shares: Shares
    histogram: str
    inner: Shares | None = None  # two levels: `shares` and `histogram` are those of the outer one

    def __str__(self) -> str:
        return f"Algorithm {self.number}" if self.number[0].isdigit() else self.number


def terms(promise: Promise, change: Change, queries: Queries, **more: Any) -> Terms:
    options: dict[str, Any] = {"horizon": 300, "largest": 20_000, "beta": 0.1, "growth": 500} | more
    return Terms(promise, change, options.pop("horizon"), D, queries, **options)


def limited(make: Callable[[Terms], Configuration], queries: Queries) -> Callable[[Promise, Change], Configuration]:
    return lambda promise, change: make(terms(promise, change, queries))


def unlimited(make: Callable[[Terms], Configuration], queries: Queries) -> Callable[[Promise, Change], Configuration]:
    return lambda promise, change: make(terms(promise, change, queries, horizon=None, largest=None))


def two_levels(queries: Queries) -> Callable[[Promise, Change], TwoLevelPlan]:
    return lambda promise, change: TwoLevelPlan(terms(promise, change, queries, largest=None))


def inner(queries: Queries) -> Callable[[Promise, Change], Configuration]:
    """Level 2 as a mechanism of its own: segment 3 of two levels that have twice the budget."""

    def make(promise: Promise, change: Change) -> Configuration:
        if isinstance(promise, ApproxDP):
            double: Promise = ApproxDP(2 * promise.exact_epsilon, 2 * promise.exact_delta, adversary="oblivious")
        else:
            double = PureDP(2 * promise.exact_epsilon)
        return two_levels(queries)(double, change).inner(3)

    return make


TABLE = [
    Line("2", PURE, limited(bounded, LARGEST), "halves", "tree"),
    Line("2 with a delta", APPROXIMATE, limited(bounded, LARGEST), "halves", "tree"),
    Line("3", PURE, limited(bounded, MEAN), "halves", "tree"),
    Line("3 with a delta", APPROXIMATE, limited(bounded, MEAN), "halves", "tree"),
    Line("5", PURE, limited(doubling, LARGEST), "halves", "running-sum"),
    Line("6", PURE, two_levels(LARGEST), "halves", "running-sum", inner="halves"),
    Line("6 with a delta", APPROXIMATE, two_levels(LARGEST), "halves", "running-sum", inner="halves"),
    Line("7", PURE, inner(LARGEST), "halves", "tree"),
    Line("7 with a delta", APPROXIMATE, inner(LARGEST), "halves", "tree"),
    Line("8", PURE, limited(noisy_ladders, COLUMNS), "thirds", "tree"),
    Line("8 with one query", PURE, limited(noisy_ladders, LARGEST), "thirds", "tree"),
    Line("10", PURE, limited(doubling, COLUMNS), "halves", "running-sum"),
    Line("11", PURE, two_levels(COLUMNS), "halves", "running-sum", inner="thirds"),
    Line("12", PURE, inner(COLUMNS), "thirds", "tree"),
    Line("13", APPROXIMATE, limited(noisy_ladders, COLUMNS), "thirds", "tree"),
    Line("13 with one query", APPROXIMATE, limited(noisy_ladders, LARGEST), "thirds", "tree"),
    Line("15", APPROXIMATE, limited(doubling, COLUMNS), "halves", "running-sum"),
    Line("16", APPROXIMATE, two_levels(COLUMNS), "halves", "running-sum", inner="thirds"),
    Line("17", APPROXIMATE, inner(COLUMNS), "thirds", "tree"),
    Line("V1", PURE, limited(rebased, COLUMNS), "halves", "best"),
    Line("V1 with a delta", APPROXIMATE, limited(rebased, COLUMNS), "halves", "best"),
    Line("V2", PURE, limited(intervals, COLUMNS), "halves", "best"),
    Line("V2 with a delta", APPROXIMATE, limited(intervals, COLUMNS), "halves", "best"),
    Line("V3", PURE, unlimited(rebased, COLUMNS), "halves", "epochs"),
    Line("V3 by intervals", PURE, unlimited(intervals, COLUMNS), "halves", "epochs"),
    Line("V4", APPROXIMATE, unlimited(rebased, COLUMNS), "halves", "epochs"),
    Line("unlimited Algorithm 2", PURE, unlimited(bounded, LARGEST), "halves", "epochs"),
]
# The partition of Dwork, Naor, Reingold and Rothblum (4.5): one column, d copies at eps/d for d of them.
DNRR = Line(
    "DNRR",
    PURE,
    lambda promise, change: intervals(Terms(promise, change, 300, 1, columns(1), largest=20_000, beta=0.1)),
    "halves",
    "best",
)


# -- what the table means in numbers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """Laws of one engine. `node(h)`: of a node of H, when one insert moves h of them."""

    tau: Law
    mu: Law
    update: Law | None
    node: Callable[[Fraction], Law]


def expected(shares: Shares, promise: Promise, change: Change, queries: int) -> Expected:
    eps, B = promise.exact_epsilon, change.linf
    parts = 4 if shares == "halves" else 6
    tau, mu = DiscreteLaplace(parts * B / eps), DiscreteLaplace(2 * parts * B / eps)
    share = Fraction(1, 2) if shares == "halves" else Fraction(1, 3)
    if isinstance(promise, PureDP):
        update: Law | None = None if shares == "halves" else DiscreteLaplace(3 * queries * B / eps)
        return Expected(tau, mu, update, lambda h: DiscreteLaplace(h * change.l1 / (share * eps)))
    delta = promise.exact_delta
    if shares == "halves":
        rho = rho_of(eps / 2, delta, eps / 2)
        return Expected(tau, mu, None, lambda h: DiscreteGaussian(h * change.l2_squared / (2 * rho)))
    rho_update = rho_of(eps / 3, delta / 2, eps / 3)
    rho = rho_of(eps / 3, delta / 2, 2 * eps / 3)
    return Expected(
        tau,
        mu,
        DiscreteGaussian(queries * B**2 / (2 * rho_update)),
        lambda h: DiscreteGaussian(h * change.l2_squared / (2 * rho)),
    )


def rho_of(epsilon: Fraction, delta: Fraction, paid_before: Fraction) -> Fraction:
    """The rho that keeps (epsilon, delta e^-paid_before)."""
    with mpmath.workdps(60):
        x = mpmath.mpf(delta.numerator) / delta.denominator
        x *= mpmath.exp(-mpmath.mpf(paid_before.numerator) / paid_before.denominator)
        discounted = Fraction(int(mpmath.floor(x * mpmath.mpf(10) ** 50)), 10**50)
    return ApproxDP(epsilon, discounted).to_zcdp().exact_rho


def same(found: Law, wanted: Law) -> bool:
    """The same law, the scale at most rounded up by a hair (scales have 40 significant bits)."""
    if isinstance(wanted, DiscreteLaplace):
        return isinstance(found, DiscreteLaplace) and wanted.scale <= found.scale <= wanted.scale * (1 + _HAIR)
    assert isinstance(wanted, DiscreteGaussian)
    # the two ways to discount delta differ in its fiftieth digit, and rho accordingly
    low, high = wanted.sigma_squared * (1 - Fraction(1, 10**30)), wanted.sigma_squared * (1 + _HAIR)
    return isinstance(found, DiscreteGaussian) and low <= found.sigma_squared <= high


_HAIR = Fraction(1, 2**36)
