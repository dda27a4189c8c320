"""The error formulas of all processes: closed forms against sums over ticks, and against the specification."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import formulas
from evertally.theory.frontier import gaussian_frontier, pure_frontier

HORIZONS = st.integers(1, 700)


def agrees_with_sums(formula: formulas.Formula) -> None:
    variances = [formula.variance(t) for t in range(1, formula.horizon + 1)]
    assert formula.variance(formula.worst_tick()) == pytest.approx(max(variances), rel=1e-12)
    assert formula.mean_variance() == pytest.approx(math.fsum(variances) / len(variances), rel=1e-10)
    assert formula.worst == pytest.approx(math.sqrt(max(variances)))
    assert formula.rms <= formula.worst * (1 + 1e-12)
    assert formula.stddev(formula.worst_tick()) == formula.worst


@settings(deadline=None, max_examples=60)
@given(HORIZONS, st.integers(2, 40), st.booleans())
def test_tree(horizon, radix, pure):
    agrees_with_sums(formulas.TreeFormula(horizon, radix, pure))


@settings(deadline=None, max_examples=40)
@given(HORIZONS, st.booleans())
def test_honaker(horizon, pure):
    agrees_with_sums(formulas.HonakerFormula(horizon, pure))


@settings(deadline=None, max_examples=30)
@given(HORIZONS)
def test_sqrt(horizon):
    agrees_with_sums(formulas.SqrtFormula(horizon))


@settings(deadline=None, max_examples=40)
@given(HORIZONS, st.booleans())
def test_epoch_tree(horizon, pure):
    agrees_with_sums(formulas.EpochTreeFormula(horizon, pure))


COMPARISON = [  # factorization-counting 8.4: T, worst of sqrt and tree, root mean square of sqrt and tree
    (2**8, 2.83, 8.49, 2.669, 6.003),
    (2**10, 3.27, 10.49, 3.110, 7.417),
    (2**12, 3.71, 12.49, 3.551, 8.832),
    (2**16, 4.596, 16.492, 4.434, 11.662),
]


@pytest.mark.parametrize(("T", "sqrt", "tree", "sqrt_rms", "tree_rms"), COMPARISON)
def test_comparison_of_the_specification(T, sqrt, tree, sqrt_rms, tree_rms):
    assert formulas.SqrtFormula(T).worst == pytest.approx(sqrt, abs=5e-3)
    assert formulas.TreeFormula(T).worst == pytest.approx(tree, abs=5e-3)
    assert formulas.SqrtFormula(T).rms == pytest.approx(sqrt_rms, abs=6e-4)
    assert formulas.TreeFormula(T).rms == pytest.approx(tree_rms, abs=6e-4)
    m = T.bit_length() - 1
    assert formulas.TreeFormula(T).rms == pytest.approx(math.sqrt((m + 1) * (m / 2 + 2.0**-m)))


def test_profile_of_the_square_root_counter():
    root = formulas.SqrtFormula(2**16)
    ticks, expected = (1, 16, 256, 4096, 32768, 65536), (2.1439, 2.9891, 3.6073, 4.1317, 4.4848, 4.5964)
    assert [root.stddev(t) for t in ticks] == pytest.approx(expected, abs=6e-5)


def test_the_tree_is_better_at_exactly_five_ticks():
    root, tree = formulas.SqrtFormula(2**16), formulas.TreeFormula(2**16)
    assert [t for t in range(1, 2**16 + 1) if tree.variance(t) < root.variance(t)] == [2**k for k in range(12, 17)]
    assert tree.worst / root.worst == pytest.approx(3.588, abs=5e-4)
    assert tree.rms / root.rms == pytest.approx(2.630, abs=5e-4)


@pytest.mark.parametrize(
    ("mechanism", "formula"),
    [
        ("binary tree", formulas.TreeFormula),
        ("Honaker tree (causal)", formulas.HonakerFormula),
        ("sqrt Toeplitz", formulas.SqrtFormula),
    ],
)
def test_the_gaussian_frontier_is_reproduced(mechanism, formula):
    entries = [entry for entry in gaussian_frontier() if entry.mechanism == mechanism]
    assert len(entries) == 6
    for entry in entries:
        assert formula(entry.horizon).worst == pytest.approx(entry.worst, abs=6e-6)
        assert formula(entry.horizon).rms == pytest.approx(entry.rms, abs=6e-6)


def test_the_pure_frontier_is_reproduced():
    found = 0
    for entry in pure_frontier():
        if entry.mechanism == "binary tree":
            formula: formulas.Formula = formulas.TreeFormula(entry.horizon, 2, pure=True)
        elif entry.mechanism == "Honaker tree (causal)":
            formula = formulas.HonakerFormula(entry.horizon, pure=True)
        elif entry.mechanism == "k-ary":
            formula = formulas.TreeFormula(entry.horizon, formulas.best_radix(entry.horizon, pure=True), pure=True)
        else:
            continue
        found += 1
        assert formula.worst**2 == pytest.approx(entry.worst**2, abs=6e-3)
        if entry.mechanism != "k-ary":  # its mean is listed for another radix
            assert formula.rms**2 == pytest.approx(entry.rms**2, abs=6e-3)
    assert found == 18


def test_long_horizons_are_instant():
    for formula in (
        formulas.TreeFormula(2**40, 16),
        formulas.HonakerFormula(2**40),
        formulas.SqrtFormula(2**40),
        formulas.EpochTreeFormula(2**32 - 1),
    ):
        assert 0 < formula.rms < formula.worst
