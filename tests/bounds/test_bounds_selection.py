"""Formulas of streaming selection: every number of the specification, and exact margins against exact laws.

Laws of sums of discrete draws are computed here by plain convolution, in floats where 1e-12 is far from any decision
and in mpmath elsewhere.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.formulas import TreeFormula, best_radix
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.stats import norm

from evertally.bounds.selection import (
    L,
    Threshold,
    digit_sum,
    digit_sums,
    gaussian_margin,
    gumbel_margin,
    gumbel_q,
    kbar_rule,
    laplace_margin,
)
from evertally.errors import ConfigurationError
from evertally.theory.selection import (
    discovery_tick,
    eta_rule,
    expected_discovery,
    m,
    release_probability,
    switches_rule,
)
from formulas.conversions import simple_epsilon_of_rho, simple_rho_of_epsilon_delta
from formulas.selection_margins import alpha_1, alpha_AT, alpha_BM, best_radix_formula, eta_theorem, unk_gauss_margin

mp.prec = 256  # one precision for all tests: the setting is global, and files share a process

KINDS = ["paper", "sum", "per_tick"]


# -- the tree: streaming-selection 3.3 ---------------------------------------------------------------------------------

RADIX = [
    (100, 7, 5, 3, 6.000, 0.857),
    (1000, 10, 4, 5, 8.660, 0.866),
    (1024, 11, 6, 4, 8.944, 0.813),
    (10**4, 14, 5, 6, 12.000, 0.857),
    (10**5, 17, 7, 6, 14.697, 0.865),
    (10**6, 20, 4, 10, 17.321, 0.866),
    (10**7, 24, 6, 9, 20.125, 0.839),
    (10**8, 27, 8, 9, 23.812, 0.882),
    (10**9, 30, 4, 15, 25.981, 0.866),
]


@pytest.mark.parametrize(("T", "binary", "radix", "levels", "stddev", "ratio"), RADIX)
def test_the_radix_table(T, binary, radix, levels, stddev, ratio):
    assert L(T, 2) == binary
    assert best_radix_formula(T) == radix
    assert L(T, radix) == levels
    assert levels * math.sqrt(radix - 1) == pytest.approx(stddev, abs=5e-4)
    assert stddev / binary == pytest.approx(ratio, abs=5e-4)


def test_the_radix_numbers_at_1000():
    values = {r: (r - 1) * L(1000, r) ** 2 for r in range(2, 12)}
    assert values == {2: 100, 3: 98, 4: 75, 5: 100, 6: 80, 7: 96, 8: 112, 9: 128, 10: 144, 11: 90}
    exact = {r: TreeFormula(1000, r).variance(TreeFormula(1000, r).worst_tick()) for r in (2, 4, 6)}
    assert exact == {2: 90, 4: 70, 6: 72}
    assert best_radix(1000) == 4


def test_the_mean_gain_of_the_best_radix():
    ratios = []
    for T in np.unique(np.geomspace(10**2, 10**8, 200).astype(int)).tolist():
        r = best_radix_formula(T)
        assert 3 <= r <= 12
        ratios.append(L(T, r) * math.sqrt(r - 1) / L(T, 2))
    assert np.mean(ratios) == pytest.approx(0.860, abs=0.002)


@given(st.integers(2, 3000))
def test_the_radix_of_the_formula_is_the_best_of_all(T):
    assert best_radix_formula(T) == min(range(2, T + 1), key=lambda r: ((r - 1) * L(T, r) ** 2, r))


def test_levels_are_counted_in_integers():
    """10.4: of the 478 pairs (r, T = r^e), floats lose a level in 29, and round numbers are among them."""
    pairs = [(r**e, r, e) for r in range(2, 50) for e in range(1, 40) if r**e <= 10**12]
    assert len(pairs) == 478
    assert all(L(T, r) == e + 1 and L(T - 1, r) == max(e, 1) and L(T + 1, r) == e + 1 for T, r, e in pairs)
    short = [(T, r) for T, r, e in pairs if math.floor(math.log(T, r)) + 1 < e + 1]
    assert len(short) == 29
    assert {(243, 3), (59049, 9), (4913, 17), (10**6, 10), (1000, 10)} <= set(short)


@given(st.integers(1, 5000), st.integers(2, 40))
def test_digit_sums(T, r):
    assert digit_sums(T, r) == dict(sorted(Counter(digit_sum(t, r) for t in range(1, T + 1)).items()))


# -- thresholds: 7.2 and 10.4 ------------------------------------------------------------------------------------------

THRESHOLDS = [
    (1000, 2, 1, 1e-6, 10, 60.978, 50.814, 42.589, 65.379),
    (1000, 4, 1, 1e-6, 5, 52.943, 44.506, 36.942, 56.754),
    (1000, 4, 10, 1e-6, 5, 520.425, 436.056, 360.417, 558.538),
    (10**4, 5, 1, 1e-6, 6, 77.336, 62.596, 52.067, 82.434),
    (10**6, 4, 1, 1e-9, 10, 138.548, 116.005, 96.999, 144.956),
    (1000, 4, 1, 0.05, 5, 34.694, 27.220, 24.314, 39.542),
]


@pytest.mark.parametrize(("T", "r", "tau", "delta", "levels", "paper", "sums", "mean", "chernoff"), THRESHOLDS)
def test_the_threshold_table(T, r, tau, delta, levels, paper, sums, mean, chernoff):
    assert L(T, r) == levels
    found = [m(T, r, tau=tau, delta=delta, kind=kind) for kind in KINDS]
    assert found == pytest.approx([paper, sums, mean], abs=5.1e-4)
    assert m(T, r, tau=tau, delta=delta, tail="chernoff") == pytest.approx(chernoff, abs=5.1e-4)


def test_the_sum_threshold_for_integer_noise():
    found = m(1000, 4, tau=1, delta=1e-6, kind="sum", tail="chernoff")
    assert found == pytest.approx(48.169, abs=5e-4)


@pytest.mark.parametrize("tail", ["gaussian", "chernoff"])
def test_per_tick_thresholds(tail):
    """m_t = 1 + tau sqrt(L digitsum) quantile(delta/T); their mean is the one without a tick."""
    T, r, tau, delta = 200, 3, 2.0, 1e-3
    quantile = norm.isf(delta / T) if tail == "gaussian" else math.sqrt(2 * math.log(T / delta))
    ticks = [m(T, r, tau=tau, delta=delta, kind="per_tick", tail=tail, t=t) for t in range(1, T + 1)]
    expected = [1 + tau * math.sqrt(5 * digit_sum(t, r)) * quantile for t in range(1, T + 1)]
    assert ticks == pytest.approx(expected, rel=1e-6)
    assert m(T, r, tau=tau, delta=delta, kind="per_tick", tail=tail) == pytest.approx(np.mean(ticks))
    flat = m(T, r, tau=tau, delta=delta, kind="sum", tail=tail)
    assert m(T, r, tau=tau, delta=delta, kind="sum", tail=tail, t=9) == pytest.approx(flat)


def test_far_quantiles_stay_finite():
    assert 1 + 5 * math.sqrt(3) * 12 < m(1000, 4, tau=1, delta=1e-40) < 1 + 5 * math.sqrt(3) * 16


def chernoff(kind, T, r, variance, n, t=None):
    """What the threshold n + move promises, at a tick or in all."""
    x = mpf(n + 1)
    v = mpf(variance.numerator) / variance.denominator
    if kind == "per_tick":
        return T * mp.exp(-(x**2) / (2 * digit_sum(t, r) * v))
    if kind == "paper":
        return T * mp.exp(-(x**2) / (2 * (r - 1) * L(T, r) * v))
    return mp.fsum(n_s * mp.exp(-(x**2) / (2 * s * v)) for s, n_s in digit_sums(T, r).items())


@pytest.mark.parametrize("kind", KINDS)
@given(
    T=st.integers(1, 3000),
    r=st.integers(2, 12),
    variance=st.fractions(Fraction(1, 50), 10**6),
    delta=st.fractions(Fraction(1, 10**12), Fraction(9, 10)),
    move=st.integers(1, 10**6),
    data=st.data(),
)
def test_integer_thresholds_are_the_smallest_that_keep_delta(kind, T, r, variance, delta, move, data):
    t = data.draw(st.integers(1, T))
    n = Threshold(kind, T, r, variance, delta, move).at(t) - move
    assert chernoff(kind, T, r, variance, n, t) <= mpf(delta.numerator) / delta.denominator
    # Off by a hair is allowed: numbers are rounded up to 53 bits before they are compared.
    assert n == 0 or chernoff(kind, T, r, variance, n - 1, t) > mpf(delta.numerator) / delta.denominator * (1 - 1e-9)


def test_integer_thresholds_round_the_reference_down_to_the_integer_below():
    """Noise is an integer: "more than 48.17" is "more than 48"."""
    for kind in KINDS:
        for t in (1, 255, 1000):
            real = m(1000, 4, tau=1, delta=1e-6, kind=kind, tail="chernoff", t=t)
            assert Threshold(kind, 1000, 4, Fraction(5), Fraction("1e-6")).at(t) == math.floor(real)


def discrete_gaussian(variance):
    reach = int(14 * math.sqrt(variance)) + 8
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * float(variance)))
    return weights / weights.sum()


def above(pmf, n):
    """P(draw > n) for a symmetric law."""
    return float(pmf[pmf.size // 2 + n + 1 :].sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variance", [Fraction(1, 20), Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("delta", [Fraction(1, 5), Fraction(1, 1000)])
def test_a_single_label_passes_with_probability_at_most_delta(kind, variance, delta):
    """Exact tails of the noise at every tick of T = 20, r = 3, added up; and the bound is not ten times too large."""
    T, r, move = 20, 3, 2
    threshold = Threshold(kind, T, r, variance, delta, move)
    one = discrete_gaussian(variance)
    sums = {1: one}
    for s in range(2, 7):
        sums[s] = np.convolve(sums[s - 1], one)
    ever = sum(above(sums[digit_sum(t, r)], threshold.at(t) - move) for t in range(1, T + 1))
    assert ever <= delta
    if variance > 1 and kind == "sum":
        assert ever > delta / 10


def test_the_gaussian_table_is_not_for_integer_noise():
    """10.4: at small variances the quantile of the normal law lets a label pass more often than delta."""
    wrong = 0
    for variance in (0.05, 0.1, 0.2, 0.3):
        for delta in (1e-2, 1e-3, 1e-4, 1e-6):
            n = math.floor(unk_gauss_margin(tau=math.sqrt(variance), delta=delta))
            law = np.convolve(discrete_gaussian(variance), discrete_gaussian(variance))
            wrong += above(law, n) > delta
            assert above(law, gaussian_margin(2 * Fraction(variance), Fraction(delta))) <= delta
    assert wrong > 0


def test_wrong_thresholds_are_refused():
    for bad in (
        {"kind": "best"},
        {"delta": Fraction(0)},
        {"delta": Fraction(1)},
        {"variance": Fraction(0)},
        {"move": 0},
        {"T": 0},
        {"r": 1},
    ):
        good = {"kind": "sum", "T": 10, "r": 2, "variance": Fraction(1), "delta": Fraction(1, 2)}
        with pytest.raises(ConfigurationError):
            Threshold(**(good | bad))
    with pytest.raises(ConfigurationError, match="per_tick"):
        m(10, 2, tau=1, delta=0.1, kind="best")


# -- margins of one-shot mechanisms ------------------------------------------------------------------------------------


def test_the_margin_of_the_specification():
    assert unk_gauss_margin(tau=1, delta=0.05) == pytest.approx(2.32617, abs=5e-6)
    assert unk_gauss_margin(tau=3, delta=1e-9, tail="chernoff") == pytest.approx(6 * math.sqrt(math.log(1e9)))


@given(st.fractions(Fraction(1, 50), 10**9), st.fractions(Fraction(1, 10**15), Fraction(99, 100)))
def test_gaussian_margins(variance, delta):
    n = gaussian_margin(variance, delta)
    bound = [mp.exp(-(mpf(k) ** 2) * variance.denominator / (2 * variance.numerator)) for k in (n + 1, n)]
    assert bound[0] <= mpf(delta.numerator) / delta.denominator
    assert n == 0 or bound[1] > mpf(delta.numerator) / delta.denominator * (1 - 1e-9)


@pytest.mark.parametrize("variance", [0.05, 0.3, 1, 2.5, 10])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-3, 1e-9])
@pytest.mark.parametrize("draws", [1, 2, 5])
def test_gaussian_margins_hold_for_sums_of_discrete_draws(variance, delta, draws):
    law = one = discrete_gaussian(variance)
    for _ in range(draws - 1):
        law = np.convolve(law, one)
    assert above(law, gaussian_margin(draws * Fraction(variance), Fraction(delta))) <= delta


def laplace_difference(scale, n):
    """P(Z - Z' >= n), summed."""
    p = mp.exp(-1 / scale)
    c = (1 - p) / (1 + p)

    def below(k):  # P(Z' <= k)
        return 1 - p ** (k + 1) / (1 + p) if k >= 0 else p ** (-k) / (1 + p)

    reach = int(60 * scale) + n + 60
    return mp.fsum(c * p ** abs(z) * below(z - n) for z in range(-reach, reach + 1))


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(7, 2), Fraction(20)])
@pytest.mark.parametrize("delta", [Fraction(2, 5), Fraction(1, 20), Fraction(1, 1000), Fraction(1, 10**6)])
def test_laplace_margins_are_exact(scale, delta):
    real = mpf(scale.numerator) / scale.denominator
    n = laplace_margin(scale, delta)
    assert laplace_difference(real, n + 1) <= mpf(delta.numerator) / delta.denominator
    assert n == 0 or laplace_difference(real, n) > mpf(delta.numerator) / delta.denominator


