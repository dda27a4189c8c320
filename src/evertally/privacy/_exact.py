"""Exact numbers in, certified numbers out: reading parameters, ball arithmetic, directed rounding.

A ball (Arb, from python-flint) is an interval that is proved to contain the true real number. flint keeps
its working precision in one global of the process, which `evertally.balls` guards. Bounds that are rounded outwards
hold at any precision; but the noise depends on the last bit of what is kept here, and two machines must agree on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Integral
from typing import Any

from flint import arb, fmpq

from evertally.balls import certain
from evertally.errors import ConfigurationError

Number = int | float | Fraction
Ball = Any

SMALLEST_FLOAT = Fraction(math.ulp(0.0))  # 2^-1074
RESULT_BITS = 53
SEARCH_BITS = 128
LAST_RESORT_BITS = 2**14
_LONGEST_SEARCH = 10_000  # steps; nearly all need a hundred, some two thousand


def exact(value: object, name: str) -> Fraction:
    """The rational number that `value` denotes; a float is the binary fraction it stores.

    >>> exact(0.5, "epsilon")
    Fraction(1, 2)
    """
    # Copied into Python's own numbers: a subclass may say another value whenever it is asked.
    if type(value) is Fraction:
        return value
    if isinstance(value, Fraction):
        return Fraction(int.__index__(value.numerator), int.__index__(value.denominator))
    if isinstance(value, float) and math.isfinite(float.__float__(value)):
        return Fraction(float.__float__(value))
    if not isinstance(value, bool) and isinstance(value, Integral):
        return Fraction(int.__index__(value) if issubclass(type(value), int) else int(value))  # type: ignore[arg-type]
    raise ConfigurationError(f"{name} must be a finite int, float or Fraction, not {value!r}")


def non_negative(value: object, name: str) -> Fraction:
    """`exact(value)`, refused below zero and beyond the range of floats.

    >>> non_negative(0, "epsilon")
    Fraction(0, 1)
    """
    number = exact(value, name)
    if number < 0:
        raise ConfigurationError(f"{name} must not be negative, and is {value!r}")
    if number >= 2**1023:
        raise ConfigurationError(f"{name} is too large to mean anything; give a number below 1e300")
    return number


def positive(value: object, name: str) -> Fraction:
    """`non_negative(value)`, refused at zero.

    >>> positive(2, "rho")
    Fraction(2, 1)
    """
    number = non_negative(value, name)
    if number == 0:
        raise ConfigurationError(f"{name} must be greater than 0, not {value!r}")
    return number


def probability(value: object, name: str) -> Fraction:
    """`exact(value)`, refused outside the open interval (0, 1).

    >>> probability(0.25, "delta")
    Fraction(1, 4)
    """
    number = exact(value, name)
    if not 0 < number < 1:
        raise ConfigurationError(f"{name} must lie strictly between 0 and 1, not {value!r}")
    return number


def float_up(value: Fraction) -> float:
    """The smallest float that is not below `value`: a loss is never shown smaller than it is.

    >>> float_up(Fraction(1, 3)) > Fraction(1, 3)
    True
    """
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def ball(value: Fraction) -> Ball:
    """The tightest ball around a fraction at the current precision."""
    return arb(fmpq(value.numerator, value.denominator))


def root_of(increasing: Callable[[Ball], Ball]) -> Ball:
    """A positive point next to the sign change of a function on (0, inf): exact in itself, but not certified.

    Balls and not libm floats: noise will depend on this number, and two machines must agree on its last bit.
    """
    return certain(lambda: _search(increasing), SEARCH_BITS)


def _search(increasing: Callable[[Ball], Ball]) -> Ball | None:
    """None if it does not end: at another precision than it was made for, halves of an interval may be the whole."""
    steps = iter(range(_LONGEST_SEARCH))
    low, high, factor = arb(1), arb(1), arb(2)
    while increasing(low).mid() > 0 and next(steps, None) is not None:
        high, low, factor = low, low / factor, factor * factor
    factor = arb(2)
    while increasing(high).mid() < 0 and next(steps, None) is not None:
        low, high, factor = high, high * factor, factor * factor
    close_enough = 1 + arb(2) ** -60
    while high > low * close_enough and next(steps, None) is not None:
        middle = (low * high).sqrt().mid()
        low, high = (low, middle) if increasing(middle).mid() > 0 else (middle, high)
    return low.mid() if next(steps, None) is not None else None


def enclose(formula: Callable[[], Ball]) -> Ball:
    """Evaluate a formula on balls at growing precision, until 11 bits more are known than will be kept."""
    bits = SEARCH_BITS
    while True:
        value = certain(formula, bits)
        if value.rel_accuracy_bits() >= RESULT_BITS + 11 or bits >= LAST_RESORT_BITS:
            return value
        bits *= 2


def round_up(value: Ball) -> Fraction:
    """An upper bound of everything in the ball, with 53 bits."""
    mantissa, exponent = certain(lambda: value.upper().man_exp(), SEARCH_BITS)
    return _keep_bits(int(mantissa), int(exponent), up=True)


def round_down(value: Ball) -> Fraction:
    """A lower bound of everything in the ball, with 53 bits."""
    mantissa, exponent = certain(lambda: value.lower().man_exp(), SEARCH_BITS)
    return _keep_bits(int(mantissa), int(exponent), up=False)


def _keep_bits(mantissa: int, exponent: int, *, up: bool) -> Fraction:
    surplus = max(0, mantissa.bit_length() - RESULT_BITS)
    kept = -(-mantissa >> surplus) if up else mantissa >> surplus
    return Fraction(kept) * Fraction(2) ** (exponent + surplus)
