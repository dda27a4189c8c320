"""How large the error of a partition typically gets: a simulation of two synthetic streams, from public numbers only.

Error bounds add up the worst of every noise; what happens is about half of that. Here one column reaches the largest
answer c_max, the others stay empty, and the column grows either evenly over the whole horizon ("steady") or as fast as
it can at the end ("burst"). The largest error over all ticks is simulated many times at once.

Nothing is played tick by tick. While an interval is open, x = kappa + tau - (growth so far) falls at a steady rate, and
the interval survives a tick with probability 1 - P(mu > x). So the sum of -ln(1 - P(mu > x)) over its ticks, an
integral, is a standard exponential variable when it closes: one variable for tau, one for the close. Growths of
intervals are independent of each other and of the noise of H, which is that of the product under simulation keys, made
once at a fixed scale. So a million ticks take a millisecond.

Deterministic, and for accuracy only: thresholds and splits are chosen by it, and whatever it says is private (2.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from evertally.bounds.extremes import Floats, TypicalTails, largest_where
from evertally.counting.process import Budget, NoiseProcess
from evertally.noise import DiscreteLaplace, ZeroNoise, simulation
from evertally.partition.budget import Noise
from evertally.partition.fittest import make, optimal, same_as_before
from evertally.partition.histograms import OPTIMAL, make_histogram
from evertally.partition.lanes import Lanes
from evertally.partition.sketches import bank_sketch, block_sketch
from evertally.privacy import ZCDP, Change, PureDP

_UNIT = 1024  # scale of the simulated noise of H, so that rounding to integers does not show
_FINE = 2**20
_MOST_INTERVALS = 2**13
_MOST_DRAWS = 2**15  # intervals times replicas
_RIVALS = 32  # distances at which other columns follow the leader
_PLACES = 48  # inserts that are looked at for the noise of idle columns
_EVEN = math.log(2)  # -ln of an even chance
_INTERPRETED = 32  # inserts at once; longer pieces would compile the tree, which takes longer than they do


@dataclass(frozen=True)
class TypicalStream:
    """A synthetic stream: c_max within T ticks, at most `growth` in one of them, one of `columns` columns.

    `wide`: the answers show every column, and not only the largest. `selects`: the answer is a column, and the others
    follow the leader at all distances, for among empty ones there would be nothing to confuse it with.
    """

    horizon: int
    largest: int
    growth: int
    columns: int
    wide: bool = False
    selects: bool = False

    @property
    def rate(self) -> float:
        """Growth in a tick, if it is even."""
        return self.largest / self.horizon

    @property
    def rivals(self) -> tuple[Floats, float]:
        """How far other columns are behind, as parts of the leader's height, and for how many each of them stands."""
        count = min(self.columns - 1, _RIVALS)
        return (np.arange(count) + 0.5) / count, (self.columns - 1) / count


@dataclass(frozen=True)
class Scales:
    """The noise of a partition in floats: scales of tau and mu, and the unit of H (an insert moved by one event)."""

    tau: float
    mu: float
    unit: float
    pure: bool

    @classmethod
    def of(cls, noise: Noise, change: Change) -> Scales:
        return cls(float(noise.tau.scale), float(noise.mu.scale), *_unit_of(noise.histogram, change))


def _unit_of(charge: Budget, change: Change) -> tuple[float, bool]:
    if isinstance(charge, PureDP):
        return change.l1 / float(charge.exact_epsilon), True
    return math.sqrt(change.l2_squared / (2 * float(charge.exact_rho))), False


_X = np.linspace(-80.0, 80.0, 4001)  # in units of the scale of mu


def _survival_integral(x: Floats) -> Floats:
    """F(x): the integral of -ln(1 - P(Lap(1) > y)) over y > x. For x >= 0 it is the dilogarithm of exp(-x)/2."""
    z = 0.5 * np.exp(-np.maximum(x, 0.0))
    dilogarithm = sum(z**k / k**2 for k in range(1, 25))
    below = np.minimum(x, 0.0)
    return np.asarray(dilogarithm - math.log(2) * below + below * below / 2)


_LOG_F = np.log(_survival_integral(_X))


def growths(kappa: float, scales: Scales, rate: float, tau: Floats, patience: Floats) -> Floats:
    """How much the answer grows in intervals with these tau (standard Laplace) and exponential variables."""
    start = (kappa + scales.tau * tau) / scales.mu
    used = np.exp(np.interp(start, _X, _LOG_F)) + patience * rate / scales.mu
    end = np.interp(-np.log(used), -_LOG_F, _X)
    return np.asarray(np.maximum(scales.mu * (start - end), rate))


