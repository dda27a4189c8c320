"""Tree and recompute bounds against the tables of price-of-continual-release 3.8, 10.1 and 10.2."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.bounds.recompute import Period, best_period, period_from, periods, releases
from evertally.errors import ConfigurationError
from formulas.paper import paper_m_max_sum, paper_m_select, paper_tree_select
from formulas.recompute_bounds import (
    A_g,
    A_l,
    Selection,
    recompute_gaussian,
    recompute_laplace,
    recompute_select_pure,
    recompute_select_zcdp,
    tree_select_gaussian,
    tree_select_laplace,
    tree_sigma,
    trivial_max_sum,
)

THIRD = 1 / 3


def exact_inverse(epsilon: float, delta: float) -> float:
    """The rho of the specification's tables (2.1, second row); the product converts better."""
    L = math.log(1 / delta)
    return (epsilon / (math.sqrt(L + epsilon) + math.sqrt(L))) ** 2


def best_gaussian(T: int, rho: float) -> Period:
    return best_period(T, partial(recompute_gaussian, T, rho=rho, beta=THIRD))


def best_laplace(T: int, epsilon: float, discrete: bool = False) -> Period:
    return best_period(T, partial(recompute_laplace, T, epsilon=epsilon, beta=THIRD, discrete=discrete))


def best_select(T: int, d: int, rho: float, selection: Selection) -> Period:
    return best_period(T, lambda r: recompute_select_zcdp(T, r, d, rho=rho, beta=THIRD, selection=selection))


def shown(period: Period) -> tuple[float, int, int]:
    return round(period.alpha, 2), period.r, period.m


@pytest.mark.parametrize(
    ("log_T", "epsilon", "delta", "rho", "gaussian", "d_gaussian", "laplace", "d_laplace"),
    [
        (16, 1, 1e-8, 0.0132154, (629.65, 226, 290), 1, (1224.68, 662, 99), 2),
        (20, 0.5, 1e-9, 0.00298009, (2753.22, 980, 1070), 3, (7494.82, 3987, 263), 4),
        (20, 1, 1e-9, 0.0117812, (1769.66, 634, 1654), 5, (5426.46, 2865, 366), 5),
        (24, 1, 1e-10, 0.0106278, (4893.09, 1725, 9726), 19, (23640.01, 12511, 1341), 17),
        (30, 1, 1e-12, 0.00888769, (22325.65, 7802, 137624), 171, (210391.85, 109992, 9762), 101),
    ],
)
def test_crossovers(log_T, epsilon, delta, rho, gaussian, d_gaussian, laplace, d_laplace):
    """3.8: best periods, and up to which d the tree's bound is no larger."""
    T, exact = 2**log_T, exact_inverse(epsilon, delta)
    assert exact == pytest.approx(rho, rel=5e-6)
    g, la = best_gaussian(T, exact), best_laplace(T, epsilon)
    assert shown(g) == gaussian
    assert shown(la) == laplace
    for d, wins in ((d_gaussian, True), (d_gaussian + 1, False)):
        assert (A_g(T, d, rho=exact, beta=THIRD) <= g.alpha) is wins
    for d, wins in ((d_laplace, True), (d_laplace + 1, False)):
        assert (A_l(T, d, epsilon=epsilon, beta=THIRD) <= la.alpha) is wins


def test_pure_can_beat_zcdp_for_an_approximate_target():
    T, rho = 1000, exact_inverse(0.1, 1e-6)
    assert shown(best_gaussian(T, rho)) == (506.11, 200, 5)
    assert shown(best_laplace(T, 0.1)) == (334.40, 200, 5)
    assert trivial_max_sum(T) == 500


def test_planner_at_a_small_horizon():
    """10.1 (11): T = 1024, d = 8, epsilon = 1, delta = 1e-6."""
    T, d, rho = 1024, 8, exact_inverse(1, 1e-6)
    assert shown(best_gaussian(T, rho)) == (124.25, 49, 21)
    assert shown(best_laplace(T, 1)) == (124.94, 64, 16)
    assert shown(best_laplace(T, 1, discrete=True)) == (125.0, 64, 16)
    assert shown(best_select(T, d, rho, "permute-and-flip")) == (285.55, 114, 9)
    assert shown(best_select(T, d, rho, "exponential")) == (188.78, 79, 13)
    pure = best_period(T, lambda r: recompute_select_pure(T, r, d, epsilon=1, beta=THIRD))
    assert shown(pure) == (209.76, 114, 9)
    assert (paper_m_max_sum(T, rho=rho), paper_m_max_sum(T, epsilon=1)) == (13, 12)
    assert (paper_m_select(T, d, rho=rho), paper_m_select(T, d, epsilon=1)) == (6, 10)


