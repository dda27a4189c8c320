"""The exact audit of partitions: the probability of a transcript on two neighbouring streams, asked of the program.

What a partition releases is a transcript: when intervals closed, and which histogram came out each time. Given the
transcript so far the program is in a known state, so the probability of a transcript is a product (E5 and 9.3 of
parameterized-histograms):

    closes      sum over tau of f(tau) * product over ticks of P(mu <= level) or, where it closed, P(mu > level),
    histograms  P(the draws of H that lead to what was released),
    updates     P(the thresholds moved as they did).

Only the laws of draws are taken for granted. Which draws there are, and what each of them does, is found out by running
the program with planted draws: the *level* of a tick is the largest mu that does not close it, and is looked for by
trying. So a bug in the program shows as what it does to probabilities; and a stream of many hundred ticks costs as many
runs, not as many combinations of draws.

Assumed, and checked by further runs as far as `_Side._levels` says: a tick closes for all mu above its level, and the
level moves with tau. The tests enumerate instances of two or three draws, which assumes nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.audit.exact import ExactLoss, _extent
from evertally.audit.scripts import (
    ALWAYS,
    NEVER,
    Address,
    Asked,
    Make,
    Partition,
    Planted,
    Rows,
    Run,
    as_rows,
    part,
)
from evertally.counting.process import FloatArray, IntArray
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law
from evertally.partition import PartitionedRelease

_LIFT = 2**36  # a draw of H that keeps every column away from the projection to counts


def _log_mass(law: Law, z: int) -> float:
    """ln P(Z = z)."""
    if isinstance(law, DiscreteLaplace):
        return math.log(math.tanh(0.5 / float(law.scale))) - abs(z) / float(law.scale)
    assert isinstance(law, DiscreteGaussian)
    s2 = 2 * float(law.sigma_squared)
    reach = math.ceil(9 * math.sqrt(s2)) + 1
    return -z * z / s2 - math.log(math.fsum(math.exp(-k * k / s2) for k in range(-reach, reach + 1)))


def _log_at_most(law: Law, z: FloatArray) -> FloatArray:
    """ln P(Z <= z) for a Laplace law, exact in both tails."""
    if not isinstance(law, DiscreteLaplace):
        raise ConfigurationError("tests and updates are audited with Laplace noise")
    b = float(law.scale)
    rest = math.log1p(math.exp(-1 / b))
    below = np.minimum(z, -1.0) / b - rest
    above = np.log1p(-np.exp(-(np.maximum(z, 0.0) + 1) / b - rest))
    return np.asarray(np.where(z < 0, below, above), dtype=np.float64)


def _log_more_than(law: Law, z: FloatArray) -> FloatArray:
    """ln P(Z > z)."""
    return _log_at_most(law, -z - 1)


def _log_minimum(law: Law, reach: int, draws: int) -> tuple[IntArray, FloatArray]:
    """Values -reach..reach and ln P(the smallest of so many draws is that)."""
    values = np.arange(-reach, reach + 1)
    least = _log_more_than(law, np.arange(-reach - 1, reach + 1, dtype=np.float64))  # ln P(Z >= v), one v more
    return values, draws * least[:-1] + np.log(-np.expm1(draws * np.diff(least)))


@dataclass(frozen=True)
class _Interval:
    """Ticks that were tested with one tau: `lane` of their mu, and for each whether it closed."""

    lane: str
    mu: Asked
    tau: tuple[int, Asked] | None  # the node, and how it was asked
    ticks: list[int]
    closed: list[bool]


@dataclass(frozen=True)
class _Chance:
    """ln of a probability, which lacks at most `tail`."""

    log: float
    tail: float = 0.0


@dataclass
class _Side:
    """The program on one stream, led along a transcript by planted draws."""

    make: Make
    rows: IntArray
    closes: frozenset[Address]
    climb: bool
    tail: float
    like: _Side | None = None  # the other side, whose releases and thresholds these must equal

    def __post_init__(self) -> None:
        self._planted: dict[str, dict[int, Any]] = {}
        for lane, tick in self.closes:
            self._planted.setdefault(lane, {})[tick] = ALWAYS
        run = self._run(self._planted)
        for asked in run.asked:
            if part(asked.lane) == "update":
                climbs = dict.fromkeys(asked.nodes, ALWAYS if self.climb else NEVER)
                self._planted.setdefault(asked.lane, {}).update(climbs)
        self._ticks = [tick for tick, _ in run.releases]
        self._still: dict[Address, int] = {}  # how many intervals were closed without a close at this tick
        self.releases: list[IntArray] = []
        self.histograms = self._histograms()
        self.thresholds: dict[Address, IntArray] = {}
        self.updates = self._updates()

    def _run(self, planted: Planted, tick: int | None = None) -> Run:
        return Run.of(self.make, self.rows[:tick], planted)

    # -- histograms: the draws of H that lead to the releases

    def _histograms(self) -> list[_Chance]:
        """Plants the draws of H, one release after the other: 0 on the first side; on the other one whatever makes its
        releases the same. The probability of each release, by column."""
        chances: list[_Chance] = []
        known: set[Address] = set()
        if self.like is not None and self._ticks != self.like._ticks:
            return [_Chance(-math.inf)]
        for number, tick in enumerate(self._ticks):
            drawn = self._drawn_for(number, tick, known)
            if drawn is None:
                # Nothing random is left: what comes out is certain, and has to be the same.
                shown = self._run(self._planted, tick).releases[number][1]
                same = self.like is None or np.array_equal(shown, self.like.releases[number])
                chances.append(_Chance(0.0 if same else -math.inf))
            else:
                (lane, node), law, raw = drawn
                known.add((lane, node))
                shown = np.maximum(raw, 0) if self.like is None else self.like.releases[number]
                z = np.zeros_like(raw) if self.like is None else shown - raw
                self._planted.setdefault(lane, {})[node] = z
                chances += [_release_chance(law, int(a), int(b)) for a, b in zip(z, shown, strict=True)]
            self.releases.append(shown)
        if {place for place, _ in self._draws_of_h(None)} - known:
            raise ConfigurationError("a release with several new draws: this H is not audited by transcripts")
        return chances

    def _draws_of_h(self, tick: int | None) -> dict[tuple[Address, Law], None]:
        asked = self._run(self._planted, tick).asked
        return {((a.lane, n), a.law): None for a in asked if part(a.lane) == "histogram" for n in a.nodes}

    def _drawn_for(self, number: int, tick: int, known: set[Address]) -> tuple[Address, Law, IntArray] | None:
        """The new draw that is added to a release, and the release without it (and without the projection)."""
        for (lane, node), law in self._draws_of_h(tick):
            if (lane, node) in known:
                continue
            lifted = [
                self._run(_with(self._planted, (lane, node), lift), tick).releases[number][1] - lift
                for lift in (_LIFT, 2 * _LIFT)
            ]
            if np.array_equal(lifted[0], lifted[1]):
                return (lane, node), law, lifted[0]
        return None

    # -- updates: how thresholds moved at a close

    def _updates(self) -> list[_Chance]:
        """The probability that all thresholds climbed at every close (or that none did)."""
        asked = [one for one in self._run(self._planted).asked if part(one.lane) == "update"]
        return [chance for one in asked for node in one.nodes for chance in self._update(one, node)]

    def _update(self, asked: Asked, node: int) -> list[_Chance]:
        tick = self._close_tick(asked.lane, node)
        found = [self._threshold(asked, node, tick, query) for query in range(asked.coordinates)]
        self.thresholds[asked.lane, node] = np.array([reached for reached, _ in found])
        return [chance for _, chance in found]

    def _threshold(self, asked: Asked, node: int, tick: int, query: int) -> tuple[int, _Chance]:
        """Where the threshold of a query is after an update, and how likely that was."""

        def reached(noise: int) -> int:
            draws = np.full(asked.coordinates, ALWAYS if self.climb else NEVER)
            draws[query] = noise
            run = self._run(_with(self._planted, (asked.lane, node), draws), tick)
            return int(_engine(run.partition, asked.lane)._rule.floors[query])

        low, high = reached(NEVER), reached(ALWAYS)
        here = high if self.climb else low
        if low == high:  # no noise decides about this threshold: it is where it is
            there = here if self.like is None else self.like.thresholds[asked.lane, node][query]
            return here, _Chance(0.0 if here == there else -math.inf)
        at = np.array(_first_true(lambda noise: reached(noise) == high) - 1.0)
        log = _log_more_than(asked.law, at) if self.climb else _log_at_most(asked.law, at)
        return here, _Chance(float(log))

    def _close_tick(self, lane: str, number: int) -> int:
        """The tick of the close at which an update was asked."""
        if lane == "update":
            return self._ticks[number - 1]
        test = lane[: -len("update")] + "mu"
        return sorted(tick for where, tick in self.closes if where == test)[number - 1]

    # -- closes: tau and mu

    def intervals(self) -> list[_Interval]:
        """The ticks of each test, by the tau that is in force: the one asked last, before the first or at a close."""
        asked = self._run(self._planted).asked
        found: dict[tuple[str, int], _Interval] = {}
        for lane in dict.fromkeys(one.lane for one in asked if part(one.lane) == "mu"):
            taus = [(node, one) for one in asked if one.lane == lane[: -len("mu")] + "tau" for node in one.nodes]
            closed = 0
            for one in (one for one in asked if one.lane == lane):
                for tick in one.nodes:
                    tau = taus[min(closed, len(taus) - 1)] if taus else None
                    interval = found.setdefault((lane, tau[0] if tau else 0), _Interval(lane, one, tau, [], []))
                    interval.ticks.append(tick)
                    interval.closed.append((lane, tick) in self.closes)
                    closed += interval.closed[-1]
        return list(found.values())

    def close_chance(self, interval: _Interval) -> _Chance:
        """The probability that an interval (or several with one tau) closed when it did."""
        weights, stay, leave, tail = self._factors(interval)
        logs = weights + np.where(interval.closed, leave, stay).sum(axis=1)
        return _Chance(float(np.logaddexp.reduce(logs)), tail)

    def first_close(self, interval: _Interval) -> tuple[dict[tuple[int, ...], float], float]:
        """The law of the tick at which an interval closes (the empty outcome: it does not), and the mass left out."""
        weights, stay, leave, tail = self._factors(interval)
        before = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(stay, axis=1)], axis=1)
        closing = np.logaddexp.reduce(weights[:, None] + before[:, :-1] + leave, axis=0)
        law: dict[tuple[int, ...], float] = {(): float(np.exp(np.logaddexp.reduce(weights + before[:, -1])))}
        law |= {(tick,): float(np.exp(log)) for tick, log in zip(interval.ticks, closing, strict=True)}
        return law, tail

    def _factors(self, interval: _Interval) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """ln f(tau); ln P(a tick does not close) and ln P(it closes), by tau and tick; the mass of other tau."""
        if interval.tau is None:
            values, weights, tail = np.zeros(1, dtype=np.int64), np.zeros(1), 0.0
        else:
            tau = interval.tau[1]
            values, weights = _log_minimum(tau.law, _extent(tau.law, self.tail), tau.coordinates)
            tail = self.tail * tau.coordinates
        levels = self._levels(interval, values)
        draws = interval.mu.coordinates
        stay = draws * _log_at_most(interval.mu.law, levels)
        leave = _log_more_than(interval.mu.law, levels) if draws == 1 else np.log(-np.expm1(stay))
        return weights, stay, leave, tail

    def _levels(self, interval: _Interval, values: IntArray) -> FloatArray:
        """The level of every tick for every tau.

        Looked for at tau = 0 in every tick. That it moves along with tau is tried: for every tau, all ticks at once at
        their level, which must do nothing new; and one tick, another one for each tau, one above its level, which must
        close. If that fails, every level is looked for at every tau. (Several coordinates of tau must work by the
        smallest, and several of mu by the largest: then one draw each stands for them.)
        """
        at_zero = self.levels_at_zero(interval)
        moved: FloatArray = np.array(at_zero, dtype=np.float64)[None, :] + values[:, None].astype(np.float64)
        if interval.tau is None or all(self._moves(interval, i, int(tau), moved[i]) for i, tau in enumerate(values)):
            return moved
        if max(interval.tau[1].coordinates, interval.mu.coordinates) > 1:
            raise ConfigurationError("several draws that do not work by their smallest tau or their largest mu")
        levels = moved.copy()
        for j, tick in enumerate(interval.ticks):
            guess = at_zero[j] if math.isfinite(at_zero[j]) else 0.0
            for i, tau in enumerate(values):
                levels[i, j] = self._level(interval, tick, int(tau), guess)
                guess = levels[i, j] if math.isfinite(levels[i, j]) else guess
        return levels

    def levels_at_zero(self, interval: _Interval) -> list[float]:
        """The level of every tick at tau = 0."""
        levels: list[float] = []
        guess = 0.0
        for tick in interval.ticks:
            levels.append(self._level(interval, tick, 0, guess))
            guess = levels[-1] if math.isfinite(levels[-1]) else guess
        return levels

    def _level(self, interval: _Interval, tick: int, tau: int, guess: float) -> float:
        """The largest mu that does not close the tick; infinite if none closes it."""
        base = self._with_tau(interval, tau)

        def closes(mu: int) -> bool:
            return self._closes(_with(base, (interval.lane, tick), mu), interval.lane, tick)

        near = int(guess)
        if closes(near + 1) and not closes(near):
            return near
        if not closes(ALWAYS):
            return math.inf
        return _first_true(closes) - 1

    def _moves(self, interval: _Interval, i: int, tau: int, levels: FloatArray) -> bool:
        """Whether the levels are right for one tau, as far as two runs can tell."""
        tests = list(zip(interval.ticks, np.minimum(levels, ALWAYS).astype(int).tolist(), interval.closed, strict=True))
        at_level = {tick: level + closed for tick, level, closed in tests}
        last = interval.ticks[-1]
        run = self._run(_with_lane(self._with_tau(interval, tau), interval.lane, at_level), last)
        if [t for t, _ in run.releases] != [t for t in self._ticks if t <= last]:
            return False
        tick, level, closed = tests[i % len(tests)]
        above = level < ALWAYS and not closed
        mu: Any = level + above
        coordinates = interval.mu.coordinates
        if coordinates > 1 and above:  # one of them is enough, together with any coordinate of tau
            mu = np.full(coordinates, NEVER)
            mu[i // coordinates % coordinates] = level + 1
        planted = _with(self._with_tau(interval, tau, spread=7), (interval.lane, tick), mu)
        return self._closes(planted, interval.lane, tick) is above

    def _closes(self, planted: Planted, lane: str, tick: int) -> bool:
        """Whether the test closes an interval at a tick."""
        if (lane, tick) not in self._still:
            self._still[lane, tick] = self._run(_with(self._planted, (lane, tick), NEVER), tick).closed(lane)
        return self._run(planted, tick).closed(lane) > self._still[lane, tick]

    def _with_tau(self, interval: _Interval, tau: int, spread: int = 0) -> Planted:
        """The script with a tau: all coordinates, or one of them and the others above it by `spread`."""
        if interval.tau is None:
            return self._planted
        node, asked = interval.tau
        draws = np.full(asked.coordinates, tau + spread)
        draws[tau % asked.coordinates] = tau
        return _with(self._planted, (asked.lane, node), draws)


def _with(planted: Planted, address: Address, value: Any) -> Planted:
    return _with_lane(planted, address[0], {address[1]: value})


def _with_lane(planted: Planted, lane: str, values: Mapping[int, Any]) -> Planted:
    return {**planted, lane: {**planted.get(lane, {}), **values}}


def _first_true(test: Callable[[int], bool]) -> int:
    """The smallest number from which on the test holds, if it holds at ALWAYS."""
    low, high = -1, 1
    while not test(high):
        low, high = high, 2 * high
    while test(low):
        low, high = 2 * low, low
        if low < NEVER:
            raise ConfigurationError("a draw that changes nothing")
    return low + 1 + bisect_left(range(low + 1, high), True, key=test)


def _release_chance(law: Law, z: int, shown: int) -> _Chance:
    """A column of a release; 0 stands for everything below, too."""
    return _Chance(_log_mass(law, z) if shown > 0 else float(_log_at_most(law, np.array(float(z)))))


def _engine(partition: Partition, lane: str) -> PartitionedRelease:
    if isinstance(partition, PartitionedRelease):
        return partition
    return partition._outer if lane.startswith("outer/") else partition._inner


@dataclass(frozen=True)
class TranscriptLoss:
    """ln P_left/P_right of one transcript, never more than it is, in its parts. A promise of epsilon bounds the sum."""

    closes: float
    histograms: float
    updates: float

    @property
    def epsilon(self) -> float:
        return self.closes + self.histograms + self.updates


def transcript_loss(
    make: Make, left: Rows, right: Rows, closes: Iterable[int | Address], *, climb: bool = True, tail: float = 1e-20
) -> TranscriptLoss:
    """The loss of one transcript: the intervals close at these ticks and at no others, the released histograms are
    those of the left stream without noise, and at every close all thresholds climb (or none, `climb=False`).

    In a partition of two levels a close is an address, such as ("outer/mu", 9) or ("segment-2/mu", 12). An address that
    the program never asks for is a test that does not take place, and costs nothing.

    >>> from evertally.partition import Terms, bounded
    >>> from evertally.privacy import Change, PureDP
    >>> class Maximum:
    ...     count = 1
    ...     def values(self, v):
    ...         return np.array([v.max()])
    >>> plan = bounded(Terms(PureDP(1.0), Change(1, 1, 1), 100, 1, Maximum(), largest=50))
    >>> loss = transcript_loss(plan.engine, [[1], [0]], [[0], [0]], [2])
    >>> round(loss.closes, 3), loss.histograms  # one step along the tail of mu, and all that H may lose
    (0.125, 0.5)
    """
    first, second = _sides(make, left, right, closes, climb, tail)
    return TranscriptLoss(
        closes=_difference(*([s.close_chance(interval) for interval in s.intervals()] for s in (first, second))),
        histograms=_difference(first.histograms, second.histograms),
        updates=_difference(first.updates, second.updates),
    )


def histogram_loss(make: Make, left: Rows, right: Rows, closes: Iterable[int | Address]) -> float:
    """The part of a transcript's loss that its histograms have: what H loses, if intervals close at these ticks."""
    first, second = _sides(make, left, right, closes, tail=0.0)
    return _difference(first.histograms, second.histograms)


