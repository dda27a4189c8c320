"""Where a segment of ticks ends: every tick (P0), or when enough has arrived, by a sparse vector test (P1, P2).

dynamic-data 4. Boundaries are public. A test counts all updates since the last boundary, with noise: rho once for each
segment, nu fresh at every tick, empty ones too. Privacy [P, constants R]: epsilon in all, however many segments there
are, because the ticks of a segment are looked at by its own test alone (adaptive parallel composition, 2.1), and
a count moves by 1 with an update. Neither thresholds nor deadlines can cost privacy; they are accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np

from evertally.contract.rows import from_bytes, to_bytes
from evertally.errors import ConfigurationError, HorizonExceeded
from evertally.noise import DiscreteLaplace, Source, round_up
from evertally.secret import Secret

Scales = Literal["paper", "cumulative"]

# Scales of rho and nu in 1/epsilon (2.2), and what they make of the constants: threshold, and how far above it a count
# can stay unnoticed. "cumulative" is private for running counts alone [R], which is all that is asked here.
_SCALES: dict[str, tuple[int, int, int, int]] = {"paper": (2, 4, 7, 6), "cumulative": (1, 1, 3, 2)}
_INTEGERS = 4  # P(DLap(b) >= k) <= exp(-k/b) where the real law has half of it: ln(4.) in place of ln(2.) (2.4)


@dataclass(frozen=True)
class SparseVector:
    """The laws that an epsilon buys, and the thresholds that fit them.

    >>> test = SparseVector(Fraction(1))
    >>> test.rho.scale, test.nu.scale
    (Fraction(2, 1), Fraction(4, 1))
    >>> round(test.threshold(2, 6 * 0.05 / math.pi**2, tails=2), 3)  # the table of dynamic-data 4.2
    34.158
    """

    epsilon: Fraction
    scales: Scales = "paper"

    def __post_init__(self) -> None:
        if not isinstance(self.scales, str) or self.scales not in _SCALES:
            raise ConfigurationError(f"svt is 'paper' or 'cumulative', not {self.scales!r}")

    @property
    def rho(self) -> DiscreteLaplace:
        return DiscreteLaplace(round_up(_SCALES[self.scales][0] / self.epsilon))

    @property
    def nu(self) -> DiscreteLaplace:
        return DiscreteLaplace(round_up(_SCALES[self.scales][1] / self.epsilon))

    def check(self) -> None:
        """Refuses an epsilon whose laws are out of range."""
        _ = self.rho, self.nu

    def threshold(self, ticks: int, beta: float, tails: int = _INTEGERS) -> float:
        """So high that none of so many ticks closes an empty segment, up to probability beta."""
        return _SCALES[self.scales][2] / float(self.epsilon) * math.log(tails * ticks / beta)

    def unnoticed(self, beta: float, tails: int = _INTEGERS) -> float:
        """How far above its threshold the count of an open segment can be, up to probability beta."""
        return _SCALES[self.scales][3] / float(self.epsilon) * math.log(tails / beta)


@dataclass(frozen=True)
class Staleness:
    """How many updates an open segment holds at most, up to probability beta for the segments of all ticks together:
    S_j of dynamic-data 4.2. `threshold` None: nothing is missing.

    >>> test = SparseVector(Fraction(1))
    >>> segment = Staleness(test, 100, part=6 / math.pi**2)
    >>> round(segment(0.05), 1), Staleness(test, None, 1.0)(0.05)
    (129.3, 0.0)
    """

    test: SparseVector
    threshold: int | None
    part: float  # of beta, for this segment

    def __call__(self, beta: float) -> float:
        return 0.0 if self.threshold is None else self.threshold + self.test.unnoticed(beta * self.part)


class Partitioner(Protocol):
    """Ticks to segments."""

    tick: int
    closed: int  # segments

    def look_ahead(self, ticks: int) -> None:
        """So many ticks come at once: their noise can be drawn together."""

    def boundary(self, arrived: int) -> bool:
        """The next tick, with so many updates: whether a segment ends with it."""

    def staleness(self, tick: int | None = None) -> Staleness | None:
        """How many updates an answer can miss now, or (before anything is known) at any tick up to `tick`; None where
        it never misses any."""

    def state(self) -> list[bytes]: ...

    def load(self, parts: list[bytes]) -> None: ...


class EveryTick(Secret):
    """P0: every tick is a segment, for nothing.

    >>> partition = EveryTick()
    >>> partition.boundary(0), partition.boundary(5), partition.closed
    (True, True, 2)
    """

    def __init__(self) -> None:
        self.tick = self.closed = 0

    def look_ahead(self, ticks: int) -> None:
        return None

    def boundary(self, arrived: int) -> bool:
        self.tick = self.closed = self.tick + 1
        return True

    def staleness(self, tick: int | None = None) -> None:
        return None

    def state(self) -> list[bytes]:
        return [to_bytes(np.array([self.tick]))]

    def load(self, parts: list[bytes]) -> None:
        self.tick = self.closed = int(from_bytes(parts[0])[0])


class SparsePartition(Secret):
    """P1 (a horizon T) and P2 (none): a segment ends when its noisy count passes a noisy threshold; P2 also at its
    deadline, the square of the last boundary. `beta` is what the thresholds aim at.

    Lemma 7: P2 closes at most N_t + 1 + log log t segments by t, up to probability beta, and an open one has
    O(log(t/beta)/epsilon) updates. Time O(1) per tick, memory O(1).

    >>> from evertally.noise import ZeroNoise
    >>> partition = SparsePartition(SparseVector(Fraction(1)), ZeroNoise().source(), beta=0.05)
    >>> [t for t in range(1, 300) if partition.boundary(0)]  # nothing arrives: at the deadlines
    [2, 4, 16, 256]
    """

    def __init__(
        self, test: SparseVector, source: Source, *, beta: float, horizon: int | None = None, lane: str = "partition"
    ) -> None:
        self._test, self._source, self._beta, self._horizon = test, source, beta, horizon
        # The lanes of rho and nu are called as those of all partitions are: tau and mu.
        self._rho_law, self._nu_law, self._lane = test.rho, test.nu, lane
        self.tick = self.closed = 0
        self._last = 0  # the last boundary
        self._count = 0  # of the open segment
        self._nus: dict[int, int] = {}
        self._threshold = self._next_threshold()
        self._rho = self._draw_rho()

    def look_ahead(self, ticks: int) -> None:
        ahead = range(self.tick + 1, self.tick + ticks + 1)
        drawn = self._source.draws(f"{self._lane}/mu", self._nu_law, ahead)[:, 0].tolist()
        self._nus = dict(zip(ahead, drawn, strict=True))

    def boundary(self, arrived: int) -> bool:
        tick = self.tick + 1
        if self._horizon is not None and tick > self._horizon:
            raise HorizonExceeded(f"this partition was made for {self._horizon} ticks")
        if tick not in self._nus:
            self.look_ahead(1)
        self._count += arrived
        self.tick = tick
        hit = self._count + self._nus.pop(tick) >= self._threshold + self._rho
        if not hit and (self._horizon is not None or tick < deadline(self._last)):
            return False
        self.closed, self._last, self._count = self.closed + 1, tick, 0
        self._threshold, self._rho = self._next_threshold(), self._draw_rho()
        return True

    def _next_threshold(self) -> int:
        # From public numbers; kept in the state, so that no other logarithm ever decides about an open segment.
        ticks = self._horizon if self._horizon is not None else deadline(self._last)
        return math.ceil(self._test.threshold(ticks, self._beta * self._part(self.closed + 1)))

    def _part(self, segment: int) -> float:
        """The part of a failure probability that a segment has: all parts add up to 1 at most."""
        return 1 / self._horizon if self._horizon is not None else 6 / (math.pi * segment) ** 2

    def _draw_rho(self) -> int:
        return int(self._source.draws(f"{self._lane}/tau", self._rho_law, [self.closed + 1])[0, 0])

    def staleness(self, tick: int | None = None) -> Staleness:
        if tick is None:
            open_now = None if self._last == self.tick else self._threshold
            return Staleness(self._test, open_now, self._part(self.closed + 1))
        # Any number of segments may be closed by then, and the deadline is at most the square of the tick.
        ticks = self._horizon if self._horizon is not None else deadline(tick)
        part = self._part(tick + 1)
        return Staleness(self._test, math.ceil(self._test.threshold(ticks, self._beta * part)), part)

    def state(self) -> list[bytes]:
        return [to_bytes(np.array([self.tick, self.closed, self._last, self._count, self._threshold]))]

    def load(self, parts: list[bytes]) -> None:
        self.tick, self.closed, self._last, self._count, self._threshold = from_bytes(parts[0]).tolist()
        self._nus = {}
        self._rho = self._draw_rho()


def deadline(boundary: int) -> int:
    """When a segment that began after `boundary` is closed at the latest (P2). A deadline that is squared at *every*
    boundary instead would grow out of all bounds."""
    return max(2, boundary**2)


def partitioner(
    name: str, epsilon: Fraction | None, scales: Scales, source: Source, beta: float, horizon: int | None, lane: str
) -> Partitioner:
    """P0, P1 or P2 by name; the first needs no epsilon, the second a horizon."""
    if name == "identity":
        return EveryTick()
    assert epsilon is not None
    last = horizon if name == "finite" else None
    return SparsePartition(SparseVector(epsilon, scales), source, beta=beta, horizon=last, lane=lane)
