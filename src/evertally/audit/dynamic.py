"""Audits of what is present now: insertions and deletions, through the door that the mechanism really has.

* The signed linear counter ("linear"): all neighbouring streams of a few records are played without noise, and what
  their rows differ by is held against the noise matrix that is read off the program: Gaussian noise by the most
  powerful test, Laplace noise by the sum over its draws, which is the exact loss.
* Constructions around a static mechanism: the exact input of every release on two neighbouring streams, with the same
  boundaries and restarts (`audit.dynamic_inputs`).
* Games with one lifetime, at a weak promise, and the attacks on what every mechanism keeps.

Which streams are neighbours is said in `audit.dynamic_streams`; what a mechanism charges for a step is never asked.
Copies are audited: shorter horizons, lifetimes of three ticks at most, two cells. dynamic-data 11.4, 13.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any, TypeGuard

import numpy as np

from evertally.audit.dynamic_inputs import FixedKey, Releases, Spent, partition_loss, releases_of, spent
from evertally.audit.dynamic_streams import Facts, Pair, Players, Record, Stream, neighbours
from evertally.audit.game import Factory, FloatArray, IntArray, public
from evertally.audit.gaussian import (
    AnyLaw,
    ImpulseSource,
    claim_of,
    fitting,
    height_of,
    is_gaussian,
    laplace_scales,
    sigma_squared,
)
from evertally.audit.laplace import is_real_laplace, largest
from evertally.audit.promises import loud
from evertally.audit.report import Report
from evertally.audit.whitebox import smaller
from evertally.dynamic.linear import UpdateEngine
from evertally.noise import NoiseKey
from evertally.noise.reals import KnownReals, RealLaw
from evertally.noise.source import ZeroSource
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.statistics.dynamic_options import Dynamic

Audit = tuple[str, Callable[[], Report]]

_RECORDS = 3  # of streams that are all tried
_LONGEST_LIFE = 3
_SHORT = 6  # ticks for which streams are played through constructions
_LONG, _LONGER = 12, 48  # ticks of copies on which single lifetimes are tried, of constructions and counters
_FIRST_EPOCH = 32  # ticks: blocks that double show all of an event in their first, and the next is drawn whole
_GAME = 3  # ticks of a game
_JOINTLY = 2  # pairs that are also held against the law of the boundaries


def is_dynamic(model: Any) -> TypeGuard[Dynamic]:
    """Whether these audits are for the mechanism."""
    return isinstance(model, Dynamic)


def dynamic_audits(model: Dynamic, ticks: int) -> list[Audit]:
    """The audits that play no games. All streams of so many ticks are tried."""
    if is_counted(model):
        pure_and_endless = model.horizon is None and isinstance(model.charge, PureDP)
        longer = _FIRST_EPOCH if pure_and_endless else _LONGER
        # Blocks hide what comes and goes at once for less; a tree shows all that a pair is charged for.
        plain = {"process": "epoch-tree"} if pure_and_endless else {}
        short, long = _copy(model, ticks + 1, _LONGEST_LIFE, **plain), _copy(model, longer, longer // 2)
        return [
            ("all short streams", lambda: linear_report(short, all_pairs(short, ticks), "all short streams")),
            ("lifetimes", lambda: linear_report(long, lifetimes(long, longer), "lifetimes")),
        ]
    copied = _copy(model, _LONG, _LONGEST_LIFE)
    return [("exact inputs", lambda: inputs_report(copied, ticks))]


def is_counted(model: Dynamic) -> bool:
    """Whether it is the signed linear counter."""
    return isinstance(model._presence_engine().inner, UpdateEngine)


# -- copies ------------------------------------------------------------------------------------------------------------


def _copy(model: Dynamic, ticks: int, longest: int, **changed: Any) -> Dynamic:
    """The same configuration, so small that all streams can be tried, or that its noise is a matrix."""
    if model.max_lifetime is not None:
        changed["max_lifetime"] = min(model.max_lifetime, longest)
    if model.max_events_per_user is not None:
        changed["max_events_per_user"] = min(model.max_events_per_user, 2)
    if model.every is not None and model.every > 2:
        changed["every"] = 2
    horizon: Any = None if model.horizon is None else min(model.horizon, ticks)
    made: Any = smaller(model, horizon, **changed)  # type: ignore[arg-type]
    assert is_dynamic(made)
    return made


def _ticks(model: Dynamic, most: int) -> int:
    return min(model.horizon or most, most)


def all_pairs(model: Dynamic, ticks: int) -> list[Pair]:
    """All neighbouring streams of a few records."""
    facts = Facts.of(model)
    most = max(_RECORDS, min(4, 2 * facts.lifetimes)) if facts.named else _RECORDS
    return list(dict.fromkeys(neighbours(facts, _ticks(model, ticks), most)))


def lifetimes(model: Dynamic, most: int) -> list[Pair]:
    """An item that comes with the first tick, or in the middle, and goes with any other, or never; against nothing, or
    where events are protected, against the same without its insertion."""
    ticks, facts = _ticks(model, most), Facts.of(model)
    firsts = sorted({1, max(1, ticks // 2)})
    found = [Pair((Record(a, 1, 0, "me"),), ()) for a in firsts]
    if not facts.deletions or facts.identity == "raw":
        return found
    ends = [(Record(a, 1, 0, "me"), Record(b, -1, 0, "me")) for a in firsts for b in range(a + 1, ticks + 1)]
    return found + [Pair(life, () if facts.protects == "item" else life[1:]) for life in ends]


# -- the signed linear counter -----------------------------------------------------------------------------------------


class _Impulses(ZeroSource):
    """Impulses for the draws from a number on, in as many columns as there are."""

    def __init__(self, start: int, impulses: ImpulseSource) -> None:
        self._start, self._impulses = start, impulses

    def draws(self, lane: str, law: AnyLaw, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        return self._impulses.draws(lane, law, nodes, coordinates, first + self._start)

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        return self._impulses.reals(lane, law, nodes, coordinates, first + self._start)

    @property
    def drawn(self) -> list[AnyLaw]:
        """The law of each draw."""
        return self._impulses.drawn


@fitting
def noise_matrix(model: Dynamic, ticks: int) -> tuple[FloatArray, list[AnyLaw], float]:
    """W (ticks x draws) of a column of the row, the law of each draw, and how often a release is rounded."""
    parts: list[FloatArray] = []
    made, start, impulses = Players(model, ticks).engine, 0, ImpulseSource()
    while True:
        source = _Impulses(start, impulses)
        noise = made(source).inner.noise
        response, laws = noise.advance(ticks), source.drawn
        now = laws[start : start + response.shape[1]]
        parts.append(response[:, : len(now)] / np.array([float(height_of(law)) for law in now]))
        start += response.shape[1]
        if start >= len(laws):
            return np.concatenate(parts, axis=1), laws, float(noise.spread(ticks).roundings)


@dataclass(frozen=True)
class Losses:
    """What the noise of a counter loses, for differences of releases without noise: (n, ticks, columns)."""

    W: FloatArray
    laws: list[AnyLaw]
    roundings: float

    def of(self, moved: FloatArray) -> FloatArray:
        """Epsilon for Laplace noise, where releases determine the draws or these are real, mu for Gaussian noise."""
        if is_gaussian(self.laws):
            inverse = np.linalg.inv(self.covariance)
            return np.asarray(np.sqrt(np.einsum("ntc,tu,nuc->n", moved, inverse, moved, optimize=True)))
        if is_real_laplace(self.laws):
            return largest(self.W, moved, self.roundings)
        z = np.einsum("it,ntc->nic", np.linalg.inv(self.W), moved, optimize=True)
        return np.asarray(np.einsum("nic,i->n", np.abs(np.rint(z)), 1 / laplace_scales(self.laws)))

    @property
    def covariance(self) -> FloatArray:
        """Of Gaussian noise, by the parameters of its laws."""
        variances = np.array([sigma_squared(law) for law in self.laws])
        return np.asarray((self.W * variances) @ self.W.T + self.roundings / 12 * np.eye(len(self.W)))

    @property
    def known(self) -> bool:
        """Whether there is such a formula: refined Laplace estimates have none."""
        return self.W.shape[0] == self.W.shape[1] or is_gaussian(self.laws) or is_real_laplace(self.laws)


def paths(players: Players, pairs: Iterable[Pair]) -> tuple[list[Pair], FloatArray]:
    """Different differences of the releases without noise, each with a pair that has it."""

    @cache
    def path(stream: Stream) -> IntArray:
        return np.array([row for row, _ in players.play(stream)])

    found: dict[bytes, tuple[Pair, IntArray]] = {}
    for pair in pairs:
        moved = path(pair.left) - path(pair.right)
        if moved.any():
            found.setdefault(moved.tobytes(), (pair, moved))
    assert found, "no neighbour changes anything"
    return [pair for pair, _ in found.values()], np.array([moved for _, moved in found.values()], dtype=np.float64)


def linear_report(model: Dynamic, pairs: list[Pair], tried: str) -> Report:
    """The worst of these pairs against the noise of the program.

    >>> import evertally as et
    >>> model = et.DynamicCount(guarantee=et.PureDP(1.0), horizon=None, process="epoch-tree", key=et.simulation(0))
    >>> report = linear_report(model, all_pairs(model, 3), "short")
    >>> report.adversary, round(report.fraction, 6)
    ('short: +a@1 -a@2 against nothing', 1.0)
    """
    ticks = max((record.tick for pair in pairs for record in pair.left), default=1)
    claim = claim_of(model.charge)
    try:
        losses = Losses(*noise_matrix(model, ticks))
        if not losses.known:
            return Report.not_here(model, tried, "of refined Laplace estimates there is no formula")
        candidates, moved = paths(Players(model, ticks), pairs)
        lost = losses.of(moved)
    except np.linalg.LinAlgError:
        return Report.computed(
            model, "a combination of releases that carries no noise", "closed form", *claim, math.inf
        )
    worst = int(np.argmax(lost))
    return Report.computed(model, f"{tried}: {candidates[worst]}", "closed form", *claim, float(lost[worst]))


# -- constructions -----------------------------------------------------------------------------------------------------


def _never(level: int, segment: int) -> bool:
    return False


def _always(level: int, segment: int) -> bool:
    return True


def _often(level: int, segment: int) -> bool:
    return (level + segment) % 3 == 0


def schedules(model: Dynamic) -> Iterator[tuple[str, Callable[[], FixedKey]]]:
    """Boundaries and restarts that streams are played under."""
    yield "", FixedKey
    if model.partition != "identity":
        yield ", a boundary at every second tick", lambda: FixedKey(lambda tick: tick % 2 == 0)
    if model.mechanism == "interval-tree":
        yield ", with restarts at every step", lambda: FixedKey(restarts=_always)
        yield ", with nodes that halt", lambda: FixedKey(restarts=_often, halts=True)


def inputs_report(model: Dynamic, ticks: int) -> Report:
    """All neighbouring streams of a few records, and single lifetimes over more ticks, and what their releases cost;
    the worst ones together with what the boundaries tell.

    >>> import evertally as et
    >>> model = et.DynamicCount(guarantee=et.PureDP(1.0), horizon=7, mechanism="subtract", key=et.simulation(0))
    >>> inputs_report(model, ticks=3).fraction
    1.0
    """
    length = _SHORT if model.mechanism == "interval-tree" else _LONG
    tried = [(all_pairs(model, ticks - 1), length), (lifetimes(model, _LONG), _LONG)]
    players = Players(model, _SHORT)
    played_by = [(pairs, players.of(_ticks(model, length))) for pairs, length in tried]
    found: list[tuple[float, Pair, str, Callable[[], FixedKey], Spent, Players]] = []
    for (words, key), (pairs, players) in product(schedules(model), played_by):

        @cache
        def played(stream: Stream, key: Callable[[], FixedKey] = key, players: Players = players) -> Releases:
            return releases_of(players, stream, key())

        for pair in pairs:
            cost = spent(played(pair.left), played(pair.right))
            if cost.wrong:
                return Report.attack(model, f"{pair}{words}", True, cost.wrong, "exact inputs")
            found.append((_lost(model.charge, 0.0, cost), pair, words, key, cost, players))
    # Among equals those that bring most updates, and late: the boundaries may tell more.
    found.sort(key=lambda one: (-one[0], -len(one[1].left), -one[1].left[0].tick))
    assert found[0][0] > 0, "a construction whose releases nobody saw"
    unit, claimed = _claim(model.charge)
    best = (0.0, "nothing")
    for lost, pair, words, key, cost, players in found[: _JOINTLY if model.partition != "identity" else 1]:
        told = partition_loss(players, pair, key().closes) if model.partition != "identity" else 0.0
        best = max(best, (_lost(model.charge, told, cost) if told else lost, f"{pair}{words}"))
    # What a static mechanism makes of its budget is taken for granted here.
    return Report.computed(model, best[1], "exact inputs", unit, claimed, best[0], "change")


def _claim(charge: Guarantee) -> tuple[str, float]:
    if isinstance(charge, ZCDP):
        return "rho", charge.rho
    assert isinstance(charge, PureDP | ApproxDP)
    return "epsilon", charge.epsilon


def _lost(charge: Guarantee, boundaries: float, releases: Spent) -> float:
    """Everything together, in the unit of the charge (dynamic-data 1.2)."""
    if isinstance(charge, ZCDP):
        return boundaries**2 / 2 + float(releases.rho + releases.epsilon**2 / 2)
    exact = boundaries + float(releases.epsilon)
    if not releases.rho:
        return exact
    if not isinstance(charge, ApproxDP):
        return math.inf  # Gaussian noise under a pure promise
    return exact + float(ZCDP(Fraction(releases.rho)).to_approx(charge.delta).epsilon)


# -- games and attacks -------------------------------------------------------------------------------------------------


class OneOfTwo:
    """A mechanism for games: the first row says which of two streams is played, later ones nothing."""

    columns = 1

    def __init__(self, players: Players, pair: Pair, key: NoiseKey) -> None:
        model = players.model
        self._pair, self._play = pair, partial(players.play, key=key)
        self._running: Any = None
        self.guarantee, self.charge = model.guarantee, model.charge
        self.mechanism, self.horizon = model.mechanism, players.ticks
        self.audited_as = type(model).__name__

    def step(self, row: int) -> FloatArray:
        if self._running is None:
            stream = self._pair.left if row else self._pair.right
            self._running = self._play(stream)
        return public(next(self._running)[1])


def game_of(model: Dynamic) -> Factory:
    """The game with an item that comes at once and goes soon (or never), at a promise so weak that few games show it:
    what is charged for a step, and what is not, is the same for every promise."""
    ticks = _ticks(model, _GAME)
    copied = _copy(model, ticks, _LONGEST_LIFE, guarantee=loud(model.guarantee))
    players = Players(copied, ticks)
    gone = [pair for pair in lifetimes(copied, ticks) if pair.left[-1].tick == min(2, ticks)]
    pair = (gone or lifetimes(copied, ticks))[0]
    return lambda key: OneOfTwo(players, pair, key)


def inputs_of(model: Dynamic) -> list[Any]:
    """Some ticks of records, the first two of them different."""
    players = Players(model, 1)
    streams = [[Record(1, 1, 0, f"{tick}-{n}") for n in range(count)] for tick, count in enumerate((3, 0, 9, 1))]
    return [[players.event(record, {}) for record in stream] for stream in streams]
