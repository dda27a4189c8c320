"""Bugs in partitions: noise that is shared, reused or too small, thresholds that know data, rows that pay twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally.counting import tree
from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.process import IntArray, check_horizon
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law
from evertally.partition import PartitionedRelease, TwoLevelRelease, bounded, configuration, two_level
from evertally.partition.budget import Noise, noise_of
from evertally.partition.engine import project
from evertally.partition.histograms import make_histogram
from evertally.partition.lanes import Lanes
from evertally.partition.rules import NoisyLadders, Rebased
from evertally.privacy import ZCDP, ApproxDP, Change, PureDP
from evertally.selection.one_shot import _OneShot
from evertally.statistics import column_options
from formulas.conversions import ideal_gaussian_rho

_SWAP = "partition, swap pair and a wait of 500"
_AFTER = "partition after the same releases"
_RESTORED = "restored partitions"


def other_noise(change: Callable[[Noise, Any, Any], Noise]) -> Bug:
    """The noise of every partition, changed as a function of itself, the promise and the split."""

    def changed(promise: Any, split: Any, **options: Any) -> Noise:
        return change(noise_of(promise, split, **options), promise, split)

    return replaced(configuration, noise_of=changed)


# -- tau and mu ------------------------------------------------------------------------------------------------------


@plant("partition, all of 5 and of 20 queries at their thresholds")
def tau_for_each_query() -> Bug:
    """a threshold noise for each query (parameterized-histograms 8.8: one tau per interval is shared by all k tests)"""

    def draw_tau(self: Any) -> int:
        self._taus = self._source.draws("tau", self._tau_law, [self.closes + 1], self._rule.queries.count)[0]
        return 0

    def slack(self: Any, c: IntArray) -> int:
        values = self._rule.queries.values(c if self._rule.on_interval else self.released + c)
        return int((self._rule.floors - values + self._taus).min())

    return replaced(PartitionedRelease, _draw_tau=draw_tau, _slack=slack)


@plant(_SWAP)
def mu_halved() -> Bug:
    """test noise halved because queries are monotone (parameterized-histograms 8, slip 4: valid for replacing a row by
    zero only)"""
    return other_noise(lambda noise, promise, split: replace(noise, mu=DiscreteLaplace(noise.mu.scale / 2)))


@plant("partitions, one event replaced")
def both_ways_as_one() -> Bug:
    """neighbours that move both ways charged as if one way (additions 7: a replaced event lets one column fall while
    another rises)"""
    return replaced(column_options, moves_one_way=lambda neighbours, contribution: True)


@plant("partitions, one event more or less")
def halved_twice() -> Bug:
    """test noise halved where it is halved already (additions 7: Lap(linf/eps_mu) is tight for one event more or
    less)"""

    def noise(promise: Any, split: Any, **options: Any) -> Noise:
        made = noise_of(promise, split, **options)
        return replace(made, mu=DiscreteLaplace(made.mu.scale / 2)) if options.get("one_way") else made

    return replaced(configuration, noise_of=noise)


@plant("selections, one event replaced")
def selection_as_one_way() -> Bug:
    """selection at the scale of one way, whatever the neighbours (additions 7 and price-of-continual-release 8.1, P3: a
    replaced event moves two scores in opposite directions)"""
    return replaced(_OneShot, scale=property(lambda self: self.sensitivity / self.epsilon))


@plant("partition whose threshold an observer learns")
def tau_kept() -> Bug:
    """threshold noise not redrawn after a close (parameterized-histograms 8, slip 5: a new tau after each close)"""

    def draw_tau(self: Any) -> int:
        return int(self._source.draws("tau", self._tau_law, [1])[0, 0])

    return replaced(PartitionedRelease, _draw_tau=draw_tau)


@plant(_SWAP)
def tau_dropped() -> Bug:
    """no threshold noise at all (parameterized-histograms 9.3 A1: without tau the loss grows with the length of the
    wait)"""
    return replaced(PartitionedRelease, _draw_tau=lambda self: 0)


@plant("partition of two ticks, all draws")
def mu_reused() -> Bug:
    """test noise reused within an interval (parameterized-histograms 8, what must be fresh: mu at every time step)"""

    def draw_mu(self: Any, first: int, number: int) -> IntArray:
        return np.full(number, self._source.draws("mu", self._mu_law, [self.closes + 1])[0, 0])

    return replaced(PartitionedRelease, _draw_mu=draw_mu)


@plant(_RESTORED)
def mu_by_call() -> Bug:
    """test noise counted from the start of each call (parameterized-histograms 8, what must be fresh: mu never
    reused)"""
    original = PartitionedRelease._draw_mu
    return replaced(PartitionedRelease, _draw_mu=lambda self, first, number: original(self, 1, number))


@plant("partition far below its threshold")
def no_test_far_below() -> Bug:
    """no test far below the threshold (parameterized-histograms 8, what must be fresh: mu also far below the
    threshold)"""
    original = PartitionedRelease._slack

    def slack(self: Any, c: IntArray) -> int:
        found = original(self, c)
        distance = found + int(np.max(self._rule.rise(self.closes + 1, np.array([1]))))
        return 2**61 if distance > 12 * self._mu_law.scale else found

    return replaced(PartitionedRelease, _slack=slack)


@plant("partition, swap pair of rows up to 3")
def linf_ignored() -> Bug:
    """noise for rows of 0 and 1, whatever the rows (parameterized-histograms 1.7: values up to B multiply every noise
    scale)"""
    return replaced(
        configuration, noise_of=lambda promise, split, *, linf, **options: noise_of(promise, split, linf=1, **options)
    )


# -- H ---------------------------------------------------------------------------------------------------------------


@plant("partition, the first row in many histograms")
def fresh_noise() -> Bug:
    """fresh noise on the running sums (parameterized-histograms 8.7: every earlier row is released again at each
    close)"""

    def advance(self: Any, number: int = 1) -> IntArray:
        draws: IntArray = self._source.draws(
            self._lane, self.law, range(self.tick + 1, self.tick + number + 1), self.columns
        )
        self.tick += number
        return draws

    return replaced(AccumulatingProcess, advance=advance)


@plant("partition, the first row in many histograms")
def one_interval_more() -> Bug:
    """one interval more than H was made for (parameterized-histograms 8, slip 8: a level more than accounted when n + 1
    is a power of two)"""

    def exhausted(self: Any) -> bool:
        return self._process.horizon is not None and self.closes > self._process.horizon

    def one_more(process: Any, tick: int) -> None:
        check_horizon(process, tick - 1)
        if tick > process.horizon:  # the tree keeps a place for each level that it knows of
            process._latest = np.vstack([process._latest, np.zeros_like(process._latest[:1])])

    return all_of(
        replaced(PartitionedRelease, exhausted=property(exhausted)),
        replaced(tree, check_horizon=one_more),
    )


@plant("partition, swap pair with an update")
def half_for_h() -> Bug:
    """H at half of the budget beside an update (parameterized-histograms 8.3: Algorithm 12 as printed adds up to 7/6 of
    epsilon)"""

    def change(noise: Noise, promise: Any, split: Any) -> Noise:
        return replace(noise, histogram=PureDP(promise.exact_epsilon / 2)) if split.update else noise

    return other_noise(change)


@plant("partition, a row of ones before a close")
def queries_for_columns() -> Bug:
    """segment noise for the queries, not for the columns (parameterized-histograms 8.2: Algorithm 16 prints k in place
    of d)"""

    def made(kind: str, charge: Any, change: Change, *rest: Any, **options: Any) -> Any:
        height = change.linf
        one = Change(height, height * height, height)
        return make_histogram(kind, charge, one if kind == "running-sum" else change, *rest, **options)

    return replaced(configuration, make_histogram=made)


@plant("histogram of an (epsilon, delta) partition")
def classic_variance() -> Bug:
    """classic Gaussian variance at a large epsilon (parameterized-histograms 3.3 and slip 16: proved below 1, false
    above 8.8)"""

    def variance(epsilon: float, delta: float) -> float:
        return 2 * math.log(1.25 * math.exp(epsilon / 2) / delta) / (epsilon / 2) ** 2

    return _histogram_variance(variance)


@plant("histogram of an (epsilon, delta) partition")
def printed_variance() -> Bug:
    """printed variance of the doubling mechanism (parameterized-histograms 8.1: calibrated for epsilon, used as
    epsilon/2)"""
    return _histogram_variance(lambda epsilon, delta: 2 * math.log(2 * math.exp(epsilon / 2) / delta) / epsilon**2)


def _histogram_variance(variance: Callable[[float, float], float]) -> Bug:
    def change(noise: Noise, promise: Any, split: Any) -> Noise:
        if not isinstance(promise, ApproxDP) or split.update:
            return noise
        return replace(noise, histogram=ZCDP(Fraction(1 / (2 * variance(promise.epsilon, promise.delta)))))

    return other_noise(change)


# -- updates ---------------------------------------------------------------------------------------------------------


@plant("partition, an update of 5 queries at their margins")
def update_without_noise() -> Bug:
    """thresholds updated without noise (parameterized-histograms 8, slip 1: an update drives later close times)"""
    original = NoisyLadders.fire
    return replaced(NoisyLadders, fire=lambda self, s, noise: original(self, s, 0 * noise))


@plant("partition, an update of 5 queries at their margins")
def update_for_one() -> Bug:
    """update noise for one query (parameterized-histograms 9.3 A6: Lap(3/eps) in place of Lap(3k/eps))"""
    return replaced(
        configuration,
        noise_of=lambda promise, split, *, queries, **options: noise_of(promise, split, queries=1, **options),
    )


@plant("update of an (epsilon, delta) partition")
def continuous_update() -> Bug:
    """continuous variance for the discrete noise of an update (parameterized-histograms 3.3, 4.4 and slip 16: analytic
    variances are for continuous noise)"""

    def change(noise: Noise, promise: Any, split: Any) -> Noise:
        if not isinstance(promise, ApproxDP) or not split.update:
            return noise
        epsilon = promise.exact_epsilon * split.update
        rho = ideal_gaussian_rho(epsilon, Fraction(promise.delta / 2 * math.exp(-epsilon)))
        return replace(noise, update=DiscreteGaussian(1 / (2 * rho)))

    return other_noise(change)


@plant("partition, update of a query with fractions")
def fraction_published() -> Bug:
    """thresholds set to a noisy look with its fraction (parameterized-histograms 2.3 and 9.3 A6b: integer noise
    publishes the fraction of a query)"""

    def fire(self: Any, s: IntArray, noise: IntArray) -> None:
        look = np.array([float(query.evaluate(s)) for query in self.queries.expressions]) + noise
        self.floors = np.where(look - self._step - self.floors + self._margin > 0, look, self.floors)

    return replaced(NoisyLadders, fire=fire)


# -- what thresholds know, and what is shown -------------------------------------------------------------------------


@plant(_AFTER)
def rebased_on_exact_sums() -> Bug:
    """thresholds rebased on the exact sums (parameterized-histograms 8, slip 2: old s without noise)"""
    original = PartitionedRelease._close

    def close(self: Any, tick: int) -> None:
        exact = self.released + self._c
        original(self, tick)
        if isinstance(self._rule, Rebased):
            self._rule.floors = self._rule.queries.values(exact)

    return replaced(PartitionedRelease, _close=close)


@plant(_AFTER)
def true_largest() -> Bug:
    """inner thresholds from the true largest count (parameterized-histograms 8.6: c_max inside the algorithms for
    unknown c_max)"""

    def start(self: Any, segment: int, base: IntArray) -> PartitionedRelease:
        known = self._plan.inner(segment)
        if segment > 1:
            L = int(self._outer._inserted.max()).bit_length()
            known = bounded(replace(known.terms, base_error=known.terms.base_error + L))
        engine: PartitionedRelease = known.engine(Lanes(self._source, f"segment-{segment}"), base=base)
        return engine

    return replaced(TwoLevelRelease, _start=start)


@plant("partition that starts from a negative histogram")
def start_not_projected() -> Bug:
    """histogram not projected at the start (parameterized-histograms 8, slip 15: the certificate of a query may cover
    counts only)"""
    original = PartitionedRelease.__init__

    def init(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        self.released = self._base
        self._rule.start(self.released)

    return replaced(PartitionedRelease, __init__=init)


@plant("outputs between closes")
def sums_shown() -> Bug:
    """running sums shown between closes (parameterized-histograms 8, what must never leave: s between closes)"""
    original = PartitionedRelease.play

    def play(self: Any, rows: Any, first: int) -> list[tuple[int, IntArray]]:
        releases = original(self, rows, first)
        last = first + len(rows) - 1
        if len(rows) and (not releases or releases[-1][0] != last):
            releases.append((last, project(self.released + self._c)))
        return releases

    return replaced(PartitionedRelease, play=play)


@plant("outputs between closes")
def redrawn_when_read() -> Bug:
    """a histogram redrawn when it is read (parameterized-histograms 8, what must persist, and 9.3 A9)"""
    number = count()

    def released(self: Any) -> IntArray:
        again = self._source.draws(f"read-{next(number)}", DiscreteLaplace(4), [1], len(self._inner.released))[0]
        return project(self._inner.released + again + next(number))

    return replaced(TwoLevelRelease, released=property(released))


# -- two levels ------------------------------------------------------------------------------------------------------


@plant("noise ledger of partitions")
def levels_share_noise() -> Bug:
    """both levels draw the same noise (parameterized-histograms 2.5: independent randomness for the two levels)"""

    def draws(self: Any, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        found: IntArray = self._source.draws(lane, law, nodes, coordinates, first)
        return found

    return replaced(Lanes, draws=draws)


@plant("two levels, the row that closes a segment")
def closing_row_twice() -> Bug:
    """closing row in the old and in the new inner partition (parameterized-histograms 8, slip 7: the closing row of
    level 1 goes to no instance)"""

    def play(self: Any, rows: Any, first: int) -> list[tuple[int, IntArray]]:
        releases: list[tuple[int, IntArray]] = []
        start, segment = 0, self._outer.closes + 1
        for tick, released in self._outer.play(rows, first):
            releases += self._inner.play(rows[start : tick - first + 1], first + start)
            segment += 1
            self._inner = self._start(segment, released)
            releases.append((tick, released))
            start = tick - first
        later: list[tuple[int, IntArray]] = self._inner.play(rows[start:], first + start)
        return releases + later

    return replaced(TwoLevelRelease, play=play)


@plant("two levels, swap pair")
def full_budget_twice() -> Bug:
    """each level at the full budget (parameterized-histograms 8, slip 11: passing eps to both levels and reporting
    eps)"""
    return replaced(two_level, PureDP=lambda epsilon, adversary: PureDP(2 * epsilon, adversary=adversary))


# -- snapshots -------------------------------------------------------------------------------------------------------


@plant(_RESTORED)
def redrawn_in_a_copy() -> Bug:
    """histogram noise of a partition redrawn after a restore (parameterized-histograms 8, checkpoint: replaying rows
    with new coins is a second release)"""
    original, number = PartitionedRelease.load, count()

    def load(self: Any, parts: list[bytes]) -> None:
        if hasattr(self._process, "_lane"):
            self._process._lane += f"/{next(number)}"
        original(self, parts)

    return replaced(PartitionedRelease, load=load)


@plant(_RESTORED)
def tau_redrawn_in_a_copy() -> Bug:
    """threshold noise redrawn after a restore (parameterized-histograms 8, checkpoint: tau belongs to the state)"""
    original = PartitionedRelease.load

    def load(self: Any, parts: list[bytes]) -> None:
        original(self, parts)
        self._tau = int(self._source.draws("tau", self._tau_law, [10**6 + self.closes])[0, 0])

    return replaced(PartitionedRelease, load=load)
