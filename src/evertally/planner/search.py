"""The inverse questions: the least guarantee, or the longest horizon, under which an error bound is small enough.

Answers have three significant digits. Error bounds fall with the budget and grow with the horizon, so a search between
two places finds them; where a calibration makes a bound ripple, the answer is a place at which it passes the wanted
error. To build a mechanism of 10^7 ticks takes seconds, so few are built: where to ask next is guessed from two earlier
bounds. The answer is no guess: it was built and asked itself, and so was the next number, which does not do.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP

_DECADE = 900  # numbers of three digits: 100 to 999
_LEAST, _MOST = -9 * _DECADE, 6 * _DECADE  # epsilon and rho from 1e-9 to 1e6
_LONGEST = 12 * _DECADE  # ticks
_FARTHEST = 30.0  # logarithms of all of these are smaller


def smallest_guarantee(like: Guarantee, error: float, bound: Callable[[Guarantee], float]) -> Guarantee:
    """The least epsilon (or rho) under which `bound` is at most `error`; delta and adversary are those of `like`.

    >>> smallest_guarantee(PureDP(1.0), 50, lambda promise: 12 / promise.epsilon)
    PureDP(epsilon=0.24)
    """
    search = _Search(error, lambda place: bound(with_amount(like, float(_number(place)))), _LEAST, _MOST)
    found = search.least(_place(_amount(like)))
    if found is None:
        unit = "epsilon" if isinstance(like, PureDP | ApproxDP) else "rho"
        raise ConfigurationError(f"no {unit} brings the error bound down to {error:g}: {search.why}")
    return with_amount(like, float(_number(found)))


def longest_horizon(like: int | None, error: float, bound: Callable[[int], float], jumps: Iterable[int] = ()) -> int:
    """The longest horizon at which `bound` is at most `error`; the search begins at `like`. Just beyond the horizons
    `jumps` another process is taken, and the bound may be far larger.

    >>> longest_horizon(1000, 50, lambda ticks: 10 + 3 * math.log2(ticks))
    10300
    """
    # Short is better: places are counted from the longest horizon on.
    beyond = [-_place(Fraction(last)) - 1 for last in jumps]
    search = _Search(error, lambda place: bound(math.floor(_number(-place))), -_LONGEST, 0, -1, beyond)
    found = search.least(-_place(Fraction(like or 1000)))
    if found is None:
        raise ConfigurationError(f"no horizon has an error bound of {error:g} or less: {search.why}")
    return math.floor(_number(-found))


class _Search:
    """Where a falling bound is small enough for the first time, between two places."""

    def __init__(
        self,
        error: Any,
        bound: Callable[[int], float],
        low: int,
        high: int,
        sign: int = 1,
        jumps: Sequence[int] = (),
    ) -> None:
        if error is None or isinstance(error, str) or not error > 0:
            raise ConfigurationError("the wanted error is a number above 0")
        self._error, self._bound, self._low, self._high = error, bound, low, high
        self._sign = sign  # place p stands for number sign p
        self._jumps = jumps  # after each of these places bounds may be far smaller
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
        return self._between(low, high)

    def _between(self, low: int, high: int) -> int:
        """The least place that does, of two of which `low` does not and `high` does."""
        for jump in self._jumps:
            if low < jump < high:
                low, high = (low, jump) if self._does(jump) else (jump, high)
        slow = 0  # guesses in a row that did not halve what is left
        while high - low > 1:
            guess = self._guess(low) if slow < 4 else None
            middle = (low + high) // 2 if guess is None else min(max(guess, low + 1), high - 1)
            left = high - low
            low, high = (low, middle) if self._does(middle) else (middle, high)
            slow = slow + 1 if guess is not None and 2 * (high - low) > left else 0
        return high

    def _guess(self, low: int) -> int | None:
        """Where the bound is the wanted one if it is a power of the number: by the two nearest bounds that are known on
        the same side of all jumps as the places after `low`."""
        far: dict[float, int] = {}  # how far from the wanted error, and where
        known = 0
        for place, bound in self._seen.items():
            if bound is not None and 0 < bound < math.inf and all((place > j) == (low >= j) for j in self._jumps):
                far[math.log(bound / self._error)] = place
                known += 1
        if len(far) < max(2, known):  # bounds in steps lead nowhere
            return None
        (one, here), (two, there) = ((d, self._logarithm(far[d])) for d in sorted(far, key=abs)[:2])
        wanted = here + one * (there - here) / (one - two)
        return self._sign * _place(Fraction(math.exp(min(max(wanted, -_FARTHEST), _FARTHEST))))

    def _logarithm(self, place: int) -> float:
        return math.log(_number(self._sign * place))

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


def with_amount(like: Guarantee, amount: float) -> Guarantee:
    """The guarantee with another epsilon (or rho)."""
    if isinstance(like, PureDP | ZCDP):
        return type(like)(amount, adversary=like.adversary)
    return type(like)(amount, like.exact_delta, adversary=like.adversary, force=True)
