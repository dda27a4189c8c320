"""Real variates for selection, exponential and Gumbel: never a number, always an interval that can be narrowed.

The bits at an address, in all its rounds, are a uniform U in (0, 1), most significant bit first; the variate is
-ln U (exponential) or -ln(-ln U) (Gumbel). A float close to it would carry no privacy theorem (low bits leak,
far-behind candidates get probability 0: price-of-continual-release 7.3). So only comparisons are made, and only
certain ones: certified float64 bounds for all coordinates at once, which decide almost always, and balls from as
many bits as a comparison takes. Proof: docs/theory/samplers.md, section 7.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, Protocol, get_args

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.balls import at_precision
from evertally.noise.quantile import CELLS, DEGREE, OCTAVES, WORD_BITS, laplace_quantile, upward
from evertally.secret import Secret

VariateKind = Literal["exponential", "gumbel"]
FloatArray = NDArray[np.float64]
Words = NDArray[np.uint64]

ROUND_BITS = 128
LAST_RESORT_BITS = 2**15  # ideal bits leave something open for so long with probability below 2^-32000

_LN2 = 0.6931471805599453
_SMALLEST_FOR_GUMBEL = 2.0**-30  # of -ln U; balls below it (probability 2^-30)
_SLACK = 2.0**-46  # 128 roundings of numbers of size 1: more than the fast path makes (section 7)


class Variates(Protocol):
    """Independent variates of one kind, one for each coordinate."""

    lower: FloatArray
    upper: FloatArray

    def refine(self, i: int, bits: int) -> arb:
        """A ball that contains variate i, from at least `bits` bits of its address (whole rounds of 128).

        More bits give a ball inside the earlier ones. It may be infinite: then more bits are needed.
        """


class AddressedVariates(Secret):
    """Variates from the bits at their addresses: `words` holds round 0 (shape (n, 2)), `more(i, r)` gives round r.

    >>> from evertally.noise import simulation
    >>> variates = simulation(1).source("doc").variates("pick", "gumbel", node=0, coordinates=1000)
    >>> bool((variates.upper - variates.lower).max() < 1e-9)
    True
    >>> variates.refine(7, 128).contains(variates.refine(7, 256))
    True
    """

    def __init__(self, kind: VariateKind, words: Words, more: Callable[[int, int], tuple[int, int]]) -> None:
        if kind not in get_args(VariateKind):
            raise ValueError(f"variates are {' or '.join(get_args(VariateKind))}, not {kind!r}")
        self._kind = kind
        self._words = words
        self._more = more
        value, error, sure = _certified(kind, words[:, 0])
        self.lower, self.upper = value - error, value + error
        for i in np.flatnonzero(~sure).tolist():
            self.lower[i], self.upper[i] = self._settle(i)

    def refine(self, i: int, bits: int) -> arb:
        prefix = int(self._words[i, 0]) << 64 | int(self._words[i, 1])
        rounds = max(1, -(-bits // ROUND_BITS))
        for r in range(1, rounds):
            first, second = self._more(i, r)
            prefix = (prefix << ROUND_BITS) | (first << 64) | second
        count = rounds * ROUND_BITS

        def ball() -> arb:
            u = arb(2 * prefix + 1, 1) * arb(2) ** (-count - 1)  # all U that begin with these bits
            value = -u.log()
            if self._kind == "gumbel":
                value = -value.log()
            if not value.is_finite():
                return arb(0, arb("inf"))
            # Twice the radius: the rounding of one ball could stick out of an earlier one by a hair.
            return value + arb(0, value.rad())

        return at_precision(count + 64, ball)

    def _settle(self, i: int) -> tuple[float, float]:
        for bits in range(ROUND_BITS, LAST_RESORT_BITS + 1, ROUND_BITS):
            if (ball := self.refine(i, bits)).is_finite():
                return -upward(-ball), upward(ball)
        raise ArithmeticError("2^15 bits of an address are all equal: the source of noise is broken")


class ZeroVariates:
    """Variates that are all zero: a selection under them is the plain largest score. See ZeroNoise."""

    def __init__(self, coordinates: int) -> None:
        self.lower = self.upper = np.zeros(coordinates)

    def refine(self, i: int, bits: int) -> arb:
        return arb(0)


def _certified(kind: VariateKind, first_words: Words) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """(value, error, sure): |value - variate| <= error - rounding where sure, for all U that begin with the word."""
    m, exponent = np.frexp((first_words >> np.uint64(64 - WORD_BITS)).astype(np.int64).astype(np.float64))
    octave = WORD_BITS - exponent
    sure = (octave >= 0) & (octave < OCTAVES)
    value, error = _minus_log(np.where(sure, m, 0.5), np.where(sure, octave, 0))
    if kind == "gumbel":
        sure &= value >= _SMALLEST_FOR_GUMBEL
        m, exponent = np.frexp(np.where(sure, value, 1.0))
        # U known up to an error in -ln U means, by the mean value theorem, error/(-ln U - error) in its logarithm.
        moved = 2.0 * error / np.where(sure, value, 1.0)
        value, error = _minus_log(m, np.zeros_like(octave))
        value -= exponent * _LN2
        error += moved
    return value, error + _SLACK, sure


def _minus_log(m: FloatArray, octave: NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
    """-ln(m 2^-octave) for 1/2 <= m < 1 by the certified polynomials, and their radius; as kernels.magnitude."""
    coefficients, radius = _table()
    position = m * (2 * CELLS)
    cell = np.floor(position)
    x = position - cell - 0.5
    row = octave * CELLS + cell.astype(np.int64) - CELLS
    z = coefficients[DEGREE].take(row)
    for k in range(DEGREE - 1, -1, -1):
        z *= x
        z += coefficients[k].take(row)
    return z, radius.take(row)


@lru_cache(maxsize=1)
def _table() -> tuple[FloatArray, FloatArray]:
    table = laplace_quantile()
    return np.ascontiguousarray(table.coefficients.T), table.radius
