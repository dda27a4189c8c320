"""The public numbers of every configuration against the formulas of parameterized-histograms 4, 5 and 7.2.

Accuracy only: a wrong one costs no privacy, but makes a stated bound false.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from ledger_table import APPROXIMATE, PURE
from partition_cases import ladder_constants
from partition_reference import LARGEST, RANKS, Queries, columns

from evertally.noise import DiscreteLaplace, Law, simulation
from evertally.partition import Configuration, Terms, TwoLevelPlan, TwoLevelRelease, bounded, doubling, noisy_ladders
from evertally.partition.noise_bounds import NoiseBounds
from evertally.partition.rebased import intervals, rebased
from evertally.privacy import ApproxDP, Change, PureDP

D, T, BETA = 10, 10**6, 0.1
Promise = PureDP | ApproxDP


def terms(queries: Queries, promise: Promise, **more: Any) -> Terms:
    options: dict[str, Any] = {"horizon": T, "largest": 10**5, "beta": BETA} | more
    return Terms(promise, Change(D, D, 1), options.pop("horizon"), D, queries, **options)


def tails_of(plan: Configuration) -> NoiseBounds:
    return plan.terms.noise_bounds(plan.noise, plan.histogram, plan.intervals)


def tail(law: Law, k: int) -> float:
    """P(|Z| > k)."""
    return float(law.tail(k + 1))


# -- tails -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("promise", [PURE, APPROXIMATE], ids=repr)
def test_single_draws_stay_inside(promise: Promise) -> None:
    """mu at all ticks, tau in all intervals, the update at all closes: union bounds over exact tails, nearly met."""
    for plan, third in ((bounded(terms(LARGEST, promise)), 3), (noisy_ladders(terms(RANKS, promise)), 6)):
        tails, n = tails_of(plan), plan.intervals
        assert n is not None
        for law, radius, count, share in (
            (plan.noise.mu, tails.mu(BETA), T, third),
            (plan.noise.tau, tails.tau(BETA), n, third),
            (plan.noise.update, tails.update(BETA) if third == 6 else None, 2 * n, 3),
        ):
            if radius is None:
                continue
            assert law is not None
            assert count * tail(law, radius) <= BETA / share
            slack = 2 if isinstance(law, DiscreteLaplace) else 3
            assert count * tail(law, radius - slack) > BETA / share, "not wider than it needs to be"


def test_without_limits_the_failures_add_up() -> None:
    """5.5: 6/(pi^2 t^2) of the share to tick t, 6/(pi^2 j^2) to interval j; together at most beta."""
    plan = rebased(terms(LARGEST, PURE, horizon=None, largest=None))
    tails, noise = tails_of(plan), plan.noise
    ticks, inserts = range(1, 3000), range(1, 300)
    assert sum(tail(noise.mu, tails.mu(BETA, t)) for t in ticks) <= BETA / 3
    assert sum(tail(noise.tau, tails.tau(BETA, j)) for j in ticks) <= BETA / 3
    found = [tails.histogram(BETA, j) for j in inserts]
    assert found == sorted(found), "the bound on H's noise never falls (that noise itself does)"
    for j in inserts:
        exact = tails.model.spread(j).radius(BETA / (3 * D) * 6 / (math.pi * j) ** 2)
        assert exact <= found[j - 1], "after j inserts"
        if j > 1:
            before = tails.model.spread(j - 1).radius(BETA / (3 * D) * 6 / (math.pi * (j - 1)) ** 2)
            assert before <= found[j - 1], "and while interval j is open, after j - 1"


def test_reference_numbers() -> None:
    """9.6, setting R: alpha_mu 137.7, alpha_tau 41.2 at n = c_max = 1000; alpha_Gamma(m) at J = 21."""
    plan = bounded(terms(LARGEST, PURE, largest=1000))
    assert terms(LARGEST, PURE).noise_bounds(plan.noise, "binary-tree", 1000).mu(BETA) == 138
    assert terms(LARGEST, PURE).noise_bounds(plan.noise, "binary-tree", 1000).tau(BETA) == 42
    assert terms(LARGEST, PURE).noise_bounds(plan.noise, "binary-tree", 1000).histogram(BETA) <= 7526
    pure = {1: 534.1, 5: 534.1, 10: 549.7, 20: 777.3}
    gaussian = {1: 148.2, 5: 331.4, 10: 468.6, 20: 662.8}
    for promise, table in ((PURE, pure), (APPROXIMATE, gaussian)):
        outer = doubling(terms(LARGEST, promise), start=1)
        assert outer.intervals == 21
        tails = tails_of(outer)
        found = {m: tails.summed(BETA, m) for m in table}
        assert all(0.3 * table[m] <= found[m] <= table[m] for m in table), found
        assert tails.summed(BETA, 0) == 0
        piles = [tails.summed(BETA, m) for m in range(22)]
        assert piles == sorted(piles)
        assert piles[20] <= 3 * piles[4], "the square root of m, not m"


# -- configurations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("promise", [PURE, APPROXIMATE], ids=repr)
@pytest.mark.parametrize("base_error", [0, 500])
def test_bounded(promise: Promise, base_error: int) -> None:
    """K = 3 alpha; n intervals that grow by alpha - 1 reach `largest`, n - 1 with alpha(n - 1) do not (4.2)."""
    plan = bounded(terms(LARGEST, promise, base_error=base_error))
    n = plan.intervals
    assert n is not None

    def alpha(n: int) -> int:
        tails = plan.terms.noise_bounds(plan.noise, "binary-tree", n)
        return max(3, tails.histogram(BETA) + base_error + tails.mu(BETA) + tails.tau(BETA))

    assert plan.rise(1, 1) == plan.rise(n, T) == 3 * alpha(n)
    assert n * (alpha(n) - 1) >= 10**5 > (n - 1) * (alpha(n - 1) - 1)
    tails = tails_of(plan)
    bound = 3 * alpha(n) + 2 * tails.sparse_vector(BETA) + 3 * (tails.histogram(BETA) + base_error)
    assert plan.error(BETA) == bound <= 6 * alpha(n)
    # one close more than n could never be needed: rung n is passed by an answer of at least n K - alpha
    assert n * 3 * alpha(n) - alpha(n) >= 10**5


@pytest.mark.parametrize("promise", [PURE, APPROXIMATE], ids=repr)
@pytest.mark.parametrize("base_error", [0, 500])
def test_noisy_ladders(promise: Promise, base_error: int) -> None:
    plan = noisy_ladders(terms(columns(D), promise, base_error=base_error))
    n, (K, C) = plan.intervals, ladder_constants(plan)
    assert n is not None
    tails = tails_of(plan)
    sparse, update, err = tails.sparse_vector(BETA), tails.update(BETA), tails.histogram(BETA) + base_error
    assert sparse + update == C
    assert 3 * (C + err) == K
    assert n * (sparse + err - 1) >= D * 10**5
    assert plan.error(BETA) == K + C + sparse + update + 3 * err <= 2 * K + 1
    # threshold i has climbed m times only if its query is at least m K - C - alpha_U - err, and every close lifts one
    assert n >= D * math.floor((10**5 + C + update + err) / K)


@pytest.mark.parametrize("promise", [PURE, APPROXIMATE], ids=repr)
@pytest.mark.parametrize(("make", "looks"), [(rebased, 2), (intervals, 0)])
def test_rebased_and_intervals(make: Any, looks: int, promise: Promise) -> None:
    """kappa = alpha_SV + 2 err + gamma (V1) or alpha_SV + gamma (V2), gamma n >= k c_max, gamma >= 2."""
    plan = make(terms(columns(D), promise))
    tails, n = tails_of(plan), plan.intervals
    gamma = plan.rise(1, 1) - tails.sparse_vector(BETA) - looks * tails.histogram(BETA)
    assert gamma >= 2
    assert n * gamma >= D * 10**5 > n * (gamma - 1)
    bound = 2 * tails.sparse_vector(BETA) + (looks + 1) * tails.histogram(BETA) + gamma
    assert plan.rise(1, 1) < plan.error(BETA) < 0.9 * bound, (
        "the law of the close time is tighter than the worst of all"
    )
    for other in (1, 10, 1000, 10**5, D * 10**5 // 2):  # and no other n is much better
        tails = plan.terms.noise_bounds(plan.noise, "best", other)
        gamma = max(2, -(-D * 10**5 // other))
        assert bound <= 2 * tails.sparse_vector(BETA) + (looks + 1) * tails.histogram(BETA) + gamma
    unlimited = make(terms(columns(D), promise, horizon=None, largest=None))
    tails = tails_of(unlimited)
    for j, t in ((1, 1), (7, 16), (100, 4096)):
        kappa = tails.sparse_vector(BETA, t, j) + looks * tails.histogram(BETA, j) + 2
        assert unlimited.rise(j, t) == kappa
        worst = kappa + tails.sparse_vector(BETA, t, j) + tails.histogram(BETA, j)
        assert kappa < unlimited.error(BETA, t, j) <= worst


def test_bounded_without_limits() -> None:
    """5.5: K_j(t) = K_(j-1) + 3 alpha(t, j), error at most 6 alpha(t, j) + 1."""
    plan = bounded(terms(LARGEST, PURE, horizon=None, largest=None))
    tails = tails_of(plan)
    for j, t in ((1, 1), (7, 16), (100, 4096)):
        alpha = tails.sparse_vector(BETA, t, j) + tails.histogram(BETA, j)
        assert plan.rise(j, t) == 3 * alpha
        assert plan.error(BETA, t, j) <= 6 * alpha + 1


@pytest.mark.parametrize("queries", [LARGEST, columns(D)], ids=repr)
@pytest.mark.parametrize("promise", [PURE, APPROXIMATE], ids=repr)
def test_two_levels(queries: Queries, promise: Promise) -> None:
    """5.4: alpha_Gamma(m) of the m = j - 1 piles so far, Delta_j = K_j + 2 alpha_DM(j) but never above T, beta_j."""
    plan = TwoLevelPlan(terms(queries, promise, largest=None))
    outer, J, beta = plan.outer, plan.outer.intervals, BETA / 2
    assert J is not None
    tails = tails_of(outer)
    K_1 = outer.rise(1, 1)
    assert tails.sparse_vector(beta) <= K_1, "below that every close is noise"
    bounds = []
    for j in range(1, J + 2):
        inner, gamma = plan.inner(j), tails.summed(beta, j - 1)
        assert inner.terms.base_error == gamma
        assert inner.terms.beta == pytest.approx(beta / (J + 1))
        delta = K_1 * 2 ** (j - 1) + 2 * (tails.sparse_vector(beta) + gamma + j)
        assert inner.terms.largest == min(delta, T)
        assert inner.name == ("bounded" if queries is LARGEST else "noisy-ladders")
        assert plan.error(BETA, None, j) == inner.error(beta / (J + 1))
        bounds.append(plan.error(BETA, None, j))
        rare = inner.error(1e-6 / 2 / (J + 1))
        wider = 3 * (tails.summed(1e-6 / 2, j - 1) - gamma)
        assert plan.error(1e-6, None, j) == rare + wider, "the noise below a segment is bounded for the beta asked for"
        assert j == 1 or wider > 0
    assert bounds == sorted(bounds)
    assert plan.error(BETA) == bounds[-1]


def test_segments_of_a_stream_without_horizon() -> None:
    """No answer of tick t reaches beyond the segment that the bound of tick t is for."""
    plan = TwoLevelPlan(terms(LARGEST, PureDP(40.0), horizon=None, largest=None))
    for t in (1, 10, 1000, 10**6):
        last = plan._last_segment(BETA / 2, t)
        assert plan.outer.rise(1, 1) * 2 ** (last - 1) > t
        assert plan.error(BETA, t) >= max(plan.error(BETA, t, j) for j in range(1, last + 1))
    everything = np.full((20, D), 1000)
    grown = TwoLevelPlan(terms(LARGEST, PureDP(40.0), horizon=None, largest=None, growth=1000))
    release = TwoLevelRelease(grown, simulation(0).source("segments"))
    release.play(everything, 1)
    assert 3 <= release.closes < grown._last_segment(BETA / 2, 20)


@pytest.mark.parametrize("growth", [1, 50])
def test_the_last_segment_is_beyond_what_noise_can_lift_an_answer_to(growth: int) -> None:
    """5.4 without a horizon: the answer of tick t, and the noise of the sparse vector and the piles at its bounds."""
    plan = TwoLevelPlan(terms(LARGEST, PURE, horizon=None, largest=None, growth=growth))
    tails, beta = tails_of(plan.outer), BETA / 2
    for t in (2**k for k in range(20)):
        last = plan._last_segment(beta, t)
        lifted = t * growth + tails.sparse_vector(beta, t, last) + tails.summed(beta, last - 1)
        assert plan.outer.rise(1, 1) * 2 ** (last - 1) > lifted


def test_doubling_watches_one_query_and_bounds_all() -> None:
    """Of several queries the largest climbs from K_(j-1) to K_j; another one may come from 0."""
    alone, among = (doubling(terms(queries, PURE, largest=None)) for queries in (LARGEST, columns(D)))
    for j in range(1, 6):
        assert among.rise(j, 1) == among.rise(1, 1) * 2 ** (j - 1)
        assert alone.rise(j, 1) == alone.rise(1, 1) * 2 ** max(0, j - 2)
