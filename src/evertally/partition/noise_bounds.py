"""How large the noise of a partition gets: the public numbers behind thresholds and error bounds.

What can go wrong: the mu of some tick, the tau of some interval, the update noise of some close, the noise of H in some
column after some insert. Each gets a third of beta, or mu and tau a sixth where there is an update. With a horizon T or
a number n of intervals the failures are shared evenly; without, tick t gets the part 6/(pi^2 t^2) and interval j the
part 6/(pi^2 j^2) (parameterized-histograms 5.5), or its part of its block where H comes in blocks. Accuracy only: no
privacy depends on these numbers (2.2 there).

How often a partition can close (`most_closes`): a bound for thresholds so low that noise alone may close an interval.

An interval with threshold noise tau that stands at a test value g closes at a tick with probability p(g) = P(mu > kappa
+ tau - g), mu fresh at every tick. Whoever chooses the rows trades time against growth: he wants many closes within T
ticks and a total growth of `reach`. For prices s of a tick and theta of a unit of growth let

    V = E_tau max_g exp(-theta g) p(g)/(exp(s) - 1 + p(g)).

Given tau the maximum over g is the best value of E exp(-s length - theta growth) that any rows can reach (time is dear,
so the best height is gone to at once and kept; not to know tau cannot help). So the product over closed intervals of
exp(-s length - theta growth)/V has mean at most 1: a supermartingale, also if the rows follow the releases. If J
intervals close, it is at least exp(-sT - theta reach) V^(-J), and by Markov's inequality

    P(J closes or more) <= exp(sT + theta reach) V^J    for all s, theta > 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evertally.bounds.joint import Floats, above
from evertally.bounds.staleness import Places, ahead_radius, behind_radius
from evertally.bounds.tails import Spread
from evertally.counting.block_tails import RowSpread
from evertally.counting.pieces import Pieces
from evertally.counting.process import IntArray, NoiseProcess, spread_of
from evertally.noise import Law
from evertally.partition.blocks import BlockProcess
from evertally.partition.budget import Noise

_MOST_PLACES = 2**13  # intervals that are looked at one by one
_MOST_LAWS = 48
_QUIET = Spread("laplace", variance=0.0, proxy=0.0, peak=0.0, finest=1.0)
_DEPTH = 40  # scales of tau that matter
_PLACES = 160  # of tau, and of the test value


@dataclass(frozen=True)
class NoiseBounds:
    """Bounds on the noise of one partition, as whole numbers. `model` is H's noise with one column.

    >>> from evertally.counting.tree import TreeProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.partition.budget import Split, noise_of
    >>> from evertally.privacy import Change, PureDP
    >>> noise = noise_of(PureDP(1.0), Split.halves())
    >>> source = ZeroNoise().source()
    >>> H = TreeProcess(noise.histogram, Change(10, 10, 1), horizon=1000, columns=1, source=source, radix=2)
    >>> bounds = NoiseBounds(noise, H, columns=10, horizon=10**6)
    >>> bounds.mu(0.1), bounds.tau(0.1)  # 137.734 and 41.236 of the reference setting, for whole numbers
    (138, 42)
    """

    noise: Noise
    model: NoiseProcess
    columns: int
    horizon: int | None
    queries: int = 1

    def mu(self, beta: float, tick: int | None = None) -> int:
        """|mu| at every tick (alpha_mu); without a horizon at `tick`."""
        return _one_draw(self.noise.mu, self._test_share(beta) * _part(self.horizon, tick))

    def tau(self, beta: float, interval: int | None = None) -> int:
        """|tau| in every interval (alpha_tau)."""
        return _one_draw(self.noise.tau, self._test_share(beta) * self._interval_share(interval))

    def sparse_vector(self, beta: float, tick: int | None = None, interval: int | None = None) -> int:
        """|mu - tau| at every tick (alpha_SV)."""
        return self.mu(beta, tick) + self.tau(beta, interval)

    def behind(self, beta: float, kappa: int, growth: int | None, interval: int, together: bool) -> int:
        """How far a rebased answer is behind the truth before it is released anew: by the law of the close time, with
        the noise of H in it (`bounds.staleness`). In that interval, or in all up to it (`together`).

        `growth`: the most that a test value grows by in a tick, None where nobody has declared it.
        """
        tau, mu, places = float(self.noise.tau.scale), float(self.noise.mu.scale), self._places(interval, together)
        share = beta if together else beta * self._interval_share(interval)
        return math.ceil(behind_radius(tau, mu, kappa, growth, places, self.columns, share))

    def ahead(self, beta: float, interval: int, together: bool) -> int:
        """How far it is above: by the noise of H in some column alone, one-sided."""
        share = beta if together else beta * self._interval_share(interval)
        return math.ceil(ahead_radius(self._places(interval, together), self.columns, share))

    def _interval_share(self, interval: int | None) -> float:
        if isinstance(self.model, BlockProcess):
            assert interval is not None, "without a limit the bound is for one place"
            return self.model.share(interval)
        return _part(self.model.horizon, interval)

    def _places(self, interval: int, together: bool) -> Places:
        """The noise of H in an interval (the widest of its block), or those of all intervals up to it, each of which
        starts with one insert less."""
        if not together or interval > _MOST_PLACES:
            return ((self._widest(interval), interval if together else 1),)
        spreads = sorted((self.model.spread(j) for j in range(1, interval)), key=lambda spread: spread.proxy)
        found: dict[Spread, int] = {_QUIET: 1}
        size = -(-len(set(spreads)) // _MOST_LAWS)
        if size == 1:
            for spread in spreads:
                found[spread] = found.get(spread, 0) + 1
        else:  # in groups of neighbours, each as wide as its widest
            size = -(-len(spreads) // _MOST_LAWS)
            for first in range(0, len(spreads), size):
                group = spreads[first : first + size]
                found[_envelope(group)] = len(group)
        return tuple(found.items())

    def _widest(self, inserts: int) -> Spread:
        if isinstance(self.model, Pieces):
            return self.model.worst_in(self.model.piece_of(inserts))
        return self.model.worst() if self.model.horizon is not None else self.model.spread(inserts)

    def _test_share(self, beta: float) -> float:
        return beta / (3 if self.noise.update is None else 6)

    def update(self, beta: float) -> int:
        """|update noise| of every query at every close (alpha_U)."""
        n = self.model.horizon
        assert self.noise.update is not None
        assert n is not None, "an update needs a limit on the number of closes"
        return math.ceil(spread_of(self.noise.update, 1.0, 1.0).radius(beta / (3 * self.queries * n)))

    def histogram(self, beta: float, interval: int | None = None) -> int:
        """|noise of H| in every column after every insert (err); without a limit on inserts, after up to `interval`
        many. It never falls with `interval`, although the noise of a tree may: thresholds lean on that."""
        n = self.model.horizon
        if n is not None:
            return math.ceil(self.model.worst().radius(beta / (3 * self.columns * n)))
        if isinstance(self.model, Pieces):
            assert interval is not None, "without a limit the bound is for one place"
            return math.ceil(self._widest(interval).radius(beta / (3 * self.columns) * self._interval_share(interval)))
        return self.summed(beta, interval or 0)

    def summed(self, beta: float, inserts: int) -> int:
        """|noise of H| after so many inserts, where all noise adds up: alpha_Gamma (parameterized-histograms 3.1)."""
        if not inserts:
            return 0
        share = beta / (3 * self.columns) * _part(self.model.horizon, inserts)
        return math.ceil(self.model.spread(inserts).radius(share))


def _part(count: int | None, index: int | None) -> float:
    if count is not None:
        return 1 / count
    assert index is not None, "without a limit the bound is for one place"
    return 6 / (math.pi * max(1, index)) ** 2


def _envelope(spreads: list[Spread]) -> Spread:
    """A spread that is as wide as each of these."""
    rows = [spread for spread in spreads if isinstance(spread, RowSpread)]
    if len(rows) == len(spreads):
        return RowSpread.covering(rows)
    widest = max(spreads, key=lambda spread: spread.proxy)
    return Spread(
        widest.law,
        max(spread.variance for spread in spreads),
        widest.proxy,
        max(spread.peak for spread in spreads),
        min(spread.finest for spread in spreads),
        max(spread.roundings for spread in spreads),
    )


def _one_draw(law: Law, beta: float) -> int:
    return math.ceil(spread_of(law, 1.0, 1.0).radius(beta))


@lru_cache(maxsize=512)
def most_closes(noise: Noise, kappa: int, ticks: int, reach: int, beta: float) -> int:
    """A number that the closes within `ticks` ticks exceed with probability at most beta, if growth is at most `reach`.

    >>> from evertally.partition.budget import Split, noise_of
    >>> from evertally.privacy import PureDP
    >>> noise = noise_of(PureDP(1), Split.halves())
    >>> [most_closes(noise, kappa, 10**6, 1000, 0.01) for kappa in (60, 90, 180)]
    [404, 66, 12]
    """
    # p in cells of the test value: the price of a cell's lower end, the probability of its upper end.
    tau, weights = _thresholds(noise)
    highest = kappa + math.ceil(_DEPTH * float(noise.mu.scale))
    ends = np.unique(np.append(np.linspace(0, highest, _PLACES).astype(np.int64), np.arange(min(highest, _PLACES) + 1)))
    p = above("laplace", float(noise.mu.scale), (kappa + tau[:, None] - ends[None, :]).astype(np.float64))
    lower = np.append(0, ends[:-1] + 1)

    def closes(s: float, theta: float) -> float:
        best = np.max(np.exp(-theta * lower) * p / (math.expm1(s) + p), axis=1)
        V = float(best @ weights) + 1e-15
        return (s * ticks + theta * reach + math.log(1 / beta)) / -math.log(V) if V < 1 else math.inf

    span = math.log(max(2.0, 50 * ticks))
    logs = np.linspace(-math.log(ticks), -math.log(ticks) + span, 12)
    prices = np.linspace(-math.log(reach + 1), 1.0, 12)
    least, s, theta = min((closes(math.exp(a), math.exp(b)), float(a), float(b)) for a in logs for b in prices)
    for width in (0.7, 0.35, 0.15):
        near = [(s + width * i, theta + width * j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        least, s, theta = min((least, s, theta), *((closes(math.exp(a), math.exp(b)), a, b) for a, b in near))
    return min(ticks, math.ceil(least)) if math.isfinite(least) else ticks


def _thresholds(noise: Noise) -> tuple[IntArray, Floats]:
    """All tau that matter, in cells, each as low as its lower end: the lower, the more closes."""
    b = float(noise.tau.scale)
    reach = math.ceil(_DEPTH * b)
    tau = np.unique(np.linspace(-reach, reach, 2 * _PLACES + 1).astype(np.int64))
    beyond = np.append(above("laplace", b, (tau[1:] - 1).astype(np.float64)), 0.0)  # P(tau >= next lower end)
    return tau, np.append(1.0, beyond[:-1]) - beyond
