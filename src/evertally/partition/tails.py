"""How large the noise of a partition gets: the public numbers behind thresholds and error bounds.

What can go wrong: the mu of some tick, the tau of some interval, the update noise of some close, the noise of H in some
column after some insert. Each gets a third of beta, or mu and tau a sixth where there is an update. With a horizon T or
a number n of intervals the failures are shared evenly; without, tick t gets the part 6/(pi^2 t^2) and interval j the
part 6/(pi^2 j^2) (parameterized-histograms 5.5), or its part of its block where H comes in blocks. Accuracy only: no
privacy depends on these numbers (2.2 there).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evertally.bounds.staleness import Places, ahead_radius, behind_radius
from evertally.bounds.tails import Spread
from evertally.counting.epochs import EpochProcess
from evertally.counting.process import NoiseProcess, spread_of
from evertally.noise import Law
from evertally.partition.blocks import BlockProcess
from evertally.partition.budget import Noise

_MOST_PLACES = 2**13  # intervals that are looked at one by one
_MOST_LAWS = 48
_QUIET = Spread("laplace", variance=0.0, proxy=0.0, peak=0.0, finest=1.0)


@dataclass(frozen=True)
class Tails:
    """Bounds on the noise of one partition, as whole numbers. `model` is H's noise with one column.

    >>> from evertally.counting.tree import TreeProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.partition.budget import Split, noise_of
    >>> from evertally.privacy import Change, PureDP
    >>> noise = noise_of(PureDP(1.0), Split.halves())
    >>> source = ZeroNoise().source()
    >>> H = TreeProcess(noise.histogram, Change(10, 10, 1), horizon=1000, columns=1, source=source, radix=2)
    >>> tails = Tails(noise, H, columns=10, horizon=10**6)
    >>> tails.mu(0.1), tails.tau(0.1)  # 137.734 and 41.236 of the reference setting, for whole numbers
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
        if isinstance(self.model, BlockProcess):
            assert interval is not None, "without a limit the bound is for one place"
            return _one_draw(self.noise.tau, self._test_share(beta) * self.model.share(interval))
        return _one_draw(self.noise.tau, self._test_share(beta) * _part(self.model.horizon, interval))

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

    def _interval_share(self, interval: int) -> float:
        if isinstance(self.model, BlockProcess):
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
        if isinstance(self.model, BlockProcess):
            return self.model.worst_in_block(self.model.block_of(inserts))
        if isinstance(self.model, EpochProcess):
            return self.model.worst_in_epoch(inserts.bit_length() - 1)
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
        if isinstance(self.model, BlockProcess):
            assert interval is not None, "without a limit the bound is for one place"
            widest = self.model.worst_in_block(self.model.block_of(interval))
            return math.ceil(widest.radius(beta / (3 * self.columns) * self.model.share(interval)))
        if isinstance(self.model, EpochProcess):
            assert interval is not None, "without a limit the bound is for one place"
            widest = self.model.worst_in_epoch(interval.bit_length() - 1)
            return math.ceil(widest.radius(beta / (3 * self.columns) * _part(None, interval)))
        return self.piled(beta, interval or 0)

    def piled(self, beta: float, inserts: int) -> int:
        """|noise of H| after so many inserts, where noise piles up: alpha_Gamma (parameterized-histograms 3.1)."""
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
