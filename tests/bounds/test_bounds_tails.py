"""Tail radii against the exact laws of small sums, by convolution.

All terms of a convolution are positive, so its float results have full relative precision also deep in the tail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evertally.bounds.tails import Spread, laplace_radius
from evertally.counting.process import spread_of
from evertally.noise import DiscreteGaussian, DiscreteLaplace

BETAS = (0.9, 0.5, 1 / 3, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12)

Pmf = NDArray[np.float64]  # probabilities of -n .. n


def laplace(scale: float) -> Pmf:
    k = np.arange(math.ceil(40 * scale) + 1)
    half = np.exp(-k / scale) * math.tanh(0.5 / scale)
    return np.concatenate([half[:0:-1], half])


def gaussian(sigma: float) -> Pmf:
    k = np.arange(math.ceil(11 * sigma) + 2)
    half = np.exp(-(k * k) / (2 * sigma * sigma))
    return np.concatenate([half[:0:-1], half]) / (2 * half.sum() - half[0])


def total(pmfs: Sequence[Pmf]) -> Pmf:
    pmf = np.ones(1)
    for other in pmfs:
        pmf = np.convolve(pmf, other)
    return pmf


def stretched(pmf: Pmf, weight: int) -> Pmf:
    """The law of weight * Z."""
    out = np.zeros((pmf.size - 1) * weight + 1)
    out[::weight] = pmf
    return out


def exceeds(pmf: Pmf, radius: float, unit: int = 1) -> float:
    """P(|X| > radius) for X = (lattice number)/unit, rounded half up to an integer if unit > 1."""
    x = np.arange(pmf.size) - pmf.size // 2
    values = x if unit == 1 else np.floor_divide(2 * x + unit, 2 * unit)
    return float(pmf[np.abs(values) > radius].sum())


def covered(spread: Spread, pmf: Pmf, unit: int = 1, betas: Sequence[float] = BETAS) -> None:
    for beta in betas:
        assert exceeds(pmf, spread.radius(beta), unit) <= beta * (1 + 1e-9), beta


@pytest.mark.parametrize("scale", [0.3, 1, 3, 10, 50])
def test_sums_of_discrete_laplace(scale):
    law = DiscreteLaplace(scale)
    pmf = np.ones(1)
    for n in range(1, 9):
        pmf = np.convolve(pmf, laplace(scale))
        covered(spread_of(law, n, 1.0), pmf)


@pytest.mark.parametrize("sigma", [0.3, 1, 2.9, 3, 3.1, 5, 10, 50])
def test_sums_of_discrete_gaussians(sigma):
    law = DiscreteGaussian(sigma**2)
    pmf = np.ones(1)
    for n in range(1, 9):
        pmf = np.convolve(pmf, gaussian(sigma))
        covered(spread_of(law, n, 1.0), pmf)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from([3, 4, 5, 7, 11, 20]), min_size=1, max_size=6), st.booleans())
def test_sums_of_different_scales(scales, pure):
    law, pmf_of = (DiscreteLaplace, laplace) if pure else (lambda s: DiscreteGaussian(s**2), gaussian)
    spread = spread_of(law(scales[0]), 1.0, 1.0)
    for scale in scales[1:]:
        spread = spread + spread_of(law(scale), 1.0, 1.0)
    covered(spread, total([pmf_of(scale) for scale in scales]))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=5), st.sampled_from([3.0, 4.5, 9.0]))
def test_weighted_sums_that_are_rounded(weights, sigma):
    # Noise e = sum (w/8) Z, released as floor(e + 1/2): the shape of the square-root counter on its grid.
    spread = spread_of(DiscreteGaussian(sigma**2), sum(w * w for w in weights) / 64, max(weights) / 8, roundings=1)
    covered(spread, total([stretched(gaussian(sigma), w) for w in weights]), unit=8)


HONAKER = {  # ticks: weights of all noisy nodes in the estimate of 1..t, over a common denominator
    1: ([1], 1),
    2: ([2, 1, 1], 3),
    3: ([3, 2, 1, 1], 3),
    4: ([12, 6, 6, 3, 3, 3, 3], 21),
    5: ([21, 12, 6, 6, 3, 3, 3, 3], 21),
}


@pytest.mark.parametrize("tick", HONAKER)
@pytest.mark.parametrize("pure", [True, False])
def test_refined_trees(tick, pure):
    # Here the declared peak, one node, is above the largest weight, and the sum of squares may be below its square.
    weights, unit = HONAKER[tick]
    law, pmf = (DiscreteLaplace(3), laplace(3)) if pure else (DiscreteGaussian(9), gaussian(3))
    spread = spread_of(law, sum(w * w for w in weights) / unit**2, 1.0, roundings=1)
    cut = pmf[pmf.size // 4 : pmf.size - pmf.size // 4]  # what is cut off is below 1e-8
    covered(spread, total([stretched(cut, w) for w in weights]), unit, betas=[b for b in BETAS if b >= 1e-6])


def test_the_value_of_the_specification():
    assert laplace_radius(10.0, 1.0, 1 / (3 * 8192)) == pytest.approx(25.0128, abs=5e-5)


def test_the_laplace_radius_is_the_closed_form():
    # u = (sqrt(n^2 + y^2) - n)/y is the best theta: at y = Y(n, p) the bound equals p.
    for n in (2, 3, 10, 100):
        for p in (0.3, 1e-3, 1e-9):
            y = laplace_radius(float(n), 1.0, p)
            u = (math.hypot(n, y) - n) / y
            assert 2 * math.exp(-n * math.log1p(-u * u) - u * y) == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize("sigma", [3.0, 3.5, 10.0, 1e6])
def test_the_normal_quantile_is_used_from_scale_3(sigma):
    spread = spread_of(DiscreteGaussian(sigma**2), 4.0, 1.0)
    for beta in (0.5, 0.05, 1e-6):
        quantile = NormalDist().inv_cdf(1 - beta / 2) * 2 * sigma + 0.5
        assert spread.radius(beta) == pytest.approx(quantile, rel=1e-9)
        if sigma >= 10:
            assert spread.radius(beta) < math.sqrt(2 * 4 * sigma**2 * math.log(2 / beta))


def test_below_scale_3_it_is_chernoff():
    spread = spread_of(DiscreteGaussian(4), 2.0, 1.0)
    assert spread.radius(0.05) == pytest.approx(math.sqrt(2 * 8 * math.log(40)))


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 50.0])
def test_variances_are_those_of_the_laws(scale):
    k = np.arange(laplace(scale).size) - laplace(scale).size // 2
    assert spread_of(DiscreteLaplace(scale), 1, 1).variance == pytest.approx(float(laplace(scale) @ (k * k)), rel=1e-9)
    k = np.arange(gaussian(scale).size) - gaussian(scale).size // 2
    found = spread_of(DiscreteGaussian(scale**2), 1, 1).variance
    assert found == pytest.approx(float(gaussian(scale) @ (k * k)), rel=1e-9)


def test_radius_grows_as_beta_falls_and_no_noise_is_no_error():
    spread = spread_of(DiscreteLaplace(7), 5.0, 1.0)
    radii = [spread.radius(beta) for beta in BETAS]
    assert radii == sorted(radii)
    assert Spread("gaussian", 0.0, 0.0, 0.0, 1.0).radius(0.05) == 0.0
    for beta in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="probability"):
            spread.radius(beta)
