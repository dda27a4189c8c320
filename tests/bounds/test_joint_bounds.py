"""Bounds for all ticks at once: they hold, and they are not much larger than what happens.

Fixed seeds. Coverage: Binomial(runs, beta) exceeds what is allowed here with probability below 1e-6. Tightness: the
bound is compared with a quantile of the same runs, taken at a probability that the (1 - beta)-quantile of the true law
exceeds with probability below 1e-6, so that a false alarm is as rare.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import evertally as et
from evertally.bounds.joint import GaussianPath, above, of_column, tree_maximum
from evertally.counting.choose import build
from evertally.counting.process import path_bound
from evertally.noise import DiscreteGaussian, DiscreteLaplace

PURE, CONCENTRATED = et.PureDP(1.0), et.ZCDP(0.05)
CASES: list[tuple[str, Any, int, float]] = [  # mechanism, guarantee, horizon, how much larger than what happens
    ("tree", PURE, 365, 1.05),
    ("tree", PURE, 4096, 1.05),
    ("tree", et.PureDP(0.001), 1000, 1.05),
    ("tree", CONCENTRATED, 1000, 1.05),
    ("tree", et.ZCDP(1e-6), 4095, 1.05),
    ("honaker", CONCENTRATED, 1000, 1.06),
    ("honaker", PURE, 1023, 1.06),
    ("sqrt", CONCENTRATED, 1000, 1.08),
    ("sqrt", et.ZCDP(0.0005), 4096, 1.1),
]
RUNS = 1500


def largest_noise(counter: Any, runs: int) -> np.ndarray:
    """The largest |noise| over all ticks, in so many independent columns."""
    T = counter.horizon
    setting = replace(counter._setting, columns=runs, memory_limit=2**40)
    process = build(counter._choice, setting, et.simulation(77).source("joint"))
    found = np.zeros(runs, dtype=np.int64)
    for start in range(0, T, 1024):
        found = np.maximum(found, np.abs(process.advance(min(1024, T - start))).max(axis=0))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}, {case[1]}, T={case[2]}")
def test_they_hold_and_are_tight(case: tuple[str, Any, int, float]) -> None:
    mechanism, guarantee, T, factor = case
    counter = et.Counter(guarantee=guarantee, horizon=T, mechanism=mechanism, key=et.simulation(0))
    errors = np.sort(largest_noise(counter, RUNS))
    for beta in (0.3, 0.1):
        bound = counter.error_bound(beta)
        assert np.sum(errors > bound) <= binom.isf(1e-6, RUNS, beta)
        # fewer runs than this above the true quantile: once in a million
        few = int(binom.ppf(1e-6, RUNS, beta))
        assert bound <= factor * errors[-few] + 1, f"{bound} for {np.quantile(errors, 1 - beta)}"
        union = counter.noise.worst().radius(beta / T)
        assert bound < union


def test_columns_are_independent() -> None:
    """The bound on d columns is that of one at 1 - (1 - beta)^(1/d), and holds for all of them together."""
    assert of_column(0.1, 1) == 0.1
    assert (1 - of_column(0.1, 20)) ** 20 == pytest.approx(0.9)
    assert of_column(0.1, 20) > 0.1 / 20
    wide = et.VectorCounter(8, guarantee=et.ZCDP(0.05), horizon=200, mechanism="tree", key=et.simulation(1))
    runs, beta = 400, 0.2
    process = build(wide._choice, replace(wide._setting, columns=8 * runs), et.simulation(5).source("wide"))
    errors = np.abs(process.advance(200)).max(axis=0).reshape(runs, 8).max(axis=1)
    assert np.sum(errors > wide.error_bound(beta)) <= binom.isf(1e-6, runs, beta)


@pytest.mark.parametrize(
    ("mechanism", "guarantee", "T", "near"),
    [("epoch-tree", PURE, 255, 0.2), ("bank-open", et.ZCDP(0.005), 255, 0.2), ("epoch-blocks", PURE, 32 + 1024, 0.1)],
    ids=repr,
)
def test_without_a_horizon_they_hold_for_all_epochs_together(
    mechanism: str, guarantee: Any, T: int, near: float
) -> None:
    counter = et.Counter(guarantee=guarantee, horizon=None, mechanism=mechanism, key=et.simulation(1))
    runs, beta = 600, 0.3
    process = build(counter._choice, replace(counter._setting, columns=runs), et.simulation(6).source("epochs"))
    bound = np.array([counter.error_bound(beta, t=t) for t in range(1, T + 1)])
    failures = np.sum(np.any(np.abs(process.advance(T)) > bound[:, None], axis=0))
    assert failures <= binom.isf(1e-6, runs, beta)
    assert failures > near * beta * runs, "and it is not far away"


def test_bounds_for_single_ticks_hold_together() -> None:
    counter = et.Counter(guarantee=PURE, horizon=512, mechanism="tree", radix=2, key=et.simulation(1))
    runs, beta = 1000, 0.3
    process = build(counter._choice, replace(counter._setting, columns=runs), et.simulation(7).source("ticks"))
    bound = np.array([counter.error_bound(beta, t=t) for t in range(1, 513)])
    assert np.sum(np.any(np.abs(process.advance(512)) > bound[:, None], axis=0)) <= binom.isf(1e-6, runs, beta)
    assert bound[0] < bound.max() <= counter.error_bound(beta), "less where the noise has hardly begun"


@pytest.mark.parametrize("radix", [2, 3, 5])
@pytest.mark.parametrize("T", [1, 2, 4, 6])
def test_the_law_of_a_tree_is_exact_on_small_trees(radix: int, T: int) -> None:
    """All paths of draws from -2..2, one by one, against the recursion."""
    law = DiscreteLaplace(1)
    values = np.arange(-2, 3)
    masses = above("laplace", 1.0, values - 1.0) - above("laplace", 1.0, values * 1.0)
    maximum = tree_maximum("laplace", float(law.scale), radix, T, 60.0, 1)
    draws = np.stack(np.meshgrid(*[values] * T, indexing="ij"), axis=-1).reshape(-1, T)
    weight = np.prod(masses[draws + 2], axis=1)
    noise = np.zeros((len(draws), T + 1), dtype=np.int64)
    for t in range(1, T + 1):
        v = next(v for v in range(20) if t // radix**v % radix)
        noise[:, t] = draws[:, t - 1] + noise[:, t - radix**v]
    missing = 1 - weight.sum()
    for x in range(4):
        exact = float(weight[noise.max(axis=1) > x].sum())
        assert exact - 1e-9 <= maximum.tail(x) <= exact + missing + 1e-9


def test_hunters_bound_lies_between_one_tick_and_all_of_them() -> None:
    variances, x = np.full(50, 4.0), 5.0
    one = float(0.5 * math.erfc(x / 2 / math.sqrt(2)))
    for correlation in (0.0, 0.5, 0.9, 0.999):
        tail = GaussianPath.of(variances, correlation * variances[:-1]).tail(x)
        assert one * (1 - 1e-5) <= tail <= 50 * one * (1 + 1e-9)
    assert GaussianPath.of(variances, 0.999 * variances[:-1]).tail(x) < 0.1 * 50 * one


def test_tails_of_draws() -> None:
    for kind, law, scale in (
        ("laplace", DiscreteLaplace(3), 3.0),
        ("gaussian", DiscreteGaussian(9), 3.0),
        ("gaussian", DiscreteGaussian(2000**2), 2000.0),
    ):
        draws = np.sort(et.simulation(3).source("draws").draws("z", law, range(1, 40001))[:, 0])
        for k in (-int(scale), 0, int(scale), int(2.5 * scale)):
            p = float(above(kind, scale, np.array([float(k)]))[0])  # type: ignore[arg-type]
            assert abs(np.mean(draws > k) - p) <= 6 * math.sqrt(p * (1 - p) / 40000)


def test_they_are_there_for_long_streams_and_tiny_probabilities() -> None:
    for guarantee in (PURE, CONCENTRATED, et.PureDP(1e-6)):
        counter = et.Counter(guarantee=guarantee, horizon=2**30, mechanism="tree", key=et.simulation(0))
        bounds = [counter.error_bound(beta) for beta in (0.5, 0.05, 1e-6, 1e-12, 1e-40)]
        assert bounds == sorted(bounds)
        assert all(math.isfinite(bound) for bound in bounds)
        assert path_bound(counter.noise, 0.05, 1) <= bounds[1]
