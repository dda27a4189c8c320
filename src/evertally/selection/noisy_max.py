"""Report noisy max, exactly: the largest of scores[j] + scale * variate[j], decided and never approximated.

Scores are integers, variates are real numbers known as intervals (noise/variates.py). In float64, all candidates that
are certainly too low are dropped, which leaves one almost always; intervals that overlap are narrowed by further bits
of the variates until they separate. So the answer is the argmax over real numbers, and has exactly the law that the
privacy theorems speak about. Proof: docs/theory/samplers.md, section 7.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cmp_to_key, partial

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.balls import at_precision
from evertally.errors import ConfigurationError
from evertally.noise import Variates
from evertally.noise.variates import LAST_RESORT_BITS, ROUND_BITS, ZeroVariates
from evertally.privacy._exact import ball

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

SMALLEST_SCALE = Fraction(1, 2**64)
LARGEST_SCALE = Fraction(2**64)

_ROUNDING = 2.0**-50  # relative; pays for four roundings of a gap in units of the scale


def require_scale(scale: Fraction) -> None:
    """Refuses a scale at which floats could overflow."""
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise ConfigurationError("a selection has a scale in [2^-64, 2^64]; choose another budget or sensitivity")


def noisy_argmax(scores: IntArray, scale: Fraction, variates: Variates, count: int = 1) -> list[int]:
    """The indices of the `count` largest values scores[j] + scale * variate[j], largest first.

    Any int64 scores. Under ZeroNoise equal scores come in the order of their indices; otherwise ties do not occur.
    With Gumbel variates the first k have the law of k exponential mechanisms in a row, each among those left
    (docs/theory/samplers.md, section 7); with exponential ones only the first has a theorem. O(d) for the first.

    >>> from evertally.noise import ZeroNoise
    >>> variates = ZeroNoise().source("doc").variates("pick", "gumbel", node=0, coordinates=4)
    >>> noisy_argmax(np.array([3, 9, 9, 1]), Fraction(2), variates, count=3)
    [1, 2, 0]
    """
    if scores.dtype != np.int64 or scores.shape != variates.lower.shape:
        raise TypeError("scores are a vector of int64, one for each variate")
    if not 1 <= count <= scores.size:
        raise ValueError(f"count lies between 1 and the number of scores, {scores.size}, and is {count}")
    require_scale(scale)
    # Unsigned, so that no pair of int64 overflows; in integers, so that large scores lose nothing.
    gaps = scores.max(keepdims=True).view(np.uint64) - scores.view(np.uint64)
    if isinstance(variates, ZeroVariates):
        return [int(j) for j in np.argsort(gaps, kind="stable")[:count]]

    behind = gaps.astype(np.float64) / float(scale)
    low = np.nextafter(variates.lower - behind * (1 + _ROUNDING), -np.inf)
    high = np.nextafter(variates.upper - behind * (1 - _ROUNDING), np.inf)
    surely_reached = np.partition(low, low.size - count)[low.size - count]
    left = np.flatnonzero(high >= surely_reached)
    return _in_order(left, low[left], high[left], _comparison(scores, scale, variates))[:count]


def _in_order(left: IntArray, low: FloatArray, high: FloatArray, compare: Callable[[int, int], int]) -> list[int]:
    """Largest first: cut where all before are certainly larger than all after, and each piece sorted exactly."""
    if left.size == 1:
        return [int(left[0])]
    falling = np.argsort(-low)
    left, low, high = left[falling], low[falling], high[falling]
    highest_from = np.maximum.accumulate(high[::-1])[::-1]
    cuts = np.flatnonzero(low[:-1] > highest_from[1:]) + 1
    return [j for piece in np.split(left, cuts) for j in sorted(piece.tolist(), key=cmp_to_key(compare))]


def _comparison(scores: IntArray, scale: Fraction, variates: Variates) -> Callable[[int, int], int]:
    def leads(j: int, k: int, bits: int) -> arb:
        by_noise = variates.refine(j, bits) - variates.refine(k, bits)
        return int(scores[j]) - int(scores[k]) + ball(scale) * by_noise

    def compare(j: int, k: int) -> int:
        """Negative if j is ahead of k."""
        bits = ROUND_BITS
        while bits <= LAST_RESORT_BITS:
            lead = at_precision(bits + 128, partial(leads, j, k, bits))
            if lead > 0 or lead < 0:
                return -1 if lead > 0 else 1
            bits *= 2
        raise ArithmeticError("two variates agree in 2^15 bits: the source of noise is broken")

    return compare
