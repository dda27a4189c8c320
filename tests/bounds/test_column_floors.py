"""Floors against the tables of the specifications, against every explicit upper bound, and against linear programs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from evertally.bounds.recompute import best_period
from evertally.errors import ConfigurationError
from evertally.theory import column_floors as cf
from formulas.recompute_bounds import (
    A_l,
    recompute_laplace,
    recompute_select_pure,
    tree_select_laplace,
    trivial_max_sum,
    trivial_select,
)

THIRD = 1 / 3


@pytest.mark.parametrize(
    ("T", "d", "epsilon", "max_sum", "sum_select"),
    [
        (100, 1, 0.001, 50, None),
        (64, 2, 1, 0.5, 0),
        (1000, 4, 0.1, 17, 17),
        (4096, 64, 0.5, 26.5, 47),
        (65536, 1024, 1, 75.5, 201),
        (2**20, 4096, 0.25, 603, 1874),
    ],
)
def test_certified_floors_of_the_table(T, d, epsilon, max_sum, sum_select):
    """price-of-continual-release 4.2."""
    value = cf.max_sum_pure(T, d, epsilon)
    assert (value.value, value.certified) == (max_sum, True)
    if sum_select is not None:
        assert cf.sum_select_pure(T, d, epsilon).value == sum_select


def test_two_point_distances():
    assert cf.two_point(1, 0) == 1
    assert cf.two_point(0.1, 1e-6) == 7
    assert cf.two_point(0.01, 1e-6) == 70
    assert cf.two_point(0.001, 1e-9) == 694


@given(st.fractions(Fraction(1, 1000), 2, max_denominator=10**4), st.sampled_from([0.0, 1e-9, 1e-3, 0.2]))
def test_two_point_distance_is_the_least(epsilon: Fraction, delta: float):
    """By the printed inequality, in floats; no drawn case is close enough to equality for that to matter."""
    eps = float(epsilon)

    def told_apart(c: int) -> bool:
        return math.exp(c * eps) / 3 + delta * math.expm1(c * eps) / math.expm1(eps) >= 2 / 3

    c = cf.two_point(epsilon, delta)
    assert told_apart(c)
    assert not told_apart(c - 1)


@pytest.mark.parametrize(
    ("d", "T", "epsilon", "theorem", "explicit"),
    [
        (10, 10**4, 1, 5.76, 14.5),
        (10, 10**6, 1, 8.63, 24.5),
        (100, 10**6, 1, 86.3, 196),
        (100, 10**6, 0.1, 863, 1457.5),
        (1000, 10**6, 1, 863, 1458.5),
    ],
)
def test_independent_neighbours(d, T, epsilon, theorem, explicit):
    """parameterized-histograms 9.1."""
    assert cf.histogram_independent_shape(T, d, epsilon).value == pytest.approx(theorem, rel=1e-3)
    floor = cf.histogram_independent(T, d, epsilon)
    assert (floor.value, floor.certified) == (explicit, True)


def test_theorem_5_says_where_it_ends():
    assert "outside" in cf.histogram_independent_shape(100, 11, 1.0).note
    assert "outside" not in cf.histogram_independent_shape(100, 10, 1.0).note


GRIDS = [
    ((8, 37, 100, 512, 1000), (1, 2, 5, 16, 64, 200), (0.005, 0.05, 0.3, 1, 3)),
    ((1, 2, 3, 5, 9, 17, 64, 129, 700, 3000), (1, 2, 3, 7, 33, 150), (0.003, 0.02, 0.11, 0.5, 0.9, 2, 5)),
]


@pytest.mark.parametrize("grid", GRIDS)
def test_no_mechanism_is_promised_to_beat_a_floor(grid):
    """10.1 (12): a violation would be an error in one of the two."""
    for T, d, epsilon in itertools.product(*grid):
        values = min(
            trivial_max_sum(T),
            A_l(T, d, epsilon=epsilon, beta=THIRD),
            best_period(T, partial(recompute_laplace, T, epsilon=epsilon, beta=THIRD, discrete=False)).alpha,
        )
        assert cf.max_sum_pure(T, d, epsilon).value <= values

        def select(r: int, T: int = T, d: int = d, epsilon: float = epsilon) -> float:
            return recompute_select_pure(T, r, d, epsilon=epsilon, beta=THIRD)

        selected = min(
            trivial_select(T, d),
            tree_select_laplace(T, d, epsilon=epsilon, beta=THIRD),
            best_period(T, select).alpha,
        )
        assert cf.sum_select_pure(T, d, epsilon).value <= selected


@given(st.integers(1, 5000), st.integers(1, 300), st.floats(0.001, 4), st.sampled_from(["replace", "add_remove"]))
def test_monotone(T: int, d: int, epsilon: float, neighbours: cf.Steps):
    for floor in (cf.max_sum_pure, cf.sum_select_pure):
        value = floor(T, d, epsilon, neighbours=neighbours).value
        assert floor(T + 1, d, epsilon, neighbours=neighbours).value >= value
        assert floor(T, d + 1, epsilon, neighbours=neighbours).value >= value
        assert floor(T, d, 1.1 * epsilon, neighbours=neighbours).value <= value
        # The promise under add/remove is weaker, and rows with few ones leave fewer words to tell apart.
        assert floor(T, d, epsilon, neighbours="replace").value >= value
        assert floor(T, d, epsilon, neighbours=neighbours, max_per_event=1).value <= value
        assert floor(T, d, epsilon, neighbours=neighbours, max_per_event=d).value == value


def test_loops_stop_early_without_loss():
    """The spec's loops in full, with exact integers for the powers."""
    for T, d, epsilon in ((50, 9, 0.3), (333, 20, 0.05), (1000, 40, 1.0), (64, 64, 0.01)):
        values = min(T, math.ceil(math.log(2) / epsilon) - 1)
        for w in range(1, min(d, T // 2) + 1):
            values = max(values, min(T // (2 * w), math.ceil(math.log(2 * (2**w - 1)) / epsilon) - 1))
        assert cf.max_sum_pure(T, d, epsilon).value == values / 2
        selected = min(T, math.ceil(math.log(2 * (d - 1)) / epsilon) - 1)
        for k in range(1, min(d // 2, T // 4) + 1):
            X = math.log(2 * ((d // k) ** k - 1)) / epsilon
            selected = max(selected, min(T // (4 * k), math.ceil(X) - 1))
        assert cf.sum_select_pure(T, d, epsilon).value == selected


def test_a_quotient_just_above_an_integer_is_seen():
    """10.1 (15): epsilon next to ln(2)/c. Floats cannot tell on which side of c the quotient lies; a ball can."""
    for c in (3, 7, 100):
        below = Fraction(math.nextafter(math.log(2) / c, 0)) * (1 - Fraction(1, 2**60))
        above = Fraction(math.nextafter(math.log(2) / c, 1)) * (1 + Fraction(1, 2**60))
        assert cf.max_sum_pure(10**6, 1, below).value == c / 2
        assert cf.max_sum_pure(10**6, 1, above).value == (c - 1) / 2
    # log(2) as a float is below the real number: the quotient is above 1, though floats say that it is 1.
    assert cf.max_sum_pure(10**6, 1, math.log(2)).value == 0.5
    assert math.ceil(math.log(2) / math.log(2)) - 1 == 0


def success(T: int, d: int, epsilon: float, neighbours: str) -> float:
    """The best probability of an always correct selection, over *all* pure-DP mechanisms, for the worst stream."""
    rows = list(itertools.product((0, 1), repeat=d))
    streams = list(itertools.product(range(len(rows)), repeat=T))
    outputs = list(itertools.product(range(d), repeat=T))
    index = {stream: i for i, stream in enumerate(streams)}
    n, width = len(streams) * len(outputs), len(outputs)
    entries: list[tuple[int, int, float]] = []
    row = 0
    for stream, i in index.items():
        sums = np.cumsum([rows[x] for x in stream], axis=0)
        right = [
            o for o, answer in enumerate(outputs) if all(s[a] == s.max() for s, a in zip(sums, answer, strict=True))
        ]
        entries += [(row, i * width + o, -1.0) for o in right] + [(row, n, 1.0)]  # success - P(right) <= 0
        row += 1
        for t, x in itertools.product(range(T), range(len(rows))):
            if x == stream[t] or (neighbours == "add_remove" and x != 0 and stream[t] != 0):
                continue
            other = index[(*stream[:t], x, *stream[t + 1 :])]
            for o in range(width):
                entries += [(row, i * width + o, 1.0), (row, other * width + o, -math.exp(epsilon))]
                row += 1
    at, column, value = zip(*entries, strict=True)
    upper = coo_matrix((value, (at, column)), shape=(row, n + 1))
    blocks = np.repeat(np.arange(len(streams)), width)
    sums_to_one = coo_matrix((np.ones(n), (blocks, np.arange(n))), shape=(len(streams), n + 1))
    cost = np.zeros(n + 1)
    cost[-1] = -1
    solved = linprog(cost, A_ub=upper, b_ub=np.zeros(row), A_eq=sums_to_one, b_eq=np.ones(len(streams)))
    return float(-solved.fun)


@pytest.mark.parametrize(("neighbours", "step"), [("replace", 1), ("add_remove", 2)])
@pytest.mark.parametrize("T", [1, 2, 3])
def test_selection_floors_against_all_mechanisms(neighbours: cf.Steps, step: int, T: int):
    """Two columns, epsilon just below ln(2)/step: the floor is 1, so no mechanism is right with probability 2/3.

    At T = 1 under replacement and epsilon a little above, where the floor is 0, a mechanism exists: there it is tight.
    """
    below, above = 0.99 * math.log(2) / step, 1.02 * math.log(2) / step
    assert cf.sum_select_pure(T, 2, below, neighbours=neighbours).value == 1
    assert success(T, 2, below, neighbours) < 2 / 3
    assert cf.sum_select_pure(T, 2, above, neighbours=neighbours).value == 0
    if T == 1 and neighbours == "replace":
        assert success(T, 2, above, neighbours) > 2 / 3


def test_two_point_floors():
    assert cf.max_sum_two_point(1000, 0.01, 1e-6).value == 34.5
    assert cf.max_sum_two_point(10, 0.01, 1e-6).value == 5
    assert cf.sum_select_two_point(1000, 2, 0.01, 1e-6).value == 69
    assert cf.sum_select_two_point(1000, 2, 0.01, 1e-6, neighbours="add_remove").value == 34
    assert cf.sum_select_two_point(1000, 1, 0.01, 1e-6).value == 0


def test_shapes_of_max_sum():
    """4.1: each term of the minimum in a setting where it is the smallest."""
    assert cf.shape("max_sum", 10**6, 10**6, 0.25).value == pytest.approx(math.sqrt(10**6 / 0.25))
    assert cf.shape("max_sum", 10**6, 10, 0.25).value == pytest.approx(40)
    assert cf.shape("max_sum", 100, 10**6, 0.021).value == pytest.approx(math.sqrt(100 / 0.021))
    cube = 10**2 / 0.25 ** (2 / 3) / math.log(0.25 * 10**6) ** (2 / 3)
    assert cf.shape("max_sum", 10**6, 10**6, 0.25, 1e-10).value == pytest.approx(cube)
    assert cf.shape("max_sum", 10**6, 4, 0.25, 1e-10).value == pytest.approx(2 / 0.25 / math.log(4))
    assert cf.shape("max_sum", 10**6, 2, 0.25, 1e-10).value == pytest.approx(math.sqrt(2) / 0.25)  # ln 2 read as 1
    assert cf.shape("max_sum", 10**6, 10**6, 0.25, C=3.0).value == pytest.approx(3 * math.sqrt(10**6 / 0.25))


def test_shapes_of_sum_select():
    T, d, epsilon = 4096, 512, 0.5
    k = np.arange(1, d // 2 + 1)
    pure = np.minimum(k * np.log(2 + d / k) / epsilon, T / k).max()
    assert cf.shape("sum_select", T, d, epsilon).value == pytest.approx(pure)
    approx = np.minimum(np.sqrt(k) * np.log(2 + d / k) / (epsilon * np.log(2 + k)), T / k).max()
    assert cf.shape("sum_select", T, d, epsilon, 1e-9).value == pytest.approx(approx)
    blocks, alpha = cf.best_blocks(T, d, epsilon)
    assert alpha == pytest.approx(min(blocks * math.log(2 + d / blocks) / epsilon, T / blocks))
    wide = cf.best_blocks(2**30, 2**24, 1.0)[1]
    fine = np.arange(1.0, 2**20)
    assert wide == pytest.approx(np.minimum(fine * np.log(2 + 2**24 / fine), 2**30 / fine).max(), rel=1e-3)


def test_guards_of_the_shapes():
    assert "outside the theorem" in cf.shape("max_sum", 1000, 5, 1.5).note
    too_large = cf.shape("max_sum", 1000, 5, 1.0, 1e-3)
    assert (too_large.value, "does not apply" in too_large.note) == (0, True)
    assert cf.shape("max_sum", 1000, 5, 0.002).value == pytest.approx(1000 / 9)
    assert cf.shape("sum_select", 1000, 5, 0.002, C=0.5).value == 500
    assert cf.shape("sum_select", 1000, 1, 1.0).value == 0
    assert not cf.shape("max_sum", 1000, 5, 1.0).certified
    assert "C = 2" in cf.shape("max_sum", 1000, 5, 1.0, C=2).note
    with pytest.raises(ConfigurationError, match="at least one tick"):
        cf.shape("max_sum", 0, 5, 1.0)


def test_zcdp_shape_solves_its_fixed_point():
    T, rho, eta = 10**6, 0.01, 0.01
    epsilon = 0.5
    for _ in range(200):
        epsilon = rho + 2 * math.sqrt(rho * math.log(T / (eta * epsilon)))
    expected = cf.shape("max_sum", T, 10**6, epsilon, eta * epsilon / T, c0=1.0).value
    assert cf.zcdp_shape("max_sum", T, 10**6, rho).value == pytest.approx(expected)


def test_price():
    """4.3: about sqrt(T) under pure DP with many columns, about T^(1/3) under approximate DP, up to logarithms."""
    assert cf.price("max_sum", 10**6, 10**6, 1.0) == pytest.approx(1000)
    assert cf.price("max_sum", 10**6, 10**6, 1.0, 1e-9) == pytest.approx(100 / math.log(10**6) ** (2 / 3))
    select = cf.shape("sum_select", 10**6, 10**6, 0.5).value
    assert cf.price("sum_select", 10**6, 10**6, 0.5) == pytest.approx(select * 0.5 / math.log(10**6))
