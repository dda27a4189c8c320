"""How wide noise gets up to a tick, and how wide it is in the mean over ticks: from public numbers alone.

Processes that can say so in closed form do (`KnowsWidest`, `KnowsMean`). Any other is asked at every tick while there
are few of them; beyond that its mean is taken over ticks spread evenly, and its widest is the one that it states for
its whole horizon, or is not known.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, runtime_checkable

from evertally.bounds.tails import Spread
from evertally.contract.parts import FEW_TICKS
from evertally.counting.process import NoiseProcess

_GOLDEN = (math.sqrt(5) - 1) / 2


@runtime_checkable
class KnowsWidest(Protocol):
    """A process that knows when it is widest."""

    def widest(self, tick: int) -> Spread | None:
        """The spread of that tick among 1 .. tick at which it is widest; None where that would take too long."""


@runtime_checkable
class KnowsMean(Protocol):
    """A process that knows its mean variance."""

    def mean_variance(self, tick: int) -> float:
        """The mean of `spread(t).stddev ** 2` over t = 1 .. tick."""


class Survey(NamedTuple):
    """Standard deviations over the ticks of a stream: the largest (None: not known), and the root mean square."""

    worst: float | None
    rms: float


def widest(process: NoiseProcess, tick: int) -> Spread | None:
    """The widest spread of the ticks 1 .. tick, of one coordinate; None where nobody knows.

    >>> from evertally.counting.tree import TreeProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import Change, PureDP
    >>> tree = TreeProcess(PureDP(1), Change(1, 1, 1), horizon=10**6, columns=1, source=ZeroNoise().source(), radix=2)
    >>> widest(tree, 2**16) == tree.spread(2**16 - 1)
    True
    """
    if isinstance(process, KnowsWidest):
        return process.widest(tick)
    if tick <= FEW_TICKS:
        return max((process.spread(t) for t in range(1, tick + 1)), key=lambda spread: spread.stddev)
    return process.worst() if tick == process.horizon else None


def mean_variance(process: NoiseProcess, tick: int) -> float:
    """The mean variance of the noise over the ticks 1 .. tick, roundings included.

    Exact where a process knows it, and up to 2^12 ticks. Beyond, over the 2^12 ticks ceil(T frac(i phi)), phi the
    golden ratio: for sums over digits, as trees have them, within half a percent.
    """
    if isinstance(process, KnowsMean):
        return process.mean_variance(tick)
    ticks = range(1, tick + 1)
    if tick > FEW_TICKS:
        return sampled(process, tick)
    return math.fsum(process.spread(t).stddev ** 2 for t in ticks) / tick


def sampled(process: NoiseProcess, tick: int) -> float:
    """The mean over some of the ticks."""
    places = (math.ceil(tick * (i * _GOLDEN % 1)) for i in range(1, FEW_TICKS + 1))
    return math.fsum(process.spread(min(max(t, 1), tick)).stddev ** 2 for t in places) / FEW_TICKS


def survey(process: NoiseProcess, tick: int) -> Survey:
    """Both, over the ticks 1 .. tick.

    >>> from evertally.counting.bank import BankProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import ZCDP, Change
    >>> bank = BankProcess(ZCDP(0.5), Change(1, 1, 1), horizon=4096, columns=1, source=ZeroNoise().source())
    >>> [round(number, 3) for number in survey(bank, 4096)]  # 3.394 and 3.390 are the least possible, before rounding
    [3.415, 3.413]
    """
    top = widest(process, tick)
    return Survey(None if top is None else top.stddev, math.sqrt(mean_variance(process, tick)))