def test_laplace_margins_approach_those_of_the_continuous_law():
    """4.4: q = (1 + x/2) exp(-x)/2 in units of the scale."""
    x = laplace_margin(Fraction(10**6), Fraction("1e-6")) / 1e6
    assert (1 + x / 2) * math.exp(-x) / 2 == pytest.approx(1e-6, rel=1e-4)


@given(st.fractions(Fraction(1, 100), 10**6), st.fractions(Fraction(1, 10**12), Fraction(99, 100)))
def test_gumbel_margins_and_what_they_cost(scale, delta):
    margin = gumbel_margin(scale, delta)
    real, d = mpf(scale.numerator) / scale.denominator, mpf(delta.numerator) / delta.denominator
    assert margin >= -2 * real * mp.log(d)
    assert margin - 1 < -2 * real * mp.log(d) * (1 + mpf(2) ** -50)
    q = gumbel_q(scale, margin)
    true = 1 / (1 + mp.exp(margin / real))
    assert true <= mpf(q.numerator) / q.denominator <= max(true * (1 + mpf(2) ** -50), mpf(2) ** -1074)
    assert q <= 1 / (1 + delta**-2) * (1 + Fraction(1, 2**50)) or margin > 745 * scale


def test_a_gumbel_margin_without_rounding_costs_what_the_specification_says():
    """b = tau/2, margin tau ln(1/delta): q = 1/(1 + delta^-2)."""
    margin, delta = 7, math.exp(-7)
    assert float(gumbel_q(Fraction(1, 2), margin)) == pytest.approx(1 / (1 + delta**-2), rel=1e-12)
    assert gumbel_q(Fraction(1, 10), 10**9) == Fraction(math.ulp(0.0))


