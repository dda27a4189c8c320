"""Thresholds, margins and errors of streaming selection: streaming-selection 3.3, 4, 6.3, 6.4, 7.2, 7.3 and 10.4.

What delta means here. Where labels are not known in advance, a label that only one person brought must not show up:
its mere appearance would tell that this person was there. Noise can push a count of 1 over any threshold, so this is
promised up to a probability: `delta` is the probability, over the whole life of the stream, that one given label which
exists because of one event alone is ever released. An event of several labels has that many chances, and a threshold
is the height at which the promise holds. It is not a probability of losing all data, and it is paid once, beside the
delta' with which rho is turned into an epsilon.

Two kinds of numbers. *References*, floats in the letters of the specification, to compare with and to plan. *Exact
ones*, integers and fractions, that mechanisms use: noise is integer-valued, so its tails are bounded by Chernoff or
summed exactly and never read off a Gaussian table (10.4), and every rounding goes outwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.balls import certain
from evertally.errors import ConfigurationError
from evertally.privacy._exact import SMALLEST_FLOAT, ball, enclose, round_up

Kind = Literal["paper", "sum", "per_tick"]
Tail = Literal["gaussian", "chernoff"]

_BITS = 128
_SMALLEST_LOG = 745  # e^-745 is about the smallest float


# -- the tree ----------------------------------------------------------------------------------------------------------


def L(T: int, r: int) -> int:  # noqa: N802
    """Levels of the tree: digits of T in base r. Integers only: math.log(1000, 10) would lose a level (10.4).

    >>> L(1000, 10), L(999, 10), L(243, 3)
    (4, 3, 6)
    """
    count = 1
    while T := T // r:
        count += 1
    return count


def digit_sum(t: int, r: int) -> int:
    """How many cells make up 1..t.

    >>> digit_sum(11, 3), digit_sum(7, 2)
    (3, 3)
    """
    total = 0
    while t:
        t, digit = divmod(t, r)
        total += digit
    return total


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


def best_radix_formula(T: int) -> int:
    """r* = argmin (r - 1) L^2 (3.3), the smaller one of equals. `bounds.best_radix` uses the true digit sums.

    >>> [best_radix_formula(T) for T in (100, 1000, 1024, 10**9)]
    [5, 4, 6, 4]
    """
    best, r = 2, 3
    while r <= T and r - 1 < (best - 1) * L(T, best) ** 2:  # L >= 1: no larger radix can win
        if (r - 1) * L(T, r) ** 2 < (best - 1) * L(T, best) ** 2:
            best = r
        r += 1
    return best


# -- thresholds of an unknown domain under continual release: references -----------------------------------------------


def m(
    T: int,
    r: int,
    *,
    tau: float,
    delta: float,
    kind: Kind = "paper",
    tail: Tail = "gaussian",
    t: int | None = None,
) -> float:
    """UnkBase: an item is released if its noisy count is greater than this (7.2; 10.4 for `tail="chernoff"`).

    "paper" is (11), "sum" the smallest one that is the same at all ticks, "per_tick" depends on the digit sum of the
    tick `t`; without `t` its mean over all ticks.

    >>> [round(m(1000, 4, tau=1, delta=1e-6, kind=kind), 3) for kind in ("paper", "sum", "per_tick")]
    [52.943, 44.506, 36.942]
    >>> round(m(1000, 4, tau=1, delta=1e-6, tail="chernoff"), 3)
    56.754
    """
    _check(kind)
    heights = _heights(T, r, tau, delta, kind, tail)
    if t is not None:
        return heights[digit_sum(t, r)]
    return math.fsum(n * heights[s] for s, n in digit_sums(T, r).items()) / T


def _heights(T: int, r: int, tau: float, delta: float, kind: Kind, tail: Tail) -> dict[int, float]:
    """Thresholds by digit sum."""
    levels, sums = L(T, r), digit_sums(T, r)
    if kind == "per_tick":
        return {s: 1 + tau * math.sqrt(levels * s) * _quantile(delta / T, tail) for s in sums}
    if kind == "paper":
        return dict.fromkeys(sums, 1 + tau * levels * math.sqrt(r - 1) * _quantile(delta / T, tail))
    above = _above(tail)
    spreads = [(n, tau * math.sqrt(s * levels)) for s, n in sums.items()]
    return dict.fromkeys(sums, 1 + _root(lambda x: math.fsum(n * above(x / sd) for n, sd in spreads) - delta))


def unk_gauss_margin(*, tau: float, delta: float, tail: Tail = "gaussian") -> float:
    """UnkGauss: how far the noisy threshold lies above h_(kbar+1) + 1 (4.3; 10.4 for `tail="chernoff"`).

    >>> round(unk_gauss_margin(tau=1, delta=0.05), 5), round(unk_gauss_margin(tau=1, delta=0.05, tail="chernoff"), 5)
    (2.32617, 3.46164)
    """
    return math.sqrt(2) * tau * _quantile(delta, tail)


def _quantile(p: float, tail: Tail) -> float:
    # -inv_cdf(p), not inv_cdf(1 - p), which is infinite from 1e-16 on and loses digits long before (10.4).
    return -NormalDist().inv_cdf(p) if tail == "gaussian" else math.sqrt(-2 * math.log(p))


def _above(tail: Tail) -> Callable[[float], float]:
    if tail == "gaussian":
        return lambda z: 0.5 * math.erfc(z / math.sqrt(2))
    return lambda z: math.exp(-z * z / 2)


def _root(falling: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    while falling(high) > 0:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


# -- the same, exact ---------------------------------------------------------------------------------------------------


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
        """The height at tick t."""
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


# -- margins of the one-shot mechanisms, exact -------------------------------------------------------------------------


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


# -- sparseGumb: references --------------------------------------------------------------------------------------------


def alpha_1(d: int, s: int, *, tau: float, beta: float) -> float:
    """How far behind the largest a selected item may be: tau2 ln(3d/beta), tau2 = sqrt(s + 1) tau (6.3).

    >>> round(alpha_1(100, 5, tau=math.sqrt(6), beta=0.05))
    52
    """
    return math.sqrt(s + 1) * tau * math.log(3 * d / beta)


def alpha_BM(T: int, r: int, s: int, *, tau: float, beta: float) -> float:  # noqa: N802
    """How far all counts of one selected item may be off: tau L sqrt(2 (s + 1)(r - 1) ln(6T/beta)) (6.3).

    >>> round(alpha_BM(1000, 4, 5, tau=math.sqrt(6), beta=0.05))
    251
    """
    return tau * L(T, r) * math.sqrt(2 * (s + 1) * (r - 1) * math.log(6 * T / beta))


def alpha_AT(T: int, d: int, s: int, *, tau: float, beta: float) -> float:  # noqa: N802
    """How far the tests of the sparse vector may be off: 8 tau sqrt(s) ln(6dT/beta) (6.3).

    >>> round(alpha_AT(1000, 100, 5, tau=math.sqrt(6), beta=0.05))
    714
    """
    return 8 * tau * math.sqrt(s) * math.log(6 * d * T / beta)


def eta_theorem(T: int, d: int, r: int, s: int, *, tau: float, beta: float) -> float:
    """The margin of the theorem, alpha_2 + alpha_BM + alpha_AT with alpha_2 = alpha_1 (6.3): too large for small T.

    >>> round(eta_theorem(1000, 100, 4, 5, tau=math.sqrt(6), beta=0.05))
    1018
    """
    return (
        alpha_1(d, s, tau=tau, beta=beta)
        + alpha_BM(T, r, s, tau=tau, beta=beta)
        + alpha_AT(T, d, s, tau=tau, beta=beta)
    )


def switches_rule(changes: int) -> int:
    """How many switches to pay for if the leader is expected to change this often (6.4): two more.

    The first selection sees one tick and is nearly uniform, so one switch is always needed; one is in reserve. All
    noise grows with sqrt(s), and without switches left the selection is frozen.

    >>> switches_rule(0), switches_rule(3)
    (2, 5)
    """
    return changes + 2


def kbar_rule(k: int) -> int:
    """How many of the largest counts UnkGumb should look at to release k of them (4.5): ten times as many.

    A larger kbar lowers the cut h_(kbar+1), and costs margin: scale ln 2 more each time it doubles, as delta_bad is
    kbar q. UnkGauss loses nothing by a larger kbar (4.3).

    >>> kbar_rule(5)
    50
    """
    return 10 * k


def eta_rule(T: int, d: int, s: int, *, tau: float) -> float:
    """The margin to use, 4 tau1 ln(dT) with tau1 = sqrt(s) tau: about the largest of dT Laplace(4 tau1) draws (6.4).

    >>> round(eta_rule(1000, 100, 1, tau=math.sqrt(6))), round(eta_rule(1000, 100, 5, tau=math.sqrt(6)))
    (113, 252)
    """
    return 4 * math.sqrt(s) * tau * math.log(d * T)


# -- when an item is found: references ---------------------------------------------------------------------------------


def release_probability(excess: float, T: int, r: int, *, tau: float, t: int | None = None) -> float:
    """UnkBase: how likely an item is released whose true count is `excess` above the threshold (Lemma 7.5).

    At tick `t`; without it, a lower bound for every tick (for `excess` >= 0). Normal approximation to integer noise.

    >>> round(release_probability(10, 1000, 4, tau=1, t=1000), 3), round(release_probability(10, 1000, 4, tau=1), 3)
    (0.921, 0.876)
    """
    cells = (r - 1) * L(T, r) if t is None else digit_sum(t, r)
    return NormalDist().cdf(excess / (tau * math.sqrt(cells * L(T, r))))


def discovery_tick(
    rate: float, T: int, r: int, *, tau: float, delta: float, kind: Kind = "sum", probability: float = 0.5
) -> int | None:
    """The first tick at which an item that occurs `rate` times a tick is released with this probability; None: never.

    For steady arrivals, floor(rate t) occurrences by tick t, and the thresholds of integer noise. O(T).

    >>> discovery_tick(0.1, 1000, 4, tau=1, delta=1e-6), discovery_tick(0.01, 1000, 4, tau=1, delta=1e-6)
    (490, None)
    """
    released = _released(rate, T, r, tau, delta, kind)
    return next((t for t, p in enumerate(released, 1) if p >= probability), None)


def expected_discovery(rate: float, T: int, r: int, *, tau: float, delta: float, kind: Kind = "sum") -> float:
    """At most this many ticks pass, on average, before such an item is first released; T counts as never.

    The first release comes after t only if the item is not released at t, so the mean of min(first, T) is at most
    1 + the sum of P(not released at t) over t = 1..T-1. O(T).

    >>> [round(expected_discovery(rate, 1000, 4, tau=1, delta=1e-6)) for rate in (0.1, 1)]
    [486, 49]
    """
    return 1 + math.fsum(1 - p for p in _released(rate, T, r, tau, delta, kind)[:-1])


def _released(rate: float, T: int, r: int, tau: float, delta: float, kind: Kind) -> list[float]:
    """P(released at t) for t = 1..T, equality form of Lemma 7.5."""
    heights = _heights(T, r, tau, delta, kind, "chernoff")
    spreads = {s: tau * math.sqrt(s * L(T, r)) for s in heights}
    cdf = NormalDist().cdf
    result = []
    for t in range(1, T + 1):
        s = digit_sum(t, r)
        result.append(cdf((math.floor(rate * t) - heights[s]) / spreads[s]))
    return result
