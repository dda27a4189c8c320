"""What games can show at most: the lower bound that is to be expected of so many games against a mechanism that loses
all that it may, in the event where that shows best.

A bound of zero after few games says nothing about the mechanism and all about the games, so a report of games carries
this number beside what they found. It is an upper limit: an adversary that does not know the worst pair, a score that
is not the most powerful one and games that choose among adversaries show less. Events are judged on one half of the
games, as in `audit.estimators`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from flint import arb

from evertally.audit.estimators import coin_rho, epsilon_bound, lower_limit, upper_limit
from evertally.balls import certain, sharp

_NORMAL = NormalDist()
_LARGEST = 700.0  # of an epsilon: beyond it floats have no e^epsilon, and no number of games shows as much
_EVENTS = 41  # of a family that is tried


@lru_cache(maxsize=4096)
def games_power(method: str, unit: str, trials: int, claimed: float, delta: float, error: float) -> float:
    """What `trials` games on each side can show of a claim, by the method and in the unit of their report.

    >>> from evertally.audit.power import games_power
    >>> [round(games_power("event", "epsilon", n, 1.0, 0.0, 1e-6), 2) for n in (200, 2_000, 20_000, 200_000)]
    [0.0, 0.66, 0.89, 0.97]
    >>> round(games_power("separation", "mu", 2_000, 1.0, 0.0, 1e-6), 2)
    0.84
    """
    if trials < 2 or claimed <= 0:
        return 0.0
    if unit == "epsilon":
        return epsilon_power(trials, claimed, delta, error)
    if unit == "mu":
        return separation_power(trials, claimed, error) if method == "separation" else mu_power(trials, claimed, error)
    if unit == "rho":
        return rho_power(trials, claimed, error)
    raise ValueError(f"games are not judged in {unit!r}")


def epsilon_power(trials: int, epsilon: float, delta: float, error: float) -> float:
    """Of an event that is counted, at a delta.

    Events of an (epsilon, delta) mechanism have P <= e^epsilon Q + delta and 1 - Q <= e^epsilon (1 - P) + delta. Among
    those that reach the first, both rates are largest where they reach the second too (randomized response, which says
    everything with probability delta); the limits of larger rates are closer to them, so no other event shows more.
    """
    ratio = math.exp(min(epsilon, _LARGEST))
    q = (1 - delta) / (1 + ratio)
    judged = trials - trials // 2
    return epsilon_bound(round((ratio * q + delta) * judged), round(q * judged), judged, delta, error)


def separation_power(trials: int, mu: float, error: float) -> float:
    """Of the mean of a normal score: its estimate is mu, and this much less is certain (`estimators.mu_bound`)."""
    spread = math.sqrt(2 / trials + mu * mu / (4 * (trials - 1)))
    z = math.sqrt(2) * certain(lambda: sharp(arb(error).erfcinv(), 60), 128)
    return max(0.0, mu - z * spread)


def mu_power(trials: int, mu: float, error: float) -> float:
    """Of an event of two normal laws at distance mu, whose best test is a threshold."""
    judged = trials - trials // 2

    def bound(threshold: float) -> float:
        hits, alarms = (round(_NORMAL.cdf(at - threshold) * judged) for at in (mu, 0.0))
        p, q = lower_limit(hits, judged, error / 2), upper_limit(alarms, judged, error / 2)
        return _NORMAL.inv_cdf(p) - _NORMAL.inv_cdf(q) if p > 0 and q < 1 else 0.0

    return max(0.0, *(bound(float(c)) for c in np.linspace(mu / 2 - 2, mu / 2 + 2, _EVENTS)))


def rho_power(trials: int, rho: float, error: float) -> float:
    """Of a coin that loses rho, seen from the side where it loses more: any coin may be what a mechanism releases."""
    judged = trials - trials // 2
    q = np.concatenate([np.geomspace(1e-6, 0.1, _EVENTS), np.linspace(0.11, 0.6, _EVENTS)])
    low, high = q.copy(), np.ones_like(q)
    for _ in range(40):  # the coin that loses rho against q: divergences grow with p
        middle = (low + high) / 2
        allowed = np.maximum(coin_rho(middle, q), coin_rho(1 - q, 1 - middle)) <= rho
        low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)

    def bound(p: float, q: float) -> float:
        limits = lower_limit(round(p * judged), judged, error / 2), upper_limit(round(q * judged), judged, error / 2)
        return float(coin_rho(*(np.array([limit]) for limit in limits))[0])

    sides = [*zip(low, q, strict=True), *zip(1 - q, 1 - low, strict=True)]
    return max(bound(float(a), float(b)) for a, b in sides)
