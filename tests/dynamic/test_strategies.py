"""Strategies: norms by brute force over the cells, answers by brute force over the queries."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.dynamic.families import Boxes, Count, HalfSpaces, Marginals, Points, Queries, Ranges
from evertally.dynamic.strategies import (
    Asked,
    Axis,
    Explicit,
    Hierarchies,
    Identity,
    Load,
    SquareRoot,
    Tables,
    best_matrix,
    optimised,
)
from evertally.errors import ConfigurationError

RNG = np.random.default_rng(11)
SOME = Queries({f"q{i}": RNG.random(12).round(3).tolist() for i in range(7)}, range(12))
MARGINALS = Marginals({"a": 2, "b": 3, "c": 2}, order=2)
STRATEGIES = [
    Identity(Count()),
    Identity(Points(["abc", "d"])),
    Identity(Ranges(size=11)),
    Identity(SOME),
    Identity(HalfSpaces([(0, 0), (1, 0), (0, 2)], declared=[((1, 1), 1)])),
    *(Hierarchies(Ranges(size=size), [b]) for size, b in [(1, 2), (2, 2), (13, 2), (16, 2), (17, 3), (30, 5), (9, 9)]),
    Hierarchies(Ranges(size=13), [3], root=True),
    Hierarchies(Ranges(edges=[0, 1, 4, 9, math.inf]), [2]),
    Hierarchies(Boxes([5, 7]), [2, 3]),
    Hierarchies(Boxes([3, 4, 2]), [2, 2, 2], root=True),
    SquareRoot(Ranges(size=1)),
    SquareRoot(Ranges(size=23)),
    SquareRoot(Boxes([5, 4])),
    SquareRoot(Boxes([2, 3, 4])),
    Tables(MARGINALS),
    Tables(Marginals({"a": 2, "b": 3}, order=0)),
    Tables(Marginals({"a": 2, "b": 3}, order=2)),
    Asked(SOME),
    Asked(Ranges(size=5)),
    Explicit(Points(["a", "b"]), np.array([[2, 2], [1, 0], [-3, 1]])),
    optimised(SOME),
    optimised(Ranges(size=8)),
]
IDS = [f"{s.address.split('-')[0]}-{s.cells}-{s.width}" for s in STRATEGIES]


def dense(strategy):
    return np.array([strategy.apply(column) for column in np.eye(strategy.cells, dtype=np.int64)]).T


@pytest.mark.parametrize("strategy", STRATEGIES, ids=IDS)
class TestEveryStrategy:
    def test_norms_are_those_of_the_largest_column(self, strategy):
        matrix = np.abs(dense(strategy).astype(object))
        norms = strategy.norms
        assert norms.l1 == matrix.sum(axis=0).max()
        assert norms.l2_squared == (matrix**2).sum(axis=0).max()
        assert norms.linf == matrix.max()
        assert norms.nonnegative == bool((dense(strategy) >= 0).all())

    def test_encoding_updates_is_applying_their_histogram(self, strategy):
        rng = np.random.default_rng(2)
        for count in (0, 1, 7, 60):
            cells = rng.integers(0, strategy.cells, count)
            signs = rng.choice([-1, 1], count)
            data = np.zeros(strategy.cells, dtype=np.int64)
            for cell, sign in zip(cells, signs, strict=True):
                data[cell] += sign
            row = strategy.encode(cells, signs)
            assert row.dtype == np.int64
            assert (row == strategy.apply(data)).all()
            assert (row == dense(strategy) @ data).all()

    def test_every_query_is_answered_exactly_and_within_the_load(self, strategy):
        family = strategy._family
        data = np.random.default_rng(3).integers(-50, 1000, strategy.cells)
        row, worst = strategy.apply(data), strategy.worst()
        queries = list(family.shown.values()) if isinstance(family, HalfSpaces) else family.workload()
        for query in queries:
            weights = strategy.weights(query)
            exact = int(family.vector(query) @ data) / family.unit
            assert math.isclose(float(weights @ row), exact, abs_tol=1e-6)
            load = Load.of(weights)
            assert load.squares <= worst.squares * (1 + 1e-12)
            assert load.peak <= worst.peak * (1 + 1e-12)
            assert load.single or not worst.single or load.peak == 0
            assert load.plain or not worst.plain

    def test_refuses_what_is_no_query(self, strategy):
        with pytest.raises(ConfigurationError):
            strategy.weights("no such query")


@given(st.integers(1, 60), st.integers(2, 12), st.booleans())
@settings(max_examples=40)
def test_weights_are_those_of_least_squares(size, fanout, root):
    """Against dense linear algebra, over all ranges: weights, the worst variance, and its bounds."""
    axis = Axis(size, fanout, root)
    matrix = axis.sums(np.eye(size, dtype=np.int64), 0).astype(float)
    inverse = np.linalg.pinv(matrix)
    worst = 0.0
    for first, last in itertools.combinations_with_replacement(range(size), 2):
        query = ((np.arange(size) >= first) & (np.arange(size) <= last)).astype(float)
        weights = axis.weights(first, last)
        assert np.allclose(weights, query @ inverse, atol=1e-9)
        assert np.abs(weights).max() <= 1 + 1e-12
        worst = max(worst, float(weights @ weights))
    assert axis.worst() == pytest.approx(worst)
    assert axis.seems() <= worst * (1 + 1e-9)
    assert worst <= axis.most * (1 + 1e-9)


def test_least_squares_halve_the_error():
    """Worst range of 1024 cells, in deviations of a count: from 19.2 (sums of nodes) to 12.1 with Laplace noise."""
    best = Hierarchies.best(Ranges(size=1024), pure=True)
    assert best.norms.l1 * math.sqrt(best.worst().squares) < 12.7
    best = Hierarchies.best(Ranges(size=1024), pure=False)
    assert math.sqrt(best.norms.l2_squared * best.worst().squares) < 6


def test_a_long_axis_has_a_bound_too():
    axis = Axis(5000, 8)
    assert axis.worst() == axis.most
    assert axis.seems() < axis.most


def test_the_square_root_has_the_factors_of_the_table():
    """users-and-domains 4: 2.3888 at 64 cells, 3.2726 at 1024, for prefix counts."""
    for size, factor in ((64, 2.3888), (256, 2.8310), (1024, 3.2726)):
        strategy = SquareRoot(Ranges(size=size))
        last = strategy.weights((0, size - 1))
        assert math.sqrt(strategy.norms.l2_squared * float(last @ last)) == pytest.approx(factor, rel=1e-3)


def test_the_best_fan_out_is_never_worse_than_flat_or_binary():
    for size, pure in itertools.product((2, 10, 64, 300, 1000), (True, False)):
        family = Ranges(size=size)

        def badness(strategy, pure=pure):
            s = strategy.norms.l1 ** (2 if pure else 1)
            return s * strategy.worst().squares

        best = badness(Hierarchies.best(family, pure))
        assert best <= 1.05 * badness(Hierarchies(family, [2]))  # chosen by a sample of ranges
        assert best <= 1.05 * badness(Hierarchies(family, [max(size, 2)]))


@pytest.mark.parametrize("pure", [True, False])
def test_the_best_matrix_is_never_worse_than_cells_or_queries(pure):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n, m = rng.integers(2, 40, 2).tolist()
        rows = {f"q{i}": (rng.random(n) < rng.random()).tolist() for i in range(m)}
        family = Queries(rows, range(n))

        def badness(strategy, pure=pure):
            return strategy.worst().squares * (strategy.norms.l1**2 if pure else strategy.norms.l2_squared)

        assert badness(best_matrix(family, pure)) <= min(badness(Identity(family)), badness(Asked(family)))


def test_optimising_finds_the_known_good_strategy_of_prefixes():
    """The square root is within a few per cent of the best for prefix counts."""
    family = Queries({f"up to {i}": [x <= i for x in range(64)] for i in range(64)}, range(64))
    found = optimised(family)
    assert math.sqrt(found.norms.l2_squared * found.worst().squares) < 2.3888


def test_another_matrix_has_another_address():
    family = Points(["a", "b"])
    one, other = Explicit(family, np.array([[1, 1], [1, 0]])), Explicit(family, np.array([[1, 1], [0, 1]]))
    assert one.address != other.address
    assert one.address == Explicit(family, one.matrix).address


def test_rows_wrap_as_integers_modulo_two_to_the_64():
    """A function of the exact row, so nothing is lost but meaning."""
    for strategy in STRATEGIES:
        huge = np.full(strategy.cells, 2**62, dtype=np.int64)
        exact = dense(strategy).astype(object) @ huge.astype(object)
        assert [int(x) % 2**64 for x in strategy.apply(huge)] == [int(x) % 2**64 for x in exact]


def test_a_strategy_that_cannot_tell_says_so():
    strategy = Explicit(Points(["a", "b"]), np.array([[1, 1]]))
    with pytest.raises(ConfigurationError, match="do not tell"):
        strategy.weights("a")
    with pytest.raises(ConfigurationError, match="column for each"):
        Explicit(Points(["a", "b"]), np.array([[1]]))
    for too_large in (Ranges(size=2**14 + 1), Boxes([2, 2, 2, 2]), Boxes([2**10, 2**10])):
        with pytest.raises(ConfigurationError, match="square root along"):
            SquareRoot(too_large)
    with pytest.raises(ConfigurationError, match="2\\^24"):
        Hierarchies(Boxes([2**11, 2**10, 2]), [2, 2, 2], root=True)
