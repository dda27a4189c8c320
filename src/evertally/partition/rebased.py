"""Thresholds that follow the released answers, calibrated for the worst case (parameterized-histograms 7.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from evertally.counting.process import IntArray
from evertally.partition.budget import Split
from evertally.partition.configuration import Configuration, Terms
from evertally.partition.noise_bounds import NoiseBounds
from evertally.partition.rules import Intervals, Rebased, Rise, Rule


def rebased(terms: Terms) -> Configuration:
    """Variants V1, V3 and V4: thresholds are the released answers plus kappa = alpha_SV + 2 err + gamma (7.2 [D][R]).

    Error at most 2 alpha_SV + 3 err + gamma. Each close means that some answer has grown by gamma, so n = k c_max/gamma
    closes suffice; gamma is chosen for the smallest bound. Without `largest` or a horizon H is an epoch tree, which has
    no limit (V3; V4 with a delta), and gamma = 2.
    """
    return _rebased(terms, "rebased", lambda kappa: Rebased(terms.queries, kappa), looks_at_histogram=2)


def intervals(terms: Terms) -> Configuration:
    """Variant V2, for linear queries: the open interval alone is tested, kappa = alpha_SV + gamma (7.2 [D][R]).

    Error at most 2 alpha_SV + err + gamma. For all columns at once this is a histogram whose partition never looks at
    H; for one column it is the partition of Dwork, Naor, Reingold and Rothblum (4.5).
    """
    return _rebased(terms, "intervals", lambda kappa: Intervals(terms.queries, kappa), looks_at_histogram=0)


def _rebased(terms: Terms, name: str, rule: Callable[[Rise], Rule], looks_at_histogram: int) -> Configuration:
    noise, beta = terms.noise(Split.halves()), terms.beta

    def kappa(bounds: NoiseBounds, gamma: int, j: int | None = None, t: int | None = None) -> int:
        # The base of the histogram stays the same within the life of an engine, so its error does not count here.
        return bounds.sparse_vector(beta, t, j) + looks_at_histogram * bounds.histogram(beta, j) + gamma

    if terms.unlimited:
        unlimited = terms.noise_bounds(noise, "epoch-tree", None)
        moving = moving_rise(lambda j, t: kappa(unlimited, 2, j, t))
        rise = at_one_tick(moving)
        return Configuration(name, terms, noise, "epoch-tree", None, lambda: rule(moving), rise, (1, 1, 0))

    def bound(n: int) -> tuple[int, int, int]:
        bounds = terms.noise_bounds(noise, "best", n)
        gamma = max(2, math.ceil(Fraction(terms.queries.count * terms.guess, n)))
        step = kappa(bounds, gamma)
        return step + bounds.sparse_vector(beta) + bounds.histogram(beta), n, step

    most = max(1, terms.queries.count * terms.guess // 2)
    most = min(most, terms.horizon or most)
    sizes = {*sizes_up_to(most), most}
    n, step = terms.settle("n, kappa", lambda: list(min(bound(n) for n in sizes)[1:]))
    fixed: Rise = lambda j, ticks: step  # noqa: E731
    return Configuration(
        name, terms, noise, "best", n, lambda: rule(fixed), lambda j, t: step, (1, 1, 0), covers=terms.guess
    )


def moving_rise(rise: Callable[[int, int], int]) -> Rise:
    """A rise that grows with ln t, asked at few ticks: t is rounded up to four significant bits."""
    rise = lru_cache(maxsize=4096)(rise)

    def at(j: int, ticks: IntArray) -> IntArray:
        shift = np.maximum(0, np.frexp(ticks.astype(np.float64))[1] - 4)  # frexp is exact, log2 need not be
        places, where = np.unique(-(-ticks >> shift) << shift, return_inverse=True)
        return np.array([rise(j, int(t)) for t in places], dtype=np.int64)[where]

    return at


def at_one_tick(moving: Rise) -> Callable[[int, int], int]:
    """The rise that is in force at a tick, rounding and all."""
    return lambda j, t: int(np.max(moving(j, np.array([t]))))


def sizes_up_to(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, 16, ... as far as `most`."""
    sizes = {1 << i for i in range(most.bit_length())} | {3 << i for i in range(most.bit_length() - 1)}
    return sorted(size for size in sizes if size <= most)
