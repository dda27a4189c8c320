"""What a noise process is: the integer noise of prefix sums, tick by tick, made without ever seeing data.

A linear continual mechanism is the exact running sum plus such a process. To add one: a file with a class that meets
`NoiseProcess`, a line in `choose.py`, and a line in the conformance list.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.joint import Kind, of_column
from evertally.bounds.tails import Spread
from evertally.errors import ConfigurationError, HorizonExceeded
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law, round_up
from evertally.privacy import ZCDP, ApproxDP, Change, PureDP

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# What a process pays: pure budgets buy Laplace noise, zCDP budgets Gaussian noise.
Budget = PureDP | ZCDP
# Real Gaussian noise that is alone under its promise also pays in epsilon and delta themselves (optimal-counting 2.2).
Charge = Budget | ApproxDP


class NoiseProcess(Protocol):
    """Noise for ticks 1, 2, ... of `columns` independent coordinates."""

    columns: int
    horizon: int | None
    tick: int

    def advance(self, count: int = 1) -> IntArray:
        """The noise of the next `count` ticks, shape (count, columns)."""

    def seek(self, tick: int) -> None:
        """Goes to the state after `tick`; the noise of a tick does not depend on how one got there."""

    def spread(self, tick: int) -> Spread:
        """The law of the noise of one coordinate at a tick."""

    def worst(self) -> Spread:
        """The widest spread over all ticks of the horizon."""

    def window_spread(self, tick: int, window: int) -> Spread:
        """The law of noise(tick) - noise(tick - window) of one coordinate, or a bound on it (a class whose windows are
        that law says `exact_windows = True`)."""


@runtime_checkable
class Remembering(Protocol):
    """A process whose state takes long to compute again: snapshots keep it."""

    def memory(self) -> bytes:
        """Its state, secret like all noise."""

    def recall(self, tick: int, memory: bytes) -> None:
        """Goes to the state after `tick` by what it remembers of it; the noise is the same as after `seek`."""


@runtime_checkable
class WithoutEnd(Protocol):
    """A process without a horizon, whose widest spread is asked for by stretches of ticks."""

    def worst_in(self, k: int) -> Spread:
        """The widest spread of the ticks 2^k .. 2^(k+1) - 1."""


@runtime_checkable
class Settled(Protocol):
    """A process with numbers that are settled once, when a stream begins; another version might settle others."""

    def settle_as(self, other: Any) -> None:
        """Takes the settled numbers of another process of its kind, before anything is drawn."""


@runtime_checkable
class Coefficients(Protocol):
    """A process whose settled numbers can be written down."""

    def settled(self) -> bytes:
        """The settled numbers, which are public."""

    def settle(self, settled: bytes) -> None:
        """Takes settled numbers, before anything is drawn."""


@runtime_checkable
class Jointly(Protocol):
    """A process that knows how large its whole path gets, better than tick by tick."""

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        """What |noise| of one coordinate exceeds at some tick with probability at most beta: at any tick up to the
        horizon, or without one at the ticks of the stretch that `tick` lies in, all stretches failing with beta."""


# Of a failure probability: what the path as a whole gets. The rest is for bounds tick by tick, which are smaller where
# the noise has hardly begun; both hold together.
_WHOLE_PATH = 0.95


def path_bound(process: NoiseProcess, beta: float, tick: int | None = None) -> float:
    """A bound on the noise of all columns at all ticks that fails with probability at most beta; with `tick` what it
    says about that tick, bounds of all ticks together still failing with probability at most beta.

    docs/theory/additions.md, 8. Without a horizon `tick` is needed.
    """
    column = of_column(beta, process.columns)
    T = process.horizon
    if T is None:
        assert tick is not None, "without a horizon the bound is for one tick"
        if not isinstance(process, Jointly):
            return process.spread(tick).radius(6 * column / (math.pi * tick) ** 2)
        stretch = process.joint_radius(_WHOLE_PATH * column, tick)
        return min(stretch, process.spread(tick).radius((1 - _WHOLE_PATH) * 6 * column / (math.pi * tick) ** 2))
    whole = process.worst().radius(_WHOLE_PATH * column / T)
    if isinstance(process, Jointly):
        whole = min(whole, process.joint_radius(_WHOLE_PATH * column))
    if tick is None:
        return whole
    return min(whole, process.spread(tick).radius((1 - _WHOLE_PATH) * column / T))


def remembered(process: NoiseProcess) -> list[bytes]:
    """What a snapshot keeps of a process besides its tick; nothing for most."""
    return [process.memory()] if isinstance(process, Remembering) else []


def go_to(process: NoiseProcess, tick: int, memories: list[bytes]) -> None:
    """The state after `tick`, the quick way if there is one."""
    if memories and isinstance(process, Remembering):
        process.recall(tick, memories[0])
    else:
        process.seek(tick)


def check_horizon(process: NoiseProcess, tick: int) -> None:
    """A process fails closed at its horizon; its noise was made for no tick beyond. (Mechanisms refuse before.)"""
    if process.horizon is not None and tick > process.horizon:
        raise HorizonExceeded(f"tick {tick} is beyond the horizon {process.horizon} that the noise was made for")


def node_law(charge: Budget, change: Change, nodes: int) -> Law:
    """The law of each node when one event moves at most `nodes` nodes, each by at most `change`.

    price-of-continual-release 3.2 [R]: Laplace scale D1 h/eps, Gaussian variance D2^2 h/(2 rho); rounded up.
    """
    if isinstance(charge, PureDP):
        return DiscreteLaplace(round_up(change.l1 * nodes / charge.exact_epsilon))
    return DiscreteGaussian(round_up(change.l2_squared * nodes / (2 * charge.exact_rho)))


def spread_of(law: Law, weight_square_sum: float, largest_weight: float, roundings: int = 0) -> Spread:
    """The spread of a weighted sum of draws from one law."""
    variance = law.stddev() ** 2 * weight_square_sum
    if isinstance(law, DiscreteLaplace):
        b = float(law.scale)
        return Spread("laplace", variance, b * b * weight_square_sum, b * largest_weight, b, roundings)
    assert isinstance(law, DiscreteGaussian)
    sigma_squared = float(law.sigma_squared)
    sigma = sigma_squared**0.5
    return Spread("gaussian", variance, sigma_squared * weight_square_sum, sigma * largest_weight, sigma, roundings)


def kind_and_scale(law: Law) -> tuple[Kind, float]:
    """The law of a draw as `bounds` names it."""
    if isinstance(law, DiscreteLaplace):
        return "laplace", float(law.scale)
    assert isinstance(law, DiscreteGaussian)
    return "gaussian", float(law.sigma_squared) ** 0.5


def difference_energy(series: FloatArray, before: int, tick: int) -> float:
    """sum_k (l_k - l_(k - w))^2 over the draws of the ticks up to `tick`, with w = tick - before and l_k = 0 for k < 0
    and where the series ends.

    >>> difference_energy(np.array([1.0, 0.5, 0.25]), 1, 3)  # 1 + 0.5^2 + (0.25 - 1)^2
    1.8125
    """
    window = tick - before
    weights = np.zeros(min(tick, series.size + window))
    weights[: series.size] = series[: weights.size]
    weights[window:] -= series[: weights.size - window]
    return float(np.sum(weights**2))


def window_bound(process: NoiseProcess, tick: int, window: int) -> Spread:
    """For weights w, w' >= 0: sum (w - w')^2 <= sum w^2 + sum w'^2, so the spreads add as if independent."""
    now = process.spread(tick)
    return now if window == tick else now + process.spread(tick - window)


