"""How high thresholds of unknown items are, how soon an item is found, and rules for switches, eta and kbar.

Floats in the letters of streaming-selection 4.5, 6.4, 7.2 and 7.3, to plan with and to compare with; mechanisms use the
exact numbers of `bounds.selection`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Literal

from evertally.bounds.extremes import largest_where
from evertally.bounds.selection import Kind, L, _check, digit_sum, digit_sums, kbar_rule

__all__ = ["discovery_tick", "eta_rule", "expected_discovery", "kbar_rule", "m", "release_probability", "switches_rule"]

Tail = Literal["gaussian", "chernoff"]


def m(
    T: int, r: int, *, tau: float, delta: float, kind: Kind = "paper", tail: Tail = "gaussian", t: int | None = None
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

    def exceeding(x: float) -> float:
        return math.fsum(n * above(x / sd) for n, sd in spreads)

    return dict.fromkeys(sums, 1 + largest_where(exceeding, delta, high=1.0))


def _quantile(p: float, tail: Tail) -> float:
    # -inv_cdf(p), not inv_cdf(1 - p), which is infinite from 1e-16 on and loses digits long before (10.4).
    return -NormalDist().inv_cdf(p) if tail == "gaussian" else math.sqrt(-2 * math.log(p))


def _above(tail: Tail) -> Callable[[float], float]:
    if tail == "gaussian":
        return lambda z: 0.5 * math.erfc(z / math.sqrt(2))
    return lambda z: math.exp(-z * z / 2)


def switches_rule(changes: int) -> int:
    """How many switches to pay for if the leader is expected to change this often (6.4): two more.

    The first selection sees one tick and is nearly uniform, so one switch is always needed; one is in reserve. All
    noise grows with sqrt(s), and without switches left the selection is frozen.

    >>> switches_rule(0), switches_rule(3)
    (2, 5)
    """
    return changes + 2


def eta_rule(T: int, d: int, s: int, *, tau: float) -> float:
    """The margin to use, 4 tau1 ln(dT) with tau1 = sqrt(s) tau: about the largest of dT Laplace(4 tau1) draws (6.4).

    >>> round(eta_rule(1000, 100, 1, tau=math.sqrt(6))), round(eta_rule(1000, 100, 5, tau=math.sqrt(6)))
    (113, 252)
    """
    return 4 * math.sqrt(s) * tau * math.log(d * T)


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
