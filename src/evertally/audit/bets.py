"""Bets against a promise: games are played until it is refuted, and no longer.

A promise bounds the mean of certain payoffs of a pair of games, one of each side. For L what is seen on the left, R
what is seen on the right, E any event and f any bounded score:

* (epsilon, delta): 1[L in E] - e^epsilon 1[R in E] - delta has a mean of at most 0, by definition.
* rho-zCDP: the coins "E happens" with probabilities p and q are as close as the promise says, in every Renyi order
  (data processing). Such pairs (p, q) form a convex set, so 1[L in E] - e^eta 1[R in E] - delta(eta) has a mean of at
  most 0, delta(eta) the largest p - e^eta q in the set (`CoinCurve`).
* rho-zCDP: f(L) - e^f(R) + 1 - rho has a mean of at most 0. The left part is at most the divergence of Kullback and
  Leibler (its variational form), which is at most rho. For normal laws and f their log-likelihood ratio it is equal.

Each is a sum of a function of L and one of R: its mean follows from the law of each side, whatever the coupling, so
pairs may be played with common random numbers. The sides may be exchanged.

*Theorem (Ville 1939).* Let Z_i >= -m be the payoffs of independent pairs, E and f chosen before pair i is played, and
0 <= b <= 1/m. If the promise holds, W_n = prod_{i<=n} (1 + b Z_i) is a nonnegative supermartingale with mean at most 1,
and so is every mixture of such products with fixed weights, whichever of them a pair is played for. Hence
P(sup_n W_n >= 1/error) <= error: one may look after every game, stop when one likes, and go on after a pause.

The lower bound is the largest level such that the promises of it and of all smaller levels are refuted: if it exceeds
the true loss, the smallest tested level above the loss was refuted too, which has a probability of at most `error`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from evertally.audit.estimators import coin_rho
from evertally.audit.game import FloatArray
from evertally.audit.outcomes import Seen
from evertally.audit.report import claimed_epsilon, default_delta
from evertally.privacy import ZCDP, Guarantee

Score = Callable[[Seen], FloatArray]
Growths = list[tuple[int, int, FloatArray]]  # of each level and stake, by whether an event happened here, and there
_STAKES = np.array([0.9, 0.6, 0.4, 0.25, 0.15, 0.08, 0.04, 0.02])  # of the most that can be lost, all at once
_PARTS = np.concatenate(
    [np.arange(1, 50) / 50, [1 + 1e-6], np.arange(26, 38) / 25, np.geomspace(1.5, 30, 24)]
)  # of the claim: levels at which the promise is tested; the claim is refuted by the one just above it


@dataclass(frozen=True)
class Scale:
    """In what a promise is told ("epsilon" at `delta`, or "rho"), and the levels at which it is tested."""

    unit: str
    claimed: float
    delta: float

    @classmethod
    def of(cls, guarantee: Guarantee, delta: float | None = None) -> Scale:
        if isinstance(guarantee, ZCDP) and delta is None:
            return cls("rho", guarantee.rho, 0.0)
        delta = default_delta(guarantee) if delta is None else delta
        return cls("epsilon", claimed_epsilon(guarantee, delta), delta)

    @cached_property
    def levels(self) -> FloatArray:
        return self.claimed * _PARTS

    @cached_property
    def growths(self) -> Growths:
        """What a pair of games adds to a bet on an event, in the unit epsilon."""
        return _growths(np.exp(-self.levels), np.full(self.levels.size, self.delta))

    @property
    def at_claim(self) -> int:
        """The level that refutes the claim."""
        return int(np.searchsorted(_PARTS, 1.0))

    @property
    def curve(self) -> CoinCurve:
        return coin_curve(self.claimed)


@lru_cache(maxsize=8)
def coin_curve(rho: float) -> CoinCurve:
    return CoinCurve(rho * _PARTS)


class CoinCurve:
    """delta(eta) of every level: the most that p - e^eta q can be of coins p and q that rho allows.

    >>> curve = CoinCurve(np.array([0.5]))
    >>> p, q = 0.7, 0.27
    >>> bool(coin_rho(np.array([p]), np.array([q]))[0] < 0.5), bool(p - math.exp(0.5) * q <= curve.delta(0.5)[0])
    (True, True)
    """

    ETAS = np.linspace(0.0, 8.0, 33)

    def __init__(self, levels: FloatArray) -> None:
        self._q = np.concatenate([[1e-9], np.geomspace(1e-6, 0.05, 35), np.linspace(0.06, 0.999, 60)])
        low = np.tile(self._q, (levels.size, 1))
        high = np.ones_like(low)
        for _ in range(22):  # the largest p: `high` always lies beyond it
            middle = (low + high) / 2
            within = coin_rho(middle.ravel(), np.tile(self._q, levels.size)).reshape(low.shape) <= levels[:, None]
            low, high = np.where(within, middle, low), np.where(within, high, middle)
        self._most = high

    @cached_property
    def growths(self) -> list[Growths]:
        """For each eta that is chosen among, what a pair of games adds to a bet."""
        return [_growths(np.full(len(self._most), math.exp(-eta)), self.delta(eta)) for eta in self.ETAS.tolist()]

    def delta(self, eta: float) -> FloatArray:
        """For every level. p as a function of q is concave: between two points of the grid it lies below the line
        through the two before them, and before the first point below its value there."""
        q, p, slope = self._q, self._most, math.exp(eta)
        lines = np.diff(p, axis=1) / np.diff(q)
        ahead = p[:, 1:-1] + lines[:, :-1] * np.diff(q)[1:] - slope * q[2:]  # at the next point, by the line before
        at = (p - slope * q).max(axis=1)
        first = p[:, 1] - slope * 0.0  # before the second point: p grows with q
        last = 1 - slope * q[-1]
        return np.asarray(np.maximum.reduce([at, ahead.max(axis=1), first, np.full(len(p), max(last, 0.0))]))


class Bet(ABC):
    """A payoff that was chosen, and what a unit of money has become by staking on it, for each level and stake."""

    name: str

    def __init__(self, name: str, swapped: bool, levels: FloatArray) -> None:
        self.name, self.swapped = name, swapped
        self.games = 0
        self._log_wealth = np.zeros((levels.size, _STAKES.size))
        self._in_all: FloatArray | None = None  # asked for more often than games are judged

    def judge(self, left: Seen, right: Seen) -> None:
        """Plays pairs that nobody has looked at when the payoff was chosen."""
        self.games += left.games
        self._in_all = None
        self._judge(*((right, left) if self.swapped else (left, right)))

    @abstractmethod
    def _judge(self, likely: Seen, other: Seen) -> None: ...

    @abstractmethod
    def show(self, seen: Seen) -> FloatArray:
        """What is staked on, as a number for each game: large where it is likely."""

    @abstractmethod
    def loss(self, deviations: float) -> float:
        """What is lost by the judged games, give or take some standard deviations: to choose by, not a bound."""

    @property
    def log_wealth(self) -> FloatArray:
        """Of a unit that is spread evenly over the stakes, for each level."""
        if self._in_all is None:
            top = self._log_wealth.max(axis=1)
            self._in_all = np.asarray(top + np.log(np.exp(self._log_wealth - top[:, None]).mean(axis=1)))
        return self._in_all


class EventBet(Bet):
    """That an event is likelier on one side than the promise allows."""

    def __init__(self, name: str, event: Score, swapped: bool, scale: Scale, rates: tuple[float, float]) -> None:
        """`rates` are those of the games that the event was chosen by."""
        super().__init__(name, swapped, scale.levels)
        self.event, self._scale = event, scale
        self._counts = np.zeros((2, 2))  # by whether it happened on the side where it is likely, and on the other
        self._growth = _steepest(scale, *rates) if scale.unit == "rho" else scale.growths

    def _judge(self, likely: Seen, other: Seen) -> None:
        here, there = (np.asarray(self.event(seen), dtype=bool) for seen in (likely, other))
        for x, y, growth in self._growth:
            count = int(np.count_nonzero((here == x) & (there == y)))
            self._counts[x, y] += count
            self._log_wealth += count * growth

    def show(self, seen: Seen) -> FloatArray:
        return np.asarray(self.event(seen), dtype=np.float64) * (-1 if self.swapped else 1)

    def loss(self, deviations: float) -> float:
        if not self.games:
            return 0.0
        p, q = self._counts[1].sum() / self.games, self._counts[:, 1].sum() / self.games
        p, q = _off(p, self.games, deviations), _off(q, self.games, -deviations)
        return event_loss(self._scale, p, q)


def event_loss(scale: Scale, p: float, q: float) -> float:
    """What an event of these probabilities shows."""
    if scale.unit == "rho":
        return float(coin_rho(np.array([p]), np.array([q]))[0])
    return 0.0 if p - scale.delta <= q else math.log((p - scale.delta) / q) if q > 0 else math.inf


def _off(rate: float, games: int, deviations: float) -> float:
    """A rate, some standard deviations off; rare events by Poisson's law."""
    off = deviations * math.sqrt(rate * (1 - rate) / games) + math.copysign(deviations**2 / (3 * games), deviations)
    return min(1.0, max(0.0, rate + off))


