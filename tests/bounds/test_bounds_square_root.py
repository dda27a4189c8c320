"""The square-root factor: factorization-counting 2.1, 2.2 and its tests 14.1, items 1 to 8."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.formulas import S_mean, f, f_exact
from mpmath import mp

from evertally.bounds.square_root import SQRT_CONSTANT, S, S_expansion, coefficients
from evertally.errors import ConfigurationError
from evertally.theory.frontier import mathias_lower, mathias_upper
from formulas.conversions import ideal_gaussian_delta, ideal_gaussian_rho
from formulas.paper import paper_C, paper_psi
from formulas.square_root_exact import S_exact, S_upper, g_exact

LONGEST = 2**20


@pytest.fixture(scope="module")
def all_S() -> np.ndarray:
    """S_1 .. S_{2^20}, summed in extended precision."""
    return np.cumsum(coefficients(LONGEST).astype(np.longdouble) ** 2)


def test_the_factors_multiply_to_prefix_sums():
    values = [f_exact(k) for k in range(256)]
    # L R is Toeplitz and lower triangular, so its first column is all of it, for every T <= 256 at once.
    for i in range(256):
        assert sum((values[j] * values[i - j] for j in range(i + 1)), Fraction(0)) == 1


def test_the_factors_multiply_to_prefix_sums_in_floats():
    T = 2**14
    spectrum = np.fft.rfft(coefficients(T), 2 * T)
    assert np.max(np.abs(np.fft.irfft(spectrum**2)[:T] - 1)) < 1e-12


def test_first_values():
    values = [Fraction(*v) for v in [(1, 1), (1, 2), (3, 8), (5, 16), (35, 128), (63, 256), (231, 1024), (429, 2048)]]
    assert [f_exact(k) for k in range(8)] == values


def test_recurrence_closed_form_and_integral_agree():
    value = Fraction(1)
    for k in range(51):
        if k:
            value *= Fraction(2 * k - 1, 2 * k)
        assert f_exact(k) == value
        integral = mp.quad(lambda th, k=k: mp.cos(th) ** (2 * k), [0, mp.pi / 4, mp.pi / 2]) * 2 / mp.pi
        assert f(k) == pytest.approx(float(integral), rel=1e-13)


@pytest.mark.parametrize("k", [10**3, 1023, 1024, 1025, 10**6, 2**24, 2**40])
def test_large_coefficients(k):
    with mp.workdps(60):
        truth = mp.gamma(mp.mpf(k) + 0.5) / (mp.sqrt(mp.pi) * mp.gamma(mp.mpf(k) + 1))
        assert abs(f(k) / truth - 1) < 1e-14
    by_lgamma = math.exp(math.lgamma(k + 0.5) - math.lgamma(k + 1)) / math.sqrt(math.pi)
    if k <= 10**6:  # float lgammas cancel
        assert f(k) == pytest.approx(by_lgamma, rel=1e-8)


def test_running_product_is_as_good_as_the_closed_form():
    values = coefficients(LONGEST)
    for k in (1, 17, 1000, 2**15, LONGEST - 1):
        assert values[k] == pytest.approx(f(k), rel=1e-12)
    assert [coefficients(n).size for n in (0, 1, 2, 5)] == [0, 1, 2, 5]


def test_wallis_bounds():
    for k in range(1, 300):
        assert 1 / math.sqrt(math.pi * (k + 4 / math.pi - 1)) <= f(k) * (1 + 1e-15)
        assert f(k) <= 1 / math.sqrt(math.pi * (k + 0.25))


def test_identities():
    values, inverse = [f_exact(k) for k in range(120)], [g_exact(k) for k in range(120)]
    for t in range(1, 120):
        assert sum(values[:t]) == 2 * t * values[t]
        assert sum(inverse[: t + 1]) == values[t]
        assert sum((values[i] * inverse[t - i] for i in range(t + 1)), Fraction(0)) == 0
    assert values[0] == inverse[0] == 1


TABLE = [  # factorization-counting 7.1: T, S_T, paper's Psi, 1 + ln(T)/pi, Mathias' lower and upper bounds
    (1, 1.000000, 2.865424, 1.000000, 1.000000, 1.000000),
    (2, 1.250000, 2.086059, 1.220636, 1.060660, 1.207107),
    (8, 1.718379, 1.777330, 1.661907, 1.286447, 1.643508),
    (10, 1.791344, 1.798359, 1.732936, 1.335856, 1.714415),
    (11, 1.822389, 1.810516, 1.763274, 1.357871, 1.744715),
    (32, 2.166975, 2.031102, 2.103178, 1.633975, 2.084461),
    (64, 2.388848, 2.220487, 2.323814, 1.833285, 2.305080),
    (256, 2.831050, 2.638321, 2.765085, 2.255121, 2.746347),
    (1024, 3.272554, 3.073733, 3.206356, 2.690242, 3.187617),
    (4096, 3.713884, 3.513539, 3.647627, 3.129653, 3.628889),
    (65536, 4.596444, 4.395624, 4.530170, 4.011492, 4.511431),
    (2**20, 5.478988, 5.278137, 5.412712, 4.893978, 5.393973),
    (2**44, 10.774242, 10.573390, 10.707966, 10.189228, 10.689228),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
def test_the_table_of_the_specification(row):
    T, *expected = row
    found = [S(T), paper_psi(T), 1 + math.log(T) / math.pi, mathias_lower(T), mathias_upper(T)]
    assert found == pytest.approx(expected, abs=6e-7)


def test_bounds_on_S_for_all_horizons(all_S):
    T = np.arange(1, LONGEST + 1, dtype=np.longdouble)
    logs = np.log(T) / np.longdouble(math.pi)
    assert np.all(all_S >= 1 + logs - 1e-15)
    assert np.all(all_S < np.longdouble(SQRT_CONSTANT) + logs)
    assert np.all(all_S <= 1 + np.log((4 * T - 1) / 3) / np.longdouble(math.pi) + 1e-15)
    assert np.all(np.diff(all_S - logs)[: 2**18] > 0)  # beyond, the increments drown in rounding
    limit = T * np.longdouble(math.pi) * (all_S - np.longdouble(SQRT_CONSTANT) - logs)
    assert float(limit[2**13]) == pytest.approx(-0.25, abs=1e-4)


def test_S_at_any_horizon(all_S):
    assert float(S_exact(200)) == pytest.approx(S(200), rel=1e-15)
    for T in (1, 2, 3, 100, 4095, 4096, 4097, 10**5, LONGEST):
        assert S(T) == pytest.approx(float(all_S[T - 1]), rel=1e-13)
        assert S(T) < S_upper(T)
    assert S_expansion(4096) == pytest.approx(S(4096), rel=1e-15)
    # one float above the real constant, so that S_upper is a bound
    with mp.workdps(40):
        assert 0 < mp.mpf(SQRT_CONSTANT) - (mp.euler + 4 * mp.log(2)) / mp.pi < 1e-15


def test_mean_of_S():
    partial = Fraction(0)
    for T in range(1, 60):
        partial += S_exact(T)
        assert S_mean(T) == pytest.approx(float(partial / T), rel=1e-14)
    assert S_mean(2**16) == pytest.approx(S(2**16) - 1 / math.pi, abs=1e-4)


def test_the_published_bound_fails_from_11_on(all_S):
    assert S(11) > paper_psi(11)
    assert S(10) < paper_psi(10)
    assert all(S(T) > paper_psi(T) for T in (11, 12, 100, 4096, LONGEST, 2**44))


def test_norms_are_monotone():
    # Column j of R has squared norm S_{T-j+1}, row t of L has S_t.
    rows = [S(t) for t in range(1, 300)]
    assert all(a < b for a, b in pairwise(rows))


def test_gram_matrix_order():
    T = 24
    r = [f_exact(k) for k in range(T)]
    gram = [[sum(r[i - s] * r[i - t] for i in range(max(s, t), T)) for t in range(T)] for s in range(T)]
    largest = S_exact(T)
    for s in range(T):
        for t in range(s, T):
            assert 0 <= gram[s][t] <= largest
            if s:  # non-increasing in |s - t| for a fixed larger index
                assert gram[s - 1][t] <= gram[s][t]
    for s in range(T):
        for t in range(s + 1, T):
            for u in range(t + 1, T):
                assert gram[s][u] <= min(gram[s][t], gram[t][u])


SIGMAS = [  # factorization-counting 3.1: epsilon, delta, C, exact sigma_1
    (0.8, 1e-10, 12.053139, 7.271154),
    (0.5, 1e-10, 19.285022, 11.436240),
    (0.1, 1e-10, 96.425109, 54.206296),
    (0.5, 1e-6, 14.984880, 8.057618),
    (0.9, 1e-5, 7.611420, 4.106624),
]


@pytest.mark.parametrize(("epsilon", "delta", "c", "sigma"), SIGMAS)
def test_the_published_constant_is_no_standard_deviation(epsilon, delta, c, sigma):
    assert paper_C(epsilon, delta) == pytest.approx(c, abs=6e-7)
    rho = ideal_gaussian_rho(Fraction(epsilon), Fraction(delta))
    exact = 1 / math.sqrt(2 * rho)
    assert exact == pytest.approx(sigma, abs=6e-7)
    assert paper_C(epsilon, delta) / math.sqrt(2) > exact
    assert float(ideal_gaussian_delta(math.sqrt(2 * rho), epsilon)) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: S(0),
        lambda: f_exact(-1),
        lambda: S_upper(-3),
        lambda: paper_psi(0),
        lambda: paper_C(1.0, 1e-6),
        lambda: paper_C(0.5, 0.0),
        lambda: mathias_lower(0),
    ],
)
def test_refusals(call):
    with pytest.raises(ConfigurationError):
        call()
