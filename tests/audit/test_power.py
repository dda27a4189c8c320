"""What games could have shown: against simulations of mechanisms whose loss is exactly the claim."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evertally.audit.estimators import (
    coin_rho,
    epsilon_bound,
    mu_bound,
    rho_bound,
    separation_bound,
    threshold_bound,
)
from evertally.audit.power import epsilon_power, games_power, mu_power, rho_power, separation_power

ERROR = 1e-6


@pytest.fixture
def rng():
    return np.random.default_rng(31)


def spread(found: list[float]) -> float:
    """Six standard errors of a median."""
    return 6 * 1.2533 * float(np.std(found)) / math.sqrt(len(found))


@pytest.mark.parametrize(("epsilon", "delta", "trials"), [(1.0, 0.0, 4000), (0.5, 0.0, 40_000), (3.0, 0.01, 4000)])
def test_of_randomized_response(epsilon, delta, trials, rng):
    """With probability delta it says which side, otherwise it answers at random: all events of it are at the claim."""
    q = (1 - delta) / (1 + math.exp(epsilon))
    p = math.exp(epsilon) * q + delta

    def played() -> float:
        left, right = ((rng.random(trials) < rate).astype(float) for rate in (p, q))
        return threshold_bound(left, right, delta, ERROR).epsilon

    found = [played() for _ in range(200)]
    assert float(np.median(found)) == pytest.approx(epsilon_power(trials, epsilon, delta, ERROR), abs=spread(found))


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.5])
def test_of_two_normal_laws(mu, rng):
    trials = 6000

    def played() -> tuple[float, float]:
        left, right = rng.normal(mu, size=trials), rng.normal(size=trials)
        return mu_bound(left, right, ERROR).lower, separation_bound(left, right, ERROR)

    means, events = zip(*(played() for _ in range(120)), strict=True)
    assert float(np.median(means)) == pytest.approx(separation_power(trials, mu, ERROR), abs=spread(means))
    power, median = mu_power(trials, mu, ERROR), float(np.median(events))
    # An upper limit: the event is chosen by chance in games, and by the laws here.
    assert median - spread(events) <= power <= median + 0.15 * mu


@pytest.mark.parametrize("rho", [0.1, 0.5, 3.0])
def test_of_a_coin_that_loses_rho(rho, rng):
    trials, found = 6000, []
    for q in (0.05, 0.2, 0.35, 0.45):
        rates = np.linspace(q, 1, 4001)
        lost = np.maximum(coin_rho(rates, np.full_like(rates, q)), coin_rho(np.full_like(rates, 1 - q), 1 - rates))
        p = float(rates[lost <= rho].max())
        coins = [[(rng.random(trials) < rate).astype(float) for rate in (p, q)] for _ in range(60)]
        found.append([rho_bound(left, right, ERROR) for left, right in coins])
    best = max(found, key=np.median)
    power = rho_power(trials, rho, ERROR)
    assert float(np.median(best)) - spread(best) <= power <= float(np.median(best)) + 0.1 * rho + spread(best)
    assert power < rho


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 1e-3), (4.0, 0.0), (12.0, 1e-2)])
@pytest.mark.parametrize("trials", [400, 20_000])
def test_no_other_event_at_the_claim_shows_more(epsilon, delta, trials):
    """All events on the border of the region of (epsilon, delta), common ones and rare ones."""
    last, judged = (1 - delta) / (1 + math.exp(epsilon)), trials // 2
    best = 0.0
    for q in np.geomspace(last * 1e-4, last, 60):
        # Whole numbers of hits, as are counted; one more or less would be another event.
        other = math.ceil(q * judged)
        hits = math.floor((math.exp(epsilon) * q + delta) * judged)
        best = max(best, epsilon_bound(hits, other, judged, delta, ERROR))
    assert best <= epsilon_power(trials, epsilon, delta, ERROR) + 1e-12


@pytest.mark.parametrize(
    ("method", "unit", "claimed"),
    [("event", "epsilon", 1.0), ("separation", "mu", 1.0), ("event", "mu", 1.0), ("event", "rho", 0.5)],
)
def test_more_games_show_more_and_never_all(method, unit, claimed):
    found = [games_power(method, unit, n, claimed, 0.0, ERROR) for n in (2, 2000, 20_000, 200_000, 2_000_000)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] < claimed
    assert found[-1] > 0.95 * claimed


def test_what_nobody_can_show():
    assert games_power("event", "epsilon", 0, 1.0, 0.0, ERROR) == 0
    assert games_power("event", "epsilon", 1000, 0.0, 0.0, ERROR) == 0
    assert (
        games_power("event", "epsilon", 2000, math.inf, 0.0, ERROR) < 6
    )  # the loss may be without bound, games are not
    with pytest.raises(ValueError, match="leak"):
        games_power("attack", "leak", 1000, 1.0, 0.0, ERROR)
