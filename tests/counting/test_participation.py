"""Separated users (users-and-domains 1.3 and 6): golden values, and every set of ticks of small streams."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import evertally as et
from evertally.bounds.selection import L
from evertally.bounds.square_root import S
from evertally.counting.banded import BandedProcess, banded_factor, best_band
from evertally.counting.participation import toeplitz_reach, tree_reach
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.sqrt_factor import coefficients, rounded_quotient, sqrt_factor
from evertally.counting.tree import TreeProcess, blocks
from evertally.encode import SeparatedCap
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import ZCDP, Change, Contribution, Participation, participation

ONE = Change(1, 1, 1)


def rule(k: int | None, b: int, **more) -> Participation:
    return Participation(ONE, k, b, **more)


def toeplitz(r: np.ndarray) -> np.ndarray:
    T = len(r)
    R = np.zeros((T, T), dtype=object)
    for t in range(T):
        R[t, : t + 1] = [int(x) for x in r[t::-1]]
    return R.T @ R


def tree_gram(T: int, radix: int) -> np.ndarray:
    R = np.zeros((T, T), dtype=object)
    for t in range(1, T + 1):
        below = blocks(t, radix)
        R[t - 1, (below[1] if len(below) > 1 else 0) : t] = 1
    return R.T @ R


def all_nodes(T: int, radix: int) -> np.ndarray:
    """Also the blocks that a plain tree never uses, as Honaker's does."""
    nodes = [
        [int(start < t <= start + radix**v) for t in range(1, T + 1)]
        for v in range(L(T, radix))
        for start in range(0, T, radix**v)
        if start + radix**v <= T
    ]
    R = np.array(nodes, dtype=object)
    return R.T @ R


