"""The inverse questions: the least guarantee, or the longest horizon, under which an error bound is small enough.

Answers have three significant digits. Error bounds fall with the budget and grow with the horizon, so a bisection finds
them; where a calibration makes a bound ripple, the answer is a place at which it passes the wanted error. Nothing is
interpolated: the answer itself was built and asked, and so was the next number, which does not do.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP

_DECADE = 900  # numbers of three digits: 100 to 999
_LEAST, _MOST = -9 * _DECADE, 6 * _DECADE  # epsilon and rho from 1e-9 to 1e6
_LONGEST = 12 * _DECADE  # ticks


def smallest_guarantee(like: Guarantee, error: float, bound: Callable[[Guarantee], float]) -> Guarantee:
    """The least epsilon (or rho) under which `bound` is at most `error`; delta and adversary are those of `like`.

    >>> smallest_guarantee(PureDP(1.0), 50, lambda promise: 12 / promise.epsilon)
    PureDP(epsilon=0.24)
    """
    search = _Search(error, lambda place: bound(_with(like, float(_number(place)))), _LEAST, _MOST)
    found = search.least(_place(_amount(like)))
    if found is None:
        unit = "epsilon" if isinstance(like, PureDP | ApproxDP) else "rho"
        raise ConfigurationError(f"no {unit} brings the error bound down to {error:g}: {search.why}")
    return _with(like, float(_number(found)))


def longest_horizon(like: int | None, error: float, bound: Callable[[int], float]) -> int:
    """The longest horizon at which `bound` is at most `error`; the search begins at `like`.

    >>> longest_horizon(1000, 50, lambda ticks: 10 + 3 * math.log2(ticks))
    10300
    """
    # Short is better: places are counted from the longest horizon on.
    search = _Search(error, lambda place: bound(math.floor(_number(-place))), -_LONGEST, 0)
    found = search.least(-_place(Fraction(like or 1000)))
    if found is None:
        raise ConfigurationError(f"no horizon has an error bound of {error:g} or less: {search.why}")
    return math.floor(_number(-found))


class _Search:
    """Where a falling bound is small enough for the first time, between two places."""

    def __init__(self, error: Any, bound: Callable[[int], float], low: int, high: int) -> None:
        if error is None or isinstance(error, str) or not error > 0:
            raise ConfigurationError("the wanted error is a number above 0")
        self._error, self._bound, self._low, self._high = error, bound, low, high
        self._seen: dict[int, float | None] = {}  # None: refused
        self._reason = ""

    @property
    def why(self) -> str:
        """What stands in the way."""
        bounds = [bound for bound in self._seen.values() if bound is not None]
        if not bounds:
            return self._reason
        least = min(bounds)
        return f"it is {least:,.1f} at best" if math.isfinite(least) else "nothing that was declared bounds the error"

    def least(self, start: int) -> int | None:
        """The least place that does, or None."""
        low = high = min(max(start, self._low), self._high)
        step = _DECADE // 3
        while self._does(low):
            if low == self._low:
                return low
            high, low, step = low, max(self._low, low - step), 2 * step
        while not self._does(high):
            if high == self._high or (high > low and self._at(high) is None):
                high = self._last_possible(low, high)
                if not self._does(high):
                    return None
                break
            low, high, step = high, min(self._high, high + step), 2 * step
        return low + 1 + bisect_left(range(low + 1, high), True, key=self._does)

    def _last_possible(self, low: int, high: int) -> int:
        """The last place that is not refused: beyond it noise may be too small to be drawn."""
        if self._at(high) is not None or self._at(low) is None:
            return high
        return low + bisect_left(range(low + 1, high), True, key=lambda place: self._at(place) is None)

    def _does(self, place: int) -> bool:
        bound = self._at(place)
        return bound is not None and bound <= self._error

    def _at(self, place: int) -> float | None:
        if place not in self._seen:
            try:
                self._seen[place] = self._bound(place)
            except ConfigurationError as error:
                self._seen[place], self._reason = None, str(error)
        return self._seen[place]


def _number(place: int) -> Fraction:
    """All numbers of three significant digits in order; place 0 is 1.00."""
    exponent, digits = divmod(place, _DECADE)
    return Fraction(100 + digits, 100) * Fraction(10) ** exponent


def _place(number: Fraction) -> int:
    """The place of a number, rounded down to three digits."""
    exponent = math.floor(math.log10(number))
    return _DECADE * exponent + min(max(math.floor(number * 100 / Fraction(10) ** exponent) - 100, 0), _DECADE - 1)


def _amount(guarantee: Guarantee) -> Fraction:
    return guarantee.exact_epsilon if isinstance(guarantee, PureDP | ApproxDP) else guarantee.exact_rho


def _with(like: Guarantee, amount: float) -> Guarantee:
    if isinstance(like, PureDP | ZCDP):
        return type(like)(amount, adversary=like.adversary)
    return type(like)(amount, like.exact_delta, adversary=like.adversary, force=True)
