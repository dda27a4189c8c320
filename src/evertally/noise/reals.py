"""Real variates at their address: normal and Laplace numbers that are never rounded, only enclosed.

The bits at an address, in all its rounds, are a sign (the lowest bit of the first word) and a uniform V in (0, 1), most
significant bit first; the variate is +-z(V), erfc(z/sqrt 2) = V (normal), or +-(-ln V) (Laplace): a function of
infinitely many fixed bits with exactly that law (optimal-counting 2.2, 3.1; docs/theory/samplers.md, section 8). A
program reads a prefix: float64 values with certified radii for whole arrays, numbers of two floats (double_words.py)
where these leave something open, balls from as many bits as it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.balls import at_precision, certain
from evertally.noise import double_words
from evertally.noise.quantile import CELLS, DEGREE, Taylor, minus_log, normal_quantile, upward
from evertally.noise.variates import LAST_RESORT_BITS, ROUND_BITS
from evertally.secret import Secret

FloatArray = NDArray[np.float64]
Words = NDArray[np.uint64]
RealKind = Literal["normal", "laplace"]

REAL_OCTAVES = 53  # V below 2^-53 is left to balls
_FIRST_BITS = ROUND_BITS - 1  # of V, in the first round
_UNIT = 2.0**-53
_PRECISION = 160
_SHARP = 80
DOUBLE_RADIUS = 2.0**-98  # of variates as double words, all of them
_DOUBLE_PRECISION = 256
_DOUBLE_SHARP = 140


@dataclass(frozen=True)
class RealLaw:
    """What a lane of real variates is read as. `feeds` names the filter behind it, scale and all coefficients: the same
    bits under two filters reveal data, so a lane has one."""

    kind: RealKind
    feeds: str

    def stddev(self) -> float:
        """Of one variate."""
        return 1.0 if self.kind == "normal" else 2.0**0.5

    def text(self) -> str:
        return f"RealLaw(kind={self.kind}, feeds={self.feeds})"


class Reals(Secret):
    """Variates of shape (nodes, coordinates): `value` and, for each node, the largest `radius` and the largest `size`.

    |value - variate| <= radius of its node, |value| <= size of its node.

    >>> from evertally.noise import simulation
    >>> drawn = simulation(1).source("doc").reals("path", RealLaw("normal", "doc"), range(1, 4), 1000)
    >>> drawn.value.shape, bool(drawn.radius.max() < 1e-14)
    ((3, 1000), True)
    >>> drawn.refine(2, 7, 256).overlaps(drawn.refine(2, 7, 128))
    True
    """

    def __init__(self, kind: RealKind, words: Words, more: Callable[[int, int, int], tuple[int, int]]) -> None:
        nodes, coordinates = words.shape[:2]
        self._kind, self._words, self._more = kind, words, more
        self.value = np.empty((nodes, coordinates))
        self.radius, self.size = np.empty(nodes), np.empty(nodes)
        from evertally.noise import compiled

        left = compiled.fill_reals(words, *_table(kind), self.value, self.radius, self.size)
        if left:
            for i, j in np.argwhere(np.isnan(self.value)).tolist():
                self._settle(i, j)

    def refine(self, i: int, j: int, bits: int) -> arb:
        """A ball that contains the variate, from at least `bits` bits of its address. It may be infinite."""
        word, second = int(self._words[i, j, 0]), int(self._words[i, j, 1])
        return ball_of(self._kind, word, second, partial(self._more, i, j), bits)

    def _settle(self, i: int, j: int) -> None:
        """V below 2^-53: from balls, so that no value is missing and no tail is cut."""
        for bits in range(ROUND_BITS, LAST_RESORT_BITS + 1, ROUND_BITS):
            ball = self.refine(i, j, bits)
            if ball.is_finite() and ball.rad() < arb(2) ** -48:
                value = self.value[i, j] = float(ball.mid())
                self.radius[i] = max(self.radius[i], upward(abs(ball - arb(value))))
                self.size[i] = max(self.size[i], abs(value))
                return
        raise _broken()

    def doubles(self) -> DoubleWords:
        """The same variates, known to DOUBLE_RADIUS."""
        high, low = np.empty(self.value.shape), np.zeros(self.value.shape)
        if double_words.compiled("fill")(self._words, *_double_table(self._kind), high, low):
            for i, j in np.argwhere(np.isnan(high)).tolist():
                high[i, j], low[i, j] = _double_of(partial(self.refine, i, j))
        return DoubleWords(high, low)


@dataclass(frozen=True, repr=False)
class DoubleWords(Secret):
    """Variates as sums of two floats, |high + low - variate| <= DOUBLE_RADIUS."""

    high: FloatArray
    low: FloatArray


def _double_of(refine: Callable[[int], arb]) -> tuple[float, float]:
    """A variate as a double word, by balls."""
    for bits in range(2 * ROUND_BITS, LAST_RESORT_BITS + 1, ROUND_BITS):
        ball = refine(bits)

        def split(ball: arb = ball) -> tuple[float, float, bool]:
            high = float(ball.mid())
            low = float((ball - arb(high)).mid())
            return high, low, bool(abs(ball - arb(high) - arb(low)) <= arb(DOUBLE_RADIUS))

        high, low, near = at_precision(bits + ROUND_BITS, split)
        if ball.is_finite() and near:
            return high, low
    raise _broken()


def _broken() -> ArithmeticError:
    return ArithmeticError("2^15 bits of an address are all equal: the source of noise is broken")


def ball_of(kind: RealKind, word: int, second: int, more: Callable[[int], tuple[int, int]], bits: int) -> arb:
    """All variates whose address begins with these bits; `more(r)` gives the words of round r."""
    prefix, count = (word >> 1) << 64 | second, _FIRST_BITS
    round_ = 1
    while count < bits:
        first, next_ = more(round_)
        prefix, count, round_ = (prefix << ROUND_BITS) | first << 64 | next_, count + ROUND_BITS, round_ + 1

    def ball() -> arb:
        v = arb(2 * prefix + 1, 1) * arb(2) ** (-count - 1)
        size = arb(2).sqrt() * v.erfcinv() if kind == "normal" else -v.log()
        if not size.is_finite():
            return arb(0, arb("inf"))
        return -size if word & 1 else size

    return at_precision(count + 64, ball)


class KnownReals:
    """Variates that are known numbers: all zero (`ZeroNoise`), or planted by an auditor."""

    def __init__(self, value: FloatArray) -> None:
        self.value = value
        self.radius, self.size = np.zeros(len(value)), np.abs(value).max(axis=1, initial=0.0)

    def refine(self, i: int, j: int, bits: int) -> arb:
        return arb(float(self.value[i, j]))

    def doubles(self) -> DoubleWords:
        high, low = self.value.copy(), np.zeros(self.value.shape)
        for i in np.flatnonzero(self.radius).tolist():  # planted, with more bits than a float
            for j in range(high.shape[1]):
                high[i, j], low[i, j] = _double_of(partial(self.refine, i, j))
        return DoubleWords(high, low)


@lru_cache(maxsize=2)
def _table(kind: RealKind) -> tuple[FloatArray, FloatArray]:
    """Polynomials in x in [-1/2, 1/2] on 32 cells an octave, and a bound on all that can go wrong in a cell."""
    taylor: Taylor = normal_quantile if kind == "normal" else minus_log
    rows = REAL_OCTAVES * CELLS
    coefficients, radius = np.empty((rows, DEGREE + 1)), np.empty(rows)
    for row in range(rows):
        coefficients[row], radius[row] = certain(partial(_cell, taylor, row), _PRECISION)
    return coefficients, radius


def _cell(taylor: Taylor, row: int) -> tuple[list[float], float] | None:
    """optimal-counting 3.1. 64 bits are read from the leading one on, so x is known to 2^-52 in every octave."""
    octave, cell = divmod(row, CELLS)
    unit = arb(2) ** (-octave) / (2 * CELLS)
    centre = unit * (2 * (CELLS + cell) + 1) / 2
    half = arb(1) / 2 + arb(2) ** -52
    point, wide = taylor(centre, DEGREE), taylor(centre + unit * half * arb(0, 1), DEGREE + 1)
    exact = [c * unit**k for k, c in enumerate(point)]
    if any(c.rel_accuracy_bits() < _SHARP for c in exact):
        return None
    rounded = [float(c.mid()) for c in exact]
    bound = abs(wide[DEGREE + 1]) * (unit * half) ** (DEGREE + 1) + abs(wide[1]) * unit * arb(2) ** -52
    for k, r in enumerate(rounded):
        # Horner's rule: coefficient k meets at most 2k + 1 roundings (Higham 2002, 5.1).
        steps = arb(2 * k + 1) * _UNIT * arb("1.001")
        bound += (abs(exact[k] - arb(r)) + steps * abs(arb(r))) * half**k
    return rounded, upward(bound * arb("1.001"))


@lru_cache(maxsize=2)
def _double_table(kind: RealKind) -> tuple[FloatArray, FloatArray]:
    """Polynomials of degree 17 on the cells of 24 octaves, and the low parts of their first 8 coefficients."""
    taylor: Taylor = normal_quantile if kind == "normal" else minus_log
    rows = double_words.OCTAVES * CELLS
    high, low = np.empty((rows, double_words.DEGREE + 1)), np.empty((rows, double_words.PAIRS))
    for row in range(rows):
        high[row], low[row], radius = certain(partial(double_cell, taylor, row), _DOUBLE_PRECISION)
        assert radius <= DOUBLE_RADIUS, "a cell of the table is not as sharp as all of them are said to be"
    return high, low


def double_cell(taylor: Taylor, row: int) -> tuple[list[float], list[float], float] | None:
    """docs/theory/samplers.md, section 9: the coefficients of a cell, and what can go wrong in it."""
    n, pairs = double_words.DEGREE, double_words.PAIRS
    octave, cell = divmod(row, CELLS)
    unit = arb(2) ** (-octave) / (2 * CELLS)
    centre = unit * (2 * (CELLS + cell) + 1) / 2
    unread = arb(2) ** (max(octave, 15) - 121)
    half = arb(1) / 2 + arb(2) ** -52
    point, wide = taylor(centre, n), taylor(centre + unit * half * arb(0, 1), n + 1)
    exact = [c * unit**k for k, c in enumerate(point)]
    if any(c.rel_accuracy_bits() < _DOUBLE_SHARP for c in exact):
        return None
    high = [float(c.mid()) for c in exact]
    low = [float((c - arb(h)).mid()) for c, h in zip(exact[:pairs], high, strict=False)]
    bound = abs(wide[n + 1]) * (unit * half) ** (n + 1) + abs(wide[1]) * unit * unread + arb(double_words.TINY) * 2**9
    for k, c in enumerate(exact):
        stored = arb(high[k]) + (arb(low[k]) if k < pairs else 0)
        # Horner's rule: one addition, and for each of the double words below a product and an addition; before that,
        # in floats, two roundings and a multiplication by the high part of x alone.
        steps = arb(2 * min(k, pairs) + 1) * double_words.UNIT
        if k >= pairs:
            steps += arb(3 * (k - pairs) + 1) * _UNIT
        bound += (abs(c - stored) + steps * arb("1.001") * abs(stored)) * half**k
    return high, low, upward(bound * arb("1.001"))