def _growths(flat: FloatArray, delta: FloatArray) -> Growths:
    """Of a bet that pays flat x - y - flat delta: log(1 + b z) of each level and stake, where z is the payoff over the
    most that can be lost. `flat` is e^-epsilon, which may be 0; its inverse, for large promises, is no float."""
    most = 1 + flat * delta
    return [
        (x, y, np.asarray(np.log1p(_STAKES * ((flat * (x - delta) - y) / most)[:, None])))
        for x, y in product((0, 1), (0, 1))
    ]


def _steepest(scale: Scale, p: float, q: float) -> Growths:
    """Those of the eta by which coins p and q grow most at the largest level that they refute."""
    found: tuple[tuple[int, float], Growths] | None = None
    for growths in scale.curve.growths:
        growth = sum((p if x else 1 - p) * (q if y else 1 - q) * grown for x, y, grown in growths)
        best = np.asarray(growth).max(axis=1)
        enough = np.flatnonzero(best > 1e-3)
        level = min(int(enough[-1]) if enough.size else -1, scale.at_claim)
        worth = (level, float(best[max(level, 0)]))
        if found is None or worth > found[0]:
            found = worth, growths
    assert found is not None
    return found[1]


class DivergenceBet(Bet):
    """That the divergence of Kullback and Leibler is more than rho, by a score that lies between -reach and reach."""

    def __init__(self, name: str, score: Score, reach: float, swapped: bool, scale: Scale) -> None:
        super().__init__(name, swapped, scale.levels)
        self._score, self._reach, self._scale = score, reach, scale
        self._sum = self._squares = 0.0

    def _judge(self, likely: Seen, other: Seen) -> None:
        f, g = (np.clip(self._score(seen), -self._reach, self._reach) for seen in (likely, other))
        shown = f - np.exp(g) + 1
        self._sum += float(shown.sum())
        self._squares += float((shown**2).sum())
        rho = self._scale.levels
        most = self._reach + math.exp(self._reach) - 1 + rho
        for part in np.array_split(shown, max(1, shown.size // 1000)):  # levels x stakes x games fit into memory
            ratio = (part[None, :] - rho[:, None]) / most[:, None]
            for i, stake in enumerate(_STAKES):
                self._log_wealth[:, i] += np.log1p(stake * ratio).sum(axis=1)

    def show(self, seen: Seen) -> FloatArray:
        return np.asarray(self._score(seen)) * (-1 if self.swapped else 1)

    def loss(self, deviations: float) -> float:
        if not self.games:
            return 0.0
        mean = self._sum / self.games
        spread = math.sqrt(max(0.0, self._squares / self.games - mean**2) / self.games)
        return max(0.0, mean + deviations * spread)


class Book:
    """Bets of several generations under one error: half of the money on the first, half of the rest on the second...

    The rest is kept. What all of it has become is a mixture, hence Ville's theorem holds for the whole.
    """

    def __init__(self, scale: Scale, error: float) -> None:
        self.scale, self.error = scale, error
        self.generations: list[list[Bet]] = []
        self._most = np.full(scale.levels.size, -math.inf)
        self._in_all: FloatArray | None = None

    @property
    def bets(self) -> list[Bet]:
        return [bet for generation in self.generations for bet in generation]

    def add(self, generation: list[Bet]) -> None:
        self.generations.append(generation)
        self._in_all = None

    def judge(self, left: Seen, right: Seen) -> None:
        """Plays pairs for all bets, and notes how much there is now."""
        for bet in self.bets:
            bet.judge(left, right)
        self._in_all = None
        self._most = np.maximum(self._most, self.log_wealth)

    @property
    def log_wealth(self) -> FloatArray:
        if self._in_all is None:
            self._in_all = self._summed()
        return self._in_all

    def _summed(self) -> FloatArray:
        rest, parts = 1.0, []
        for generation in self.generations:
            rest /= 2
            parts += [math.log(rest / len(generation)) + bet.log_wealth for bet in generation]
        parts.append(np.full(self.scale.levels.size, math.log(rest)))
        return np.asarray(np.logaddexp.reduce(parts))

    @property
    def bound(self) -> float:
        return bound_of(self._most, self.scale, self.error)

    @property
    def broken(self) -> bool:
        return self.bound > self.scale.claimed


def bound_of(most: FloatArray, scale: Scale, error: float) -> float:
    """The lower bound, from the most that there ever was of a unit: all levels up to it are refuted."""
    refuted = most >= -math.log(error)
    count = len(refuted) if refuted.all() else int(np.argmin(refuted))
    return float(scale.levels[count - 1]) if count else 0.0


def reach_of(scale: Scale, games: int, error: float, bets: int) -> float:
    """The bound that so many pairs give, on average, for the coin that shows all that the promise allows: p = 1 - q.

    >>> 0.85 < reach_of(Scale("epsilon", 1.0, 0.0), 10_000, 1e-6, 20) < 1
    True
    """
    if not games:
        return 0.0
    low, high = 0.5, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if event_loss(scale, middle, 1 - middle) <= scale.claimed else (low, middle)
    coin = EventBet("", lambda seen: np.zeros(0), False, scale, (low, 1 - low))
    growth = sum((low if x else 1 - low) * (1 - low if y else low) * grown for x, y, grown in coin._growth)
    wealth = games * np.asarray(growth).max(axis=1)
    enough = wealth >= -math.log(error) + math.log(2 * bets * _STAKES.size)
    count = len(enough) if enough.all() else int(np.argmin(enough))
    return float(scale.levels[count - 1]) if count else 0.0