# -- sparseGumb: 6.3, 6.4 ----------------------------------------------------------------------------------------------


def test_the_constants_of_sparse_gumbel():
    tau, beta = math.sqrt(6), 0.05
    assert round(alpha_AT(1000, 100, 5, tau=tau, beta=beta)) == 714
    assert round(alpha_BM(1000, 4, 5, tau=tau, beta=beta)) == 251
    assert round(alpha_1(100, 5, tau=tau, beta=beta)) == 52
    assert 1000 < eta_theorem(1000, 100, 4, 5, tau=tau, beta=beta) < 1020
    assert alpha_AT(1000, 100, 0, tau=tau, beta=beta) == 0


@pytest.mark.parametrize(("factor", "s", "expected"), [(0.3, 2, 48), (1, 1, 113), (1, 5, 252), (0.1, 2, 16)])
def test_the_rule_for_eta(factor, s, expected):
    assert round(eta_rule(1000, 100, s, tau=factor * math.sqrt(6))) == expected


def test_rules_of_thumb():
    assert switches_rule(0) >= 1
    assert kbar_rule(3) >= 2 * 3


# -- conversion: 2.1 and 11.1 ------------------------------------------------------------------------------------------


def test_the_conversions_of_the_specification():
    for rho, delta, epsilon in ((0.5, 1e-6, 5.7565), (0.125, 1e-5, 2.5243), (1, 1e-6, 8.4338)):
        assert float(simple_epsilon_of_rho(rho, delta)) == pytest.approx(epsilon, abs=5e-5)
    assert float(simple_rho_of_epsilon_delta(1, 1e-6)) == pytest.approx(0.017469, abs=5e-7)
    assert float(simple_rho_of_epsilon_delta(2, 1e-6)) == pytest.approx(0.067574, abs=5e-7)
    assert math.sqrt(1 / (2 * float(simple_rho_of_epsilon_delta(1, 1e-6)))) == pytest.approx(5.350, abs=5e-4)
    back = simple_epsilon_of_rho(simple_rho_of_epsilon_delta(1.7, 1e-7), 1e-7)
    assert float(back) == pytest.approx(1.7, rel=1e-12)


