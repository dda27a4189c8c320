"""Draws follow the exact law, written here again in mpmath. False-alarm rate of each chi-square test: at most 1e-6."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from noise_reference import (
    FALSE_ALARM,
    Z_BOUND,
    chi_square_p,
    gaussian_pmf,
    gaussian_tails,
    laplace_pmf,
    laplace_tails,
    law_p,
)

from evertally.noise import DiscreteGaussian, DiscreteLaplace, round_up, simulation

N = 1_000_000
LAPLACE = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(10)]
GAUSSIAN = [Fraction(1, 100), Fraction(3, 10), Fraction(1), Fraction(7), Fraction(100)]


def draws(law, seed, n=N):
    return simulation(seed).source("law").draws("lane", law, range(n // 1000), 1000).ravel()


@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_laplace_has_the_exact_law(scale):
    assert law_p(draws(DiscreteLaplace(scale), 100), laplace_pmf(scale)) > FALSE_ALARM


@pytest.mark.parametrize("sigma_squared", GAUSSIAN, ids=str)
def test_gaussian_has_the_exact_law(sigma_squared):
    z = draws(DiscreteGaussian(sigma_squared), 101)
    if sigma_squared == Fraction(1, 100):  # anything but 0 has probability 4e-22, so 4e-16 in all
        assert not z.any()
    assert law_p(z, gaussian_pmf(sigma_squared)) > FALSE_ALARM


def test_the_interpreted_path_has_the_exact_law():
    """20000 single draws of each kind; false-alarm rate 3 x 3e-7."""
    source = simulation(102).source("law")
    for lane, law, pmf in (
        ("a", DiscreteLaplace(Fraction(7, 3)), laplace_pmf(Fraction(7, 3))),
        ("b", DiscreteGaussian(7), gaussian_pmf(Fraction(7))),
        ("c", DiscreteGaussian(100), gaussian_pmf(Fraction(100))),
    ):
        z = np.concatenate([source.draws(lane, law, range(i, i + 25)).ravel() for i in range(0, 20000, 25)])
        assert law_p(z, pmf) > 0.3 * FALSE_ALARM


def test_the_chi_square_test_can_fail():
    """A planted bug: a scale wrong by 1 %, a missing correction of the shift, no sign."""
    z = draws(DiscreteLaplace(Fraction(7, 3)), 103)
    assert law_p(z, laplace_pmf(Fraction(7, 3))) > FALSE_ALARM
    assert law_p(z, laplace_pmf(Fraction(7, 3) * Fraction(101, 100))) < FALSE_ALARM
    assert law_p(np.abs(z), laplace_pmf(Fraction(7, 3))) < FALSE_ALARM
    continuous = np.rint(np.sqrt(7) * np.random.default_rng(1).standard_normal(N)).astype(np.int64)
    assert law_p(continuous, gaussian_pmf(Fraction(7))) < FALSE_ALARM


LARGE = {
    "laplace 1e3": (DiscreteLaplace(1000), 6, N),
    "laplace 1e6": (DiscreteLaplace(10**6), 6, N),
    "laplace 2^40": (DiscreteLaplace(2**40), 6, 200_000),
    "gaussian 1e3": (DiscreteGaussian(10**6), 3, N),
    "gaussian 1e6": (DiscreteGaussian(10**12), 3, N),
    "gaussian 2^40": (DiscreteGaussian(2**80), 3, 200_000),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_scales(name):
    """Mean, variance and mean magnitude within 6 standard errors (2e-9 each); last four bits uniform (chi-square,
    1e-6 less that). The last bits see what moments cannot: a wrong shift by a fraction of one."""
    law, kurtosis, n = LARGE[name]
    z = draws(law, 104, n)
    x = z / law.stddev()
    assert abs(x.mean()) * np.sqrt(n) < Z_BOUND
    assert abs((x * x).mean() - 1) * np.sqrt(n / (kurtosis - 1)) < Z_BOUND
    magnitude = np.sqrt(0.5) if kurtosis == 6 else np.sqrt(2 / np.pi)
    assert abs(np.abs(x).mean() - magnitude) * np.sqrt(n / (1 - magnitude**2)) < Z_BOUND
    counts = np.bincount(z & 15, minlength=16).tolist()
    assert chi_square_p(counts, [n / 16] * 16) > 0.9 * FALSE_ALARM


@pytest.mark.parametrize("scale", [*LAPLACE, Fraction(1000)], ids=str)
def test_laplace_tails_and_stddev(scale):
    law = DiscreteLaplace(scale)
    tails = laplace_tails(scale, 100)
    with ctx.workprec(200):
        assert law.tail(0) == 1
        for k in {1, 2, 3, len(tails) // 2 or 1, len(tails)}:
            assert close(law.tail(k), tails[k - 1])
    q = mp.exp(-1 / (mpf(scale.numerator) / scale.denominator))
    assert law.stddev() == pytest.approx(float(mp.sqrt(2 * q) / (1 - q)), rel=1e-14)


@pytest.mark.parametrize("sigma_squared", [*GAUSSIAN, Fraction(500**2)], ids=str)
def test_gaussian_tails_and_stddev(sigma_squared):
    law = DiscreteGaussian(sigma_squared)
    tails = gaussian_tails(sigma_squared, 100)
    with ctx.workprec(128):
        assert law.tail(0) == 1
        for k in {1, 2, len(tails) // 2, len(tails)} & set(range(1, len(tails) + 1)):
            assert close(law.tail(k), tails[k - 1])
    if sigma_squared <= 100:
        pmf = gaussian_pmf(sigma_squared)
        variance = 2 * mp.fsum(z * z * pmf(z) for z in range(1, 200))
        assert law.stddev() == pytest.approx(float(mp.sqrt(variance)), rel=1e-14)


def close(value: arb, reference: mpf) -> bool:
    """The ball must hold the reference (up to the reference's own last bits) and be narrow."""
    exact = arb(str(mp.nstr(reference, 60)))
    slack = abs(exact) * arb(2) ** -190
    return (value + arb(0, slack.upper())).overlaps(exact) and float(value.rad()) < 1e-25 * float(exact.mid())


@pytest.mark.parametrize("sigma", [512, 600])
def test_wide_tails_are_the_plain_sums(sigma):
    """Euler-Maclaurin with its remainder, against summation in mpmath and against the package's own sums."""
    law = DiscreteGaussian(sigma**2)
    assert law.is_wide()
    tails = gaussian_tails(Fraction(sigma**2), 90)
    ks = sorted({1, 2, 3, 10, 100, sigma, 2 * sigma, 5 * sigma, 9 * sigma, len(tails)})
    with ctx.workprec(256):
        for k in ks:
            wide = law._wide_tail(k)
            assert close(wide, tails[k - 1])
            if k in (1, sigma, 9 * sigma):
                assert wide.overlaps(law._summed_tail(k))
                assert float((wide - law._summed_tail(k)).abs_upper()) < 1e-70


def test_wide_tails_fall():
    for sigma_squared in (Fraction(512**2), Fraction(10**9, 7), Fraction(2**80)):
        law = DiscreteGaussian(sigma_squared)
        s = int(law.stddev())
        with ctx.workprec(256):
            assert law.tail(0) == 1
            ks = [0, 1, 2, 3, s // 2, s // 2 + 1, s, s + 1, 3 * s, 3 * s + 1, 7 * s, 7 * s + 1]
            tails = [law.tail(k) for k in ks]
            assert all(right < left for left, right in pairwise(tails))
            assert tails[-1] > 0


def test_wide_tails_beyond_the_reach_of_the_series_are_summed():
    """Past some 3200 bits the asymptotic series cannot deliver; the slow path must not stall there."""
    law = DiscreteGaussian(512**2)
    with ctx.workprec(3600):
        tail = law.tail(400)
        assert float(tail.rad().log()) < -3400 * 0.69
    with ctx.workprec(1000):
        assert law._wide_tail(400).overlaps(tail)


@pytest.mark.parametrize("sigma_squared", [Fraction(512**2), Fraction(600**2), Fraction(10**8), Fraction(10**8, 3)])
def test_the_distance_between_wide_gaussian_and_normal_quantile(sigma_squared):
    """samplers.md, section 3: z_k = x (1 + 1/(24 s^2)) + eta, |eta| <= (x^3 + 9 x + 16)/(282 s^4), and z_k >= x."""
    law = DiscreteGaussian(sigma_squared)
    s_float = float(sigma_squared) ** 0.5
    ks = {1, 2, 3, 4, 5, *np.unique(np.geomspace(6, 7.3 * s_float, 120).astype(int)).tolist()}
    largest = 0.0
    with ctx.workprec(256):
        s = arb(sigma_squared.numerator) / sigma_squared.denominator
        s = s.sqrt()
        for k in sorted(ks):
            x = (arb(k) - arb(1) / 2) / s
            z = arb(2).sqrt() * law.tail(k).erfcinv()
            eta = z - x * (1 + 1 / (24 * s * s))
            share = abs(eta) * 282 * s**4 / (x**3 + 9 * x + 16)
            assert share < 1, k
            assert z > x
            largest = max(largest, float(share.mid()))
    assert largest > 0.05, "a bound far from the truth would hide an error in this test"


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(10**25)), st.integers(2, 60))
def test_round_up(value, digits):
    rounded = round_up(value, digits)
    assert value <= rounded <= value * (1 + Fraction(4, 2**digits))
    numerator, denominator = rounded.numerator, rounded.denominator
    assert denominator & (denominator - 1) == 0
    assert (numerator // (numerator & -numerator)).bit_length() <= digits
    assert round_up(rounded, digits) == rounded


@pytest.mark.parametrize("exponent", [-30, -1, 0, 1, 17, 80])
def test_round_up_at_powers_of_two(exponent):
    power = Fraction(2) ** exponent
    assert round_up(power) == power
    for nudge in (Fraction(1, 10**30), Fraction(1, 2**60)):
        above, below = round_up(power * (1 + nudge)), round_up(power * (1 - nudge))
        assert power < above <= power * (1 + Fraction(1, 2**38))
        assert below == power


def test_round_up_refuses_nonsense():
    for value in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="positive"):
            round_up(value)