def mean_growth(kappa: float, scales: Scales, rate: float) -> float:
    """The mean growth of an interval: quantiles in place of draws."""
    return float(growths(kappa, scales, rate, *_QUANTILES).mean())


def _quantiles(count: int) -> tuple[Floats, Floats]:
    u = (np.arange(count) + 0.5) / count
    tau = np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))
    return tau[:, None], -np.log(u)[None, :]


_QUANTILES = _quantiles(24)


@lru_cache(maxsize=64)
def _standard(lane: str, intervals: int, replicas: int) -> Floats:
    source = simulation(4).source("typical", "test")
    return source.draws(lane, DiscreteLaplace(_FINE), range(1, intervals + 1), replicas) / _FINE


def _unit_histogram(pure: bool, kind: str, n: int | None, columns: int) -> NoiseProcess:
    source = simulation(4).source("typical", kind, str(n)) if columns > 1 else ZeroNoise().source()
    return make_histogram(kind, _unit_charge(pure), Change(1, 1, 1), n, columns, source)


def _unit_charge(pure: bool) -> Budget:
    return PureDP(Fraction(1, _UNIT)) if pure else ZCDP(Fraction(1, 2 * _UNIT**2))


@lru_cache(maxsize=512)
def _histogram_paths(pure: bool, kind: str, n: int | None, intervals: int, replicas: int) -> Floats:
    """Noise after 0, 1, 2, ... inserts, in units."""
    if kind == OPTIMAL:
        assert n is not None
        return _optimal_paths(pure, n, intervals, replicas)
    process = _unit_histogram(pure, kind, n, replicas)
    pieces = [process.advance(min(_INTERPRETED, intervals - i)) for i in range(0, intervals, _INTERPRETED)]
    return np.concatenate([np.zeros((1, replicas)), *pieces]) / _UNIT


def _optimal_paths(pure: bool, n: int, intervals: int, replicas: int) -> Floats:
    """The same by sketches. Where no block has another process than before, the paths are those of before: so a choice
    between the two is a tie, and not a ripple of the simulation."""
    lengths = _block_lengths(n, intervals)
    if all(same_as_before(pure, length) for length in lengths):
        return _histogram_paths(pure, "blocks", n, intervals, replicas)
    source, held, done = simulation(4).source("typical", OPTIMAL, str(n)), np.zeros(replicas), 0
    paths = [np.zeros((1, replicas))]
    for k, length in enumerate(lengths):
        count, lanes = min(length, intervals - done), Lanes(source, f"block-{k}")
        fitting = optimal(pure, length, 1)
        if fitting[0] == "bank":
            path = bank_sketch(length, count, replicas, lanes, "bank")
        elif fitting[0] == "pure-blocks":
            path = block_sketch(length, count, replicas, lanes, "blocks")
        else:
            process = make(fitting, _unit_charge(pure), Change(1, 1, 1), length, replicas, lanes)
            pieces = [process.advance(min(_INTERPRETED, count - i)) for i in range(0, count, _INTERPRETED)]
            path = np.concatenate(pieces) / _UNIT
        paths.append(held + path)
        held, done = held + path[-1], done + count
    return np.concatenate(paths)


def _block_lengths(n: int, intervals: int) -> list[int]:
    """Of the blocks that so many inserts need."""
    lengths, length, total = [n], n, n
    while total < intervals:
        lengths.append(length)
        total += length
        length *= 2
    return lengths


@lru_cache(maxsize=512)
def _histogram_tails(pure: bool, kind: str, n: int | None, inserts: int) -> tuple[Floats, TypicalTails]:
    places = np.unique(np.linspace(1, inserts, min(inserts, _PLACES)).astype(np.int64))
    model = _unit_histogram(pure, kind, n, 1)
    return places.astype(np.float64), TypicalTails([model.spread(int(j)) for j in places])