# -- discovery: 7.3 ----------------------------------------------------------------------------------------------------


def test_lemma_7_5():
    for t in range(1, 1001):
        at = release_probability(12.0, 1000, 4, tau=2, t=t)
        assert at == pytest.approx(float(mp.ncdf(6 / mp.sqrt(5 * digit_sum(t, 4)))), rel=1e-12)
        assert at >= release_probability(12.0, 1000, 4, tau=2)
    assert release_probability(12.0, 1000, 4, tau=2) == pytest.approx(float(mp.ncdf(6 / (mp.sqrt(3) * 5))))


def first_releases(rate, T, r, tau, delta, kind, runs, seed):
    """When a steady item is first released, with continuous noise; T + 1 if never."""
    rng = np.random.default_rng(seed)
    levels = L(T, r)
    active = np.zeros((runs, levels))
    first = np.full(runs, T + 1)
    for t in range(1, T + 1):
        v, rest = 0, t
        while rest % r == 0:
            v, rest = v + 1, rest // r
        active[:, :v] = 0
        active[:, v] += rng.normal(0, tau * math.sqrt(levels), runs)
        height = m(T, r, tau=tau, delta=delta, kind=kind, tail="chernoff", t=t)
        found = math.floor(rate * t) + active.sum(axis=1) > height
        first = np.where(found & (first > T), t, first)
    return first


