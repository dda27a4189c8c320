"""The estimators: right against references, and never above the truth more often than they say."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import beta

import evertally as et
from evertally.audit import (
    FirstTick,
    epsilon_bound,
    lower_limit,
    measure_mu,
    measure_rho,
    mu_bound,
    play,
    threshold_bound,
    upper_limit,
)
from evertally.audit.estimators import Look, coin_rho, rho_bound, separation_bound, trained_score, trained_scores
from evertally.audit.report import claimed_epsilon, default_delta, play_scores
from evertally.errors import ConfigurationError
from long import LONG


@pytest.fixture
def rng():
    return np.random.default_rng(20240)


@pytest.mark.parametrize(
    ("hits", "trials"),
    [
        (0, 10),
        (10, 10),
        (1, 10),
        (50, 100),
        (3, 10_000),
        (9_997, 10_000),
        (30_000, 100_000),
        (5, 10**6),
        (4 * 10**6, 10**7),
    ],
)
@pytest.mark.parametrize("error", [0.05, 1e-3, 1e-7])
def test_clopper_pearson_against_scipy(hits, trials, error):
    """Within a hundredth of a standard error of scipy's, on the safe side."""
    low, high = lower_limit(hits, trials, error), upper_limit(hits, trials, error)
    reference = beta.ppf(error, hits, trials - hits + 1) if hits else 0.0
    other = beta.isf(error, hits + 1, trials - hits) if hits < trials else 1.0
    deviation = math.sqrt((hits + 1) * (trials - hits + 1) / trials**3)
    assert reference - deviation / 100 <= low <= reference + 1e-12
    assert other - 1e-12 <= high <= other + deviation / 100


