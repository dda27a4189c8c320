"""Configurations of the engine: every algorithm of parameterized-histograms as public numbers and a rule.

A configuration is calibrated from public parameters before the stream starts, and holds no data. Thresholds, the number
of intervals and beta steer accuracy only; the privacy is that of `noise`, whatever they are (2.2 there, tested).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from evertally.counting.process import IntArray
from evertally.noise import Source, ZeroNoise
from evertally.partition.budget import Noise, Split, noise_of
from evertally.partition.calibration import Calibration
from evertally.partition.engine import PartitionedRelease
from evertally.partition.histograms import make_histogram
from evertally.partition.noise_bounds import NoiseBounds
from evertally.partition.rules import Queries, Rule
from evertally.privacy import ApproxDP, Change, PureDP

T = TypeVar("T")

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
    calibration: Calibration | None = field(default=None, compare=False)

    @property
    def reachable(self) -> float:
        """The largest answer that is possible, if what was declared is true."""
        return math.inf if self.horizon is None or self.most is None else float(self.horizon * self.most)

    @property
    def guess(self) -> int:
        """`largest`, where it is known to be there."""
        assert self.largest is not None
        return self.largest

    @property
    def unlimited(self) -> bool:
        """Whether H must take any number of inserts."""
        return self.largest is None or self.horizon is None

    def settle(self, name: str, find: Callable[[], T]) -> T:
        """A number that decides a law, or goes with one that does: found once, if there is a calibration to keep it."""
        return find() if self.calibration is None else self.calibration.settle(name, find)

    def rule(self, name: str, find: Callable[[], str], *, before: str, beside: str) -> str:
        """A way to make something that decides laws, by name: see `Calibration.rule`."""
        if self.calibration is None:
            return find()
        return self.calibration.rule(name, find, before=before, beside=beside)

    def within(self, scope: str) -> Terms:
        """The same terms, with a part of the calibration of its own."""
        return self if self.calibration is None else replace(self, calibration=self.calibration.within(scope))

    def noise(self, split: Split) -> Noise:
        return noise_of(
            self.promise, self.split or split, queries=self.queries.count, linf=self.change.linf, one_way=self.one_way
        )

    def noise_bounds(self, noise: Noise, histogram: str, n: int | None) -> NoiseBounds:
        """How large that noise gets, with n inserts into H; from a model with one column."""
        zero = ZeroNoise().source()
        model = make_histogram(histogram, noise.histogram, self.change, n, self.columns, zero, width=1)
        return NoiseBounds(noise, model, self.columns, self.horizon, self.queries.count)


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
        terms, noise = self.terms, self.noise
        process = make_histogram(self.histogram, noise.histogram, terms.change, self.intervals, terms.columns, source)
        return PartitionedRelease(noise.tau, noise.mu, process, self.make_rule(), source, base=base)

    def error(self, beta: float, tick: int | None = None, interval: int | None = None) -> float:
        """A bound on the error that fails with probability beta: for all ticks and intervals, or (where there is no
        limit to them) for a tick and an interval, all together still failing with probability beta."""
        a, b, c = self.weights
        if (a, c) == (1, 0):
            return self._rebased_error(beta, tick, interval)
        bounds, t = self._bounds, tick or self.terms.horizon or 1
        j = interval or self.intervals or t  # at most one interval closes in a tick
        bound = (
            self.rise(j, t)
            + a * bounds.sparse_vector(beta, t, j)
            + b * (bounds.histogram(beta, j) + self.terms.base_error)
            + (c * bounds.update(beta) if c else 0)
        )
        # Thresholds that double can be beyond all numbers where nothing public bounds how many there will be.
        return self.factor * float(bound) if bound < 2**1000 else math.inf

    def _rebased_error(self, beta: float, tick: int | None, interval: int | None) -> float:
        """The same where thresholds follow the released answers: V1 to V4 (docs/theory/additions.md, 9).

        Bounds for single intervals share beta by the numbers of the intervals, and hold together. Where the number of
        intervals is limited, one bound for all of them is tighter; its limit may rest on `largest`, so it says nothing
        about a given interval then.
        """
        most = self._bounds.model.horizon
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
        bounds, base, ahead = self._bounds, self.terms.base_error, self.weights[1] + self.factor - 2
        part = _AHEAD_TOO if ahead else _AHEAD
        behind = bounds.behind((1 - part) * beta, self.rise(interval, tick), self.terms.most, interval, together)
        above = bounds.ahead(part * beta, interval, together)
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
        noise = self._bounds.sparse_vector(0.5, tick, interval) + self._bounds.histogram(0.5, interval)
        return self.factor * float(self.rise(interval, tick) + noise)

    @cached_property
    def _bounds(self) -> NoiseBounds:
        return self.terms.noise_bounds(self.noise, self.histogram, self.intervals)
