"""White-box reading of the noise: impulse responses, closed forms and most powerful scores against formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

import evertally as et
from evertally.audit import (
    Differencing,
    Feedback,
    FirstTick,
    Game,
    LateTrigger,
    closed_form,
    measure_mu,
    measure_rho,
    mu_bound,
)
from evertally.audit.adversaries import BestScore
from evertally.audit.gaussian import claimed_mu, impulse_response, node_form, widened
from evertally.bounds.square_root import S
from evertally.counting.processes import Setting
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian
from evertally.privacy import Change

KEY = et.simulation(0)


def counter(guarantee, horizon, mechanism, **options):
    return et.Counter(guarantee=guarantee, horizon=horizon, mechanism=mechanism, key=KEY, **options)


# -- reading the program ---------------------------------------------------------------------------------------------


def test_the_impulse_response_of_a_binary_tree():
    W, laws = impulse_response(counter(et.ZCDP(0.5), 4, "tree", radix=2), 4)
    assert W.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert laws == [DiscreteGaussian(3)] * 4


@pytest.mark.parametrize(
    ("mechanism", "horizon", "guarantee"),
    [
        ("tree", 50, et.ZCDP(0.1)),
        ("honaker", 50, et.ZCDP(0.1)),
        ("sqrt", 50, et.ZCDP(0.1)),
        ("epoch-tree", None, et.ZCDP(0.1)),
        ("tree", 50, et.PureDP(1.0)),
        ("honaker", 50, et.PureDP(1.0)),
    ],
)
def test_the_response_explains_the_stated_deviation(mechanism, horizon, guarantee):
    """stddev(t) is public and computed by formula; W and the laws are read off the program."""
    model = counter(guarantee, horizon, mechanism)
    W, laws = impulse_response(model, 50)
    variances = np.array([law.stddev() ** 2 for law in laws])
    for t in (1, 2, 7, 31, 32, 50):
        read = float(W[t - 1] ** 2 @ variances)
        assert model.stddev(t) ** 2 == pytest.approx(read, rel=2e-2, abs=0.09)  # rounding adds 1/12, twice at most


def test_widening_keeps_every_decision():
    setting = Setting(Change(1, 1, 1), 100, 3, 60, 2)
    assert widened(setting, 30) == Setting(Change(1, 1, 1), 100, 30, 600, 2)


# -- the closed form -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.001, 0.1])
@pytest.mark.parametrize("T", [1, 2, 16, 100])
def test_the_square_root_counter_reaches_its_claim(rho, T):
    """mu = sqrt(2 rho) at tick 1, up to the rounding of releases to integers, which hides a little."""
    audit = closed_form(counter(et.ZCDP(rho), T, "sqrt"))
    hidden = rho / 6  # variance 1/12 on top of at least 1/(2 rho)
    assert audit.worst_tick == 1
    assert claimed_mu(et.ZCDP(rho)) * (1 - hidden) <= audit.mu[0] <= claimed_mu(et.ZCDP(rho)) * (1 + 1e-12)


@pytest.mark.parametrize("T", [16, 100])
def test_the_tick_sweep_of_the_square_root_counter(T):
    """mu(tau) = sqrt(2 rho S_{T-tau+1}/S_T): factorization-counting 14.3."""
    rho = 1e-4
    audit = closed_form(counter(et.ZCDP(rho), T, "sqrt"))
    for tau in range(1, T + 1):
        assert audit.mu[tau - 1] == pytest.approx(claimed_mu(et.ZCDP(rho)) * math.sqrt(S(T - tau + 1) / S(T)), rel=1e-3)


@pytest.mark.parametrize(("T", "radix"), [(7, 2), (8, 2), (1, 2), (81, 3), (80, 3), (100, 10), (1000, 10)])
def test_the_tree_reaches_its_claim_exactly(T, radix):
    audit = closed_form(counter(et.ZCDP(0.5), T, "tree", radix=radix))
    assert audit.mu[0] == pytest.approx(1.0, abs=1e-9)
    assert audit.mu.max() <= 1.0 + 1e-9


def test_the_tree_by_blocks():
    """A tick in k of the L blocks shows mu = sqrt(2 rho k/L)."""
    audit = closed_form(counter(et.ZCDP(0.5), 8, "tree", radix=2))
    blocks = [4, 3, 3, 2, 3, 2, 2, 1]  # ticks 1..8: completed blocks that contain the tick, and are ever used
    assert audit.mu == pytest.approx([math.sqrt(k / 4) for k in blocks], abs=1e-9)


def test_others_stay_below():
    for mechanism, horizon in (("honaker", 64), ("epoch-tree", None)):
        mu = closed_form(counter(et.ZCDP(0.5), horizon, mechanism), 63).mu.max()
        assert 0.8 < mu <= 1.0 + 1e-9


def test_forgotten_noise_has_no_inverse(monkeypatch):
    """A combination of releases without noise is a singular matrix, not a large mu."""
    model = counter(et.ZCDP(0.5), 4, "tree", radix=2)
    monkeypatch.setattr(type(model.noise), "advance", lambda self, count=1: np.zeros((count, self.columns), dtype=int))
    with pytest.raises(np.linalg.LinAlgError):
        closed_form(model)


def test_the_closed_form_is_for_gaussian_noise():
    with pytest.raises(ValueError, match="Gaussian"):
        closed_form(counter(et.PureDP(1.0), 4, "tree"))


# -- most powerful scores --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "horizon"), [("tree", 20), ("sqrt", 20), ("honaker", 20), ("epoch-tree", None)])
def test_the_score_is_the_log_likelihood_ratio(mechanism, horizon):
    """Its law is N(-mu^2/2, mu^2) without the change, N(+mu^2/2, mu^2) with it: 6 standard errors."""
    make = lambda key: et.Counter(guarantee=et.ZCDP(0.3), horizon=horizon, mechanism=mechanism, key=key)  # noqa: E731
    model = make(KEY)
    mu2 = closed_form(model, 20).mu[0] ** 2
    n = 8000
    for sign, side in ((1, "left"), (-1, "right")):
        score = FirstTick(model).score(Game(make, FirstTick(model), side, ticks=20).play(n, seed=sign + 5))
        assert abs(score.mean() - sign * mu2 / 2) < 6 * math.sqrt(mu2 / n)
        assert abs(score.var() / mu2 - 1) < 6 * math.sqrt(2 / n) + 0.01


@pytest.mark.parametrize(("mechanism", "horizon"), [("tree", 9), ("epoch-tree", None)])
def test_the_laplace_score_is_bounded_by_epsilon_and_reaches_it(mechanism, horizon):
    make = lambda key: et.Counter(guarantee=et.PureDP(2.0), horizon=horizon, mechanism=mechanism, key=key)  # noqa: E731
    model = make(KEY)
    views = Game(make, FirstTick(model), "left", ticks=9).play(4000)
    score = FirstTick(model).score(views)
    assert score.max() == pytest.approx(2.0)
    assert score.min() >= -2.0 - 1e-9
    # Likelihood ratios have mean 1 over the other side.
    other = FirstTick(model).score(Game(make, FirstTick(model), "right", ticks=9).play(4000, seed=1))
    assert np.exp(other).mean() == pytest.approx(1.0, abs=6 * np.exp(other).std() / math.sqrt(4000))


def test_draws_that_releases_do_not_determine_have_no_laplace_score():
    assert node_form(counter(et.PureDP(1.0), 9, "honaker"), 9) is None
    assert node_form(counter(et.ZCDP(0.5), 9, "tree"), 9) is None


def test_the_best_score_needs_a_linear_mechanism_and_a_challenge():
    make = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=3, key=key)  # noqa: E731
    views = Game(make, FirstTick(), "left").play(5)
    assert BestScore(None)(views) is None
    late = Game(make, FirstTick(tick=9), "left").play(5)
    assert BestScore(make(KEY))(late) is None


@pytest.mark.parametrize("adversary", [LateTrigger, Feedback, Differencing])
def test_adaptive_games_show_no_more(adversary):
    make = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=16, mechanism="sqrt", key=key)  # noqa: E731
    report = measure_mu(make, adversary(make(KEY)), 6000)
    assert report.passed
    assert report.method == ("event" if adversary.adaptive else "separation")
    assert report.fraction > 0.5


def test_measured_mu_agrees_with_the_closed_form():
    make = lambda key: et.Histogram(  # noqa: E731
        categories=["a", "b", "c"], max_per_event=2, guarantee=et.ZCDP(0.5), horizon=12, key=key
    )
    model = make(KEY)
    views = [Game(make, FirstTick(model), side).play(10_000, seed=i) for i, side in enumerate(("left", "right"))]
    bound = mu_bound(*(FirstTick(model).score(v) for v in views), 1e-6)
    assert bound.lower < closed_form(model).mu[0] * math.sqrt(2) < bound.upper


def test_mu_and_rho_need_a_concentrated_claim():
    make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=2, key=key)  # noqa: E731
    for measure in (measure_mu, measure_rho):
        with pytest.raises(ConfigurationError, match="zCDP"):
            measure(make, FirstTick(), 100)


@pytest.mark.parametrize("adversary", [LateTrigger, Feedback, FirstTick])
def test_narrow_noise_is_judged_by_rho(adversary):
    make = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=1, mechanism="tree", key=key)  # noqa: E731
    report = measure_rho(make, adversary(make(KEY)), 200_000)
    assert report.passed
    assert (report.unit, report.claimed) == ("rho", 0.5)
    assert report.fraction > 0.6
