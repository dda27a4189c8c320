"""How often, and how many rows: a bucket for each caller. And how many at once."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable

_CALLERS = 10_000  # buckets that are remembered; a forgotten caller starts with a full bucket


class RateLimit:
    """At most `per_second` requests (or rows) per second and caller on average, with bursts of two seconds' worth, or
    of `least` if that is more.

    >>> now = 0.0
    >>> limit = RateLimit(per_second=1.0, clock=lambda: now)
    >>> limit.allows("dashboard"), limit.allows("dashboard"), limit.allows("dashboard"), limit.allows("sensor")
    (True, True, False, True)
    >>> now = 1.0
    >>> limit.allows("dashboard"), limit.allows("dashboard")
    (True, False)
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic, least: float = 1.0) -> None:
        self._rate = per_second
        self._burst = max(least, 2 * per_second)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # caller -> (left, as of)

    def allows(self, caller: str, amount: float = 1) -> bool:
        """Takes one request, or some rows, from the caller's bucket, if so much is in it."""
        now = self._clock()
        left, since = self._buckets.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        allowed = left >= amount
        self._buckets[caller] = (left - amount if allowed else left, now)
        if len(self._buckets) > _CALLERS:
            self._buckets.popitem(last=False)
        return allowed


class Slots:
    """At most `most` at once, and at most `each` of one caller.

    >>> slots = Slots(3, each=2)
    >>> slots.take("a"), slots.take("a"), slots.take("a"), slots.take("b"), slots.take("c")
    (True, True, False, True, False)
    >>> slots.give("a")
    >>> slots.take("c")
    True
    """

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._taken: Counter[str] = Counter()

    def take(self, caller: str) -> bool:
        if self._taken.total() >= self._most or self._taken[caller] >= self._each:
            return False
        self._taken[caller] += 1
        return True

    def give(self, caller: str) -> None:
        self._taken[caller] -= 1
        if not self._taken[caller]:
            del self._taken[caller]
