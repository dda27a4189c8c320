"""Error bounds of the partition mechanisms with a known bound c_max, and of the variants V1 to V3.

parameterized-histograms 4 and 7.2. A partition closes an interval when a query has grown by about K; its error is the
staleness inside an interval plus the error of the histogram H that the closed intervals are inserted into. Each bound
holds at all ticks at once with probability 1 - beta, if a tick raises a query by at most 1 and c_max is right.

With `discrete` noise (what is shipped) tails are those of integers and thresholds are rounded up to integers; without
it the numbers are those of the paper. Nothing here touches privacy: it does not depend on K, C, c_max, T or beta.
Time O(log c_max), no memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from formulas.partition_blocks import Err, laplace_max, summable


@dataclass(frozen=True)
class SparseVector:
    """The noise of the test G(s) + mu > K + tau: tau of scale 1/epsilon_tau, mu of scale 2/epsilon_mu.

    >>> test = SparseVector.split(1.0, parts=4, discrete=False)
    >>> test.tau, test.mu, round(test.alpha_mu(10**6, 0.1 / 3), 3), round(test.alpha_tau(1000, 0.1 / 3), 3)
    (4.0, 8.0, 137.734, 41.236)
    """

    tau: float
    mu: float
    discrete: bool = True

    @classmethod
    def split(cls, epsilon: float, parts: int, discrete: bool = True) -> SparseVector:
        """epsilon/parts for tau and for mu: 4 parts in Algorithms 2, 3, 5, 7, 10, 15; 6 in 8, 12, 13, 17."""
        return cls(parts / epsilon, 2 * parts / epsilon, discrete)

    def alpha_tau(self, n: int, beta: float) -> float:
        """Radius of tau over n intervals."""
        return laplace_max(n, beta, scale=self.tau, discrete=self.discrete)

    def alpha_mu(self, T: int, beta: float) -> float:
        """Radius of mu over T ticks."""
        return laplace_max(T, beta, scale=self.mu, discrete=self.discrete)

    def alpha_SV_at(self, t: int, j: int, beta: float) -> float:
        """alpha_mu(t) + alpha_tau(j) with no end in sight, each failing with beta in total."""
        return self.alpha_mu(1, summable(beta, t)) + self.alpha_tau(1, summable(beta, j))

    def threshold(self, value: float) -> float:
        """Thresholds are public: with integer noise they are integers, rounded up."""
        return float(math.ceil(value)) if self.discrete else value


@dataclass(frozen=True)
class MaxSumBound:
    """Algorithms 2 and 7: `n` intervals at most, threshold j K, and what follows from it.

    >>> one = MaxSumBound(n=5, alpha_mu=9.0, alpha_tau=3.0, err=20.0, alpha=32.0, K=96.0)
    >>> one.bound, one.select_bound
    (192.0, 200.0)
    """

    n: int
    alpha_mu: float
    alpha_tau: float
    err: float
    alpha: float
    K: float

    @property
    def bound(self) -> float:
        """Error of the released maximum (Lemma 6, Lemma 14)."""
        return 2 * self.K

    @property
    def select_bound(self) -> float:
        """Error of the largest column of the same histogram: staleness of the maximum and twice err (7.1)."""
        return self.K + 2 * self.alpha + 2 * self.err


def max_sum_bound(
    test: SparseVector, err: Err, *, c_max: int, T: int, beta: float, calibrated: bool = False
) -> MaxSumBound:
    """Algorithm 2 (BoundedMaxSum), parameterized-histograms 4.2.

    `calibrated`: an interval grows by alpha - 1 at least, so H need not hold c_max inserts but n, the least number with
    n (alpha(n) - 1) >= c_max.

    >>> from functools import partial
    >>> from formulas.partition_blocks import errL
    >>> test, err = SparseVector.split(1.0, parts=4, discrete=False), partial(errL, d=10, epsilon=0.5)
    >>> round(max_sum_bound(test, err, c_max=1000, T=10**6, beta=0.1).bound, 1)
    46231.4
    >>> best = max_sum_bound(test, err, c_max=1000, T=10**6, beta=0.1, calibrated=True)
    >>> best.n, round(best.bound)
    (2, 5738)
    """

    def at(n: int) -> MaxSumBound:
        alpha_mu, alpha_tau, e = test.alpha_mu(T, beta / 3), test.alpha_tau(n, beta / 3), err(n, beta / 3)
        # The proof needs alpha >= 3 and alpha_mu + alpha_tau >= 2, which fails for huge epsilon only (8.14).
        alpha = max(3.0, e + max(2.0, alpha_mu + alpha_tau))
        return MaxSumBound(n, alpha_mu, alpha_tau, e, alpha, test.threshold(3 * alpha))

    return at(calibrated_n(c_max, lambda n: at(n).alpha - 1) if calibrated else c_max)


def max_sum_bound_at(test: SparseVector, err: Err, *, t: int, j: int, beta: float) -> float:
    """Algorithm 2 without c_max and T: the error at tick t in interval j, parameterized-histograms 5.5.

    `err` is that of the epoch tree H4, which is made for every j at once.

    >>> from functools import partial
    >>> from formulas.partition_blocks import err4
    >>> test = SparseVector.split(1.0, parts=4)
    >>> max_sum_bound_at(test, partial(err4, d=1, epsilon=0.5), t=1000, j=3, beta=0.1)
    1465.0
    """
    alpha = max(3.0, err(j, beta / 3) + max(2.0, test.alpha_SV_at(t, j, beta / 3)))
    return 2 * test.threshold(3 * alpha) + 1


@dataclass(frozen=True)
class QueriesBound:
    """Algorithms 8, 12, 13, 17: `n` intervals at most, threshold step K, slack C of the threshold update.

    >>> QueriesBound(n=5, alpha_SV=9.0, alpha_U=3.0, err=20.0, C=12.0, K=96.0).bound
    193.0
    """

    n: int
    alpha_SV: float  # noqa: N815
    alpha_U: float  # noqa: N815
    err: float
    C: float
    K: float

    @property
    def bound(self) -> float:
        """Error of every query (Lemmas 21, 31, 38, 49, corrected)."""
        return 2 * self.K + 1


def queries_bound(
    test: SparseVector, update: Err, err: Err, *, k: int, c_max: int, T: int, beta: float, calibrated: bool = False
) -> QueriesBound:
    """k queries with noisy threshold updates: Algorithm 8 (pure) and 13 (Gaussian), parameterized-histograms 4.3, 4.4.

    `update(count, beta)` is the radius of `count` draws of the update noise: `laplace_max` with scale 3k/epsilon or
    `gaussian_max`. C is the tight sum; the paper's is larger.

    >>> from functools import partial
    >>> from formulas.partition_blocks import errL, laplace_max
    >>> test, update = SparseVector.split(1.0, 6, discrete=False), partial(laplace_max, scale=30.0, discrete=False)
    >>> ten = queries_bound(test, update, partial(errL, d=10, epsilon=1 / 3), k=10, c_max=1000, T=10**6, beta=0.1)
    >>> [round(x, 2) for x in (ten.alpha_SV, ten.alpha_U, ten.C, ten.err)]
    [294.75, 447.42, 742.17, 18540.49]
    """

    def at(n: int) -> QueriesBound:
        e, alpha_U = err(n, beta / 3), update(k * n, beta / 3)
        # alpha_SV + err >= 3, so that a query grows by 2 between two updates of its threshold (8.14).
        alpha_SV = max(3.0 - e, test.alpha_tau(n, beta / 6) + test.alpha_mu(T, beta / 6))
        C = test.threshold(alpha_SV + alpha_U)
        return QueriesBound(n, alpha_SV, alpha_U, e, C, test.threshold(3 * (C + e)))

    def growth(n: int) -> float:
        bound = at(n)
        return bound.alpha_SV + bound.err - 1

    return at(calibrated_n(k * c_max, growth) if calibrated else k * c_max)


def calibrated_n(total: int, growth: Callable[[int], float]) -> int:
    """The least n with n growth(n) >= total; growth must not fall.

    >>> calibrated_n(100, lambda n: 3.0)
    34
    """
    low, high = 0, 1
    while high * growth(high) < total:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if middle * growth(middle) >= total else (middle, high)
    return high


@dataclass(frozen=True)
class RebasedBound:
    """V1 to V3: after a close every threshold is the released value plus kappa.

    >>> RebasedBound(alpha_SV=9.0, err=20.0, kappa=51.0).bound
    80.0
    """

    alpha_SV: float  # noqa: N815
    err: float
    kappa: float

    @property
    def bound(self) -> float:
        """No close yet: the query is at most kappa + alpha_SV above the released value, give or take err."""
        return self.kappa + self.alpha_SV + self.err


def rebased_bound(
    test: SparseVector, err: Err, *, k: int, c_max: int, T: int, beta: float, linear: bool = False
) -> RebasedBound:
    """V1 (any queries) and V2 (`linear`: columns, convex combinations), parameterized-histograms 7.2.

    A close means growth by more than 2, so there are at most k c_max/2. No noisy update: the split is that of
    Algorithm 2.

    >>> from functools import partial
    >>> from formulas.partition_blocks import errL
    >>> test, err = SparseVector.split(1.0, parts=4), partial(errL, d=3, epsilon=0.5)
    >>> v1 = rebased_bound(test, err, k=3, c_max=1000, T=10**6, beta=0.1)
    >>> v2 = rebased_bound(test, err, k=3, c_max=1000, T=10**6, beta=0.1, linear=True)
    >>> v1.bound > 2 * v2.bound
    True
    """
    n = max(1, k * c_max // 2)
    alpha_SV = test.alpha_mu(T, beta / 3) + test.alpha_tau(n, beta / 3)
    return _rebased(test, alpha_SV, err(n, beta / 3), linear)


def rebased_bound_at(
    test: SparseVector, err: Err, *, t: int, j: int, beta: float, linear: bool = False
) -> RebasedBound:
    """V3: neither c_max nor T. The error at tick t in interval j; j <= 1 + k c_max(t)/2. `err` is that of H4.

    >>> from functools import partial
    >>> from formulas.partition_blocks import err4
    >>> test = SparseVector.split(8.0, parts=4, discrete=False)
    >>> v3 = rebased_bound_at(test, partial(err4, d=3, epsilon=4.0), t=2**16, j=300, beta=0.1, linear=True)
    >>> round(v3.bound)
    396
    """
    return _rebased(test, test.alpha_SV_at(t, j, beta / 3), err(j, beta / 3), linear)


def _rebased(test: SparseVector, alpha_SV: float, e: float, linear: bool) -> RebasedBound:
    # The growth of a linear query since the close does not see the error of the histogram.
    return RebasedBound(alpha_SV, e, test.threshold(alpha_SV + 2 + (0.0 if linear else 2 * e)))


def sparse_count_bound(test: SparseVector, err: Err, *, n: int, T: int, beta: float) -> float:
    """The partition of Dwork, Naor, Reingold and Rothblum for one 0/1 stream with at most n ones.

    parameterized-histograms 4.5: threshold K = alpha_mu + alpha_tau + 1 on the count inside the interval, error
    err(n) + K + alpha_mu + alpha_tau + 1. For d columns run d copies with epsilon/d each.

    >>> from functools import partial
    >>> from formulas.partition_blocks import errL
    >>> test = SparseVector.split(1.0, parts=4, discrete=False)
    >>> round(sparse_count_bound(test, partial(errL, d=1, epsilon=0.5), n=100, T=10**6, beta=0.1), 1)
    686.0
    """
    radius = test.alpha_mu(T, beta / 3) + test.alpha_tau(n, beta / 3)
    return err(n, beta / 3) + test.threshold(radius + 1) + radius + 1