def typical_error(
    stream: TypicalStream,
    scales: Scales,
    kappa: float,
    kind: str,
    n: int | None,
    *,
    replicas: int = 256,
    burst: bool = False,
) -> float:
    """The median over runs of the largest error of any tick, on the steady stream or on the burst.

    `kind` and `n` say how H is made. Time: milliseconds.

    >>> stream = TypicalStream(horizon=10**6, largest=1000, growth=1, columns=1)
    >>> 40 < typical_error(stream, Scales(4.0, 8.0, 2.0, True), 94, "blocks", 48) < 60
    True
    """
    rate = float(stream.growth) if burst else stream.rate
    expected = stream.largest / mean_growth(kappa, scales, rate)
    # Before a burst the thresholds are passed by noise alone.
    idle = int(min(_MOST_INTERVALS, stream.horizon * noise_closes(kappa, scales))) if burst else 0
    intervals = _rounded(min(1.25 * expected + 8, _MOST_INTERVALS, stream.horizon))
    replicas = max(4, min(replicas, _MOST_DRAWS // (intervals + idle)))
    grown, after, before = _heights(kappa, scales, rate, intervals, replicas)
    alive = before < stream.largest
    noise = scales.unit * _histogram_paths(scales.pure, kind, n, _rounded(intervals + idle), replicas)
    released = np.maximum(0.0, before + noise[idle : idle + intervals])
    staleness = np.minimum(after, stream.largest) - released
    largest = (np.maximum(np.abs(released - before), np.abs(staleness)) * alive).max(axis=0)
    inserts = idle + int(np.median(alive.sum(axis=0))) - 1
    others = _other_columns(stream, scales, kind, n, _rounded(inserts, least=1) if inserts else 0, idle)
    if stream.selects:
        stale = (np.minimum(grown, stream.largest - before) * alive).max(axis=0)
        return float(np.median(stale)) + largest_where(others, _EVEN, high=4 * scales.unit)
    # The largest error is below x if that of the busy column is, and no other column exceeds it: -ln of a probability.
    ranked = np.sort(largest)

    def exceeded(x: float) -> float:
        below = float(np.searchsorted(ranked, x, side="right")) / replicas
        busy = -math.log(max(below, 0.5 / replicas))
        return busy if busy > _EVEN else others(x) + busy  # others only add, and it is above the level already

    return largest_where(exceeded, _EVEN, high=float(ranked[-1]) + 1)


@lru_cache(maxsize=64)
def _heights(kappa: float, scales: Scales, rate: float, intervals: int, replicas: int) -> tuple[Floats, Floats, Floats]:
    """Growths of intervals, and the answer after and before each of them: the same whatever H is made of."""
    tau, patience = _standard("tau", intervals, replicas), np.abs(_standard("patience", intervals, replicas))
    grown = growths(kappa, scales, rate, tau, patience)
    after = np.cumsum(grown, axis=0)
    return grown, after, after - grown


def forget() -> None:
    """Lets go of what only simulations with the same scales share: they are compared at once, or never again."""
    _heights.cache_clear()


def _other_columns(
    stream: TypicalStream, scales: Scales, kind: str, n: int | None, inserts: int, idle: int
) -> Callable[[float], float]:
    """How many times the noise of empty columns leads astray by more than x, after any insert.

    For the maximum it counts where it is above the true answer; for a selection, by how much less the column has that
    it prefers.
    """
    if stream.columns == 1 or inserts == 0:
        return lambda x: 0.0
    places, tails = _histogram_tails(scales.pure, kind, n, inserts)
    many = (stream.columns - 1) * max(1.0, tails.theta * inserts) / len(places)
    height = stream.largest * np.maximum(0, places - idle) / inserts
    if stream.selects:
        # The noise of two columns decides: one that is this far behind is taken for the leader.
        behind, each = stream.rivals
        missing = behind[:, None] * height
        mistaken = each * tails.above(_UNIT * missing / (scales.unit * math.sqrt(2))) / (stream.columns - 1)
        return lambda x: many * float(mistaken[missing >= x].sum())
    if stream.wide:
        height = np.zeros_like(height)
    return lambda x: many * float(tails.above(_UNIT * (x + height) / scales.unit).sum())


def noise_closes(kappa: float, scales: Scales) -> float:
    """The probability that an empty tick closes an interval: P(mu > kappa + tau), averaged over tau."""
    tau = scales.tau * _QUANTILES[0].ravel()
    x = (kappa + tau) / scales.mu
    return float(np.where(x > 0, 0.5 * np.exp(-np.maximum(x, 0)), 1 - 0.5 * np.exp(np.minimum(x, 0))).mean())


def _rounded(count: float, least: int = 8) -> int:
    """Up to two significant bits, so that few different sizes are simulated."""
    size = max(least, math.ceil(count))
    shift = max(0, size.bit_length() - 2)
    return -(-size >> shift) << shift