@pytest.mark.parametrize(
    ("T", "d", "sigma", "alpha"),
    [(64, 1, 2.6458, 22.36), (1024, 1, 3.3166, 43.81), (1024, 8, 9.3808, 137.89), (1000, 8, 8.9443, 124.59)],
)
def test_explicit_bounds_of_the_gaussian_tree(T, d, sigma, alpha):
    """10.2, rho = 0.5."""
    assert tree_sigma(T, d, rho=0.5) == pytest.approx(sigma, abs=5e-5)
    assert A_g(T, d, rho=0.5, beta=THIRD) == pytest.approx(alpha, abs=5e-3)


@pytest.mark.parametrize(("T", "d", "alpha"), [(64, 1, 99.51), (1024, 1, 240.50), (1024, 8, 2201.1)])
def test_explicit_bounds_of_the_laplace_tree(T, d, alpha):
    """10.2, epsilon = 1."""
    assert A_l(T, d, epsilon=1.0, beta=THIRD) == pytest.approx(alpha, abs=0.5 * 10 ** -(2 if alpha < 1000 else 1))


def test_explicit_bounds_of_selection_from_the_tree():
    assert tree_select_gaussian(1024, 8, rho=0.5, beta=THIRD) == pytest.approx(206.00, abs=5e-3)
    assert tree_select_gaussian(1000, 8, rho=0.5, beta=THIRD) == pytest.approx(186.15, abs=5e-3)
    assert paper_tree_select(1024, 8, rho=0.5) == pytest.approx(1867.9, abs=0.05)
    assert tree_select_gaussian(1024, 1, rho=0.5, beta=THIRD) == 0
    laplace = tree_select_laplace(1024, 8, epsilon=1.0, beta=THIRD)
    assert laplace == 2 * A_l(1024, 8, epsilon=1.0, beta=THIRD)


def test_explicit_bounds_of_recomputation():
    assert recompute_gaussian(1024, 49, rho=0.0174689, beta=THIRD) == pytest.approx(124.25, abs=5e-3)
    assert recompute_gaussian(65536, 226, rho=0.0132154, beta=THIRD) == pytest.approx(629.65, abs=5e-3)


def test_slopes():
    """10.2: log-log slopes over factors of 4, first and last; they fall towards 1/3, 1/2, 1/3 and 1/2, 1."""

    def slope(alpha, first: int) -> float:
        return math.log(alpha(4 * first) / alpha(first)) / math.log(4)

    cases = (
        (lambda T: best_gaussian(T, 0.01).alpha, 2**16, 2**22, 0.361, 0.354),
        (lambda T: best_laplace(T, 1.0).alpha, 2**16, 2**22, 0.539, 0.530),
        (lambda T: best_select(T, 64, 0.01, "permute-and-flip").alpha, 2**16, 2**22, 0.374, 0.366),
        (lambda d: A_g(1024, d, rho=0.5, beta=THIRD), 4, 64, 0.546, 0.537),
        (lambda d: A_l(1024, d, epsilon=1.0, beta=THIRD), 4, 64, 1.059, 1.048),
    )
    for alpha, first, last, early, late in cases:
        assert slope(alpha, first) == pytest.approx(early, abs=6e-4)
        assert slope(alpha, last) == pytest.approx(late, abs=6e-4)


@pytest.mark.parametrize("T", [1, 2, 3, 7, 10, 37, 100, 299, 300])
def test_the_enumeration_misses_no_number_of_releases(T: int):
    smallest = {releases(T, r): r for r in range(T, 0, -1)}
    assert list(periods(T)) == sorted((r, m) for m, r in smallest.items())
    assert len(list(periods(T))) <= 2 * math.sqrt(T) + 1


