"""Real variates at their address: normal and Laplace numbers that are never rounded, only enclosed.

The bits at an address, in all its rounds, are a sign (the lowest bit of the first word) and a uniform V in (0, 1), most
significant bit first; the variate is +-z(V), erfc(z/sqrt 2) = V (normal), or +-(-ln V) (Laplace): a function of
infinitely many fixed bits with exactly that law (optimal-counting 2.2, 3.1; docs/theory/samplers.md, section 8). A
program reads a prefix: float64 values with certified radii for whole arrays, balls from as many bits as it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.balls import at_precision, certain
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
        raise ArithmeticError("2^15 bits of an address are all equal: the source of noise is broken")


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


class SideBySide(Secret):
    """Variates of several addresses as if they were neighbours."""

    def __init__(self, parts: Sequence[Reals | KnownReals]) -> None:
        self._parts = parts
        self._ends = np.cumsum([part.value.shape[1] for part in parts])
        self.value = np.concatenate([part.value for part in parts], axis=1)
        self.radius = np.max([part.radius for part in parts], axis=0)
        self.size = np.max([part.size for part in parts], axis=0)

    def refine(self, i: int, j: int, bits: int) -> arb:
        part = int(np.searchsorted(self._ends, j, side="right"))
        before = int(self._ends[part - 1]) if part else 0
        return self._parts[part].refine(i, j - before, bits)


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
