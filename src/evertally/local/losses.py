"""Losses of one client: convex, piecewise linear functions of a parameter, with slopes between -1 and 1.

factorization-counting 6.9, reduction to the median. A client with loss l draws a point Z with
P(Z <= theta) = (1 + l'(theta+))/2; then E|theta - Z| = l(theta) + const, so the median of all points minimises the
average loss. For l = |theta - d| the point is d itself. Breakpoints and slopes are fractions, and the draw is decided
exactly, by as many bits as it takes.

A loss is a record. What would not be a loss is bounded, without a word and by a function of the record alone: slopes
are cut to [-1, 1]; a slope or breakpoint that is smaller than the one before it counts as that one; and a loss with
something in it that is no number is `constant()`, which says nothing about where the minimum is. None of it is needed
for privacy: the message of any point is private.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate
from typing import Any

from evertally.balls import decided
from evertally.encode.plain import plain, real
from evertally.errors import ConfigurationError
from evertally.noise import Variates
from evertally.noise.variates import LAST_RESORT_BITS, ROUND_BITS
from evertally.privacy._exact import ball, exact
from evertally.secret import Secret

_LARGEST = Fraction(sys.float_info.max)


def number(value: object) -> Fraction | None:
    """The number that a record means, None if it means none; beyond the floats it is the largest of them.

    >>> number("0.25"), number(Fraction(1, 3)), number(float("inf")) == _LARGEST, number("many"), number(None)
    (Fraction(1, 4), Fraction(1, 3), True, None, None)
    """
    own = plain(value)
    if isinstance(own, int | Fraction):
        found = Fraction(own)
    else:
        near = real(own)
        if math.isnan(near):
            return None
        found = Fraction(near if math.isfinite(near) else math.copysign(sys.float_info.max, near))
    return max(-_LARGEST, min(_LARGEST, found))


class Loss(Secret):
    """A convex piecewise linear loss: `slopes[i]` is its slope between breakpoints i - 1 and i.

    There is one slope more than there are breakpoints, which ascend. Parameter and loss are in the same unit, that of
    the protocol's domain. Made by the functions of this module, or by hand:

    >>> loss = Loss([Fraction(1, 4), Fraction(3, 4)], [-1, 0, 1])  # nothing to pay between 1/4 and 3/4
    >>> [loss.slope(theta) for theta in (0, Fraction(1, 4), 1)]
    [Fraction(-1, 1), Fraction(0, 1), Fraction(1, 1)]
    >>> loss.law(Fraction(0), Fraction(1))
    [(Fraction(1, 4), Fraction(1, 2)), (Fraction(3, 4), Fraction(1, 2))]
    """

    __slots__ = ("_breakpoints", "_slopes")

    def __init__(self, breakpoints: Iterable[object], slopes: Iterable[object]) -> None:
        for given in (breakpoints, slopes):
            if isinstance(given, str | bytes) or not isinstance(given, Iterable):
                raise ConfigurationError("a loss is made of a list of breakpoints and a list of slopes")
        places, inclines = list(breakpoints), list(slopes)
        if len(inclines) != len(places) + 1:
            raise ConfigurationError("a loss has one slope more than breakpoints: one before the first, one after each")
        at = [found for found in map(number, places) if found is not None]
        steep = [found for found in map(number, inclines) if found is not None]
        if len(at) < len(places) or len(steep) < len(inclines):
            at, steep = [], [Fraction(0)]
        self._breakpoints = tuple(accumulate(at, max))
        self._slopes = tuple(max(Fraction(-1), min(Fraction(1), slope)) for slope in accumulate(steep, max))

    def slope(self, theta: Fraction | int | float) -> Fraction:
        """The slope to the right of `theta`."""
        return self._slopes[bisect_right(self._breakpoints, exact(theta, "theta"))]

    def law(self, low: Fraction, high: Fraction) -> list[tuple[Fraction, Fraction]]:
        """The points between `low` and `high` that Z may be, ascending, each with its probability."""
        masses: dict[Fraction, Fraction] = {}
        for (point, upto), before in zip(self._steps(low, high), [Fraction(0), *self._levels()], strict=True):
            if upto > before:
                masses[point] = masses.get(point, Fraction(0)) + upto - before
        return list(masses.items())

    def point(self, low: Fraction, high: Fraction, uniform: Variates) -> Fraction:
        """Z for the uniform number U of which `uniform` holds -ln U: the first point with U < P(Z <= point)."""
        for point, upto in self._steps(low, high):
            if upto >= 1 or (upto > 0 and _below(uniform, upto)):
                return point
        raise AssertionError("the last step has level 1")

    def text(self) -> str:
        """All of it in one way of writing, to recognise it by. As secret as the record."""
        return ";".join(",".join(map(str, numbers)) for numbers in (self._breakpoints, self._slopes))

    def _levels(self) -> list[Fraction]:
        return [(1 + slope) / 2 for slope in self._slopes]

    def _steps(self, low: Fraction, high: Fraction) -> list[tuple[Fraction, Fraction]]:
        """(point, P(Z <= point)). Outside of the domain nothing is known: its mass lies on the ends."""
        points = [low, *(max(low, min(high, place)) for place in self._breakpoints), high]
        return list(zip(points, [*self._levels(), Fraction(1)], strict=True))


def _below(uniform: Variates, level: Fraction) -> bool:
    """Whether U < level, 0 < level < 1: from as many bits as it takes. Floats would round the level."""
    for bits in range(ROUND_BITS, LAST_RESORT_BITS + 1, ROUND_BITS):

        def compare(bits: int = bits) -> bool | None:
            bar, drawn = -ball(level).log(), uniform.refine(0, bits)
            return True if drawn > bar else False if drawn < bar else None

        if (found := decided(compare, bits + 64)) is not None:
            return found
    raise ArithmeticError("2^15 bits of an address agree with a fraction: the source of noise is broken")


def constant() -> Loss:
    """No preference: half of its point lies on each end of the domain."""
    return Loss([], [0])


def absolute(value: object) -> Loss:
    """|theta - value|: the minimiser of the average is the median."""
    return Loss([value], [-1, 1])


def quantile(value: object, q: Fraction | int | float) -> Loss:
    """The pinball loss, divided by max(q, 1 - q) so that no slope exceeds 1: the minimiser is the q-quantile.

    >>> quantile(5, Fraction(9, 10)).slope(6)
    Fraction(1, 9)
    """
    level = exact(q, "q")
    if not 0 < level < 1:
        raise ConfigurationError(f"q is a number between 0 and 1; got {q!r}")
    largest = max(level, 1 - level)
    return Loss([value], [-level / largest, (1 - level) / largest])


def insensitive(value: object, width: Fraction | int | float) -> Loss:
    """max(0, |theta - value| - width): what is closer than `width` costs nothing."""
    half, middle = exact(width, "width"), number(value)
    if half < 0:
        raise ConfigurationError(f"width is at least 0; got {width!r}")
    return constant() if middle is None else Loss([middle - half, middle + half], [-1, 0, 1])


def hinge(score: object, margin: Fraction | int | float = 1) -> Loss:
    """max(0, margin - score * theta), the hinge of a label of +1 or -1 times a feature of at most 1 in size.

    >>> [hinge(-1).slope(theta) for theta in (-2, 0)]
    [Fraction(0, 1), Fraction(1, 1)]
    """
    wanted, steep = exact(margin, "margin"), number(score)
    if not steep:
        return constant()
    steep = max(Fraction(-1), min(Fraction(1), steep))
    slopes: list[Any] = [-steep, 0] if steep > 0 else [0, -steep]
    return Loss([wanted / steep], slopes)
