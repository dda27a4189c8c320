"""Thresholds and margins of streaming selection: streaming-selection 3.3, 4, 7.2 and 10.4.

What delta means here. Where labels are not known in advance, a label that only one person brought must not show up:
its mere appearance would tell that this person was there. Noise can push a count of 1 over any threshold, so this is
promised up to a probability: `delta` is the probability, over the whole life of the stream, that one given label which
exists because of one event alone is ever released. An event of several labels has that many chances, and a threshold
is the height at which the promise holds. It is not a probability of losing all data, and it is paid once, beside the
delta' with which rho is turned into an epsilon.

Integers and fractions: noise is integer-valued, so its tails are bounded by Chernoff or summed exactly and never read
off a Gaussian table (10.4), and every rounding goes outwards. Floats to plan with are in `theory.selection`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.balls import certain
from evertally.errors import ConfigurationError
from evertally.privacy._exact import SMALLEST_FLOAT, ball, enclose, round_up

Kind = Literal["paper", "sum", "per_tick"]

_BITS = 128
_SMALLEST_LOG = 745  # e^-745 is about the smallest float


def digits(t: int, radix: int) -> list[int]:
    """Base-radix digits, lowest first; [0] for 0. Integers only: math.log(1000, 10) would lose a level (10.4).

    >>> digits(1000, 10)
    [0, 0, 0, 1]
    """
    result = [t % radix]
    while t := t // radix:
        result.append(t % radix)
    return result


def L(T: int, r: int) -> int:  # noqa: N802
    """Levels of the tree: floor(log_r T) + 1.

    >>> L(1000, 10), L(999, 10), L(243, 3)
    (4, 3, 6)
    """
    return len(digits(T, r))


def digit_sum(t: int, r: int) -> int:
    """How many cells make up 1..t.

    >>> digit_sum(11, 3), digit_sum(7, 2)
    (3, 3)
    """
    return sum(digits(t, r))


@lru_cache(maxsize=64)
def digit_sums(T: int, r: int) -> dict[int, int]:
    """How many of the ticks 1..T have which digit sum. O(L^2 r).

    >>> digit_sums(10, 3)
    {1: 3, 2: 4, 3: 2, 4: 1}
    """
    depth = L(T, r)
    counts = np.zeros((r - 1) * depth + 2, dtype=np.int64)
    free = np.zeros_like(counts)  # free[s]: fillings of the digits below with sum s
    free[0] = 1
    below = [free]
    for _ in range(depth - 1):
        free = _window(free, r)
        below.append(free)
    prefix = 0
    for level in range(depth - 1, -1, -1):
        digit = T // r**level % r
        smaller = _window(below[level], digit)
        counts[prefix:] += smaller[: counts.size - prefix]
        prefix += digit
    counts[prefix] += 1  # T itself
    counts[0] -= 1  # t = 0 is no tick
    return {int(s): int(counts[s]) for s in np.flatnonzero(counts)}


def _window(counts: NDArray[np.int64], digits: int) -> NDArray[np.int64]:
    """One more digit in 0..digits-1: each sum s comes from s, s - 1, ..."""
    sums = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    low = np.maximum(np.arange(counts.size) - digits + 1, 0)
    return sums[1:] - sums[low] if digits else np.zeros_like(counts)


@dataclass(frozen=True)
class Threshold:
    """UnkBase with integer noise: at tick t an item is released if its noisy count is greater than `at(t)`.

    `variance` is that of the noise of one cell. `delta` is the probability that a label whose true count is at most
    `move` all the time is ever released in T ticks: `move` is 1, the largest weight of an event, or what all events of
    one user can add (1.3). Chernoff bounds for sums of discrete Gaussians (10.4), added up over ticks, rounded up.

    >>> variance = Fraction(5)  # T = 1000, r = 4, tau = 1
    >>> [Threshold(kind, 1000, 4, variance, Fraction("1e-6")).at(1000) for kind in ("paper", "sum", "per_tick")]
    [56, 48, 46]
    """

    kind: Kind
    T: int
    r: int
    variance: Fraction
    delta: Fraction
    move: int = 1

    def __post_init__(self) -> None:
        _check(self.kind)
        if not 0 < self.delta < 1 or self.variance <= 0 or self.move < 1 or self.T < 1 or self.r < 2:
            raise ConfigurationError(
                "a threshold needs 0 < delta < 1, a positive variance, move and horizon from 1 and a radix from 2"
            )

    def at(self, t: int) -> int:
        s = digit_sum(t, self.r) if self.kind == "per_tick" else None
        return self.move + _height(self.kind, self.T, self.r, self.variance, self.delta, s)


@lru_cache(maxsize=4096)
def _height(kind: Kind, T: int, r: int, variance: Fraction, delta: Fraction, s: int | None) -> int:
    if s is not None:
        return gaussian_margin(s * variance, delta / T)
    if kind == "paper":
        return gaussian_margin((r - 1) * L(T, r) * variance, delta / T)
    sums = digit_sums(T, r)
    return _smallest(lambda n: _chernoff_sum(sums, variance, n + 1) <= ball(delta))


def _chernoff_sum(sums: dict[int, int], variance: Fraction, x: int) -> arb:
    return sum((n * (-ball(Fraction(x * x) / (2 * s * variance))).exp() for s, n in sums.items()), arb(0))


def _smallest(enough: Callable[[int], bool]) -> int:
    """The smallest integer from 0 on that is certainly enough. Balls that leave it open say no."""

    def search() -> int:
        low, high = 0, 1
        while not enough(high):
            low, high = high + 1, 2 * high
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle + 1, high)
        return high

    return certain(search, _BITS)


def _check(kind: str) -> None:
    if kind not in get_args(Kind):
        raise ConfigurationError(f"a threshold is one of {', '.join(get_args(Kind))}, not {kind!r}")


def gaussian_margin(variance: Fraction, delta: Fraction) -> int:
    """The smallest n with exp(-(n + 1)^2/(2 variance)) <= delta: noise exceeds n with probability at most delta.

    For sums of independent discrete Gaussians of this variance in all (10.4). UnkGauss has two of them, 4.6 has one.

    >>> gaussian_margin(Fraction(2), Fraction(1, 20))  # 2 sqrt(ln 20) = 3.46
    3
    """
    square = round_up(enclose(lambda: -2 * ball(variance) * ball(delta).log()))
    return math.isqrt(math.ceil(square) - 1)


def laplace_margin(scale: Fraction, delta: Fraction) -> int:
    """The smallest n that the difference of two discrete Laplace draws exceeds with probability at most delta (4.4).

    With p = exp(-1/scale), P(Z - Z' >= n) = p^n (n (1 - p) + p + (1 + p^2)/(1 + p))/(1 + p)^2, the discrete form of
    (1 + x/2) exp(-x)/2.

    >>> laplace_margin(Fraction(1), Fraction(1, 20))
    3
    """

    def enough(n: int) -> bool:
        p = (-1 / ball(scale)).exp()
        tail = p ** (n + 1) * ((n + 1) * (1 - p) + p + (1 + p * p) / (1 + p)) / (1 + p) ** 2
        return bool(tail <= ball(delta))

    return _smallest(enough)


def gumbel_margin(scale: Fraction, delta: Fraction) -> int:
    """The smallest integer that is at least 2 scale ln(1/delta), the paper's tau ln(1/delta) at scale tau/2 (4.5).

    >>> gumbel_margin(Fraction(1, 2), Fraction(1, 1000))
    7
    """
    return math.ceil(round_up(enclose(lambda: -2 * ball(scale) * ball(delta).log())))


def gumbel_q(scale: Fraction, margin: int) -> Fraction:
    """1/(1 + exp(margin/scale)), rounded up: one Gumbel variate beats another by the margin (4.5, 10.4).

    >>> float(gumbel_q(Fraction(1, 2), 7))
    8.315280276641322e-07
    """
    if margin > _SMALLEST_LOG * scale:
        return SMALLEST_FLOAT
    return max(SMALLEST_FLOAT, round_up(enclose(lambda: 1 / (1 + ball(margin / scale).exp()))))


def kbar_rule(k: int) -> int:
    """How many of the largest counts UnkGumb should look at to release k of them (4.5): ten times as many.

    A larger kbar lowers the cut h_(kbar+1), and costs margin: scale ln 2 more each time it doubles, as delta_bad is
    kbar q. UnkGauss loses nothing by a larger kbar (4.3).

    >>> kbar_rule(5)
    50
    """
    return 10 * k
