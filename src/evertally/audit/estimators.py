"""From games to a statement: how much privacy is lost *at least*, with a stated confidence.

Nothing here ever reports above the truth except with the stated probability: events and scores are chosen on one part
of the trials and judged on another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from flint import arb

from evertally.balls import certain, sharp
from evertally.counting.process import FloatArray

SURELY = 0.9  # of the claim: games that show so much are enough, unless they point beyond it
Event = tuple[float, float, bool, bool]  # what it is worth, roughly; threshold; above it; likelier on the right


def lower_limit(hits: int, trials: int, error: float) -> float:
    """Clopper and Pearson: a number that the true probability is below with probability at most `error`.

    >>> round(lower_limit(50, 100, 0.025), 4)
    0.3983
    """
    return 0.0 if hits == 0 else _beta_quantile(hits, trials - hits + 1, error, up=False)


def upper_limit(hits: int, trials: int, error: float) -> float:
    """A number that the true probability is above with probability at most `error`.

    >>> round(upper_limit(50, 100, 0.025), 4)
    0.6017
    """
    return 1.0 if hits == trials else _beta_quantile(hits + 1, trials - hits, error, up=True)


# Floats get a tail right up to less than this part of it (log-gamma of 10^8 loses eight digits); limits give it up.
_ALLOWANCE = 1e-6


def _beta_quantile(a: int, b: int, p: float, up: bool) -> float:
    """The point with mass p below it (above it, if `up`) under Beta(a, b), rounded outwards by less than a thousandth
    of the standard deviation."""
    mean = a / (a + b)
    deviation = math.sqrt(mean * (1 - mean) / (a + b + 1))
    mass = p * (1 - _ALLOWANCE)

    def above(x: float) -> bool:
        return _beta_tail(1 - x, b, a) < mass if up else _beta_tail(x, a, b) > mass

    low, high = 0.0, 1.0
    for x in (mean - 8 * deviation, mean + 8 * deviation):  # nearly always around it
        if low < x < high:
            low, high = (low, x) if above(x) else (x, high)
    while high - low > deviation / 1000:
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) else (middle, high)
    return high if up else low


def _beta_tail(x: float, a: int, b: int) -> float:
    """P(Beta(a, b) <= x), by the continued fraction of Lentz where it converges, by the other tail elsewhere."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_tail(1 - x, b, a)
    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 100_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / (1 + term * d), 1 + term / c
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return math.exp(front) * fraction / a


class Look(NamedTuple):
    """What games seem to show, and what they show surely: the lower limit of it."""

    seeming: float
    lower: float

    def settled(self, claimed: float, part: float) -> bool:
        """Whether this part of the games is enough: nearly all of the claim is lost surely, and even if the others show
        two standard deviations more than these, the claim stays above the limit that all games are going to have.

        Limits are about five deviations away, and as many times closer as there are more games, but for the root. What
        loses so much more than it may that all games are expected to show it is stopped at a quarter of them, or at a
        half, with probability 0.023; what loses just what it may, with probability 0.69 and 0.93.

        >>> [look.settled(1.0, 1 / 4) for look in (Look(1.0, 0.95), Look(1.02, 0.97), Look(1.0, 0.8))]
        [True, False, False]
        """
        width = self.seeming - self.lower
        return self.lower >= SURELY * claimed and self.seeming + width * (0.4 - math.sqrt(part)) <= claimed


@dataclass(frozen=True)
class EventBound:
    """A lower bound on epsilon at `delta` from one event: ln((P_left - delta)/P_right), or with sides exchanged.

    `threshold` and `above` describe the event in terms of the score.
    """

    epsilon: float
    delta: float
    error: float
    threshold: float
    above: bool
    swapped: bool  # the event is more likely on the right
    rates: tuple[float, float]

    @property
    def look(self) -> Look:
        """With what the rates seem to show."""
        other, hits = sorted(self.rates)
        return Look(
            math.log((hits - self.delta) / other) if other > 0 and hits > self.delta else math.inf, self.epsilon
        )


def epsilon_bound(hits: int, other_hits: int, trials: int, delta: float, error: float) -> float:
    """A lower confidence bound on epsilon from the counts of one event; half of `error` goes to each side.

    >>> round(epsilon_bound(7300, 2700, 10000, 0.0, 1e-3), 2)  # ln(.73/.27) is 0.99
    0.92
    """
    p = lower_limit(hits, trials, error / 2) - delta
    q = upper_limit(other_hits, trials, error / 2)
    return max(0.0, math.log(p / q)) if p > 0 else 0.0


