"""How far the answer of a partition falls behind: the law of the close time, and what is released with it.

docs/theory/additions.md, 9. An open interval survives a tick whose test value is g above the last release with
probability P(mu <= kappa + tau - g). To be seen more than x behind, it must survive the first tick at which it is: one
fresh mu, and not one for each of T ticks. If a test value grows by at most `step` in a tick, it must also survive the
ticks at which it was x - step, x - 2 step, ... behind:

    P(more than x behind, in one interval) <= S(x) = E_tau prod_k P(mu <= kappa + tau - (x + 1 - k step)).

What is released at the start of the interval is off by the noise N of H in each column, independent of tau and mu, so
the answer is off by more than x with probability at most E S(x - M), M the largest of -N over the columns.

Numbers are on a grid and rounded towards larger errors. Accuracy only: no privacy depends on any of this.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from evertally.bounds.joint import Floats, GridLaw, above, normal_above
from evertally.bounds.tails import SMOOTH, KnowsTail, Spread, laplace_radius

_FINENESS = 24  # points of the grid in the largest scale
_DEPTH = 36  # scales beyond which nothing of a Laplace law is left (2e-16)


def upper_tail(spread: Spread, x: Floats) -> Floats:
    """A bound on P(noise > x) for x >= 0; below 0 nothing is said (1).

    >>> one = Spread("gaussian", variance=100.0, proxy=100.0, peak=10.0, finest=10.0)
    >>> upper_tail(one, np.array([-1.0, 0.0, 20.5])).round(4).tolist()
    [1.0, 0.5199, 0.0228]
    """
    if spread.proxy == 0:
        return np.asarray(np.where(x >= 0, 0.0, 1.0))
    y = np.maximum(x - 0.5 * spread.roundings, 0.0)
    if isinstance(spread, KnowsTail):
        bound = spread.above(y)
    elif spread.law == "gaussian":
        bound = np.exp(-0.5 * y * y / spread.proxy)
        if spread.finest >= SMOOTH:
            bound = np.minimum(bound, normal_above((y - 0.5) / math.sqrt(spread.proxy)))
    else:
        n, z = spread.proxy / spread.peak**2, y / spread.peak
        s = z / (n + np.sqrt(n * n + z * z))
        bound = np.exp(np.maximum(-n * np.log1p(-s * s) - s * z, -700.0))  # Chernoff, as in `laplace_radius`
    return np.asarray(np.where(x < 0, 1.0, np.minimum(bound, 1.0)))


@lru_cache(maxsize=256)
def noise_law(spread: Spread, columns: int, step: int) -> GridLaw:
    """The largest of `columns` independent noises, and 0 if all are below: on a grid, rounded up."""
    equal = spread.proxy / spread.peak**2 if spread.peak else 0.0
    count = round(equal)
    if spread.law == "laplace" and not spread.roundings and 1 <= count <= 256 and abs(equal - count) < 1e-9:
        # A sum of equal draws: its very law.
        law = GridLaw.draw("laplace", spread.peak, step).sum_of(count)
        tails = np.maximum(1 - np.cumsum(law.masses)[law.zero :], 0.0) + 1e-13
    else:
        extent = math.ceil(spread.radius(1e-14) / step) + 2
        tails = upper_tail(spread, np.arange(extent + 1.0) * step)
    largest = -np.expm1(columns * np.log1p(-np.minimum(tails, 1 - 1e-16)))
    # All that is at most 0 counts as 0.
    return GridLaw(np.maximum(np.append(1.0, largest[:-1]) - largest, 0.0), 0, step)


@lru_cache(maxsize=256)
def close_law(tau: float, mu: float, kappa: int, growth: int | None, step: int) -> GridLaw:
    """How far behind an interval is seen at most, less kappa: on a grid from -depth to depth, rounded up.

    `growth`: the most that a test value grows by in one tick, None if nobody knows.

    >>> jump, slow = (close_law(4.0, 8.0, 100, growth, 1) for growth in (None, 1))
    >>> [bool(np.cumsum(law.masses)[law.zero + 40] > 0.98) for law in (jump, slow)]
    [True, True]
    >>> int(np.argmax(np.cumsum(slow.masses) > 0.95)) < int(np.argmax(np.cumsum(jump.masses) > 0.95))
    True
    """
    extent = math.ceil(_DEPTH * (mu + tau) / step)
    thresholds = GridLaw.draw("laplace", tau, step)
    level = (np.arange(-extent, extent + 1) * step).astype(np.float64)  # x - kappa
    offsets = (np.arange(thresholds.masses.size) - thresholds.zero) * float(step)
    stride, each = 1, 1
    if growth is not None:
        stride, each = max(1, -(-growth // step)), max(1, step // growth)
    # Seen more than x behind: at x + 1 or more. Several ticks within one step of the grid are as high as its lower end.
    behind = level + 1 - (step if each > 1 else 0)
    with np.errstate(divide="ignore"):
        survive = each * np.log1p(-np.minimum(above("laplace", mu, np.floor(offsets[:, None] - behind[None, :])), 1.0))
    survive = np.where((kappa + behind)[None, :] > 0, survive, 0.0)  # nothing is tested below 0
    if growth is not None:
        for place in range(stride, level.size):
            survive[:, place] += survive[:, place - stride]
    tails = thresholds.masses @ np.exp(survive) + max(0.0, 1 - float(thresholds.masses.sum()))
    tails = np.minimum.accumulate(np.minimum(tails, 1.0))
    return GridLaw(np.maximum(np.append(1.0, tails[:-1]) - tails, 0.0), extent, step)


Places = tuple[tuple[Spread, int], ...]  # noises of H, and for how many intervals each of them stands


@lru_cache(maxsize=4096)
def behind_radius(
    tau: float, mu: float, kappa: int, growth: int | None, places: Places, columns: int, beta: float
) -> float:
    """A number that the answer is behind by more than, in any of these intervals, with probability at most beta.

    >>> quiet = Spread("laplace", variance=0.0, proxy=0.0, peak=0.0, finest=1.0)
    >>> [behind_radius(4.0, 8.0, 100, growth, ((quiet, 1),), 1, 0.001) for growth in (None, 5, 1)]
    [152.0, 125.0, 115.0]
    """
    # Of many columns the noise of H is far larger than mu: the grid is made for the larger of the two.
    step = max(1, math.floor(max(mu, *(spread.peak for spread, _ in places)) / _FINENESS))
    close = close_law(tau, mu, kappa, growth, step)
    radius = _in_some_place([close.plus(noise_law(spread, columns, step)) for spread, _ in places], places, beta)
    if radius is None:
        # So rare that the grid does not tell: one mu and one tau, and the noise, by their own tails.
        each = beta / (2 * sum(count for _, count in places))
        widest = max((spread for spread, _ in places), key=lambda spread: spread.proxy)
        return kappa + laplace_radius(tau**2 + mu**2, max(tau, mu), each) + widest.radius(each / columns)
    return max(0.0, kappa + radius)


@lru_cache(maxsize=4096)
def ahead_radius(places: Places, columns: int, beta: float) -> float:
    """The same for the largest noise of H alone: by so much the answer may be too high.

    >>> one = Spread("laplace", variance=200.0, proxy=100.0, peak=10.0, finest=10.0)
    >>> ahead_radius(((one, 1),), 1, 0.05), ahead_radius(((one, 10),), 5, 0.05)
    (23.0, 62.0)
    """
    loud = tuple((spread, count) for spread, count in places if spread.proxy)
    if not loud:
        return 0.0
    step = max(1, math.floor(max(spread.peak for spread, _ in loud) / _FINENESS))
    radius = _in_some_place([noise_law(spread, columns, step) for spread, _ in loud], loud, beta)
    if radius is not None:
        return radius
    each = 2 * beta / (columns * sum(count for _, count in loud))
    return max(spread.radius(each) for spread, _ in loud)


def _in_some_place(laws: list[GridLaw], places: Places, beta: float) -> float | None:
    """What is exceeded in some place with probability at most beta; None if that is not on the grid."""
    zero, size = max(law.zero for law in laws), max(law.masses.size - law.zero for law in laws)
    failing = np.zeros(zero + size)
    for law, (_, count) in zip(laws, places, strict=True):
        tails = np.maximum(1 - np.cumsum(law.masses), 0.0) + 1e-13
        start = zero - law.zero
        failing[:start] += count
        failing[start : start + tails.size] += count * tails
        failing[start + tails.size :] += count * tails[-1]
    enough = np.flatnonzero(failing <= beta)
    return (float(enough[0]) - zero) * laws[0].step if enough.size else None
