"""The numbers that a query is written with, read exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from evertally import integers
from evertally.encode.plain import plain
from evertally.errors import ConfigurationError

_SIMPLE_DENOMINATOR = 10**6


def exact_number(value: object, name: str = "a constant") -> Fraction:
    """The number that the caller means: 0.07 is 7/100 and 5/9 computed as a float is 5/9, not their nearest doubles.

    A float is the fraction with a denominator up to 10^6 whose nearest double it is, otherwise the decimal number that
    it prints as. So weights .6, .3, .1 add up to 1, and ceil(q d) is right for every q = i/d (0.07 * 100 is above 7 in
    doubles). Give a Fraction, or text such as "1/3", where this reading is not wanted.

    >>> exact_number(0.07), exact_number(5 / 9), exact_number("0.25")
    (Fraction(7, 100), Fraction(5, 9), Fraction(1, 4))
    """
    try:
        if isinstance(value, int | float | str | Fraction) and not isinstance(value, bool | np.generic):
            value = plain(value)  # a subclass may say another value whenever it is asked
        if isinstance(value, float | np.floating):
            simple = Fraction(float(value)).limit_denominator(_SIMPLE_DENOMINATOR)
            return simple if float(simple) == float(value) else Fraction(str(value))
        if isinstance(value, Fraction | str):
            return Fraction(value)
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            return Fraction(int(value))
    except (ValueError, OverflowError, ZeroDivisionError):
        pass
    raise ConfigurationError(f"{name} is a finite int, float, Fraction or text such as '1/3', not {value!r}")


def share_of(q: object) -> int | Fraction:
    share = exact_number(q, "q")
    if not 0 < share <= 1:
        raise ConfigurationError(f"a quantile has 0 < q <= 1, not {q!r}; the minimum is q = 1/columns")
    return share if share < 1 else -1


def whole(value: object, name: str, least: int | None = None) -> int:
    return integers.whole(name, value, least)
