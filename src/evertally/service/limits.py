"""How often: a bucket of requests for each caller."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

_CALLERS = 10_000  # buckets that are remembered; a forgotten caller starts with a full bucket


class RateLimit:
    """At most `per_second` requests per second and caller on average, with bursts of two seconds' worth.

    >>> now = 0.0
    >>> limit = RateLimit(per_second=1.0, clock=lambda: now)
    >>> limit.allows("dashboard"), limit.allows("dashboard"), limit.allows("dashboard"), limit.allows("sensor")
    (True, True, False, True)
    >>> now = 1.0
    >>> limit.allows("dashboard"), limit.allows("dashboard")
    (True, False)
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._burst = max(1.0, 2 * per_second)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # caller -> (left, as of)

    def allows(self, caller: str) -> bool:
        """Takes one request from the caller's bucket, if there is one."""
        now = self._clock()
        left, since = self._buckets.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        allowed = left >= 1
        self._buckets[caller] = (left - 1 if allowed else left, now)
        if len(self._buckets) > _CALLERS:
            self._buckets.popitem(last=False)
        return allowed
