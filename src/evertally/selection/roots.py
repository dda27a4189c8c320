"""Square roots of fractions with 64 significant bits, rounded to the safe side; exact where that is possible."""

from __future__ import annotations

import math
from fractions import Fraction


def root_down(square: Fraction) -> Fraction:
    """For budgets: never more than the root.

    >>> root_down(Fraction(9, 4)), root_down(Fraction(2)) ** 2 < 2
    (Fraction(3, 2), True)
    """
    scaled, shift, _ = _scaled(square)
    return Fraction(math.isqrt(scaled), 1 << shift)


def root_up(square: Fraction) -> Fraction:
    """For noise scales: never less than the root.

    >>> root_up(Fraction(9, 4)), root_up(Fraction(2)) ** 2 > 2
    (Fraction(3, 2), True)
    """
    scaled, shift, rest = _scaled(square)
    root = math.isqrt(scaled)
    return Fraction(root + (1 if rest or root * root < scaled else 0), 1 << shift)


def _scaled(square: Fraction) -> tuple[int, int, int]:
    """floor(square 4^shift), the shift, and whether something was cut off."""
    p, q = square.numerator, square.denominator
    shift = max(0, 64 + (q.bit_length() - p.bit_length()) // 2 + 1)
    scaled, rest = divmod(p << 2 * shift, q)
    return scaled, shift, rest
