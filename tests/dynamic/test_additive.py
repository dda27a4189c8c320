"""Additive static mechanisms: exact losses, deviations and tails."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from static_laws import log_probability

from evertally.dynamic.families import Boxes, Count, Marginals, Points, Queries, Ranges
from evertally.dynamic.parts import Place
from evertally.dynamic.static import Additive, make_static
from evertally.dynamic.strategies import Explicit, Hierarchies
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, DiscreteLaplace, ZeroNoise, simulation
from evertally.privacy import ZCDP, PureDP

SOME = Queries({"a": [0.5, 1, 0, 0.25], "b": [1, 1, 0, 0], "c": [0, 0.125, 1, 1]}, range(4))
CASES = [
    ("histogram", Count()),
    ("histogram", Points(["a", "b", "c"])),
    ("hierarchy", Ranges(size=13)),
    ("hierarchy", Boxes([4, 5])),
    ("square-root", Ranges(size=17)),
    ("marginals", Marginals({"a": 2, "b": 3, "c": 2}, order=2)),
    ("matrix", SOME),
]
IDS = [f"{name}-{family.kind}" for name, family in CASES]
BUDGETS = [PureDP(Fraction(1, 3)), PureDP(2), ZCDP(Fraction(1, 7)), ZCDP(3)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(("name", "family"), CASES, ids=IDS)
def test_no_item_moves_more_than_is_paid_for(name, family, budget):
    """M(empty) against M({x}), for every cell: the largest loss of a row is e^eps, or rho at every order."""
    pure = isinstance(budget, PureDP)
    static = make_static(name, family, pure=pure)
    law = static.law(budget)
    losses = []
    for item in np.eye(family.cells, dtype=np.int64):
        column = [Fraction(abs(x)) for x in static.strategy.apply(item).tolist()]
        if pure:
            assert isinstance(law, DiscreteLaplace)
            losses.append(sum(column) / law.scale / budget.exact_epsilon)
        else:
            assert isinstance(law, DiscreteGaussian)
            losses.append(sum(x * x for x in column) / (2 * law.sigma_squared) / budget.exact_rho)
    assert max(losses) <= 1
    if law not in (DiscreteLaplace(Fraction(1, 10)), DiscreteGaussian(Fraction(1, 100))):
        assert max(losses) > 1 - Fraction(1, 2**30)  # scales are rounded up, by less than nobody would notice


def test_likelihood_ratios_of_whole_rows():
    """All rows within reach: ln P(row | {x})/P(row | empty) is at most eps, and reaches it."""
    static = make_static("hierarchy", Ranges(size=3), pure=True, options={"fanout": 2})
    budget = PureDP(1)
    law = static.law(budget)
    worst = 0.0
    for item in np.eye(3, dtype=np.int64):
        column = static.strategy.apply(item)
        for row in itertools.product(range(-2, 4), repeat=static.width):
            with_item = math.fsum(log_probability(law, int(y - a)) for y, a in zip(row, column, strict=True))
            without = math.fsum(log_probability(law, int(y)) for y in row)
            worst = max(worst, abs(with_item - without))
    assert worst == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(Fraction(1, 2))], ids=str)
@pytest.mark.parametrize(("name", "family"), CASES, ids=IDS)
def test_errors_are_as_announced(name, family, budget):
    """Standard deviations of 2000 releases within 6 standard errors; all queries at once fail at most as announced."""
    static = make_static(name, family, pure=isinstance(budget, PureDP))
    data = np.random.default_rng(1).integers(0, 100, family.cells)
    source = simulation(8).source("errors")
    rows = np.array([static.fit(data, budget, Place(source, "static", node)) for node in range(2000)])
    queries = family.workload()
    answers = rows @ np.array([static.weights(query) for query in queries]).T / static.unit
    off = answers - np.array([family.vector(query) @ data for query in queries]) / family.unit
    for query, errors in zip(queries, off.T, strict=True):
        announced = static.stddev([budget], query)
        assert errors.std() == pytest.approx(announced, rel=0.16)  # 6 standard errors, kurtosis up to 6
        assert abs(errors.mean()) < 6 * announced / math.sqrt(2000)
        beyond = (np.abs(errors) > static.error([budget], 0.1, None, query)).mean()
        assert beyond <= 0.1 + 6 * math.sqrt(0.09 / 2000)
    together = (np.abs(off).max(axis=1) > static.error([budget], 0.1, None)).mean()
    assert together <= 0.1 + 6 * math.sqrt(0.09 / 2000)


def test_independent_releases_add_up_by_squares():
    static = make_static("histogram", Count(), pure=True)
    one, four = static.stddev([PureDP(1)], "count"), static.stddev([PureDP(1)] * 4, "count")
    assert four == pytest.approx(2 * one)
    mixed = static.stddev([PureDP(1), PureDP(Fraction(1, 2))], "count")
    assert mixed == pytest.approx(math.hypot(one, static.stddev([PureDP(Fraction(1, 2))], "count")))
    assert static.stddev([], "count") == static.error([], 0.05, None) == 0
    assert static.error([PureDP(1)] * 4, 0.05, None) < 4 * static.error([PureDP(1)], 0.05 / 4, None)


def test_one_scaled_draw_keeps_its_own_bound():
    """A weight that is not 1: |w Z| exceeds w ceil(b ln(1/beta)), not ceil(w b ln(1/beta))."""
    family = Points(["a"])
    static = Additive(family, Explicit(family, np.array([[3]])))
    law = static.law(PureDP(1))
    for beta in (0.3, 0.1, 0.01, 1e-4):
        radius = static.error([PureDP(1)], beta, None, "a")
        q = math.exp(-1 / float(law.scale))
        k = math.floor(radius * 3 + 1e-9) + 1  # |Z|/3 > radius
        assert 2 * q**k / (1 + q) <= beta


def test_a_large_budget_has_the_smallest_noise_there_is():
    static = make_static("histogram", Count(), pure=True)
    assert static.law(PureDP(1000)) == DiscreteLaplace(Fraction(1, 10))
    assert static.law(ZCDP(10**6)) == DiscreteGaussian(Fraction(1, 100))
    with pytest.raises(ConfigurationError):
        static.law(PureDP(Fraction(1, 2**50)))


def test_prefix_counts_with_gaussian_noise_beat_the_hierarchy():
    family = Ranges(size=1024)
    root, tree = (make_static(name, family, pure=False) for name in ("square-root", "hierarchy"))
    budget = ZCDP(Fraction(1, 2))
    assert root.stddev([budget], (0, 1023)) == pytest.approx(3.27, rel=0.01)
    assert root.error([budget], 0.05, None) < 0.75 * tree.error([budget], 0.05, None)


def test_lanes_of_two_strategies_differ():
    family = Ranges(size=8)
    addresses = {Additive(family, Hierarchies(family, [b])).address for b in (2, 3, 4)}
    assert len(addresses) == 3


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_answers_without_noise_are_counts_of_items(seed):
    """Items one by one, queries by their meaning, against rows and weights."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 7, size=rng.integers(1, 4)).tolist()
    items = [[int(rng.integers(0, n)) for n in shape] for _ in range(int(rng.integers(0, 40)))]
    if rng.random() < 0.5:
        family, names = Boxes(shape), ("histogram", "hierarchy", "square-root")
        query = [sorted(rng.integers(0, n, size=2).tolist()) for n in shape]
        true = sum(all(low <= x <= high for x, (low, high) in zip(item, query, strict=True)) for item in items)
    else:
        family = Marginals({f"a{i}": n for i, n in enumerate(shape)}, int(rng.integers(0, len(shape) + 1)))
        names = ("histogram", "marginals")
        asked = rng.permutation(len(shape))[: rng.integers(0, family.order + 1)].tolist()
        query = {f"a{i}": int(rng.integers(0, shape[i])) for i in asked}
        true = sum(all(item[i] == query[f"a{i}"] for i in asked) for item in items)
    data = np.zeros(family.cells, dtype=np.int64)
    for item in items:
        data[family.cell(item)] += 1
    for name in names:
        static = make_static(name, family, pure=bool(rng.random() < 0.5))
        row = static.fit(data, PureDP(1), Place(ZeroNoise().source(), "static", 1))
        assert float(static.weights(query) @ row) / static.unit == pytest.approx(true, abs=1e-6)
