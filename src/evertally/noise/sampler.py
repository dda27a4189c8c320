"""Draws from a law: the certified fast path for almost all of them, ball arithmetic for the rest.

Every way gives the same integer for the same bits, because a draw is a function of its bits (laws.py). So
vectors and single draws, compiled and interpreted code, this machine and another agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.balls import certain, decided, sharp
from evertally.noise import kernels
from evertally.noise.laws import DiscreteGaussian, DiscreteLaplace, Law
from evertally.noise.quantile import OCTAVES, WORD_BITS, gaussian_quantile, laplace_quantile, thresholds, upward
from evertally.privacy._exact import ball

# Fewer draws than this are interpreted: a few microseconds each, but no compiler.
COMPILE_FROM = 32

_GUIDE_BITS = 12
_PRECISION = 160
_SHARP = 80  # bits that must be certain of what is kept as a float

MoreWords = Callable[[int], tuple[int, int]]


class PolynomialSampler:
    """Laplace at any scale and wide Gaussians, by certified quantile polynomials."""

    def __init__(self, law: DiscreteLaplace | DiscreteGaussian) -> None:
        self.law = law
        if isinstance(law, DiscreteLaplace):
            self._table = laplace_quantile()
            scale, curvature = float(law.scale), 0.0
            shift = certain(lambda: sharp(law.shift(), _SHARP), _PRECISION)
        else:
            self._table = gaussian_quantile()
            # samplers.md, section 3: the k-th threshold is z = x + x/(24 s^2) up to eta, x = (k - 1/2)/s,
            # and |eta| <= 1.02 (z^3 + 9 z + 16)/(384 s^4) + z^3/(1152 s^4) <= (z^3 + 9 z + 16)/(282 s^4).
            scale, shift = certain(lambda: sharp(_threshold_scale(law), _SHARP), _PRECISION), 0.5
            curvature = certain(lambda: upward(1 / (280 * ball(law.sigma_squared).sqrt() ** 3)), _PRECISION)
        self._coefficients, self._radius = self._table.coefficients.tolist(), self._table.radius.tolist()
        self._numbers = scale, shift, curvature

    def one(self, word: int) -> int | None:
        """The draw that starts with this word, if the word decides it."""
        k = kernels.magnitude(float(word >> 1), self._coefficients, self._radius, WORD_BITS, OCTAVES, *self._numbers)
        return None if k < 0 else (-k if word & 1 else k)

    def many(self, words: NDArray[np.uint64], out: NDArray[np.int64]) -> int:
        from evertally.noise import compiled

        table = self._table.coefficients, self._table.radius, WORD_BITS, OCTAVES
        return int(compiled.fill_by_polynomials(words, *table, *self._numbers, out))


def _threshold_scale(law: DiscreteGaussian) -> arb:
    s = ball(law.sigma_squared).sqrt()
    return s / (1 + 1 / (24 * s * s))


class ThresholdSampler:
    """Narrow Gaussians, by the leading bits of their distribution function."""

    def __init__(self, law: DiscreteGaussian) -> None:
        self.law = law
        self._thresholds = thresholds(law)
        self._shift = WORD_BITS - _GUIDE_BITS
        lowest_in_cell = np.arange(1 << _GUIDE_BITS, dtype=np.int64) << self._shift
        ascending = self._thresholds[::-1].copy()
        # "left" counts a threshold equal to the cell's first word: the walk must meet it and report the tie.
        below = np.searchsorted(ascending, lowest_in_cell, side="left")
        self._guide = (self._thresholds.size - below).astype(np.int64)
        self._threshold_list = self._thresholds.tolist()
        self._guide_list = self._guide.tolist()

    def one(self, word: int) -> int | None:
        v = word >> 1
        k = kernels.count_above(v, self._threshold_list, self._guide_list[v >> self._shift])
        return None if k < 0 else (-k if word & 1 else k)

    def many(self, words: NDArray[np.uint64], out: NDArray[np.int64]) -> int:
        from evertally.noise import compiled

        return int(compiled.fill_by_thresholds(words, self._thresholds, self._guide, self._shift, out))


@lru_cache(maxsize=128)
def sampler(law: Law) -> PolynomialSampler | ThresholdSampler:
    if isinstance(law, DiscreteGaussian) and not law.is_wide():
        return ThresholdSampler(law)
    assert isinstance(law, DiscreteLaplace | DiscreteGaussian)
    return PolynomialSampler(law)


def settle(law: Law, first: tuple[int, int], more: MoreWords) -> int:
    """The slow path: reads bits until ball arithmetic can tell. `more(r)` gives the words of round r."""
    word, second = first
    bits, count = (word >> 1) << 64 | second, WORD_BITS + 64
    round_ = 0
    while True:
        k = decided(partial(_magnitude, law, bits, count), count + 64)
        if k is not None:
            return -k if word & 1 else k
        round_ += 1
        a, b = more(round_)
        bits, count = (bits << 128) | (a << 64) | b, count + 128


def _magnitude(law: Law, bits: int, count: int) -> int | None:
    return law.magnitude(arb(2 * bits + 1, 1) * arb(2) ** (-count - 1))  # for all V that begin with these bits


def draw(law: Law, words: NDArray[np.uint64], more: Callable[[int, int], tuple[int, int]]) -> NDArray[np.int64]:
    """One draw for each row of `words` (shape (n, 2)); `more(i, r)` gives the words of row i in round r."""

    def slowly(i: int) -> int:
        return settle(law, (int(words[i, 0]), int(words[i, 1])), lambda r: more(i, r))

    n = words.shape[0]
    fast = sampler(law)  # type: ignore[arg-type]
    out = np.empty(n, dtype=np.int64)
    if n < COMPILE_FROM:
        for i in range(n):
            value = fast.one(int(words[i, 0]))
            out[i] = slowly(i) if value is None else value
        return out
    if fast.many(words, out):
        for i in np.flatnonzero(out == kernels.REDO).tolist():
            out[i] = slowly(i)
    return out


@lru_cache(maxsize=1024)
def round_up(value: Fraction, digits: int = 40) -> Fraction:
    """The next dyadic rational with `digits` significant bits: noise scales stay short and only ever grow."""
    if value <= 0:
        raise ValueError("a scale is positive")
    shift = digits - (math.floor(math.log2(value)) + 1)
    scaled = value * Fraction(2) ** shift
    return Fraction(-((-scaled.numerator) // scaled.denominator)) / Fraction(2) ** shift