def threshold_bound(left: FloatArray, right: FloatArray, delta: float, error: float) -> EventBound:
    """The event {score > c} or {score <= c}, c chosen on the first half of the trials and judged on the second."""
    half = min(left.size, right.size) // 2
    _, c, above, swapped = event = _choose_epsilon(left[:half], right[:half], delta, error)
    hits, other, m = _judged(event, left, right)
    a, b = (other / m, hits / m) if swapped else (hits / m, other / m)
    return EventBound(epsilon_bound(hits, other, m, delta, error), delta, error, c, above, swapped, (a, b))


def _choose_epsilon(left: FloatArray, right: FloatArray, delta: float, error: float) -> Event:
    """The event with the largest bound on epsilon."""

    def worth(low: FloatArray, high: FloatArray) -> FloatArray:
        return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -math.inf)

    return _choose_event(left, right, error, worth)


def _choose_event(
    left: FloatArray, right: FloatArray, error: float, worth: Callable[[FloatArray, FloatArray], FloatArray]
) -> Event:
    """The most promising event of two samples, by normal limits of its two rates: quick, and used only to choose."""
    n, z = left.size, math.sqrt(2 * math.log(2 / error))
    candidates = np.unique(np.quantile(np.concatenate([left, right]), np.linspace(0.001, 0.999, 400)))
    above_it = [1 - np.searchsorted(np.sort(side), candidates, side="right") / n for side in (left, right)]
    best: Event = (-math.inf, 0.0, True, False)
    for above, swapped in product((True, False), (False, True)):
        rates = above_it if above else [1 - rate for rate in above_it]
        p, q = rates[::-1] if swapped else rates
        low = p - z * np.sqrt(p * (1 - p) / n)
        high = q + z * np.sqrt(q * (1 - q) / n) + z * z / (3 * n)
        values = worth(np.maximum(low, 0.0), np.minimum(high, 1.0))
        i = int(np.argmax(values))
        if values[i] > best[0]:
            best = (float(values[i]), float(candidates[i]), above, swapped)
    return best