@given(st.integers(1, 300), st.floats(1e-4, 5), st.integers(2, 50), st.floats(0.01, 0.9))
def test_best_period_is_the_best_of_all(T: int, budget: float, d: int, beta: float):
    bounds = (
        partial(recompute_gaussian, T, rho=budget, beta=beta),
        partial(recompute_laplace, T, epsilon=budget, beta=beta),
        lambda r: recompute_select_pure(T, r, d, epsilon=budget, beta=beta),
        lambda r: recompute_select_zcdp(T, r, d, rho=budget, beta=beta, selection="exponential"),
    )
    for alpha in bounds:
        best = best_period(T, alpha)
        assert best.alpha == alpha(best.r) == min(alpha(r) for r in range(1, T + 1))
        assert best.m == releases(T, best.r)


def test_recomputations_are_counted_right():
    """P1: ticks t with (t - 1) mod r = 0 among 1..T, not the paper's floor((T - 1)/r)."""
    for T in range(1, 60):
        for r in range(1, T + 1):
            assert releases(T, r) == sum((t - 1) % r == 0 for t in range(1, T + 1))
    for T, r in ((10, 0), (10, 11)):
        with pytest.raises(ConfigurationError, match="between 1 and the horizon"):
            releases(T, r)


@given(st.integers(1, 10**6), st.integers(-5, 10**6))
def test_a_wished_number_of_releases_is_not_exceeded(T: int, m0: int):
    r, m = period_from(T, m0)
    nominal = min(max(m0, 1), T)
    assert m == releases(T, r) <= nominal
    assert (r - 1) * nominal < T


def test_discrete_laplace_radius_is_rounded_up():
    """10.1 (15): at small scales the rounded radius holds exactly, the continuous one does not."""
    epsilon, beta = 2.0, 0.3
    scale = 1 / epsilon
    q = math.exp(-1 / scale)

    def exceeded(alpha: float) -> float:
        return 2 * q ** (math.floor(alpha) + 1) / (1 + q)

    assert exceeded(recompute_laplace(1, 1, epsilon=epsilon, beta=beta)) <= beta
    worst = 0.14
    assert exceeded(recompute_laplace(1, 1, epsilon=epsilon, beta=worst, discrete=False)) > worst
    assert exceeded(recompute_laplace(1, 1, epsilon=epsilon, beta=worst)) <= worst


def test_vectors_and_drift():
    """3.6: prefix sums of d columns have D2 = sqrt(d), D1 = d, q = d."""
    T, r, d, beta = 1000, 50, 9, 0.1
    m = 20
    gaussian = recompute_gaussian(T, r, rho=0.5, beta=beta, sensitivity=3.0, coordinates=d, drift=2.0)
    assert gaussian == pytest.approx(2 * (r - 1) + 3 * math.sqrt(m * math.log(2 * m * d / beta) / 0.5))
    laplace = recompute_laplace(T, r, epsilon=0.5, beta=beta, sensitivity=9.0, coordinates=d)
    assert laplace == (r - 1) + math.ceil(9 * m / 0.5 * math.log(m * d / beta))


def test_restricted_rows_lower_the_tree_only_through_the_change():
    T, d = 1000, 50
    assert A_g(T, d, rho=0.5, beta=0.1, change=2) == pytest.approx(A_g(T, d, rho=0.5, beta=0.1) / 5)
    assert A_l(T, d, epsilon=0.5, beta=0.1, change=2) == pytest.approx(A_l(T, d, epsilon=0.5, beta=0.1) / 25)


def test_one_column_needs_no_selection():
    assert recompute_select_pure(100, 10, 1, epsilon=1.0, beta=0.1) == 0
    assert recompute_select_zcdp(100, 10, 1, rho=1.0, beta=0.1, selection="exponential") == 0


def test_the_paper_falls_back_to_the_trivial_mechanism():
    assert paper_m_max_sum(1000, rho=1e-9) == paper_m_select(1000, 5, rho=1e-9) == 0
    assert paper_m_max_sum(1, epsilon=1.0) == 0
    with pytest.raises(ConfigurationError, match="either rho or epsilon"):
        paper_m_max_sum(1000)
