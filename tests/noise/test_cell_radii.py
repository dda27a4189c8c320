"""A radius pays for all that can go wrong in its cell (samplers.md, section 2): on functions whose parts are known."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb

from evertally.balls import certain
from evertally.noise import quantile

UNIT = Fraction(1, 2**53)
HORNER = 2 * quantile.DEGREE + 1  # roundings, "the code takes 17"


def constant(value: Fraction) -> Callable[[arb, int], list[arb]]:
    """The Taylor coefficients of a function that is the same everywhere: no truncation, no slope."""
    number = arb(value.numerator) / value.denominator
    return lambda centre, n: [number, *[arb(0)] * n]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_a_constant_costs_its_rounding_and_those_of_horner(sign: int, off: int) -> None:
    """1 + off 2^-55 is stored as 1. Item 3: what a coefficient loses; item 4: gamma_17 times its absolute value."""
    exact = sign * (1 + Fraction(off, 2**55))
    rounded, radius = certain(lambda: quantile._certified_cell(constant(exact), 0, 0, 63), 160)
    assert rounded == [sign, *[0.0] * quantile.DEGREE]
    gamma = HORNER * UNIT / (1 - HORNER * UNIT)
    least = (abs(exact - sign) + gamma) * (1 + 16 * UNIT)
    assert least <= Fraction(radius) < least * (1 + Fraction(1, 2**40))
