"""What a plan can say of errors that depend on data: how large they are for several numbers of values, or of users."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

_POWERS = range(1, 13)  # of ten: nobody counts further
_SAID = 3  # powers in a row


def by_values(mechanism: Any, beta: float, tick: int | None) -> str:
    """Of means and variances: `count=` of their bound, from where it is well inside the range of values.

    >>> import evertally as et
    >>> by_values(et.RunningMean(lower=0, upper=100, guarantee=et.ZCDP(0.5), horizon=365), 0.05, None)
    'no release is off by more than 17.4 from 100 values on, 1.53 from 1,000 on, 0.173 from 10,000 on'
    """
    width = mechanism.upper - mechanism.lower
    found = _useful(lambda n: mechanism.error_bound(beta, tick, count=n), lambda n, off: off < width / 4)
    return "" if not found else "no release is off by more than " + _listed(found, "from {} values on", "from {} on")


def by_users(mechanism: Any, beta: float, tick: int | None) -> str:
    """Of estimates of how many users there are; nothing where they are counted one by one, with a bound that holds."""
    if math.isfinite(mechanism.error_bound(beta, tick)):
        return ""
    found = _useful(lambda n: mechanism.error_bound(beta, tick, users=n), lambda n, off: off < n / 2)
    return "" if not found else "the release of a tick is off by at most " + _listed(found, "with {} users", "with {}")


def in_ranks(mechanism: Any, beta: float, tick: int | None) -> str:
    """Of quantiles: between which true ones they lie. With alpha for the bound of their counts, q n is missed by
    (1 + q) alpha at most (users-and-domains 4)."""
    alpha = mechanism.error_bound(beta, tick)
    shares = [float(q) for q in mechanism.q]
    # The first power of ten where the worst of them is off by at most five in a hundred.
    n = 10 ** max(1, math.ceil(math.log10(20 * (1 + max(shares)) * max(alpha, 1))))
    said = []
    for q in shares:
        off = (1 + q) * alpha / n
        said.append(f"{100 * q:g} % between the true {100 * max(0, q - off):.3g} % and {100 * min(1, q + off):.3g} %")
    return f"in every release from {n:,} values on, up to the width of a cell: {', '.join(said)}"


def of_noise(mechanism: Any, beta: float, tick: int | None) -> str:
    """Of sketches: what noise alone does to all numbers of the table at once."""
    return f"noise alone moves no release by more than {_short(mechanism.error_bound(beta, tick))}"


def _useful(bound: Callable[[int], float], good: Callable[[int, float], bool]) -> list[tuple[int, float]]:
    found = ((10**power, bound(10**power)) for power in _POWERS)
    return [(n, off) for n, off in found if good(n, off)][:_SAID]


def _listed(found: list[tuple[int, float]], first: str, then: str) -> str:
    words = [first] + [then] * (len(found) - 1)
    return ", ".join(f"{_short(off)} {word.format(f'{n:,}')}" for (n, off), word in zip(found, words, strict=True))


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"
