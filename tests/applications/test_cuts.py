"""Cuts of released graphs: numbers of pairs, exact values, variance, bounds, solvers."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.applications.graph.cut_answers import log_cuts
from evertally.applications.graph.cut_errors import most_ties, tie_probability
from evertally.applications.graph.cut_solvers import large_cut, minimum_cut, sparse_cut
from evertally.applications.graph.pairs import pair_count, pair_index, pairs_between, square
from evertally.bounds.tails import Spread
from evertally.noise import ZeroNoise

PEOPLE = [f"p{i}" for i in range(6)]


def graph(key: Any = None, **options: Any) -> Any:
    given = {"vertices": PEOPLE, "copies": "counted", "guarantee": et.ZCDP(0.5), "horizon": 8} | options
    return et.graph.CutGraph(**given, key=key or ZeroNoise())


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_numbers_of_pairs_are_a_bijection(n: int) -> None:
    numbers = [pair_index(a, b, n) for a, b in combinations(range(n), 2)]
    assert numbers == list(range(pair_count(n)))
    assert [pair_index(b, a, n) for a, b in combinations(range(n), 2)] == numbers
    assert sorted(pairs_between(np.arange(1), np.arange(1, n), n)) == [pair_index(0, b, n) for b in range(1, n)]
    row = np.arange(pair_count(n)) + 5
    assert all(square(row, n)[a, b] == row[pair_index(a, b, n)] for a, b in combinations(range(n), 2))


def test_cuts_without_noise_are_exact() -> None:
    rng = np.random.default_rng(5)
    truth = np.zeros((6, 6), dtype=int)
    made = graph(max_weight=9)
    for _ in range(8):
        ends = [(*rng.choice(6, 2, replace=False), int(rng.integers(0, 10))) for _ in range(10)]
        for u, v, w in ends:
            truth[u, v] += w
            truth[v, u] += w
        release = made.step([(f"p{u}", f"p{v}", w) for u, v, w in ends])
    for k in range(1, 6):
        for side in combinations(range(6), k):
            rest = [v for v in range(6) if v not in side]
            names = [f"p{v}" for v in side]
            assert release.cut(names).value == truth[np.ix_(side, rest)].sum()
            assert release.cut(names, [f"p{rest[0]}"]).value == truth[np.ix_(side, rest[:1])].sum()
    assert release.weight("p1", "p0").value == truth[0, 1]
    assert {(u, v): w for u, v, w in release.edges()} == {
        (f"p{a}", f"p{b}"): truth[a, b] for a, b in combinations(range(6), 2)
    }


@pytest.mark.parametrize("mechanism", ["sqrt", "tree"])
def test_variance_of_cuts(mechanism: str) -> None:
    """k p s_t^2, measured over cuts that have no pair in common; false alarms below 1e-6 (six deviations of a mean of
    squares)."""
    squares = []
    for seed in range(8):
        made = graph(et.simulation(seed), vertices=60, horizon=2, mechanism=mechanism)
        made.step([])
        release = made.step([])
        few, many = [range(i, i + 2) for i in range(0, 24, 2)], [range(i, i + 3) for i in range(24, 60, 3)]
        squares += [release.cut(some, others).value ** 2 for some in few for others in many]
    deviation = release.cut(few[0], many[0]).stddev
    assert math.isclose(deviation, math.sqrt(6) * made.stddev(tick=2))
    assert abs(np.mean(squares) / deviation**2 - 1) < 6 * math.sqrt(2.2 / len(squares))


@pytest.mark.parametrize("guarantee", [et.ZCDP(0.5), et.PureDP(1.0)], ids=str)
@pytest.mark.parametrize("horizon", [8, None])
def test_bound_of_all_cuts(guarantee: Any, horizon: int | None) -> None:
    """With beta = 0.5 no cut of any size and tick is too far off in half of the runs; the bound is so wide that none
    is at all in 20."""
    for seed in range(20):
        made = graph(et.simulation(seed), guarantee=guarantee, horizon=horizon, vertices=4)
        for _ in range(4):
            release = made.step([])
            for k in (1, 2, 3):
                bound = release.cut_bound(k, beta=0.5)
                assert release.cut_bound(k, 1, beta=0.5) <= release.cut_bound(k, 1, beta=0.1)
                for side in combinations(range(4), k):
                    assert abs(release.cut(side).value) <= bound
                    assert release.cut(side).radius(0.5) <= bound


@pytest.mark.parametrize("mechanism", ["tree", "sqrt", "honaker"])
def test_bound_is_the_normative_one(mechanism: str) -> None:
    """6.4, with s_t of the scale of the law. What is rounded to integers adds at most half a unit for each pair, and
    for large cuts far less."""
    made = graph(et.simulation(1), vertices=30, horizon=64, mechanism=mechanism)
    made.run([[]] * 63)
    release = made.step([])
    spread = made.noise.spread(64)
    s, n, T, beta = math.sqrt(spread.proxy), 30, 64, 0.05
    for k, p in ((1, 1), (3, 20), (15, 15), (5, None)):
        log_count = math.log(math.comb(n, k)) + math.log(n) + math.log(2 * T / beta)
        log_count += 0 if p is None else math.log(math.comb(n - k, p)) + math.log(n)
        pairs = k * (n - k if p is None else p)
        noise, bound = s * math.sqrt(2 * pairs * log_count), release.cut_bound(k, p, beta)
        assert noise * (1 - 1e-9) <= bound <= (noise + 0.5 * pairs * spread.roundings) * (1 + 1e-9)
        if pairs == 225 and spread.roundings:
            assert bound < noise + 0.25 * pairs + 0.1 * noise


def test_roundings_of_a_large_cut_are_not_half_a_unit_each() -> None:
    """225 pairs with next to no noise, against the interval: 20 keys, false alarms below 1e-6."""
    for seed in range(20):
        made = graph(et.simulation(seed), vertices=30, horizon=4, guarantee=et.ZCDP(500), mechanism="sqrt")
        cut = made.step([]).cut(range(15))
        assert cut.radius(1e-8) < 0.5 * 225
        assert abs(cut.value) <= cut.radius(1e-8)


def test_ties_of_the_square_root() -> None:
    """The bound on P(Z = c mod 2^q), summed up for a small modulus in place of 2^q."""
    for sigma, M in ((0.4, 4), (3.0, 4), (50.0, 16)):
        z = np.arange(-2000, 2001)
        masses = np.exp(-0.5 * (z / sigma) ** 2)
        classes = np.bincount(z % M, weights=masses / masses.sum())
        assert classes.max() <= 1 / (sigma * math.sqrt(2 * math.pi)) + 1 / M
    made = graph(et.simulation(0), mechanism="sqrt")
    assert tie_probability(made.noise) < 2**-15
    assert tie_probability(graph(mechanism="tree").noise) is None
    for count, probability in ((50, 0.01), (400, 0.001)):
        for log_odds in (1.0, 5.0, 12.0):
            most = most_ties(count, probability, log_odds)
            law = [math.comb(count, j) * probability**j * (1 - probability) ** (count - j) for j in range(most + 1)]
            assert 1 - sum(law) <= math.exp(-log_odds) + 1e-12


def paper_cut_bound(k: int, p: int, T: int, epsilon: float, delta: float) -> float:
    """Cor 5.2 at t = T, as printed; never used for noise."""
    C = 2 / epsilon * math.sqrt(4 / 9 + math.log(math.sqrt(2 / math.pi) / delta))
    psi = 1 + (np.euler_gamma - 1) / math.pi + math.log(T) / math.pi + 2 / T
    return float(3 * C * k * psi * math.sqrt((k + p) * math.log(k + p) * math.log(6 * T)))


def test_the_paper_is_looser() -> None:
    """n = 100, T = 2^16, confidence 2/3. Section 6.4 says 2.3 (k = p = 1) to 24 (k = p = 50): those are the ratios for
    noise of scale C/sqrt(2) and one ln n. Of the bound that is used, with exact accounting, they are 2.5 to 27."""
    T, n, beta, S = 2**16, 100, 1 / 3, 4.596

    def ratio(one: int, sigma: float, saved: float) -> float:
        variance = (sigma * S * one) ** 2
        ours = Spread("gaussian", variance, variance, 1.0, 1.0)
        log_odds = math.log(2 * T / beta) + log_cuts(n, one, one) - saved
        return paper_cut_bound(one, one, T, 0.8, 1e-10) / ours.chernoff(log_odds)

    said = [ratio(one, 8.522856, math.log(n)) for one in (1, 50)]
    assert [round(said[0], 1), round(said[1])] == [2.3, 24]
    used = [ratio(one, 7.271154, 0.0) for one in (1, 50)]
    assert [round(used[0], 1), round(used[1])] == [2.5, 27]


def test_laws_that_have_no_float() -> None:
    """A union over more cuts than floats can count."""
    for law in ("gaussian", "laplace"):
        spread = Spread(law, 4.0, 4.0, 1.0, 1.0)  # type: ignore[arg-type]
        assert math.isclose(spread.chernoff(math.log(2 / 1e-9)), spread.radius(1e-9), rel_tol=1e-9) or law == "gaussian"
        assert spread.chernoff(5000.0) > spread.chernoff(1000.0) > spread.radius(1e-300)


def test_solvers_against_all_cuts() -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        row = rng.integers(0, 9, pair_count(7)) * rng.integers(0, 2, pair_count(7))
        weights = square(row, 7)

        def value(side: Any, weights: Any = weights) -> int:
            side = np.asarray(side, dtype=bool)
            return int(weights[side][:, ~side].sum())

        sides = [np.array([v in some for v in range(7)]) for k in range(1, 4) for some in combinations(range(7), k)]
        values = [value(side) for side in sides]
        assert value(minimum_cut(weights)) == min(values)
        assert value(large_cut(weights)) >= max(max(values) * 0.8, row.sum() / 2)
        found = sparse_cut(weights)
        assert 0 < found.sum() < 7


def test_found_cuts_say_what_they_are() -> None:
    made = graph(et.simulation(3), guarantee=et.ZCDP(50), max_weight=100)
    circles = [(u, v, 90) for half in (PEOPLE[:3], PEOPLE[3:]) for u, v in combinations(half, 2)]
    release = made.step([*circles, ("p0", "p3", 2)] * 20)
    for found in (release.min_cut(), release.sparsest_cut()):
        assert sorted(found.side) in (PEOPLE[:3], PEOPLE[3:])
        assert found.value == release.cut(found.side).value
        assert "clamped" in found.how
        assert found.bound(0.05) == release.cut_bound(3, beta=0.05)
    assert "heuristic" in release.max_cut().how
    assert release.max_cut().value >= release.min_cut().value


def test_networkx() -> None:
    release = graph(et.simulation(3)).step([("p0", "p1")])
    made, clamped = release.graph(), release.graph(nonnegative=True)
    assert list(made) == PEOPLE
    assert {(u, v): w for u, v, w in made.edges(data="weight")} == {(u, v): w for u, v, w in release.edges()}
    assert min(w for *_, w in made.edges(data="weight")) < 0
    assert min(w for *_, w in clamped.edges(data="weight")) == 0
    assert clamped.graph["clamped"]


def test_without_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "networkx", None)
    release = graph(et.simulation(3)).step([("p0", "p1")])
    with pytest.raises(et.ConfigurationError, match=r"evertally\[graph\]"):
        release.graph()
    assert len(release.edges()) == 15


@pytest.mark.parametrize(
    "sides",
    [([],), (["p0", "p0"],), (["nobody"],), (["p0"], ["p0"]), (["p0"], []), (PEOPLE,), ([None],), (["\ud83d"],)],
)
def test_what_is_no_cut_is_refused(sides: Any) -> None:
    release = graph().step([])
    with pytest.raises(et.ConfigurationError, match="side"):
        release.cut(*sides)


def test_windows_of_graphs() -> None:
    made = graph(max_window=2, updates="delete", initial=list(combinations(PEOPLE, 2)), copies="ignored")
    made.step([("p0", "p1"), ("p0", "p1")])
    release = made.step([("p0", "p2"), ("p0", "p1"), ("p1", "nobody")])
    assert release.cut(["p0"]).value == 3
    assert made.last(1).cut(["p0"]).value == -1
    assert made.last(2).cut(["p0"]).value == -2


def test_a_long_run_keeps_what_is_wanted() -> None:
    """40 vertices, all ticks against the last one alone: the same numbers."""
    ticks = [[(i % 40, (i * t + 1) % 40) for i in range(20)] for t in range(60)]
    whole = graph(et.simulation(1), vertices=40, horizon=60, mechanism="tree").run(ticks)
    assert np.array_equal(
        whole[[0, 59]], graph(et.simulation(1), vertices=40, horizon=60, mechanism="tree").run(ticks, at=[1, 60])
    )


def test_what_does_not_fit_a_bank_gets_a_tree() -> None:
    for memory_limit, fits in ((2**18, "bank"), (2**17, "tree")):
        assert graph(vertices=100, horizon=1000, memory_limit=memory_limit).mechanism == fits
    with pytest.raises(et.ConfigurationError, match="memory_limit"):
        graph(vertices=1000, memory_limit=2**20)


def test_a_large_cut_has_two_sides() -> None:
    """Also where noise has made every weight negative."""
    for n in range(60):
        release = et.graph.CutGraph(vertices=3, guarantee=et.ZCDP(0.01), horizon=10, key=et.simulation(n)).step([])
        found = release.max_cut()
        assert 0 < len(found.side) < 3
        assert found.bound(0.05) > 0
        best = max(release.cut([name]).value for name in ("0", "1", "2"))
        assert found.value == best


@pytest.mark.parametrize("side", [None, 5, "01", [], ["0", "0"], ["nobody"]])
def test_what_is_no_side_of_a_cut(side: Any) -> None:
    release = et.graph.CutGraph(vertices=3, guarantee=et.ZCDP(1), horizon=9, key=et.simulation(1)).step([])
    with pytest.raises(et.ConfigurationError, match="side"):
        release.cut(side)
    with pytest.raises(et.ConfigurationError, match="side"):
        release.cut(["0"], 5)
