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

from evertally.counting.epochs import EpochProcess
from evertally.counting.process import NoiseProcess, spread_of
from evertally.noise import Law
from evertally.partition.blocks import BlockProcess
from evertally.partition.budget import Noise


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


def _one_draw(law: Law, beta: float) -> int:
    return math.ceil(spread_of(law, 1.0, 1.0).radius(beta))