def round_half_up(centre: FloatArray, radius: FloatArray | float) -> tuple[IntArray, NDArray[np.bool_]]:
    """floor(e + 1/2) for every e within `radius` of `centre`, and where that is not one number.

    Design decision 4: the release is floor(S + e + 1/2) = S + floor(e + 1/2), so the noise path is rounded without
    looking at data, half always up. It must be the correctly rounded value: then, and only then, the release is a
    function of the noisy sums y alone (factorization-counting 11, step 5).
    """
    # Four units in the last place of the centre cover the three additions made here.
    slack = radius + np.abs(centre) * 2.0**-50 + 2.0**-50
    low = np.floor(centre + 0.5 - slack)
    return low.astype(np.int64), low != np.floor(centre + 0.5 + slack)


_NEVER = 2.0**-100  # as a probability


def check_range(noise: NoiseProcess, times: int = 1) -> None:
    """Refuses noise that, times a public number, might not fit 64 bits beside sums, which the door keeps below 2^61.

    Before the stream begins: in it such noise would wrap around, or end it at a tick that noise decides.
    """
    if not noise.worst().radius(_NEVER) * times < 2.0**61:
        raise ConfigurationError(
            "the noise would leave the range of 64 bits; choose a larger budget, or smaller weights, scales or parts"
        )