def _judged(event: Event, left: FloatArray, right: FloatArray) -> tuple[int, int, int]:
    """How often the event happened in the second half, first on the side where it is likelier; and of how many."""
    _, c, above, swapped = event
    n = min(left.size, right.size)
    sides = (right, left) if swapped else (left, right)
    first, second = (int(np.sum((side > c if above else side <= c)[n // 2 : n])) for side in sides)
    return first, second, n - n // 2


def rho_bound(left: FloatArray, right: FloatArray, error: float) -> float:
    """A lower confidence bound on rho from one event; see `rho_look`."""
    return rho_look(left, right, error).lower


def rho_look(left: FloatArray, right: FloatArray, error: float) -> Look:
    """A lower confidence bound on rho from one event, for any zCDP promise and any score; and what the event seems to
    show.

    rho-zCDP bounds every Renyi divergence by order * rho, also that between the two coins "the event happens"
    (data processing). The event {score > c} or {score <= c} is chosen on the first half and judged on the second.
    """
    half = min(left.size, right.size) // 2
    hits, other, m = _judged(_choose_event(left[:half], right[:half], error, coin_rho), left, right)
    low, high = lower_limit(hits, m, error / 2), upper_limit(other, m, error / 2)
    lower, seeming = coin_rho(np.array([low, hits / m]), np.array([high, other / m])).tolist()
    return Look(seeming, lower)


_ORDERS = np.concatenate([np.linspace(1.02, 3, 25), np.geomspace(3.2, 200, 25)])


def coin_rho(p: FloatArray, q: FloatArray) -> FloatArray:
    """Largest Renyi divergence over order of a coin with probability p from one with q < p; 0 where p <= q.

    >>> coin_rho(np.array([0.5, 0.73]), np.array([0.5, 0.27])).round(2).tolist()
    [0.0, 0.46]
    """
    p, q = (np.clip(x, 1e-12, 1 - 1e-12)[:, None] for x in (p, q))
    a = _ORDERS
    heads, tails = (a * np.log(x) + (1 - a) * np.log(y) for x, y in ((p, q), (1 - p, 1 - q)))
    rho: FloatArray = (np.logaddexp(heads, tails) / (a - 1) / a).max(axis=1)
    return np.where((p > q)[:, 0], rho, 0.0)


_NORMAL = NormalDist()
_probit = _NORMAL.inv_cdf


def separation_bound(left: FloatArray, right: FloatArray, error: float) -> float:
    """A lower confidence bound on mu from one event; see `separation_look`."""
    return separation_look(left, right, error).lower


def separation_look(left: FloatArray, right: FloatArray, error: float) -> Look:
    """A lower confidence bound on mu, the separation of normal laws, from one event: Phi^-1(hits) - Phi^-1(alarms); and
    what the event seems to show.

    It assumes nothing of the score: a mechanism that hides a change as well as normal laws of separation mu do allows
    no event beyond this (price-of-continual-release 10.3), so adaptive scores may be judged by it. Integer noise of
    standard deviation s does so up to a factor 1 + 0.05/s^2 only: for narrow noise there is `rho_bound`. The event
    {score > c} is chosen on the first half and judged on the second.
    """
    half = min(left.size, right.size) // 2
    a, b = np.sort(left[:half]), np.sort(right[:half])
    candidates = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0.05, 0.95, 181)))

    def rough(c: float) -> float:
        p, q = (1 - np.searchsorted(side, c, side="right") / half for side in (a, b))
        if not (0 < p < 1 and 0 < q < 1):
            return -math.inf
        z, width = math.sqrt(2 * math.log(2 / error)), 0.0
        for rate in (p, q):
            width += z * math.sqrt(rate * (1 - rate) / half) / _NORMAL.pdf(_probit(rate))
        return _probit(p) - _probit(q) - width

    hits, alarms, m = _judged((0.0, max(candidates, key=rough), True, False), left, right)
    p, q = lower_limit(hits, m, error / 2), upper_limit(alarms, m, error / 2)
    lower = max(0.0, _probit(p) - _probit(q)) if p > 0 and q < 1 else 0.0
    inside = 0 < hits < m and 0 < alarms < m
    return Look(_probit(hits / m) - _probit(alarms / m) if inside else math.inf, lower)


def trained_scores(left: FloatArray, right: FloatArray, delta: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Scores of all trials from their features (trials, k), by the best of a few trained rules.

    Everything is learned from the first half: each rule from its first quarter, the best rule on its second, and that
    one anew from both. So bounds that judge by the second half stay honest.
    """
    half = min(len(left), len(right)) // 2
    shapes: list[Callable[[FloatArray], FloatArray]] = [np.asarray]  # as they are
    if left.shape[1] <= MOST_SHAPED:
        shapes.append(_with_shape)

    def value(shape: Callable[[FloatArray], FloatArray]) -> float:
        a, b = shape(left[:half]), shape(right[:half])
        weights = trained_score(a, b)
        return _choose_epsilon((a @ weights)[half // 2 :], (b @ weights)[half // 2 :], delta, 1e-3)[0]

    best = max(shapes, key=value) if len(shapes) > 1 else shapes[0]
    a, b = best(left), best(right)
    weights = trained_score(a, b)
    return a @ weights, b @ weights


MOST_SHAPED = 128  # features: beyond, five times as many would be learned from too few trials


def _with_shape(features: FloatArray) -> FloatArray:
    """Signs, sizes and coincidences: what is linear for Laplace noise, for missing noise and for noise used twice."""
    repeated = np.diff(features, axis=1, prepend=np.nan) == 0
    return np.concatenate([features, np.sign(features), np.abs(features), features == 0, repeated], axis=1)


def trained_score(left: FloatArray, right: FloatArray) -> FloatArray:
    """The linear direction that separates the first halves best (Fisher): weights for the features (trials, k)."""
    half = min(len(left), len(right)) // 2
    return direction(left[:half], right[:half])


def direction(a: FloatArray, b: FloatArray) -> FloatArray:
    """The same of all trials that are given."""
    pooled = np.atleast_2d(np.cov(np.concatenate([a - a.mean(axis=0), b - b.mean(axis=0)]), rowvar=False))
    ridge = 1e-9 * np.trace(pooled) / len(pooled) + 1e-12
    weights: FloatArray = np.linalg.solve(pooled + ridge * np.eye(len(pooled)), a.mean(axis=0) - b.mean(axis=0))
    return weights


@dataclass(frozen=True)
class MuBound:
    """The separation mu of two normal scores of equal variance: estimate and confidence limits."""

    estimate: float
    lower: float
    upper: float
    error: float


def mu_bound(left: FloatArray, right: FloatArray, error: float) -> MuBound:
    """(mean_left - mean_right)/sd with its normal confidence interval (variance 1/n + 1/m + mu^2/(2(n+m-2)))."""
    n, m = left.size, right.size
    pooled = math.sqrt((float(np.var(left, ddof=1)) * (n - 1) + float(np.var(right, ddof=1)) * (m - 1)) / (n + m - 2))
    if pooled == 0.0:
        separated = float(left.mean()) != float(right.mean())
        return MuBound(math.inf if separated else 0.0, math.inf if separated else 0.0, math.inf, error)
    mu = abs(float(left.mean()) - float(right.mean())) / pooled
    spread = math.sqrt(1 / n + 1 / m + mu * mu / (2 * (n + m - 2)))
    z = math.sqrt(2) * certain(lambda: sharp(arb(error).erfcinv(), 60), 128)
    return MuBound(mu, max(0.0, mu - z * spread), mu + z * spread, error)
