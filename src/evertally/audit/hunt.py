"""The hunt: games against a mechanism of which nothing is known, spent where something is to be seen.

Every adversary plays a few games, which choose its bets (`audit.events`), and a few more, which judge them. The better
half goes on, in rounds that double, until one is left for the other games. After each round new bets are chosen by all
games that an adversary has played so far, and judged by those that come. A promise that is refuted ends the hunt, after
some more games to say by how much; if no bet comes near, the last round is a quarter as long; if it is close, the
last one plays on, up to twice as many games in all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evertally.audit.bets import Bet, Book, Scale, bound_of, reach_of
from evertally.audit.events import bets_of
from evertally.audit.game import Adversary, Factory, FloatArray
from evertally.audit.outcomes import Pair, Seen, joined
from evertally.audit.report import TIGHT, Report, describe, hash_seed
from evertally.errors import ConfigurationError
from evertally.noise import simulation
from evertally.privacy import Guarantee

_ROUNDS = (0.01, 0.015, 0.025, 0.05)  # of all games, for each adversary that is still in; the rest for the last one
_BATCHES = 4  # in a round: the promise may be refuted after each
_LEAST = 40  # games of an adversary, to choose by
_CLOSE = 0.6  # of the claim
_AFTER = 4000  # games after a promise was refuted, at most, or as many as there were


@dataclass
class _Hunter:
    """An adversary, its games and its bets."""

    pair: Pair
    book: Book
    played: list[tuple[Seen, Seen]] = field(default_factory=list)
    games: int = 0

    @property
    def name(self) -> str:
        return self.pair.adversary.name

    def play(self, games: int, seed: int) -> None:
        seen = self.pair.watch(games, hash_seed(seed, self.games))
        self.book.judge(*seen)
        self.played.append(seen)
        self.games += games

    def choose(self) -> None:
        """Bets by all games so far; they are judged by others."""
        left, right = (joined(side) for side in zip(*self.played, strict=True))
        self.played = [(left, right)]
        self.book.add(bets_of(left, right, self.book.scale))

    @property
    def evidence(self) -> float:
        """What the best bet has won at the claim."""
        return max((float(bet.log_wealth[self.book.scale.at_claim]) for bet in self.book.bets), default=0.0)

    @property
    def likely_loss(self) -> float:
        return max((bet.loss(-1.5) for bet in self.book.bets), default=0.0)

    @property
    def best(self) -> Bet | None:
        return max(self.book.bets, key=lambda bet: float(bet.log_wealth[self._deciding]), default=None)

    @property
    def _deciding(self) -> int:
        """The level just below the bound."""
        return max(0, int(np.searchsorted(self.book.scale.levels, self.book.bound)) - 1)


def hunt(
    factory: Factory,
    adversaries: Sequence[Adversary],
    trials: int = 20_000,
    *,
    ticks: int | None = None,
    **options: Any,
) -> list[Report]:
    """Plays these adversaries against any mechanism with `step`; a report for each, the last one for all together.

    `options` are `seed`, `confidence`, `claim` and `delta`, as in `play`.

    >>> import evertally as et
    >>> from evertally.audit import FirstTick, hunt
    >>> class Coin:
    ...     guarantee, horizon = et.PureDP(1.0), 1
    ...     def __init__(self, key): self.key = key
    ...     def step(self, x): return x * (0.5 if self.key.mac("coin", b"")[0] < 64 else 1)
    >>> hunt(Coin, [FirstTick()], trials=1000)[-1].verdict
    'broken'
    """
    length = ticks or getattr(factory(simulation(0)), "horizon", None)
    if not length:
        raise ConfigurationError("a mechanism without a horizon is played for a number of ticks: give ticks=...")
    made = Hunt(factory, adversaries, trials, length, **options)
    return [*(made.number(number) for number in range(len(adversaries))), made.together()]


class Hunt:
    """The same for an audit in steps: games are played when the first report is asked for.

    >>> import evertally as et
    >>> from evertally.audit import FirstTick
    >>> make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=key)
    >>> Hunt(make, [FirstTick()], trials=400, ticks=1).report("change of tick 1").passed
    True
    """

    def __init__(
        self,
        factory: Factory,
        adversaries: Sequence[Adversary] | Callable[[], Sequence[Adversary]],
        trials: int,
        ticks: int,
        *,
        seed: int = 0,
        confidence: float = 1 - 1e-6,
        claim: Guarantee | None = None,
        delta: float | None = None,
    ) -> None:
        self._factory, self._adversaries = factory, adversaries
        self._trials, self._ticks, self._seed = trials, ticks, seed
        self.error = 1 - confidence
        self.model: Any = None
        self._claim, self._delta = claim, delta
        self._hunters: list[_Hunter] | None = None

    # -- the plan ----------------------------------------------------------------------------------------------------

    def _played(self) -> list[_Hunter]:
        """All games, once they are wanted."""
        if self._hunters is not None:
            return self._hunters
        adversaries = self._adversaries() if callable(self._adversaries) else self._adversaries
        pairs = [Pair(self._factory, adversary, self._ticks) for adversary in adversaries]
        self.model = pairs[0].games[0].model
        self.guarantee: Guarantee = self._claim or self.model.guarantee
        self.scale = Scale.of(self.guarantee, self._delta)
        hunters = self._hunters = [_Hunter(pair, Book(self.scale, self.error)) for pair in pairs]
        self._together = np.full(self.scale.levels.size, -math.inf)
        self._left = self._trials
        self._stopped = ""
        self._hunt(hunters)
        return hunters

    def _hunt(self, hunters: list[_Hunter]) -> None:
        for hunter in hunters:
            self._spend(hunter, max(_LEAST, round(_ROUNDS[0] * self._trials)))
        for part in _ROUNDS[1:]:
            if len(hunters) == 1:
                break
            games = max(_LEAST, round(part * self._trials))
            for hunter in hunters:
                hunter.choose()
            for hunter in hunters:
                if self._round(hunter, games):
                    return
            hunters = _better_half(hunters)
        best = max(hunters, key=lambda hunter: (hunter.evidence, hunter.likely_loss))
        self._to_the_end(best)

    def _to_the_end(self, hunter: _Hunter) -> None:
        hunter.choose()
        if self._round(hunter, self._left // 4):
            return
        claimed = self.scale.claimed
        near = any(bet.loss(1) > _CLOSE * claimed and bet.loss(-3) > 0 for bet in hunter.book.bets)
        if not near and hunter.evidence < 1:
            self._stopped = "nothing near"
            return
        hunter.choose()
        if self._round(hunter, self._left) or not self._close(hunter):
            return
        self._left += self._trials
        while self._left and self._close(hunter):
            if self._round(hunter, -(-self._trials // 4)):
                return

    def _close(self, hunter: _Hunter) -> bool:
        """Whether more games may change what is said of it."""
        book, claimed = hunter.book, self.scale.claimed
        unsure = TIGHT * claimed > book.bound and any(bet.loss(-1.25) > TIGHT * claimed for bet in book.bets)
        return unsure or any(_undecided(bet, claimed) for bet in book.bets)

    def _round(self, hunter: _Hunter, games: int) -> bool:
        """Whether it ends the hunt: the promise is refuted, and it is known by how much."""
        for size in _parts(max(0, min(games, self._left)), _BATCHES):
            self._spend(hunter, size)
            if hunter.book.broken:
                self._stopped = "broken"
                hunter.choose()
                self._spend(hunter, min(self._left, max(hunter.games, min(_AFTER, self._trials // 5))))
                return True
        return False

    def _spend(self, hunter: _Hunter, games: int) -> None:
        if games <= 0:
            return
        assert self._hunters is not None
        hunter.play(games, hash_seed(self._seed, self._hunters.index(hunter)))
        self._left -= games
        wealth = np.logaddexp.reduce([other.book.log_wealth for other in self._hunters])
        self._together = np.maximum(self._together, wealth - math.log(len(self._hunters)))

    # -- what was found ----------------------------------------------------------------------------------------------

    def report(self, name: str) -> Report:
        """Of the adversary with this name."""
        hunter = next(hunter for hunter in self._played() if hunter.name == name)
        return self._report_of(hunter)

    def number(self, number: int) -> Report:
        """Of the adversary with this number, from 0: its name is not known before it was searched for."""
        return self._report_of(self._played()[number])

    def together(self) -> Report:
        """Of all adversaries under one error: the mean of what each of them has won (Ville's theorem, `audit.bets`)."""
        hunters = self._played()
        bound = bound_of(self._together, self.scale, self.error)
        loudest = max(hunters, key=lambda hunter: hunter.book.bound)
        games = sum(hunter.games for hunter in hunters)
        return self._made("all together", bound, games, loudest, len(hunters))

    @property
    def _epsilon(self) -> float:
        """What one event may lose, roughly."""
        return self.scale.claimed if self.scale.unit == "epsilon" else math.sqrt(2 * self.scale.claimed)

    def _report_of(self, hunter: _Hunter) -> Report:
        return self._made(hunter.name, hunter.book.bound, hunter.games, hunter, 1)

    def _made(self, name: str, bound: float, games: int, hunter: _Hunter, among: int) -> Report:
        judged = max((bet.games for bet in hunter.book.bets), default=0)
        bets = len(hunter.book.generations[0]) if hunter.book.generations else 1
        best, stopped = hunter.best, ""
        if bound > self.scale.claimed and best is not None:
            stopped = f"broken, seen in: {best.name}"
        elif among > 1 and judged:
            # A one-sided event, staked on from the start, wins log(1 + stake/e^epsilon) whenever it happens.
            near = "nothing near; " if self._stopped == "nothing near" else ""
            needed = (math.log(bets * among * 16) - math.log(self.error)) / math.log1p(0.9 * math.exp(-self._epsilon))
            stopped = f"{near}blind to what happens in fewer than one of {max(1, int(judged / needed))} games"
        return Report(
            describe(self.model),
            self.guarantee,
            name,
            "event",
            self.scale.unit,
            self.scale.claimed,
            bound,
            self.scale.delta,
            self.error,
            games,
            stopped,
            scores=_scores(hunter),
            power=max(bound, reach_of(self.scale, judged, self.error, bets * among)),
            undecided=any(_undecided(bet, self.scale.claimed) for bet in hunter.book.bets),
        )


def _better_half(hunters: list[_Hunter]) -> list[_Hunter]:
    """By what their bets have won, and by what their games seem to lose: half of the places for each."""
    places = -(-len(hunters) // 2)
    by_loss = sorted(hunters, key=lambda hunter: -hunter.likely_loss)
    by_evidence = sorted(hunters, key=lambda hunter: -hunter.evidence)
    chosen: list[_Hunter] = []
    for pair in zip(by_evidence, by_loss, strict=True):
        chosen += [hunter for hunter in pair if hunter not in chosen]
    return chosen[:places]


def _undecided(bet: Bet, claimed: float) -> bool:
    """Whether games point beyond the claim, though they do not prove it. What loses all it may does so rarely."""
    return bet.loss(-1.25) > 1.03 * claimed


def _parts(games: int, count: int) -> list[int]:
    return [part.size for part in np.array_split(np.empty(games), count) if part.size]


def _scores(hunter: _Hunter) -> tuple[FloatArray, FloatArray] | None:
    best = hunter.best
    if best is None:
        return None
    left, right = hunter.played[-1]
    return best.show(left), best.show(right)
