"""The best period of a mechanism that recomputes its answer now and then: price-of-continual-release 3.5 to 3.7.

A function of public numbers, so choosing by it costs no privacy. Time O(sqrt T).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evertally.errors import ConfigurationError


def releases(T: int, r: int) -> int:
    """m = ceil(T/r): the recomputations at ticks 1, r + 1, 2r + 1, ... The paper counts one less (P1).

    >>> releases(10, 5), releases(11, 5)
    (2, 3)
    """
    if not 1 <= r <= T:
        raise ConfigurationError(f"the period must lie between 1 and the horizon {T}; got {r}")
    return -(-T // r)


def periods(T: int) -> Iterator[tuple[int, int]]:
    """All values of m = ceil(T/r), each with its smallest r: about 2 sqrt(T) pairs (r, m).

    >>> list(periods(10))
    [(1, 10), (2, 5), (3, 4), (4, 3), (5, 2), (10, 1)]
    """
    r = 1
    while True:
        m = releases(T, r)
        yield r, m
        if m == 1:
            return
        r = max(r + 1, -(-T // (m - 1)))


@dataclass(frozen=True)
class Period:
    """A period r, its m = ceil(T/r) releases and the error bound.

    >>> Period(r=49, m=21, alpha=124.25).m
    21
    """

    r: int
    m: int
    alpha: float


def best_period(T: int, alpha: Callable[[int], float]) -> Period:
    """The period with the smallest `alpha(r)`; of equal ones that with the fewest releases. Time O(sqrt T).

    `alpha` must not fall in r while m stays the same.

    >>> best_period(1024, lambda r: r - 1 + 3 * releases(1024, r))  # waiting for r - 1 ticks, and noise for m releases
    Period(r=57, m=18, alpha=110)
    """
    candidates = (Period(r, m, alpha(r)) for r, m in periods(T))
    return min(candidates, key=lambda period: (period.alpha, period.m))


def period_from(T: int, m: int) -> tuple[int, int]:
    """From a wished number of releases to a period and the true number, never larger.

    >>> period_from(10, 7), period_from(10, 0), period_from(10, 99)
    ((2, 5), (10, 1), (1, 10))
    """
    r = -(-T // min(max(m, 1), T))
    return r, releases(T, r)