def sets_of_ticks(T: int, rule: Participation):
    """Every set of ticks that the door can keep of one user (0-based)."""
    b, first = rule.separation, rule.first
    for size in range(1, T + 1):
        if rule.ticks is not None and size > rule.ticks:
            return
        for chosen in itertools.combinations(range(T), size):
            if rule.calendar:
                block = [-(-(t + 1 - first) // b) for t in chosen]
                if len(set(block)) == size:
                    yield chosen
            elif all(later - t >= b for t, later in itertools.pairwise(chosen)):
                yield chosen


def reached(G: np.ndarray, T: int, rule: Participation) -> int:
    return max(int(G[np.ix_(chosen, chosen)].sum()) for chosen in sets_of_ticks(T, rule))


GOLDEN = [  # T, k, b, group, square root, band, factor of the band
    (365, 12, 1, 35.33, 29.14, None, None),
    (365, 12, 30, 35.33, 18.23, 60, 16.21),
    (365, 52, 7, 153.1, 72.62, 28, 57.75),
    (365, 365, 1, 1074.6, 500.0, 1, 365.0),
    (1024, 10, 100, 32.73, 16.74, 200, 15.11),
    (8760, 12, 720, 47.47, 22.25, 1440, 19.86),
    (8760, 52, 168, 205.7, 85.45, 672, 65.47),
    (8760, 365, 24, 1443.9, 581.3, 192, 391.0),
]


def factor_of(r: np.ndarray, T: int, rule: Participation, inverse: np.ndarray) -> float:
    return math.sqrt(toeplitz_reach(r, T, rule) * float(np.sum(inverse**2))) / 2**16


@pytest.mark.parametrize(("T", "k", "b", "group", "root", "band", "banded"), GOLDEN)
def test_the_table_of_the_specification(T, k, b, group, root, band, banded):
    factor = sqrt_factor(T)
    assert k * S(T) == pytest.approx(group, rel=1e-3)
    assert factor_of(factor.r, T, rule(k, b), factor.inverse) == pytest.approx(root, rel=1e-3)
    if band is None:
        return
    narrow = banded_factor(T, band)
    assert best_band(T, rule(k, b)) == band
    assert factor_of(narrow.r, T, rule(k, b), narrow.inverse) == pytest.approx(banded, rel=1e-3)


def test_the_integers_of_the_specification():
    for T, k, b, N, Delta in [(16, 3, 4, 8348888416, 41774028696), (365, 12, 30, 12644610840, 484923866698)]:
        assert sqrt_factor(T).column_norm_squared == N
        assert toeplitz_reach(coefficients(T), T, rule(k, b)) == Delta


@pytest.mark.parametrize(
    ("T", "k", "b", "factor"), [(365, 12, 30, 21.1), (365, 52, 7, 76.0), (8760, 52, 168, 92.0), (8760, 365, 24, 588)]
)
def test_calendar_values(T, k, b, factor):
    root = sqrt_factor(T)
    assert factor_of(root.r, T, rule(k, b, calendar=True), root.inverse) == pytest.approx(factor, rel=3e-3)


def test_a_user_in_one_period():
    """Calendar blocks of b inside one period of P ticks: k = P/b."""
    for T, P, b, factor in [(365, 28, 1, 63.1), (365, 28, 7, 10.2), (8760, 672, 24, 76.4)]:
        unit = Contribution(unit="user-period", period=P, min_separation=b, calendar=True)
        found = participation("add_remove", unit, 1)
        assert found is not None
        assert found.ticks == P // b
        root = sqrt_factor(T)
        assert factor_of(root.r, T, found, root.inverse) == pytest.approx(factor, rel=5e-3)


def some_rules(T: int, calendars: bool):
    for b in range(1, 5):
        for k in (1, 2, 3, None):
            if not calendars:
                yield rule(k, b)
                continue
            for first in range(1, b + 1):
                yield rule(k, b, calendar=True, first_block=first)


@pytest.mark.parametrize("T", [7, 10])
def test_no_set_of_ticks_reaches_further_with_a_toeplitz_factor(T):
    """All sets of ticks; with a separation the value is attained, integer for integer."""
    for r in (coefficients(T), banded_factor(T, 3).r, banded_factor(T, 1).r):
        G = toeplitz(r)
        for each in some_rules(T, calendars=False):
            assert reached(G, T, each) == toeplitz_reach(r, T, each)
        for each in some_rules(T, calendars=True):
            assert reached(G, T, each) <= toeplitz_reach(r, T, each)


@pytest.mark.parametrize(("T", "radix"), [(10, 2), (11, 3), (9, 2)])
def test_no_set_of_ticks_reaches_further_with_a_tree(T, radix):
    levels = L(T, radix)
    for G in (tree_gram(T, radix), all_nodes(T, radix)):
        for calendars in (False, True):
            for each in some_rules(T, calendars):
                assert reached(G, T, each) <= tree_reach(radix, levels, T, each)


def test_two_users_in_each_others_place():
    """All pairs: twice with a Gram matrix that is nowhere negative."""
    T, each = 6, rule(2, 2, times=2)
    for G, charged in [
        (toeplitz(coefficients(T)), toeplitz_reach(coefficients(T), T, each)),
        (tree_gram(T, 2), tree_reach(2, L(T, 2), T, each)),
    ]:
        users = [np.zeros(T, dtype=object)]
        for chosen in sets_of_ticks(T, each):
            users.append(np.array([int(t in chosen) for t in range(T)], dtype=object))
        assert max((x - y) @ G @ (x - y) for x in users for y in users) <= charged
        signed = [sign * x for x in users for sign in (1, -1)]
        assert max((x - y) @ G @ (x - y) for x in signed for y in signed) <= 2 * charged


def test_planted_the_separation_of_a_calendar_door():
    """Planted bug 6, closed form: neighbouring days of two blocks, charged as if they were b ticks apart."""
    T = 365
    r = coefficients(T)
    last, first = 181, 182  # 0-based: the last tick of block 1, the first of block 2
    shift = np.zeros(T, dtype=np.int64)
    shift[last:] += r[: T - last]
    shift[first:] += r[: T - first]
    claimed = toeplitz_reach(r, T, rule(2, 182))
    true = sum(int(x) ** 2 for x in shift)
    assert round(true / claimed, 2) == 1.42
    assert true <= toeplitz_reach(r, T, rule(2, 182, calendar=True))
    of_blocks = rule(2, 5, calendar=True)
    assert tree_reach(2, 4, 10, rule(2, 5)) == 10 < reached(all_nodes(10, 2), 10, of_blocks) == 14
    assert tree_reach(2, 4, 10, of_blocks) >= 14


def test_planted_blocks_that_do_not_begin_at_tick_1():
    """Planted bug 21: an aligned charge for a stream that begins inside a block."""
    r = coefficients(4)
    true = reached(toeplitz(r), 4, rule(3, 2, calendar=True, first_block=1))
    claimed = toeplitz_reach(r, 4, rule(3, 2, calendar=True))
    assert round(true / claimed, 2) == 1.58
    assert true <= toeplitz_reach(r, 4, rule(3, 2, calendar=True, first_block=1))


def test_planted_one_separation_for_all_users():
    """Planted bug 7: with one table for all users, whoever comes first decides which ticks of another count."""
    alternating = [["ann"] if t % 2 else ["bob"] for t in range(1, 21)]

    def kept(users_of_ticks: list[list[str]], of: str, shared: bool) -> list[int]:
        cap = SeparatedCap(ticks=None, separation=3)
        found = []
        for t, users in enumerate(users_of_ticks, start=1):
            keep = cap.keep(["all"] * len(users) if shared else users, t)
            found += [t for user, yes in zip(users, keep, strict=True) if yes and user == of]
        return found

    without_ann = [[user for user in users if user != "ann"] for users in alternating]
    assert kept(alternating, "bob", shared=False) == kept(without_ann, "bob", shared=False)
    assert kept(alternating, "bob", shared=True) != kept(without_ann, "bob", shared=True)


def test_planted_rules_with_memory_where_users_are_not_the_unit():
    """Planted bug 19: one block of a dense user removed moves every later kept tick; so it is refused."""
    dense, late = range(1, 61), range(4, 61)
    kept = []
    for ticks in (dense, late):
        cap = SeparatedCap(ticks=None, separation=4)
        kept.append({t for t in ticks if cap.keep(["ann"], t)[0]})
    assert len(kept[0]) == 15
    assert not kept[0] & kept[1]
    for unit, more in [("event", {}), ("user-period", {"period": 12})]:
        with pytest.raises(ConfigurationError, match=r"unit='user"):
            Contribution(unit=unit, min_separation=4, **more)
    with pytest.raises(ConfigurationError, match="divides the period"):
        Contribution(unit="user-period", period=12, min_separation=5, calendar=True)
    with pytest.raises(ConfigurationError, match="no max_ticks_per_user"):
        Contribution(unit="user-period", period=12, min_separation=4, calendar=True, max_ticks_per_user=2)


def test_the_banded_path_is_the_exact_one():
    """Every tick of a short path against exact fractions: e_t = sum l_(t-i) Z_i, half up."""
    source = simulation(3).source("bands")
    process = BandedProcess(ZCDP(Fraction(1, 2)), rule(3, 2), horizon=24, columns=2, source=source, band=4)
    z = source.draws("banded", process.law, range(1, 25), 2)
    series = [int(x) for x in np.diff(banded_factor(24, 4).r, prepend=0)]
    path = []
    for column in range(2):
        e: list[Fraction] = []
        for t in range(24):
            rest = sum(series[k] * e[t - k] for k in range(1, t + 1))
            e.append((int(z[t, column]) - rest) / Fraction(series[0]))
        path.append([math.floor(x + Fraction(1, 2)) for x in e])
        assert process._exactly(24, column, 0) == path[-1][-1]
        assert process._exactly(1, column, 0) == path[-1][0]
    assert process.advance(24).T.tolist() == path
    assert rounded_quotient(z[:5, 0], series) == path[0][4]


def test_the_laws_are_those_of_the_reach():
    each = rule(12, 30, times=2)
    source = ZeroNoise().source()
    root = SqrtProcess(ZCDP(Fraction(1, 2)), ONE, horizon=365, columns=1, source=source, rule=each)
    assert root.law.sigma_squared >= 2 * 484923866698
    assert float(root.law.sigma_squared) == pytest.approx(2 * 484923866698)
    tree = TreeProcess(ZCDP(Fraction(1, 2)), ONE, horizon=365, columns=1, source=source, radix=2, rule=each)
    assert float(tree.law.sigma_squared) == tree_reach(2, tree.levels, 365, each)
    pure = TreeProcess(et.PureDP(1), Change(12, 144, 12), horizon=365, columns=1, source=source, radix=2, rule=each)
    assert float(pure.law.scale) == 12 * pure.levels  # l1 norms add up: no gain


def test_coefficients_that_rise_are_refused():
    for r in ([1, 2, 1], [2, 1, -1]):
        with pytest.raises(ArithmeticError):
            toeplitz_reach(np.array(r, dtype=np.int64), 3, rule(2, 1))


def test_long_calendars_take_a_bound_instead_of_a_sum_for_every_block():
    """Beyond some work the later ticks of a user are taken to have no end: never less."""
    from evertally.counting import participation as module

    r, each = coefficients(60), rule(4, 5, calendar=True)
    exact = toeplitz_reach(r, 60, each)
    before, module._MOST_WORK = module._MOST_WORK, 0
    try:
        assert toeplitz_reach(r, 60, each) >= exact
    finally:
        module._MOST_WORK = before


@pytest.mark.parametrize("calendar", [False, True])
def test_what_a_tick_moves_enters_by_its_square(calendar: bool) -> None:
    """Three units in one column: nine times the reach of one, and not the three times of its sum."""
    heavy, light = (Participation(change, 3, 4, calendar=calendar) for change in (Change(3, 9, 3), ONE))
    assert toeplitz_reach(coefficients(16), 16, heavy) == 9 * toeplitz_reach(coefficients(16), 16, light)
    assert tree_reach(2, 5, 16, heavy) == 9 * tree_reach(2, 5, 16, light)


@pytest.mark.parametrize(
    ("relation", "signed", "times"), [("add_remove", True, 1), ("replace", False, 2), ("replace", True, 4)]
)
def test_a_tick_is_moved_by_events_that_are_there_or_not(relation: str, signed: bool, times: int) -> None:
    """Replacement is in `times` alone; in what a tick moves it would be charged twice."""
    rules = {"max_ticks_per_user": 5, "min_separation": 2, "max_events_per_user_tick": 2}
    found = participation(relation, Contribution(max_per_event=3, signed=signed, unit="user", **rules), columns=9)
    assert found is not None
    assert (found.per_tick, found.times) == (Change(6, 12, 2), times)


@pytest.mark.parametrize(("horizon", "band"), [(4, 2), (30, 7), (30, 30)])
def test_the_norm_of_a_band_is_that_of_a_whole_column(horizon, band):
    factor = banded_factor(horizon, band)
    column = coefficients(horizon)[:band].tolist()
    assert factor.column_norm_squared == sum(x * x for x in column)
    assert band < horizon or factor.column_norm_squared == sqrt_factor(horizon).column_norm_squared