@pytest.mark.parametrize("kind", KINDS)
def test_discovery_times(kind):
    """A bound on the mean, not far above it; at the tick of probability 1/2, half of the runs release the item or did
    before. 2000 runs, mean within 6 standard errors, a share of 1/2 within 6 of them: false alarms below 1e-8."""
    options = {"tau": 1.5, "delta": 1e-3, "kind": kind}
    T, r, rate = 150, 3, 0.7
    first = np.minimum(first_releases(rate, T, r, **options, runs=2000, seed=700), T)
    bound = expected_discovery(rate, T, r, **options)
    error = 6 * first.std() / math.sqrt(first.size)
    assert first.mean() <= bound + error
    assert bound <= 1.6 * first.mean()
    tick = discovery_tick(rate, T, r, **options)
    assert (first <= tick).mean() >= 0.5 - 6 * 0.5 / math.sqrt(first.size)
    heights = [m(T, r, **options, tail="chernoff", t=t) for t in range(1, T + 1)]
    assert tick == next(t for t in range(1, T + 1) if math.floor(rate * t) >= heights[t - 1])


def test_what_is_never_discovered():
    assert discovery_tick(0.01, 200, 3, tau=1, delta=1e-6) is None
    assert expected_discovery(0.01, 200, 3, tau=1, delta=1e-6) > 199
    assert discovery_tick(1000, 200, 3, tau=1, delta=1e-6) == 1
    assert expected_discovery(1000, 200, 3, tau=1, delta=1e-6) == pytest.approx(1)
