"""Configurations of the engine: every algorithm of parameterized-histograms as public numbers and a rule.

A configuration is calibrated from public parameters before the stream starts, and holds no data. Thresholds, the number
of intervals and beta steer accuracy only; the privacy is that of `noise`, whatever they are (2.2 there, tested).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

from evertally.counting.process import IntArray
from evertally.errors import ConfigurationError
from evertally.noise import Source, ZeroNoise
from evertally.partition.budget import Noise, Split, noise_of
from evertally.partition.calibration import Calibration, Scope
from evertally.partition.engine import PartitionedRelease
from evertally.partition.histograms import make_histogram
from evertally.partition.rules import Intervals, Ladder, NoisyLadders, Queries, Rebased, Rise, Rule
from evertally.partition.tails import Tails
from evertally.privacy import ApproxDP, Change, PureDP

T = TypeVar("T")

_MOST_INTERVALS = 2**30
_SINGLE = 0.05  # of a failure probability: for bounds on single intervals, beside the one on all of them
_AHEAD, _AHEAD_TOO = 0.05, 0.4  # for answers that are too high, alone or where both are added


@dataclass(frozen=True)
class Terms:
    """What is asked for, all of it public.

    `largest` is a guess at the largest answer (c_max), None if there is none. `growth` is what an answer is thought to
    grow by in one tick, `most` the same as somebody declared it (None: nobody did): `growth` makes thresholds, and only
    `most` may carry a bound. `beta` is the failure probability that thresholds are made for. All these are for accuracy
    only. `promise` and `change` are those of one event. `one_way`: neighbours differ in one direction, and the queries
    are monotone (False where that is not proved). `base_error` bounds the error of the vector that the engine starts
    from. `calibration` keeps the numbers that decide laws, where they are to be kept.
    """

    promise: PureDP | ApproxDP
    change: Change
    horizon: int | None
    columns: int
    queries: Queries
    largest: int | None = None
    beta: float = 0.05
    growth: int = 1
    most: int | None = None
    split: Split | None = None
    one_way: bool = False
    base_error: int = 0
    calibration: Calibration | Scope | None = field(default=None, compare=False)

    @property
    def reachable(self) -> float:
        """The largest answer that is possible, if what was declared is true."""
        return math.inf if self.horizon is None or self.most is None else float(self.horizon * self.most)

    @property
    def unlimited(self) -> bool:
        """Whether H must take any number of inserts."""
        return self.largest is None or self.horizon is None

    def settle(self, name: str, find: Callable[[], T]) -> T:
        """A number that decides a law, or goes with one that does: found once, if there is a calibration to keep it."""
        return find() if self.calibration is None else self.calibration.settle(name, find)

    def within(self, scope: str) -> Terms:
        """The same terms, with a part of the calibration of its own."""
        return self if self.calibration is None else replace(self, calibration=self.calibration.within(scope))

    def noise(self, split: Split) -> Noise:
        """The noise of one engine."""
        return noise_of(
            self.promise,
            self.split or split,
            queries=self.queries.count,
            linf=self.change.linf,
            one_way=self.one_way,
        )

    def tails(self, noise: Noise, histogram: str, n: int | None) -> Tails:
        """How large that noise gets, with n inserts into H; from a model with one column."""
        zero = ZeroNoise().source()
        model = make_histogram(histogram, noise.histogram, self.change, n, self.columns, zero, width=1)
        return Tails(noise, model, self.columns, self.horizon, self.queries.count)


@dataclass(frozen=True)
class Configuration:
    """One engine, ready to be built.

    The error in interval j at tick t is at most `rise(j, t) + a alpha_SV + b err + c alpha_U` with (a, b, c) =
    `weights`, and `factor` times that where an answer compares two columns. `error` is that bound while answers stay
    below `largest`, which keeps the number of closes low; `sure_error` trusts nothing that is a guess.
    """

    name: str
    terms: Terms
    noise: Noise
    histogram: str  # how H's noise is made, a name of HISTOGRAMS
    intervals: int | None  # n, the most closes; with blocks, those that the first block takes
    make_rule: Callable[[], Rule]
    rise: Callable[[int, int], int]
    weights: tuple[int, int, int]
    factor: int = 1
    # Where H is never full: how many closes there are but for a failure probability, on streams up to `largest`.
    closes: Callable[[float], int] | None = None
    # The same for all streams that keep what was declared; at most one interval closes in a tick.
    sure_closes: Callable[[float], int] | None = None
    # Answers up to this much do not use up n intervals, where there is such an n.
    covers: int | None = None

    def engine(self, source: Source, base: IntArray | None = None) -> PartitionedRelease:
        """The engine itself."""
        terms = self.terms
        process = make_histogram(
            self.histogram, self.noise.histogram, terms.change, self.intervals, terms.columns, source
        )
        return PartitionedRelease(self.noise.tau, self.noise.mu, process, self.make_rule(), source, base=base)

    def error(self, beta: float, tick: int | None = None, interval: int | None = None) -> float:
        """A bound on the error that fails with probability beta: for all ticks and intervals, or (where there is no
        limit to them) for a tick and an interval, all together still failing with probability beta."""
        a, b, c = self.weights
        if (a, c) == (1, 0):
            return self._rebased_error(beta, tick, interval)
        tails, t = self._tails, tick or self.terms.horizon or 1
        j = interval or self.intervals or t  # at most one interval closes in a tick
        bound = (
            self.rise(j, t)
            + a * tails.sparse_vector(beta, t, j)
            + b * (tails.histogram(beta, j) + self.terms.base_error)
            + (c * tails.update(beta) if c else 0)
        )
        # Thresholds that double can be beyond all numbers where nothing public bounds how many there will be.
        return self.factor * float(bound) if bound < 2**1000 else math.inf

    def _rebased_error(self, beta: float, tick: int | None, interval: int | None) -> float:
        """The same where thresholds follow the released answers: V1 to V4 (docs/theory/additions.md, 9).

        Bounds for single intervals share beta by the numbers of the intervals, and hold together. Where the number of
        intervals is limited, one bound for all of them is tighter; its limit may rest on `largest`, so it says nothing
        about a given interval then.
        """
        most = self._tails.model.horizon
        if interval is None and self.closes is not None:
            beta, most = 0.9 * beta, min(self.terms.horizon or 1, self.closes(0.1 * beta)) + 1
        if most is None:
            t = tick or self.terms.horizon or 1
            return self._off(beta, t, interval or t, together=False)  # at most one interval closes in a tick
        t = self.terms.horizon or 1
        whole = self._off((1 - _SINGLE) * beta, t, most, together=True)
        if interval is None:
            return whole
        return min(whole, self._off(_SINGLE * beta, tick or t, interval, together=False))

    def _off(self, beta: float, tick: int, interval: int, together: bool) -> float:
        """An answer is behind by what it has grown and by the noise of H, or ahead by that noise; where two columns are
        compared, one is behind and one ahead. In an interval, or in all up to it (`together`)."""
        tails, base, ahead = self._tails, self.terms.base_error, self.weights[1] + self.factor - 2
        part = _AHEAD_TOO if ahead else _AHEAD
        behind = tails.behind((1 - part) * beta, self.rise(interval, tick), self.terms.most, interval, together)
        above = tails.ahead(part * beta, interval, together)
        return float(max(behind, above) + base + ahead * (above + base))

    def sure_error(self, beta: float, tick: int | None = None) -> float:
        """The bound on every stream whose answers grow by at most `terms.most` in a tick, or on every stream at all:
        `largest` is a guess, and carries nothing. Infinite where more closes than n are possible."""
        if self.closes is not None:
            return replace(self, closes=self.sure_closes).error(beta, tick)
        if self.covers is not None and self.terms.reachable > self.covers:
            return math.inf
        return self.error(beta, tick)

    def typical(self, tick: int, interval: int) -> float:
        """What the error is about in a long interval, where the rise is well above the noise: the rise, and each noise
        once, at its median. For ladders; `typical.typical_error` is for thresholds near the noise."""
        noise = self._tails.sparse_vector(0.5, tick, interval) + self._tails.histogram(0.5, interval)
        return self.factor * float(self.rise(interval, tick) + noise)

    @cached_property
    def _tails(self) -> Tails:
        return self.terms.tails(self.noise, self.histogram, self.intervals)


def bounded(terms: Terms) -> Configuration:
    """Algorithms 2, 3 and 7: a ladder of equal steps K = 3 alpha, alpha = err + alpha_mu + alpha_tau (4.2, 5.3).

    n is the smallest number of closes that suffices for `largest`, each interval growing by at least alpha - 1
    (calibration of 4.2 [D][R]). Error at most K + 2 alpha_SV + 3 err <= 2K. Without `largest` or a horizon the steps
    grow with the public tick and the number of the interval, and H is an epoch tree (5.5 [D][R]). One query only: a
    column that is not the largest can grow unseen (7.1).
    """
    if terms.queries.count > 1:
        raise ConfigurationError('one ladder watches one query; for several use "rebased" or "noisy-ladders"')
    noise, beta = terms.noise(Split.halves()), terms.beta

    def alpha(tails: Tails, j: int | None = None, t: int | None = None) -> int:
        return max(3, tails.histogram(beta, j) + terms.base_error + tails.sparse_vector(beta, t, j))

    if terms.unlimited:
        tails = terms.tails(noise, "epoch-tree", None)
        moving = moving_rise(lambda j, t: 3 * alpha(tails, j, t))
        rule = lambda: Ladder(terms.queries, moving)  # noqa: E731
        return Configuration("bounded", terms, noise, "epoch-tree", None, rule, at_one_tick(moving), (2, 3, 0))
    settle = terms.settle
    n = settle("n", lambda: _fewest(lambda n: n * (alpha(terms.tails(noise, "binary-tree", n)) - 1) >= _largest(terms)))
    step = settle("K", lambda: 3 * alpha(terms.tails(noise, "binary-tree", n)))
    rule = lambda: Ladder(terms.queries, lambda j, ticks: step)  # noqa: E731
    return Configuration(
        "bounded", terms, noise, "binary-tree", n, rule, lambda j, t: step, (2, 3, 0), covers=_largest(terms)
    )


def noisy_ladders(terms: Terms) -> Configuration:
    """Algorithms 8, 12, 13 and 17: a ladder for each query, steps K = 3 (C + err), C = alpha_SV + alpha_U (4.3, 4.4).

    n as in the calibration of 4.3 [D][R]. Error at most K + C + 3 err + alpha_SV + alpha_U <= 2K + 1: the threshold in
    force was set by a look that found the query above K_old - C - alpha_U - err, and no close means that it is below
    K_old + K + alpha_SV + err.
    """
    noise, beta = terms.noise(Split.thirds()), terms.beta
    law = noise.update
    if law is None:
        raise ConfigurationError("noisy ladders pay for updates, and a split of three parts has none; leave it out")
    if terms.unlimited:
        raise ConfigurationError('noisy ladders need a horizon and `largest`; without them use "rebased"')

    def parts(n: int) -> tuple[int, int, int]:
        tails = terms.tails(noise, "binary-tree", n)
        return tails.sparse_vector(beta), tails.update(beta), tails.histogram(beta) + terms.base_error

    def enough(n: int) -> bool:
        sparse, _, histogram = parts(n)
        return n * (max(3, sparse + histogram) - 1) >= terms.queries.count * _largest(terms)

    settle = terms.settle
    n = settle("n", lambda: _fewest(enough))
    sparse, update, histogram = parts(n)
    C = settle("C", lambda: sparse + update)
    K = settle("K", lambda: 3 * (C + histogram))
    rule = lambda: NoisyLadders(terms.queries, K, C, law)  # noqa: E731
    return Configuration(
        "noisy-ladders", terms, noise, "binary-tree", n, rule, lambda j, t: K + C, (1, 3, 1), covers=_largest(terms)
    )


def doubling(terms: Terms, start: int | None = None) -> Configuration:
    """Algorithms 5, 10 and 15: thresholds K_1, 2 K_1, 4 K_1, ... and noise that piles up (5.1, 5.2).

    `start` is K_1; None takes alpha_mu + alpha_tau, below which every close is noise (5.1 [D][R]). The answer is
    repeated between closes, so its error is of the size of the answer itself: this is the outer level of the two-level
    scheme. J = ceil(log2(T/K_1)) + 1 closes, so that the last threshold is as large as any answer; no limit without a
    horizon.
    """
    noise = terms.noise(Split.halves())
    most = None if terms.horizon is None else terms.horizon * terms.growth
    J = None if most is None else (most - 1).bit_length() + 1

    def above_noise() -> int:
        return max(1, terms.tails(noise, "pile", J).sparse_vector(terms.beta, 1, 1))

    K_1 = terms.settle("K_1", above_noise) if start is None else start
    if most is not None:
        J = (-(-most // K_1) - 1).bit_length() + 1

    def step(j: int) -> int:
        return K_1 if j == 1 else K_1 << (j - 2)  # K_j - K_(j-1)

    def growth(j: int, t: int) -> int:
        # Only the largest query is watched: another one may have grown from 0 to K_j.
        return step(j) if terms.queries.count == 1 else K_1 << (j - 1)

    rule = lambda: Ladder(terms.queries, lambda j, ticks: step(j))  # noqa: E731
    return Configuration("doubling", terms, noise, "pile", J, rule, growth, (2, 3, 0), covers=most)


def rebased(terms: Terms) -> Configuration:
    """Variants V1, V3 and V4: thresholds are the released answers plus kappa = alpha_SV + 2 err + gamma (7.2 [D][R]).

    Error at most 2 alpha_SV + 3 err + gamma. Each close means that some answer has grown by gamma, so n = k c_max/gamma
    closes suffice; gamma is chosen for the smallest bound. Without `largest` or a horizon H is an epoch tree, which has
    no limit (V3; V4 with a delta), and gamma = 2.
    """
    return _rebased(terms, "rebased", lambda kappa: Rebased(terms.queries, kappa), looks_at_histogram=2)


def intervals(terms: Terms) -> Configuration:
    """Variant V2, for linear queries: the open interval alone is tested, kappa = alpha_SV + gamma (7.2 [D][R]).

    Error at most 2 alpha_SV + err + gamma. For all columns at once this is a histogram whose partition never looks at
    H; for one column it is the partition of Dwork, Naor, Reingold and Rothblum (4.5).
    """
    return _rebased(terms, "intervals", lambda kappa: Intervals(terms.queries, kappa), looks_at_histogram=0)


def _rebased(terms: Terms, name: str, rule: Callable[[Rise], Rule], looks_at_histogram: int) -> Configuration:
    noise, beta = terms.noise(Split.halves()), terms.beta

    def kappa(tails: Tails, gamma: int, j: int | None = None, t: int | None = None) -> int:
        # The base of the histogram stays the same within the life of an engine, so its error does not count here.
        return tails.sparse_vector(beta, t, j) + looks_at_histogram * tails.histogram(beta, j) + gamma

    if terms.unlimited:
        unlimited = terms.tails(noise, "epoch-tree", None)
        moving = moving_rise(lambda j, t: kappa(unlimited, 2, j, t))
        rise = at_one_tick(moving)
        return Configuration(name, terms, noise, "epoch-tree", None, lambda: rule(moving), rise, (1, 1, 0))

    def bound(n: int) -> tuple[int, int, int]:
        tails = terms.tails(noise, "best", n)
        gamma = max(2, math.ceil(Fraction(terms.queries.count * _largest(terms), n)))
        step = kappa(tails, gamma)
        return step + tails.sparse_vector(beta) + tails.histogram(beta), n, step

    most = max(1, terms.queries.count * _largest(terms) // 2)
    sizes = _grid(min(most, terms.horizon or most))
    n, step = terms.settle("n, kappa", lambda: list(min(bound(n) for n in sizes)[1:]))
    fixed: Rise = lambda j, ticks: step  # noqa: E731
    return Configuration(
        name, terms, noise, "best", n, lambda: rule(fixed), lambda j, t: step, (1, 1, 0), covers=_largest(terms)
    )


def moving_rise(rise: Callable[[int, int], int]) -> Rise:
    """A rise that grows with ln t, asked at few ticks: t is rounded up to four significant bits."""
    rise = lru_cache(maxsize=4096)(rise)

    def at(j: int, ticks: IntArray) -> IntArray:
        shift = np.maximum(0, np.frexp(ticks.astype(np.float64))[1] - 4)  # frexp is exact, log2 need not be
        places, where = np.unique(-(-ticks >> shift) << shift, return_inverse=True)
        return np.array([rise(j, int(t)) for t in places], dtype=np.int64)[where]

    return at


def at_one_tick(moving: Rise) -> Callable[[int, int], int]:
    """The rise that is in force at a tick, rounding and all."""
    return lambda j, t: int(np.max(moving(j, np.array([t]))))


def _largest(terms: Terms) -> int:
    assert terms.largest is not None
    return terms.largest


def _fewest(enough: Callable[[int], bool]) -> int:
    """The smallest n that is enough; enough stays enough."""
    high = 1
    while not enough(high):
        high *= 2
        if high > _MOST_INTERVALS:
            raise ConfigurationError("more than 2^30 intervals would be needed: `largest` is too large")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _grid(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, 16, ... up to `most`."""
    sizes = {most}
    size = 1
    while size < most:
        sizes |= {size, min(most, size + size // 2)}
        size *= 2
    return sorted(sizes)
