"""The formulas of parameterized-histograms against its own reference numbers (9.6) and its asymptotics (9.7)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.errors import ConfigurationError
from evertally.noise import DiscreteLaplace
from formulas.paper import (
    paper_alpha_Gamma,
    paper_alpha_SV,
    paper_alpha_U,
    paper_alpha_U_gaussian,
    paper_doubling_sigma,
    paper_gaussian_tree_error,
    paper_segments,
    paper_slack,
    paper_tree_error,
    paper_update_sigma,
)
from formulas.partition_blocks import (
    alpha_Gamma,
    alpha_Gamma_gaussian,
    analytic_variance,
    classic_variance,
    err4,
    err4_gaussian,
    errG,
    errL,
    gaussian_max,
    laplace_max,
    laplace_sum,
    lev,
    m,
    summable,
    zcdp_variance,
)
from formulas.partition_bounds import (
    SparseVector,
    calibrated_n,
    max_sum_bound,
    max_sum_bound_at,
    queries_bound,
    rebased_bound,
    rebased_bound_at,
    sparse_count_bound,
)
from formulas.partition_levels import Doubling

# Setting R of 9.6, with the continuous noise that its numbers are for.
D, T, BETA, DELTA, C_MAX = 10, 10**6, 0.1, 1e-6, 1000
FOUR, SIX = (SparseVector.split(1.0, parts, discrete=False) for parts in (4, 6))
TREE_HALF, TREE_THIRD = (partial(errL, d=D, epsilon=1 / parts) for parts in (2, 3))
# The classic Gaussian share of Algorithm 13, (eps/3, delta/(2 e^(2 eps/3))).
SHARE_13 = classic_variance(1 / 3, DELTA / (2 * math.exp(2 / 3)))


def printed(value: float, reference: float) -> bool:
    """Equal to a reference number in all the digits that it is printed with."""
    digits = len(str(reference).partition(".")[2]) if isinstance(reference, float) else 0
    return abs(value - reference) <= 0.5000001 * 10.0**-digits


def test_levels_and_popcounts():
    for n in range(1, 300):
        assert lev(n) == math.floor(math.log2(n)) + 1
        assert m(n) == max(i.bit_count() for i in range(n + 1))
    with pytest.raises(ConfigurationError):
        lev(0)


def test_algorithm_2_in_setting_r():
    bound = max_sum_bound(FOUR, TREE_HALF, c_max=C_MAX, T=T, beta=BETA)
    assert printed(bound.alpha_mu, 137.734)
    assert printed(bound.alpha_tau, 41.236)
    assert printed(bound.err, 7526.3)
    assert printed(bound.K, 23115.7)
    assert printed(bound.bound, 46231.4)
    assert (lev(C_MAX), m(C_MAX), D * lev(C_MAX) / 0.5) == (10, 9, 200)
    assert printed(paper_tree_error(C_MAX, BETA / 3, d=D, epsilon=1.0), 7651.6)
    assert printed(paper_tree_error(C_MAX, BETA / 3, d=D, epsilon=0.5), 15303.1)


@pytest.mark.parametrize(
    ("c_max", "full", "calibrated", "n"),
    [
        (10**3, 46231, 5738, 2),
        (10**4, 75291, 9450, 7),
        (10**5, 104524, 21076, 32),
        (10**6, 138446, 32578, 185),
        (10**7, 186664, 51334, 1169),
        (10**8, 234136, 74339, 8192),
    ],
)
def test_algorithm_2_calibrated(c_max: int, full: int, calibrated: int, n: int):
    assert printed(max_sum_bound(FOUR, TREE_HALF, c_max=c_max, T=T, beta=BETA).bound, full)
    best = max_sum_bound(FOUR, TREE_HALF, c_max=c_max, T=T, beta=BETA, calibrated=True)
    assert printed(best.bound, calibrated)
    assert best.n == n


@given(st.integers(1, 10**9), st.floats(0.1, 50), st.floats(0, 5))
def test_calibrated_n_is_the_least(total: int, start: float, slope: float):
    def growth(n: int) -> float:
        return start + slope * math.log(n)

    n = calibrated_n(total, growth)
    assert n * growth(n) >= total
    assert n == 1 or (n - 1) * growth(n - 1) < total


@pytest.mark.parametrize(
    ("k", "alpha_sv", "tight_sv", "alpha_u", "tight_u", "c", "tight_c", "err", "K"),
    [
        (1, 346.94, 280.93, 61.85, 30.93, 520.42, 311.86, 11289.4, 35429.4),
        (10, 374.57, 294.75, 756.69, 447.42, 2717.22, 742.17, 18540.5, 63773.1),
    ],
)
def test_algorithm_8_in_setting_r(k, alpha_sv, tight_sv, alpha_u, tight_u, c, tight_c, err, K):
    update = partial(laplace_max, scale=3.0 * k, discrete=False)
    bound = queries_bound(SIX, update, TREE_THIRD, k=k, c_max=C_MAX, T=T, beta=BETA)
    assert printed(bound.alpha_SV, tight_sv)
    assert printed(bound.alpha_U, tight_u)
    assert printed(bound.C, tight_c)
    assert printed(bound.err, err)
    assert 3 * (bound.C + bound.err) == bound.K
    assert bound.bound == 2 * bound.K + 1
    common = {"k": k, "c_max": C_MAX, "beta": BETA, "epsilon": 1.0}
    assert printed(paper_alpha_SV(T=T, **common), alpha_sv)
    assert printed(paper_alpha_U(**common), alpha_u)
    assert printed(paper_slack(T=T, **common), c)
    assert printed(3 * (paper_slack(T=T, **common) + bound.err), K)


@pytest.mark.parametrize(
    ("k", "sigma_u", "sigma_tree", "alpha_u", "paper_u", "err", "K"),
    [
        (1, 16.901, 166.48, 79.28, 30.70, 2576.4, 8809.8),
        (10, 53.445, 196.99, 298.59, 101.26, 3968.2, 13684.5),
    ],
)
def test_algorithm_13_in_setting_r(k, sigma_u, sigma_tree, alpha_u, paper_u, err, K):
    sigma = paper_update_sigma(k=k, epsilon=1.0, delta=DELTA)
    assert printed(sigma, sigma_u)
    assert printed(math.sqrt(SHARE_13 * D * lev(k * C_MAX)), sigma_tree)
    tree = partial(errG, d=D, variance=SHARE_13)
    bound = queries_bound(SIX, partial(gaussian_max, sigma=sigma), tree, k=k, c_max=C_MAX, T=T, beta=BETA)
    assert printed(bound.alpha_U, alpha_u)
    assert printed(paper_alpha_U_gaussian(k=k, c_max=C_MAX, beta=BETA, epsilon=1.0, delta=DELTA), paper_u)
    assert printed(bound.err, err)
    assert printed(bound.K, K)


def test_the_calibrated_number_of_intervals_of_algorithm_8():
    update = partial(laplace_max, scale=3.0, discrete=False)
    full = queries_bound(SIX, update, TREE_THIRD, k=1, c_max=10**6, T=T, beta=BETA)
    best = queries_bound(SIX, update, TREE_THIRD, k=1, c_max=10**6, T=T, beta=BETA, calibrated=True)
    assert best.n * (best.alpha_SV + best.err - 1) >= 10**6
    assert best.bound < full.bound / 3


def doubling(noise, **options) -> Doubling:
    return Doubling(FOUR, noise, T=T, beta=BETA, **options)


def test_doubling_in_setting_r():
    level = doubling(partial(alpha_Gamma, d=D, epsilon=0.5))
    assert level.J == 21
    assert printed(level.alpha_tau, 25.783)
    for closes, pure, gaussian, paper in zip(
        (1, 5, 10, 20),
        (534.1, 534.1, 549.7, 777.3),
        (148.2, 331.4, 468.6, 662.8),
        (709.7, 1586.9, 2244.3, 3173.9),
        strict=True,
    ):
        assert printed(level.alpha_Gamma(closes), pure)
        unit = classic_variance(0.5, DELTA * math.exp(-0.5))
        approx = doubling(partial(alpha_Gamma_gaussian, d=D, variance=unit))
        assert printed(approx.alpha_Gamma(closes), gaussian)
        assert printed(paper_alpha_Gamma(closes, d=D, T=T, beta=BETA, epsilon=1.0), paper)
    assert level.alpha_Gamma(0) == 0


def test_gaussian_scales_of_setting_r():
    share = (0.5, DELTA * math.exp(-0.5))
    assert printed(math.sqrt(D * classic_variance(*share)), 34.104)
    assert printed(math.sqrt(D * analytic_variance(*share)), 26.146)
    assert printed(paper_doubling_sigma(d=D, epsilon=1.0, delta=DELTA), 17.326)
    update = analytic_variance(1 / 3, DELTA / (2 * math.exp(1 / 3)))
    assert printed(math.sqrt(update), 12.426)
    assert printed(math.sqrt(10 * update), 39.295)
    # 8.1: made for epsilon, the printed doubling noise is not even enough for the analytic calibration at epsilon/2.
    assert paper_doubling_sigma(d=D, epsilon=1.0, delta=DELTA) ** 2 < D * analytic_variance(*share)
    with pytest.raises(ConfigurationError, match="below 1"):
        classic_variance(1.0, DELTA)


def test_number_of_segments():
    common = {"d": D, "c_max": C_MAX, "T": T, "beta": BETA, "epsilon": 1.0}
    assert printed(paper_segments(**common), 39.4)
    assert printed(paper_segments(**common, delta=DELTA), 58.1)
    assert printed(math.log2(T), 19.9)
    level = doubling(partial(alpha_Gamma, d=D, epsilon=0.5))
    for c_max in (0, 1, 1000, 10**5, 10**6):
        closes = level.closes(c_max)
        radius = level.alpha_Gamma(level.J) + level.alpha_mu + level.alpha_tau
        assert closes <= 1 + math.log2(c_max + radius)  # the sharper bound of 5.1
        assert closes == level.J or 2**closes >= c_max + level.alpha_Gamma(closes) + level.alpha_mu + level.alpha_tau
    # A start above the radius of the test removes the closes that are pure noise.
    late = doubling(partial(alpha_Gamma, d=D, epsilon=0.5), K_1=level.alpha_mu + level.alpha_tau)
    assert late.closes(1000) < level.closes(1000)
    assert late.Delta(1) == math.floor(late.K_1 + 2 * late.alpha_DM(1))


def test_growth_inside_a_segment():
    level = doubling(partial(alpha_Gamma, d=D, epsilon=0.5))
    for j in (1, 2, 11, 21):
        slack = level.alpha_mu + level.alpha_tau + level.alpha_Gamma(j - 1) + j
        assert level.Delta(j) == math.floor(2 ** (j - 1) + 2 * slack)


def test_simulation_r2():
    """9.6, R2: d = 3, T = c_max = 2^17, epsilon = 4, three order statistics, tight C."""
    ticks, four, six = 2**17, SparseVector.split(4.0, 4, discrete=False), SparseVector.split(4.0, 6, discrete=False)
    run = {"c_max": ticks, "T": ticks, "beta": BETA}
    assert printed(max_sum_bound(four, partial(errL, d=3, epsilon=2.0), **run).bound, 8057)
    update = partial(laplace_max, scale=9 / 4, discrete=False)
    assert printed(queries_bound(six, update, partial(errL, d=3, epsilon=4 / 3), k=3, **run).bound, 13788)
    update, tree = gaussian_parts(4.0)
    assert printed(queries_bound(six, update, tree, k=3, **run).bound, 5832)


def gaussian_parts(epsilon: float):
    """Algorithm 13 with three queries and columns, by the classic formula even where epsilon is too large for it."""
    share = 2 * math.log(1.25 * 2 * math.exp(2 * epsilon / 3) / DELTA) / (epsilon / 3) ** 2
    update = partial(gaussian_max, sigma=paper_update_sigma(k=3, epsilon=epsilon, delta=DELTA))
    return update, partial(errG, d=3, variance=share)


def test_simulation_r3():
    """9.6, R3: two-level, epsilon = 4 for each level, T = 2^16, after 16 closes of level 1.

    The specification's 14946 and 6380 give each instance beta/J; beta/(J + 1) of its section 5.4 is a little more.
    """
    ticks = 2**16
    four, six = SparseVector.split(4.0, 4, discrete=False), SparseVector.split(4.0, 6, discrete=False)
    pure = Doubling(four, partial(alpha_Gamma, d=3, epsilon=2.0), T=ticks, beta=BETA)
    unit = 2 * math.log(1.25 * math.exp(2.0) / DELTA) / 2.0**2
    gaussian = Doubling(four, partial(alpha_Gamma_gaussian, d=3, variance=unit), T=ticks, beta=BETA)
    laplace = partial(laplace_max, scale=9 / 4, discrete=False), partial(errL, d=3, epsilon=4 / 3)
    j = 17
    assert (pure.J, pure.beta_j) == (17, BETA / 18)
    for level, (update, tree), right, reference in (
        (pure, laplace, 14987, 14946),
        (gaussian, gaussian_parts(4.0), 6389, 6380),
    ):
        assert printed(level.queries(j, six, update, tree, k=3).bound, right)

        def base(n: int, beta: float, level=level, tree=tree) -> float:
            return tree(n, beta) + level.alpha_Gamma(j - 1)

        same = queries_bound(six, update, base, k=3, c_max=level.Delta(j), T=ticks, beta=BETA / level.J)
        assert printed(same.bound, reference)


def test_two_level_max_sum_carries_the_error_of_level_one():
    level = doubling(partial(alpha_Gamma, d=D, epsilon=0.5))
    first, later = (level.max_sum(j, FOUR, TREE_HALF) for j in (1, 11))
    beta = level.beta_j
    assert first.err == TREE_HALF(level.Delta(1), beta / 3)
    assert later.err == TREE_HALF(level.Delta(11), beta / 3) + level.alpha_Gamma(10)
    assert later.n == level.Delta(11)
    assert level.max_sum(11, FOUR, TREE_HALF, calibrated=True).bound < later.bound


def test_variants():
    run = {"k": 3, "c_max": 1000, "T": T, "beta": BETA}
    v1 = rebased_bound(FOUR, TREE_HALF, **run)
    v2 = rebased_bound(FOUR, TREE_HALF, **run, linear=True)
    e, radius = TREE_HALF(1500, BETA / 3), FOUR.alpha_mu(T, BETA / 3) + FOUR.alpha_tau(1500, BETA / 3)
    assert v1.kappa == pytest.approx(radius + 2 * e + 2)
    assert v1.bound == pytest.approx(2 * radius + 3 * e + 2)
    assert v2.kappa == pytest.approx(radius + 2)
    assert v2.bound == pytest.approx(2 * radius + e + 2)


def test_v3_in_the_setting_of_its_simulation():
    """7.2: total budget 8, d = 3, T = 2^16. Bounds 1.4e3 (with 5e for 3e, order statistics) and 0.55e3 (linear)."""
    test, tree = SparseVector.split(8.0, 4, discrete=False), partial(err4, d=3, epsilon=4.0)
    v3 = rebased_bound_at(test, tree, t=2**16, j=150, beta=BETA)
    assert v3.bound == pytest.approx(2 * v3.alpha_SV + 3 * v3.err + 2)
    assert printed((v3.bound + 2 * v3.err) / 1e3, 1.4)
    # The largest column reaches 0.9 * 2^16, and an interval takes about kappa of it.
    linear = rebased_bound_at(test, tree, t=2**16, j=1, beta=BETA, linear=True)
    j = int(0.9 * 2**16 / linear.kappa)
    assert 500 < rebased_bound_at(test, tree, t=2**16, j=j, beta=BETA, linear=True).bound < 560


def test_moving_thresholds_use_summable_shares():
    """5.5: alpha_mu(t) = (8/eps) ln(pi^2 t^2/(2 beta)) and the same for tau."""
    t, j = 12345, 17
    alpha_mu = 8 * math.log(math.pi**2 * t**2 / (2 * BETA))
    alpha_tau = 4 * math.log(math.pi**2 * j**2 / (2 * BETA))
    assert FOUR.alpha_SV_at(t, j, BETA / 3) == pytest.approx(alpha_mu + alpha_tau)
    tree = partial(err4, d=D, epsilon=0.5)
    bound = max_sum_bound_at(FOUR, tree, t=t, j=j, beta=BETA)
    assert bound == pytest.approx(6 * (alpha_mu + alpha_tau + tree(j, BETA / 3)) + 1)
    assert sum(summable(BETA, i) for i in range(1, 5000)) <= BETA


def test_epoch_trees_are_written_out():
    d, eps, beta, j = 3, 0.5, 0.05, 11  # epochs of 1, 2 and 4 inserts are full, the fourth has e = 3
    b = [d * (i + 1) / eps for i in range(4)]
    V = b[0] ** 2 + b[1] ** 2 + b[2] ** 2 + 4 * b[3] ** 2
    B = 2 * d / (6 * beta / (math.pi**2 * j**2))
    expected = math.sqrt(8 * math.log(B)) * max(math.sqrt(V), b[3] * math.sqrt(math.log(B)))
    assert err4(j, beta, d=d, epsilon=eps) == pytest.approx(expected)
    variance = zcdp_variance(0.01)
    W = variance * d * (1 + 2 + 3 + 4 * 4)
    assert err4_gaussian(j, beta, d=d, variance=variance) == pytest.approx(math.sqrt(2 * math.log(B) * W))
    assert err4(0, beta, d=d, epsilon=eps) == err4_gaussian(0, beta, d=d, variance=variance) == 0


def test_sparse_counting_baseline():
    """4.5: error err + 2 (alpha_mu + alpha_tau) + 2."""
    n, tree = 100, partial(errL, d=1, epsilon=0.5)
    radius = 8 * math.log(3 * T / BETA) + 4 * math.log(3 * n / BETA)
    bound = sparse_count_bound(FOUR, tree, n=n, T=T, beta=BETA)
    assert bound == pytest.approx(tree(n, BETA / 3) + 2 * radius + 2)


def test_printed_gaussian_tree_error_is_too_small():
    assert printed(paper_gaussian_tree_error(10, 0.05, epsilon=1.0, delta=1e-6), 57.3)
    share = 2 * math.log(1.25 / 1e-6)
    assert printed(errG(10, 0.05, d=1, variance=share), 63.5)


@pytest.mark.parametrize("scale", ["1/3", "1", "8"])
@pytest.mark.parametrize("p", [0.3, 1e-3, 1e-9])
def test_discrete_radius_holds_for_the_shipped_law(scale: str, p: float):
    """Of one draw, by its exact tail: P(|Y| > radius) <= p."""
    law, b = DiscreteLaplace(Fraction(scale)), float(Fraction(scale))

    def exceeded(radius: float) -> float:
        beyond = math.floor(radius) + 1
        q = math.exp(-1 / b)
        assert float(law.tail(3)) == pytest.approx(2 * q**3 / (1 + q))
        return 2 * q**beyond / (1 + q)

    assert exceeded(laplace_max(1, p, scale=b)) <= p
    assert laplace_max(1, p, scale=b) > laplace_max(1, p, scale=b, discrete=False)


def test_a_continuous_radius_is_not_enough_for_discrete_noise():
    """b = 1, z = 0.99: the discrete tail is 0.538, the continuous one 0.372 (price-of-continual-release 2.2)."""
    q = math.exp(-1.0)
    assert printed(2 * q / (1 + q), 0.538)
    assert laplace_max(1, 0.372, scale=1.0, discrete=False) < 1 < laplace_max(1, 0.372, scale=1.0)


def test_sums_of_discrete_laplace_obey_lemma_2():
    scales = (2.0, 2.0, 5.0)
    pmf = np.ones(1)
    for b in scales:
        k = np.abs(np.arange(-300, 301))
        pmf = np.convolve(pmf, np.exp(-k / b) * math.tanh(0.5 / b))
    x = np.abs(np.arange(pmf.size) - pmf.size // 2)
    for p in (0.5, 0.1, 1e-3, 1e-6):
        radius = laplace_sum(sum(b * b for b in scales), max(scales), p)
        assert pmf[x > radius].sum() <= p


def test_discrete_thresholds_are_integers_and_never_smaller():
    discrete = SparseVector.split(1.0, 4)
    real, whole = (max_sum_bound(test, TREE_HALF, c_max=C_MAX, T=T, beta=BETA) for test in (FOUR, discrete))
    assert whole.K == int(whole.K) >= real.K
    assert whole.bound - real.bound < 12


@given(st.floats(0.05, 2000), st.integers(1, 20), st.integers(1, 10**6), st.booleans())
def test_side_conditions_hold_for_every_epsilon(epsilon: float, d: int, c_max: int, discrete: bool):
    """8.14: with huge epsilon the radii would be too small for the proofs."""
    four, six = (SparseVector.split(epsilon, parts, discrete) for parts in (4, 6))
    one = max_sum_bound(four, partial(errL, d=d, epsilon=epsilon / 2), c_max=c_max, T=T, beta=BETA)
    assert one.alpha >= 3
    assert 3 * one.alpha <= one.K
    assert one.bound * (1 + 1e-12) >= 5 * one.alpha + one.err + 2  # what the proof shows
    assert one.select_bound <= one.K + 4 * one.alpha
    update = partial(laplace_max, scale=3 * d / epsilon, discrete=discrete)
    many = queries_bound(six, update, partial(errL, d=d, epsilon=epsilon / 3), k=d, c_max=c_max, T=T, beta=BETA)
    assert many.alpha_SV + many.err >= 3
    assert many.alpha_SV + many.alpha_U <= many.C
    assert many.bound * (1 + 1e-12) >= many.K + many.C + 3 * many.err + many.alpha_SV + 2 * many.alpha_U + 1


def test_doubling_the_horizon_adds_a_constant_whatever_d_is():
    """9.7: 48 ln 2/epsilon, the paper's headline: no product of d and log T."""
    for d in (1, 10, 1000):
        for epsilon in (0.5, 1.0):
            test = SparseVector.split(epsilon, 4, discrete=False)
            tree = partial(errL, d=d, epsilon=epsilon / 2)
            once, twice = (max_sum_bound(test, tree, c_max=C_MAX, T=t, beta=BETA).bound for t in (T, 2 * T))
            assert twice - once == pytest.approx(48 * math.log(2) / epsilon)


def test_growth_with_the_answer():
    """9.7: linear in log^2 c_max with a slope proportional to d/epsilon; Gaussian noise sqrt(d) log^(3/2)."""
    c_max = 2**1000
    for d, epsilon in ((1, 1.0), (10, 1.0), (10, 0.25)):
        test = SparseVector.split(epsilon, 4, discrete=False)
        bound = max_sum_bound(test, partial(errL, d=d, epsilon=epsilon / 2), c_max=c_max, T=T, beta=BETA).bound
        # 6 err, err = (2d/eps) lev sqrt(8 m ln n) in the limit
        assert bound / (1000**2 * d / epsilon) == pytest.approx(12 * math.sqrt(8 * math.log(2)), rel=0.02)
        raw = errL(2**1000, BETA, d=d, epsilon=epsilon)
        assert raw / (1000**2 * d / epsilon) == pytest.approx(math.sqrt(8 * math.log(2)), rel=0.02)
    for d in (1, 10):
        gaussian = errG(2**1000, BETA, d=d, variance=1.0)
        assert gaussian / (1000**1.5 * math.sqrt(d)) == pytest.approx(math.sqrt(2 * math.log(2)), rel=0.02)