def _sides(
    make: Make, left: Rows, right: Rows, closes: Iterable[int | Address], climb: bool = True, tail: float = 1e-20
) -> tuple[_Side, _Side]:
    """Both streams, led along one transcript."""
    addresses = frozenset(("mu", close) if isinstance(close, int) else close for close in closes)
    first = _Side(make, as_rows(left), addresses, climb, tail)
    return first, _Side(make, as_rows(right), addresses, climb, tail, like=first)


def close_loss(make: Make, left: Rows, right: Rows, *, tail: float = 1e-20) -> ExactLoss:
    """The law of the first close on two streams; the empty outcome is that nothing closes."""
    laws = []
    lost = 0.0
    for rows in (left, right):
        side = _Side(make, as_rows(rows), frozenset(), True, tail)
        (interval,) = side.intervals()
        law, missing = side.first_close(interval)
        laws.append(law)
        lost = max(lost, missing)
    return ExactLoss(lost, *laws)


def levels_after(make: Make, left: Rows, right: Rows, closes: Iterable[int | Address]) -> list[dict[Address, float]]:
    """For both streams, led to the same releases: the level (at tau = 0) of every tick that is tested in an interval
    which began after the last tick in which the streams differ. These must be equal (E4): the row of that tick has been
    released, and nothing may depend on it any more. Their number is the number of such tests."""
    x, y = as_rows(left), as_rows(right)
    differ = int(np.flatnonzero((x != y).any(axis=1)).max()) + 1
    return [
        {
            (interval.lane, tick): level
            for interval in side.intervals()
            if interval.ticks[0] > differ
            for tick, level in zip(interval.ticks, side.levels_at_zero(interval), strict=True)
        }
        for side in _sides(make, x, y, closes)
    ]


def _difference(left: Sequence[_Chance], right: Sequence[_Chance]) -> float:
    """ln of the ratio of two products, at most what it is."""
    p = math.fsum(chance.log for chance in left)
    logs = [float(np.logaddexp(c.log, math.log(c.tail))) if c.tail else c.log for c in right]
    q = math.inf if any(log == -math.inf for log in logs) else -math.fsum(logs)
    return p + q if p > -math.inf else -math.inf
