"""How often a partition can close: a bound for thresholds so low that noise alone may close an interval.

An interval with threshold noise tau that stands at a test value g closes at a tick with probability p(g) = P(mu > kappa
+ tau - g), mu fresh at every tick. Whoever chooses the rows trades time against growth: he wants many closes within T
ticks and a total growth of `reach`. For prices s of a tick and theta of a unit of growth let

    V = E_tau max_g exp(-theta g) p(g)/(exp(s) - 1 + p(g)).

Given tau the maximum over g is the best value of E exp(-s length - theta growth) that any rows can reach (time is dear,
so the best height is gone to at once and kept; not to know tau cannot help). So the product over closed intervals of
exp(-s length - theta growth)/V has mean at most 1: a supermartingale, also if the rows follow the releases. If J
intervals close, it is at least exp(-sT - theta reach) V^(-J), and by Markov's inequality

    P(J closes or more) <= exp(sT + theta reach) V^J    for all s, theta > 0.

Accuracy only: privacy holds for any number of closes (parameterized-histograms 2.2).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evertally.counting.process import IntArray
from evertally.noise import DiscreteLaplace
from evertally.partition.budget import Noise

Floats = NDArray[np.float64]

_DEPTH = 40  # scales of tau that matter
_PLACES = 160  # of tau, and of the test value


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
    p = _above(noise.mu, kappa + tau[:, None] - ends[None, :])
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
    above = np.append(_above(noise.tau, tau[1:] - 1), 0.0)  # P(tau >= next lower end)
    return tau, np.append(1.0, above[:-1]) - above


def _above(law: DiscreteLaplace, k: IntArray) -> Floats:
    """P(mu > k) = q^(k + 1)/(1 + q) for k >= 0, and 1 - P(mu > -k - 1) below."""
    b = float(law.scale)
    beyond = np.exp(-(np.maximum(k, -k - 1) + 1) / b) / (1 + math.exp(-1 / b))
    return np.asarray(np.where(k >= 0, beyond, 1 - beyond))
