"""Playing an audit to its end: games in growing batches, a verdict with its confidence."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from evertally.audit import estimators
from evertally.audit.estimators import SURELY, EventBound, Look
from evertally.audit.game import Adversary, Factory, FloatArray, Game, Side, Views
from evertally.audit.gaussian import concentrated
from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.statistics.linear_options import is_linear

Scores = tuple[FloatArray, FloatArray]
Aspect = Literal["loss", "noise", "change", "budget", "state"]
Verdict = Literal["holds (tight)", "no power here", "broken"]
Progress = Callable[[str, int, int], None]
_SIDES: tuple[Side, Side] = ("left", "right")
_MANY = 20_000  # games of which a part may be enough
_LOOKS, _FOR_A_LOOK = (1 / 4, 1 / 2), 0.05  # parts of the games, and of the error for each
_SETTLED = "settled"
TIGHT = 0.85  # of the claim: an audit that finds less would not see noise that is a sixth too small


@dataclass(frozen=True)
class Report:
    """What an audit found: at least `audited` is lost (except with probability `error`), `claimed` is promised.

    `unit` says in what: "epsilon" (at `delta`), "rho" (Renyi divergence over its order), or "mu", the separation of two
    normal laws. `method` says how: "event", "separation" (games), "closed form" or "exact law" (no games, error 0).
    Reports of the door ("l1 change", "l2 change") and of attacks ("leak", 0 or 1) are no losses. `scores` are the
    scores of both sides, for pictures; `stopped` says why games ended early, or what an attack saw.

    `aspect` is what was looked at: "loss" from events to releases, "noise" alone (the declared change is taken for
    granted), the "change" alone, the "budget" that was handed out, "state" that is copied, restored or interrupted.
    `power` is the most that this audit could have found in a mechanism that loses all it may: no number of games finds
    more. Infinite where the loss of the instance is computed, whatever it is. `undecided` says that games ended before
    it was clear on which side of the claim they are: more of them may break the promise.
    """

    mechanism: str
    guarantee: Guarantee
    adversary: str
    method: str
    unit: str
    claimed: float
    audited: float
    delta: float
    error: float
    trials: int
    stopped: str = ""
    seconds: float = 0.0
    scores: Scores | None = field(default=None, repr=False, compare=False)
    aspect: Aspect = "loss"
    power: float = math.inf
    undecided: bool = False

    @property
    def verdict(self) -> Verdict:
        """Broken; or held, by an audit that would have seen a breach; or nothing that this audit could have seen."""
        if not self.passed:
            return "broken"
        if self.method == "not here" or self.undecided:
            return "no power here"
        # What an attack compares is equal or not; what was paid is known exactly, however little it is.
        compared = self.unit == "leak" or self.aspect == "budget"
        return "holds (tight)" if compared or self.fraction >= TIGHT else "no power here"

    @property
    def passed(self) -> bool:
        """False if the lower bound exceeds the claim: then the promise is broken. The margin is float rounding."""
        return self.audited <= self.claimed * (1 + 1e-9)

    @property
    def fraction(self) -> float:
        """How much of the claim the audit found: near 1, the mechanism adds no more noise than it must."""
        return self.audited / self.claimed if self.claimed else (math.inf if self.audited else 0.0)

    @property
    def is_loss(self) -> bool:
        """Whether the numbers say how much privacy is lost, as those of games, laws and closed forms do."""
        return self.unit in ("epsilon", "mu", "rho")

    @classmethod
    def computed(
        cls,
        model: Any,
        adversary: str,
        method: str,
        unit: str,
        claimed: float,
        audited: float,
        aspect: Aspect = "loss",
    ) -> Report:
        """Of an audit that plays no games, against the charge of the mechanism."""
        found = max(audited, 0.0)  # the mass that an exact law leaves out can make a small loss look negative
        delta = getattr(model.charge, "delta", 0.0)
        facts = describe(model), model.charge, adversary, method, unit, claimed, found, delta, 0.0, 0
        return cls(*facts, aspect=aspect)

    @classmethod
    def attack(
        cls, model: Any, name: str, leaked: bool, told: str, method: str = "attack", aspect: Aspect = "state"
    ) -> Report:
        """Of an attack, which leaks or does not."""
        facts = describe(model), model.guarantee, name, method, "leak", 0.0, float(leaked), 0.0, 0.0, 0, told
        return cls(*facts, aspect=aspect, power=0.0 if method == "not here" else math.inf)

    @classmethod
    def not_here(cls, model: Any, name: str, why: str) -> Report:
        """Of what is not audited for this configuration, and why: it stands in the table, so that nobody misses it."""
        return cls.attack(model, name, False, why, "not here")


def claimed_epsilon(guarantee: Guarantee, delta: float) -> float:
    """The epsilon that the guarantee allows at this delta."""
    if isinstance(guarantee, PureDP):
        return guarantee.epsilon
    if isinstance(guarantee, ApproxDP) and delta >= guarantee.delta:
        return guarantee.epsilon
    if not isinstance(guarantee, ApproxDP) and delta > getattr(guarantee, "delta", 0.0):
        return guarantee.to_approx(delta).epsilon
    raise ConfigurationError(f"{guarantee} promises no finite epsilon at delta={delta}; audit at a larger delta")


def default_delta(guarantee: Guarantee) -> float:
    """Where to audit: 0 for pure promises, the promised delta, or one that games can resolve."""
    if isinstance(guarantee, PureDP):
        return 0.0
    if isinstance(guarantee, ApproxDP):
        return guarantee.delta
    return getattr(guarantee, "delta", 0.0) + 1e-3


def play(
    mechanism_factory: Factory,
    adversary: Adversary,
    trials: int = 20_000,
    *,
    delta: float | None = None,
    confidence: float = 1 - 1e-6,
    ticks: int | None = None,
    seed: int = 0,
    claim: Guarantee | None = None,
    progress: Progress | None = None,
) -> Report:
    """Plays games on both sides and bounds the lost epsilon from below.

    Games double from look to look, each bound has its part of the error, and the audit ends early when it is clear: the
    claim is broken, or the best event's lower limit is above nine tenths of it and either its upper limit is below the
    claim, or the games to come will hardly show more than the claim (`Look.settled`). The score is the adversary's if
    it knows one, otherwise one that is trained on the half that is not judged.

    `mechanism_factory(key)` makes a mechanism with `step`; its `guarantee` is the claim unless `claim` is given.

    >>> import evertally as et
    >>> from evertally.audit import FirstTick, play
    >>> make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=key)
    >>> report = play(make, FirstTick(make(et.simulation(0))), trials=20_000)
    >>> report.passed, report.fraction > 0.85
    (True, True)
    """
    table = _Table(mechanism_factory, adversary, ticks, 1 - confidence)
    guarantee = claim or table.model.guarantee
    delta = default_delta(guarantee) if delta is None else delta
    claimed = claimed_epsilon(guarantee, delta)
    stages = max(1, min(5, int(math.log2(max(2, trials / 2000)))))
    best: tuple[EventBound, int, Scores, str] | None = None
    played, before = Played(table.games, hash_seed(seed, 0)), 0
    for stage in range(stages):
        n = trials >> (stages - 1 - stage)
        if progress:
            progress(adversary.name, n, trials)
        # All games before are the half that chooses, new ones judge: judged trials are never used to choose.
        played.add(n - before)
        before, (scores, _) = n, played.scores(delta)
        bound = estimators.threshold_bound(*scores, delta, table.error / stages)
        stopped = _clear(bound, n - n // 2, claimed, table.error / stages)
        if not stopped and n < trials and bound.look.settled(claimed, n / trials):
            stopped = _SETTLED
        if best is None or bound.epsilon > best[0].epsilon or stopped:
            best = (bound, n, scores, stopped)
        if stopped:
            break
    assert best is not None
    bound, n, scores, stopped = best
    report = table.report(guarantee, "event", "epsilon", claimed, bound.epsilon, scores)
    return replace(report, delta=delta, trials=n, stopped=stopped)


def measure_mu(
    mechanism_factory: Factory,
    adversary: Adversary,
    trials: int = 20_000,
    *,
    confidence: float = 1 - 1e-6,
    ticks: int | None = None,
    seed: int = 0,
    claim: Guarantee | None = None,
) -> Report:
    """The separation of the adversary's score, for mechanisms whose noise is (nearly) normal: claim sqrt(2 rho).

    The known scores of adversaries that are not adaptive are linear in the noise, hence normal, and their separation
    is measured; this needs noise of standard deviation 0.9 or more. Others are judged by an event (`separation_bound`):
    mean over deviation of a score that is not normal can exceed mu without any loss. This needs wide noise; there is
    `measure_rho` for narrow noise.
    """
    table = _Table(mechanism_factory, adversary, ticks, 1 - confidence)
    guarantee = _zcdp("mu", claim or _paid(table.model))
    method = ""

    def look(scores: Scores, trained: bool, error: float) -> Look:
        nonlocal method
        if adversary.adaptive or trained:
            method = "event"
            return estimators.separation_look(*scores, error)
        method = "separation"
        bound = estimators.mu_bound(*scores, error)
        return Look(bound.estimate, bound.lower)

    claimed = math.sqrt(2 * guarantee.rho)
    audited, scores, stopped = table.measured(trials, hash_seed(seed, 9), claimed, look)
    return replace(table.report(guarantee, method, "mu", claimed, audited, scores), stopped=stopped)


def measure_rho(
    mechanism_factory: Factory,
    adversary: Adversary,
    trials: int = 20_000,
    *,
    confidence: float = 1 - 1e-6,
    ticks: int | None = None,
    seed: int = 0,
    claim: Guarantee | None = None,
) -> Report:
    """A lower bound on rho from one event, for any mechanism with a zCDP promise; see `rho_bound`."""
    table = _Table(mechanism_factory, adversary, ticks, 1 - confidence)
    guarantee = _zcdp("rho", claim or _paid(table.model))

    def look(scores: Scores, trained: bool, error: float) -> Look:
        return estimators.rho_look(*scores, error)

    audited, scores, stopped = table.measured(trials, hash_seed(seed, 8), guarantee.rho, look)
    return replace(table.report(guarantee, "event", "rho", guarantee.rho, audited, scores), stopped=stopped)


class _Table:
    """The games of both sides, and the form of what is reported about them."""

    def __init__(self, factory: Factory, adversary: Adversary, ticks: int | None, error: float) -> None:
        self._started = time.perf_counter()
        self.error, self._adversary = error, adversary
        self.games = [Game(factory, adversary, side, ticks=ticks) for side in _SIDES]
        self.model = self.games[0].model

    def measured(
        self, trials: int, seed: int, claimed: float, look: Callable[[Scores, bool, float], Look]
    ) -> tuple[float, Scores, str]:
        """The bound, the scores that it is of, and why there are not more of them. Many games are looked at before all
        are played, with a little of the error: the rest is for what takes all games to be seen."""
        played, before, looks = Played(self.games, seed), 0, _LOOKS if trials >= _MANY else ()
        for part in looks:
            n = int(part * trials)
            played.add(n - before)
            before, (scores, trained) = n, played.scores()
            found = look(scores, trained, _FOR_A_LOOK * self.error)
            if found.lower > claimed:
                return found.lower, scores, "broken"
            if found.settled(claimed, part):
                return found.lower, scores, _SETTLED
        played.add(trials - before)
        scores, trained = played.scores()
        return look(scores, trained, (1 - len(looks) * _FOR_A_LOOK) * self.error).lower, scores, ""

    def report(
        self, guarantee: Guarantee, method: str, unit: str, claimed: float, audited: float, scores: Scores
    ) -> Report:
        facts = describe(self.model), guarantee, self._adversary.name, method, unit, claimed, audited
        seconds = time.perf_counter() - self._started
        return Report(*facts, 0.0, self.error, len(scores[0]), seconds=seconds, scores=scores)


def _paid(model: Any) -> Guarantee:
    """What a mechanism pays; Gaussian noise that is alone under its promise pays as much in rho."""
    charge: Guarantee = getattr(model, "charge", model.guarantee)
    return concentrated(charge) if is_linear(model) and isinstance(charge, ApproxDP) else charge


def _zcdp(unit: str, claim: Guarantee) -> ZCDP:
    if not isinstance(claim, ZCDP):
        raise ConfigurationError(f"{unit} is measured against a zCDP claim")
    return claim


def play_scores(games: Sequence[Game], trials: int, seed: int, delta: float = 0.0) -> tuple[Scores, bool]:
    """Plays both sides, in batches that fit into memory, and scores them; whether the score was trained."""
    played = Played(games, seed)
    played.add(trials)
    return played.scores(delta)


class Played:
    """Games of both sides so far."""

    def __init__(self, games: Sequence[Game], seed: int) -> None:
        self._games, self._seed = games, seed
        # Scores, or where the adversary has none, what one is trained on.
        self._found: list[list[FloatArray]] = [[] for _ in games]
        self._scored: set[bool] = set()

    def add(self, trials: int) -> None:
        """Plays so many more, in batches that fit into memory."""
        for side, (game, found) in enumerate(zip(self._games, self._found, strict=True)):
            for size in _batches(trials, game):
                views = game.play(size, seed=hash_seed(self._seed, side, len(found)))
                score = game.adversary.score(views)
                self._scored.add(score is not None)
                found.append(_features(views) if score is None else score)

    def scores(self, delta: float = 0.0) -> tuple[Scores, bool]:
        """Of all games, and whether the score was trained."""
        if len(self._scored) > 1:
            raise ConfigurationError(f"{self._games[0].adversary.name!r} scores some of its views and not others")
        left, right = map(np.concatenate, self._found)
        trained = False in self._scored
        return estimators.trained_scores(left, right, delta) if trained else (left, right), trained


_NUMBERS_AT_ONCE = 1 << 22


def _batches(trials: int, game: Game) -> Iterator[int]:
    largest = max(1, _NUMBERS_AT_ONCE // (game.ticks * game.columns))
    while trials > 0:
        yield min(trials, largest)
        trials -= largest


def _features(views: Views) -> FloatArray:
    return views.residuals.reshape(len(views.residuals), -1)


def _clear(bound: EventBound, trials: int, claimed: float, error: float) -> str:
    if bound.epsilon > claimed:
        return "broken"
    a, b = bound.rates
    hits, other = (b, a) if bound.swapped else (a, b)
    high = estimators.upper_limit(round(hits * trials), trials, error) - bound.delta
    low = estimators.lower_limit(round(other * trials), trials, error)
    upper = math.log(high / low) if low > 0 and high > 0 else math.inf
    return "clear" if upper <= claimed and bound.epsilon >= SURELY * claimed else ""


def hash_seed(*parts: int) -> int:
    """Seeds of different parts of an audit do not meet."""
    seed = 0
    for part in parts:
        seed = seed * 1_000_003 + part + 1
    return seed


def describe(model: Any) -> str:
    """A mechanism in a few words."""
    words = [getattr(model, "audited_as", type(model).__name__)]
    for name in ("mechanism", "horizon"):
        if hasattr(model, name):
            words.append(f"{name}={getattr(model, name)}")
    return f"{words[0]}({', '.join(words[1:])})"
