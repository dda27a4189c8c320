"""How often a partition can close: a bound for thresholds so low that noise alone may close an interval.

Call a close *late* if its test value has grown by gamma or more since the last close, and *early* otherwise. Late ones
are at most reach/gamma. An early close at a tick needs mu > kappa - gamma + tau, whatever the data are; mu is fresh at
every tick, so an interval that closes early lasts at least as long as a geometric time G with success probability
p(tau) = P(mu > kappa - gamma + tau). Let M(s) = E exp(-s G) = E p/(exp(s) - 1 + p), the mean over tau. For b in (0, 1)

    product over intervals of  { (1 - b) exp(-s length)/M  if early,  b  if late }

has mean at most 1: a supermartingale, also if the rows follow the releases, for an open interval has none. If J
intervals close within T ticks, at most L of them late, the product is at least exp(-sT) ((1 - b)/M)^(J - L) b^L. By
Markov's inequality

    P(J closes or more) <= exp(sT) (M/(1 - b))^(J - L) b^(-L)    for all s > 0 and b, best at b = L/J.

Accuracy only: privacy holds for any number of closes (parameterized-histograms 2.2).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evertally.counting.process import IntArray
from evertally.noise import DiscreteLaplace
from evertally.partition.budget import Noise

Floats = NDArray[np.float64]

_TILTS = 2.0 ** np.arange(-4, 12)  # s, in units of J/T
_DEPTH = 40  # scales of tau that matter


def most_closes(noise: Noise, kappa: int, ticks: int, reach: int, beta: float) -> int:
    """A number that the closes within `ticks` ticks exceed with probability at most beta, if growth is at most `reach`.

    >>> from evertally.partition.budget import Split, noise_of
    >>> from evertally.privacy import PureDP
    >>> noise = noise_of(PureDP(1), Split.halves())
    >>> [most_closes(noise, kappa, 10**6, 1000, 0.01) for kappa in (60, 90, 180)]
    [1698, 266, 24]
    """
    gammas = sorted({max(1, round(kappa * 2 ** (-i / 2))) for i in range(10)})
    return min(ticks, *(_most(noise, kappa, gamma, ticks, reach // gamma, beta) for gamma in gammas))


def _most(noise: Noise, kappa: int, gamma: int, ticks: int, late: int, beta: float) -> int:
    p, weights = _early(noise, kappa - gamma)

    def improbable(J: int) -> bool:
        s = _TILTS * J / ticks
        M = np.maximum((p / (np.expm1(np.minimum(s, 50.0))[:, None] + p)) @ weights, 1e-300)
        exponent = (
            s * ticks + (J - late) * (np.log(M) - math.log1p(-late / J)) - (late * math.log(late / J) if late else 0)
        )
        return float(exponent.min()) <= math.log(beta)

    low, high = late, late + 1
    while not improbable(high):
        low, high = high, 2 * high
        if high > 2 * ticks:
            return ticks
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if improbable(middle) else (middle, high)
    return high


def _early(noise: Noise, margin: int) -> tuple[Floats, Floats]:
    """p(tau) = P(mu > margin + tau) for all tau that matter, and how probable they are."""
    reach = math.ceil(_DEPTH * float(noise.tau.scale))
    step = max(1, reach // 300)
    tau = np.arange(-reach, reach + 1, step)
    weights = np.exp(-np.abs(tau) / float(noise.tau.scale))
    return _above(noise.mu, margin + tau), weights / weights.sum()


def _above(law: DiscreteLaplace, k: IntArray) -> Floats:
    """P(mu > k) = q^(k + 1)/(1 + q) for k >= 0, and 1 - P(mu > -k - 1) below."""
    b = float(law.scale)
    beyond = np.exp(-(np.maximum(k, -k - 1) + 1) / b) / (1 + math.exp(-1 / b))
    return np.asarray(np.where(k >= 0, beyond, 1 - beyond))
