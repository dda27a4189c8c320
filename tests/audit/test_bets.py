"""Bets: they win against broken promises, and hardly ever against kept ones, however often one looks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import evertally as et
from audit.own_mechanisms import Gaussian, Once
from evertally.audit import FirstTick
from evertally.audit.bets import Book, CoinCurve, DivergenceBet, EventBet, Scale, reach_of
from evertally.audit.estimators import coin_rho
from evertally.audit.hunt import Hunt
from long import LONG


@pytest.fixture
def rng():
    return np.random.default_rng(77)


class Games:
    """Stands for `Seen`: the score of each game is known."""

    def __init__(self, scores):
        self.scores, self.games = np.asarray(scores, dtype=np.float64), len(scores)


def scores(seen):
    return seen.scores


EPSILON, RHO = Scale.of(et.PureDP(1.0)), Scale.of(et.ZCDP(0.5))


def test_scales():
    assert (EPSILON.unit, EPSILON.claimed, EPSILON.delta) == ("epsilon", 1.0, 0.0)
    assert (RHO.unit, RHO.claimed) == ("rho", 0.5)
    assert Scale.of(et.ApproxDP(1.0, 1e-6)).delta == 1e-6
    assert EPSILON.levels[EPSILON.at_claim - 1] < 1.0 < EPSILON.levels[EPSILON.at_claim] < 1.00001
    assert np.all(np.diff(EPSILON.levels) >= 0)


def coins(p, q, n, rng, common):
    u = rng.random(n)
    return Games(u < p), Games((u if common else rng.random(n)) < q)


def test_promises_whose_exponential_is_no_float_are_bet_on_too():
    """e^epsilon overflows at the higher levels of an epsilon of 30, and at all of them of 1,000."""
    for epsilon in (30.0, 1000.0):
        scale = Scale("epsilon", epsilon, 0.0)
        for x, y, grown in scale.growths:
            assert np.isfinite(grown).all(), (epsilon, x, y)
            assert (grown < 0).all() if y else (grown >= 0).all()


@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize(
    ("scale", "p", "q"),
    [
        (EPSILON, math.e / (1 + math.e), 1 / (1 + math.e)),
        (EPSILON, 0.05 * math.e, 0.05),
        (Scale.of(et.ApproxDP(1.0, 0.01, force=True)), 0.02 * math.e + 0.01, 0.02),
        (RHO, None, 0.3),
        (RHO, None, 0.01),
    ],
)
def test_a_kept_promise_is_refuted_as_rarely_as_stated(scale, p, q, common, rng):
    """Coins on the edge of what the promise allows, looked at after every twenty pairs, at an error of 10 %."""
    if p is None:
        grid = np.linspace(q, 0.999, 20_000)
        p = float(grid[coin_rho(grid, np.full(grid.size, q)) <= scale.claimed][-1])
    refuted = 0
    for _ in range(200):
        book = Book(scale, 0.1)
        book.add([EventBet("e", scores, False, scale, (p, q)), EventBet("e", scores, True, scale, (q, p))])
        for _ in range(30):
            book.judge(*coins(p, q, 20, rng, common))
        refuted += book.broken
    assert refuted <= 45  # of 200; 20 expected at most, 45 are six standard deviations more


@pytest.mark.parametrize("common", [True, False])
def test_a_divergence_of_rho_is_refuted_as_rarely_as_stated(common, rng):
    """Normal laws at distance 1 lose exactly 1/2, which the score shows."""
    refuted = 0
    for _ in range(200):
        book = Book(RHO, 0.1)
        book.add([DivergenceBet("f", lambda seen: seen.scores - 0.5, 3.0, False, RHO)])
        for _ in range(20):
            noise = rng.normal(size=50)
            book.judge(Games(noise + 1), Games(noise if common else rng.normal(size=50)))
        refuted += book.broken
    assert refuted <= 45


def test_common_random_numbers_show_more(rng):
    found = []
    for common in (True, False):
        bet, book = DivergenceBet("f", lambda seen: seen.scores - 0.5, 3.0, False, RHO), Book(RHO, 1e-6)
        book.add([bet])
        noise = rng.normal(size=8000)
        book.judge(Games(noise + 1), Games(noise if common else rng.normal(size=8000)))
        found.append(book.bound)
    assert found[0] > found[1] > 0.2
    assert found[0] > 0.8 * 0.5


def test_a_lower_bound_is_above_the_truth_as_rarely_as_stated(rng):
    """The loss is 0.5, a half of the claim: the bound may say more in one of ten repetitions."""
    p = math.exp(0.5) / (1 + math.exp(0.5))
    bounds = []
    for _ in range(200):
        bet, book = EventBet("e", scores, False, EPSILON, (p, 1 - p)), Book(EPSILON, 0.1)
        book.add([bet])
        for _ in range(10):
            book.judge(*coins(p, 1 - p, 100, rng, False))
        bounds.append(book.bound)
    assert sum(bound > 0.5 for bound in bounds) <= 45
    assert np.median(bounds) > 0.25


def test_fewer_one_sided_hits_are_needed_than_by_counting(rng):
    """75 hits are needed by Clopper and Pearson at this error, if the other side never shows the event."""
    bet, book = EventBet("e", scores, False, EPSILON, (0.01, 0.0)), Book(EPSILON, 1e-6)
    book.add([bet])
    hits = 0
    while not book.broken:
        book.judge(Games([1.0] + [0.0] * 99), Games([0.0] * 100))
        hits += 1
    assert 44 <= hits <= 62


def test_the_coins_that_rho_allows(rng):
    """No pair of coins within rho pays more than 0, for any eta; some pair pays nearly delta(eta)."""
    curve = CoinCurve(np.array([0.05, 0.5, 4.0]))
    q = rng.random(4000) ** 3
    p = q + (1 - q) * rng.random(4000)
    shown = coin_rho(p, q)
    for row, rho in enumerate((0.05, 0.5, 4.0)):
        inside = shown <= rho
        assert inside.sum() > 50
        for eta in (0.0, 0.3, 1.0, 2.5):
            most = float((p - math.exp(eta) * q)[inside].max())
            assert most <= curve.delta(eta)[row] + 1e-12
            assert curve.delta(eta)[row] <= max(most, 0.0) + 0.05


def test_reach():
    """More games reach further, and never beyond the claim."""
    for scale in (EPSILON, RHO, Scale.of(et.ApproxDP(1.0, 1e-6))):
        reached = [reach_of(scale, games, 1e-6, 20) for games in (0, 200, 2000, 20_000, 2_000_000)]
        assert reached == sorted(reached)
        assert reached[0] == 0.0
        assert 0.9 * scale.claimed < reached[-1] <= scale.claimed


@pytest.mark.parametrize("mechanism", [Once, Gaussian])
def test_whole_hunts_are_wrong_as_rarely_as_stated(mechanism):
    """Mechanisms that lose all they may, at an error of 10 %, bets chosen by games and all: 20 hunts, or 200."""
    hunts = 200 if LONG else 20
    made = [Hunt(mechanism, [FirstTick()], 400, 1, seed=seed, confidence=0.9) for seed in range(hunts)]
    broken = sum(not hunt.together().passed for hunt in made)
    assert broken <= (48 if LONG else 10)  # more have a probability of less than 1e-6