def test_clopper_pearson_covers():
    """Exactly: the probability that the limit misses p is at most the stated error, for every p."""
    trials, error = 40, 0.05
    limits = [lower_limit(hits, trials, error) for hits in range(trials + 1)]
    for p in np.linspace(0.01, 0.99, 25):
        mass = [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
        assert sum(m for m, limit in zip(mass, limits, strict=True) if limit > p) <= error


def randomised_response(epsilon, n, rng):
    """Scores of an event whose true loss is exactly epsilon."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    return (rng.random(n) < p).astype(float), (rng.random(n) < 1 - p).astype(float)


def test_epsilon_bound_covers(rng):
    """At error 0.1 the bound exceeds the truth in at most 10 % of repetitions; 600 repetitions, 99 allowed (4.6 sd)."""
    missed = 0
    for _ in range(600):
        left, right = randomised_response(1.0, 300, rng)
        missed += epsilon_bound(int(left.sum()), int(right.sum()), 300, 0.0, 0.1) > 1.0
    assert missed <= 95


def test_threshold_bound_covers_and_is_not_idle(rng):
    bounds = [threshold_bound(*randomised_response(1.0, 2000, rng), 0.0, 0.1).epsilon for _ in range(300)]
    assert sum(bound > 1.0 for bound in bounds) <= 55
    assert np.median(bounds) > 0.7


def test_threshold_bound_on_equal_sides(rng):
    """The null: whatever event was picked on one half, the other half does not confirm it."""
    false_alarms = 0
    for _ in range(400):
        left, right = rng.normal(size=(2, 500))
        false_alarms += threshold_bound(left, right, 0.0, 0.1).epsilon > 0
    assert false_alarms <= 65
    assert threshold_bound(*rng.normal(size=(2, 20_000)), 0.0, 1e-6).epsilon == 0.0


def test_threshold_bound_finds_either_direction(rng):
    left, right = rng.normal(size=(2, 20_000)) + np.array([[0.0], [1.0]])
    for a, b in ((left, right), (right, left), (-left, -right)):
        assert threshold_bound(a, b, 0.0, 1e-6).epsilon > 1.0


def test_threshold_bound_at_delta(rng):
    """A mechanism that shows everything with probability 0.01 and is perfect otherwise is (0, 0.01)-DP."""
    shown = rng.random(40_000) < 0.01
    left, right = np.where(shown, 1.0, 0.0), np.where(rng.random(40_000) < 0.01, -1.0, 0.0)
    assert threshold_bound(left, right, 0.0, 1e-6).epsilon > 2
    assert threshold_bound(left, right, 0.02, 1e-6).epsilon == 0.0


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 3.0])
def test_mu_bound_covers(mu, rng):
    """Each limit at error 0.1: 400 repetitions, at most 40 misses expected, 6 sd more allowed."""
    below = above = 0
    for _ in range(400):
        left, right = rng.normal(size=(2, 400))
        bound = mu_bound(left * 2.5 + 2.5 * mu, right * 2.5, 0.1)
        below += bound.lower > mu
        above += bound.upper < mu
    assert below <= 76
    assert above <= 76


def test_mu_bound_is_near_with_many_trials(rng):
    left, right = rng.normal(size=(2, 100_000))
    bound = mu_bound(left + 1, right, 1e-6)
    assert 0.96 < bound.lower < 1.0 < bound.upper < 1.04


def test_mu_bound_without_noise():
    assert mu_bound(np.ones(9), np.zeros(9), 0.1).lower == math.inf
    assert mu_bound(np.ones(9), np.ones(9), 0.1).estimate == 0.0


@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_separation_bound_covers(mu, rng):
    bounds = [separation_bound(*(rng.normal(size=(2, 1000)) + np.array([[mu], [0.0]])), 0.1) for _ in range(300)]
    assert sum(bound > mu for bound in bounds) <= 55


def test_separation_bound_does_not_depend_on_the_shape_of_the_score(rng):
    """A score that is not normal: mean over deviation exceeds mu, the bound from events does not (error 1e-6)."""
    left, right = (np.tanh(1.5 * (x - 1.5)) for x in rng.normal(size=(2, 100_000)) + np.array([[3.0], [0.0]]))
    assert mu_bound(left, right, 1e-6).lower > 3.2
    assert 2.8 < separation_bound(left, right, 1e-6) <= 3.0


@pytest.mark.parametrize("mu", [0.0, 1.0, 2.0])
def test_rho_bound_covers(mu, rng):
    """Normal laws of separation mu lose exactly rho = mu^2/2; a single event shows less, so the bound stays below."""
    for _ in range(100):
        assert rho_bound(*(rng.normal(size=(2, 1000)) + np.array([[mu], [0.0]])), 0.1) <= mu**2 / 2 + 1e-9 or mu == 0.0
    bound = rho_bound(*(rng.normal(size=(2, 100_000)) + np.array([[mu], [0.0]])), 1e-6)
    assert 0.55 * mu**2 / 2 <= bound <= mu**2 / 2


def test_rho_bound_covers_where_an_event_is_all_there_is(rng):
    """Randomised response: its one event has the whole loss, so here the bound can err, and must not too often."""
    p = math.e / (1 + math.e)
    truth = float(coin_rho(np.array([p]), np.array([1 - p]))[0])
    bounds = [rho_bound(*randomised_response(1.0, 2000, rng), 0.1) for _ in range(300)]
    assert sum(bound > truth for bound in bounds) <= 55
    assert np.median(bounds) > 0.6 * truth
    assert truth <= 0.5  # pure epsilon is epsilon^2/2-zCDP


def test_rho_bound_on_equal_sides(rng):
    assert rho_bound(*rng.normal(size=(2, 20_000)), 1e-6) == 0.0


def test_events_of_narrow_integer_noise():
    """Discrete Gaussian noise of variance 1 keeps rho = 1/2; its middle event is beyond normal laws of mu = 1."""
    weights = {z: math.exp(-z * z / 2) for z in range(-12, 13)}
    total = sum(weights.values())
    p, q = (sum(w for z, w in weights.items() if z >= k) / total for k in (0, 1))
    normal = NormalDist()
    assert 1.04 < normal.inv_cdf(p) - normal.inv_cdf(q) < 1.05
    assert coin_rho(np.array([p]), np.array([q]))[0] < 0.5


def test_trained_score_finds_the_direction(rng):
    direction = np.array([1.0, -2.0, 0.5])
    left = rng.normal(size=(20_000, 3)) + direction
    right = rng.normal(size=(20_000, 3))
    weights = trained_score(left, right)
    assert np.dot(weights, direction) / np.linalg.norm(weights) / np.linalg.norm(direction) > 0.99


def test_trained_scores_see_more_than_means(rng):
    """Noise that is missing where nothing happened: the means are equal, the zeros are not."""
    left = rng.laplace(size=(8000, 3))
    right = np.where(rng.random((8000, 3)) < 0.5, 0.0, rng.laplace(size=(8000, 3)) * math.sqrt(2))
    scores = trained_scores(left, right)
    assert threshold_bound(*scores, 0.0, 1e-6).epsilon > 1.5


def test_trained_scores_are_honest_on_equal_sides(rng):
    alarms = 0
    for _ in range(60):
        scores = trained_scores(*rng.normal(size=(2, 400, 5)))
        alarms += threshold_bound(*scores, 0.0, 0.1).epsilon > 0
    assert alarms <= 20


# -- sequential stopping ---------------------------------------------------------------------------------------------


class Loud:
    """Loses 3, claims 1."""

    guarantee = et.PureDP(1.0)
    horizon = 1

    def __init__(self, key):
        self.noise = key.source("loud")

    def step(self, x):
        return x + int(self.noise.draws("sum", et.noise.DiscreteLaplace("1/3"), [1])[0, 0])


def test_a_clear_failure_ends_early():
    report = play(Loud, FirstTick(), 64_000)
    assert (report.passed, report.stopped) == (False, "broken")
    assert report.trials <= 8000
    assert report.audited < 3.0


def test_a_clear_pass_ends_early():
    make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=key)  # noqa: E731
    report = play(make, FirstTick(make(et.simulation(0))), 1_280_000, claim=et.PureDP(1.05))
    assert (report.passed, report.stopped) == (True, "clear")
    assert report.trials < 1_280_000


def test_what_is_settled_ends_early():
    """A mechanism that loses all it may: no number of games is clear, and nine tenths are shown by some of them."""
    make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=key)  # noqa: E731
    report = play(make, FirstTick(make(et.simulation(0))), 1_280_000)
    assert (report.passed, report.stopped) == (True, "settled")
    assert report.trials < 1_280_000
    assert report.fraction >= 0.9
    assert play(make, FirstTick(make(et.simulation(0))), report.trials // 16).stopped == "", "they show too little"


@pytest.mark.parametrize(
    ("measure", "claim", "stopped", "games", "passed"),
    [
        (measure_mu, 0.505, "settled", 100_000, True),
        (measure_mu, 0.4, "broken", 100_000, False),
        (measure_mu, 0.485, "", 400_000, False),  # refuted by all games, and by no quarter of them
        (measure_mu, 0.9, "", 400_000, True),
        (measure_rho, 0.3, "broken", 100_000, False),  # one event shows three quarters of a rho
        (measure_rho, 0.335, "", 400_000, False),
        (measure_rho, 0.5, "", 400_000, True),
    ],
)
def test_a_quarter_of_the_games_may_be_enough(measure, claim, stopped, games, passed):
    """A rho of 1/2 against smaller and larger claims."""
    make = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=1, key=key)  # noqa: E731
    report = measure(make, FirstTick(make(et.simulation(0))), 400_000, claim=et.ZCDP(claim))
    assert (report.stopped, report.trials, report.passed) == (stopped, games, passed)


def test_looks_share_the_error(monkeypatch):
    errors = []
    real = mu_bound

    def spy(left, right, error):
        errors.append((left.size, error))
        return real(left, right, error)

    monkeypatch.setattr("evertally.audit.estimators.mu_bound", spy)
    make = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=1, key=key)  # noqa: E731
    measure_mu(make, FirstTick(make(et.simulation(0))), 20_000, claim=et.ZCDP(0.9), confidence=0.99)
    assert [size for size, _ in errors] == [5000, 10_000, 20_000]
    assert sum(error for _, error in errors) <= 0.01 * (1 + 1e-9)


def test_few_games_are_looked_at_once():
    make = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=1, key=key)  # noqa: E731
    report = measure_mu(make, FirstTick(make(et.simulation(0))), 19_999, claim=et.ZCDP(0.505))
    assert (report.trials, report.stopped) == (19_999, "")


@pytest.mark.parametrize(
    ("part", "beyond", "low", "high"),
    [
        (1 / 4, 0, 0.6, 0.78),
        (1 / 4, 1, 0.0, 0.06),
        (1 / 4, -1, 0.95, 1.0),
        (1 / 2, 0, 0.88, 0.97),
        (1 / 2, 1, 0.0, 0.06),
    ],
)
def test_how_often_a_part_is_enough(part, beyond, low, high, rng):
    """What loses so much more than it may that all games are expected to show it goes on: their limit is closer than
    that of a part by the root of the part."""
    n, error, times = 20_000, 1e-6, 300

    def look(mu):
        found = mu_bound(rng.normal(mu, 1, n), rng.normal(0, 1, n), error)
        return Look(found.estimate, found.lower)

    away = np.diff(look(1.0)[::-1]).item()
    mu = 1.0 + beyond * away * math.sqrt(part)
    assert low <= sum(look(mu).settled(1.0, part) for _ in range(times)) / times <= high


def test_what_cannot_be_estimated_is_not_settled():
    assert not Look(math.inf, 0.95).settled(1.0, 1 / 4)
    assert not Look(math.inf, 0.95).settled(1.0, 1 / 16)


def test_games_that_were_judged_choose_and_are_not_judged_again(monkeypatch):
    """The halves that choose are all games before; the last one is of as many games as were asked for."""
    seen = []
    real = threshold_bound

    def spy(left, right, delta, error):
        seen.append((left, right))
        return real(left, right, delta, error)

    monkeypatch.setattr("evertally.audit.estimators.threshold_bound", spy)
    make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=key)  # noqa: E731
    play(make, FirstTick(make(et.simulation(0))), 8000, claim=et.PureDP(9.0))
    assert [left.size for left, _ in seen] == [4000, 8000]
    for one, two in pairwise(seen):
        for side, later in zip(one, two, strict=True):
            assert np.array_equal(later[: later.size // 2], side)
            assert not np.array_equal(later[later.size // 2 :], side)


def test_stopping_keeps_the_error():
    """The stages share the error: at error 0.2 the final bound exceeds the truth in at most 20 % of the audits."""
    make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=key)  # noqa: E731
    adversary = FirstTick(make(et.simulation(0)))
    reports = [play(make, adversary, 8000, confidence=0.8, seed=seed, claim=et.PureDP(2.0)) for seed in range(60)]
    assert sum(report.audited > 1.0 for report in reports) <= 26


def test_stages_share_the_error(monkeypatch):
    errors = []
    real = threshold_bound

    def spy(left, right, delta, error):
        errors.append(error)
        return real(left, right, delta, error)

    monkeypatch.setattr("evertally.audit.estimators.threshold_bound", spy)
    play(Loud, FirstTick(), 16_000 if LONG else 8_000, claim=et.PureDP(9.0), confidence=0.99)
    assert len(errors) > 1
    assert sum(errors) <= 0.01 * (1 + 1e-9)


# -- claims ----------------------------------------------------------------------------------------------------------


def test_claims():
    assert claimed_epsilon(et.PureDP(1.5), 0.0) == 1.5
    assert claimed_epsilon(et.ApproxDP(1.0, 1e-6), 1e-3) == 1.0
    assert claimed_epsilon(et.ZCDP(0.5), 1e-3) == et.ZCDP(0.5).to_approx(1e-3).epsilon
    assert claimed_epsilon(et.ApproxZCDP(0.5, 1e-6), 1e-3) > claimed_epsilon(et.ZCDP(0.5), 1e-3)
    for guarantee, delta in ((et.ZCDP(0.5), 0.0), (et.ApproxDP(1.0, 1e-6), 1e-9), (et.ApproxZCDP(0.5, 1e-3), 1e-4)):
        with pytest.raises(ConfigurationError, match="larger delta"):
            claimed_epsilon(guarantee, delta)
    for guarantee in (et.PureDP(1.0), et.ZCDP(0.5), et.ApproxDP(1.0, 1e-6), et.ApproxZCDP(0.5, 1e-3)):
        assert claimed_epsilon(guarantee, default_delta(guarantee)) > 0


def test_scores_are_trained_where_nothing_is_known():
    make = lambda key: et.Counter(guarantee=et.ZCDP(2.0), horizon=3, key=key)  # noqa: E731
    from evertally.audit import Game

    scores, trained = play_scores([Game(make, FirstTick(), side) for side in ("left", "right")], 4000, seed=0)
    assert trained
    assert NormalDist().inv_cdf(0.9) < mu_bound(*scores, 0.1).estimate < 2.2
