"""The arithmetic of the theorems, written down once more: what noise costs, and how likely it is to be large.

Nothing of `privacy` and nothing of what the noise was calibrated with is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evertally.noise import DiscreteGaussian, DiscreteLaplace
from evertally.noise.reals import RealLaw
from evertally.privacy import Neighbours


@dataclass(frozen=True)
class Unit:
    """What one protected unit brings at most: `events` events, each of `labels` labels with a weight of `weight`.

    streaming-selection 1.3: under replacement as many labels go as come, and counts move both ways.
    """

    labels: int
    weight: int
    events: int
    replaced: bool

    @classmethod
    def of(cls, model: Any) -> Unit:
        """From the declared options of a mechanism."""
        bounds = model.contribution
        events = 1 if model.unit == "event" else int(bounds.max_events_per_user or 1)
        replaced = Neighbours.parse(model.neighbours) is Neighbours.REPLACE
        return cls(int(bounds.max_per_event), int(bounds.max_weight), events, replaced)

    @property
    def sides(self) -> int:
        return 2 if self.replaced else 1

    @property
    def alone(self) -> int:
        """The largest count that it gives a label that nobody else has."""
        return self.weight * self.events

    @property
    def at_risk(self) -> int:
        """Labels that exist in one of two neighbouring streams only."""
        return self.sides * self.labels * self.events


def rho_of(law: Any, moved: float) -> float:
    """What a draw loses whose value moves so far, in rho.

    >>> rho_of(DiscreteGaussian(8), 2), rho_of(DiscreteLaplace(2), 1)
    (0.25, 0.125)
    """
    if isinstance(law, DiscreteGaussian):
        return moved**2 / (2 * float(law.sigma_squared))
    if isinstance(law, RealLaw) and law.kind == "normal":
        return moved**2 / 2
    return epsilon_of(law, moved) ** 2 / 2


def epsilon_of(law: Any, moved: float) -> float:
    """The same in epsilon; infinite for normal noise."""
    if isinstance(law, DiscreteLaplace):
        return abs(moved) / float(law.scale)
    if isinstance(law, RealLaw) and law.kind == "laplace":
        return abs(moved)
    return math.inf if moved else 0.0


def rho_of_selections(count: int, spread: float, scale: float) -> float:
    """Of selections by Gumbel variates of a scale, where scores move apart by at most `spread`: the loss of each lies
    in an interval of length spread/scale (streaming-selection 2.2)."""
    return count * (spread / scale) ** 2 / 8


def log_normal_tail(height: int, draws: int, sigma_squared: float) -> float:
    """ln of Chernoff's bound on P(a sum of so many discrete Gaussians is at least `height`) (10.4 there)."""
    return -(height**2) / (2 * draws * sigma_squared) if height > 0 else 0.0


def log_laplace_difference(height: int, scale: float) -> float:
    """ln P(Z - Z' >= height) of two discrete Laplace draws. With p = e^(-1/scale) a draw is k with probability c p^|k|,
    c = (1 - p)/(1 + p); the difference is n >= 0 with c^2 p^n (n + (1 + p^2)/(1 - p^2)), and the rest is added up.

    >>> round(math.exp(log_laplace_difference(1, 1.0)), 6)
    0.359799
    """
    if height <= 0:
        return 0.0
    p = math.exp(-1 / scale)
    c, beyond = (1 - p) / (1 + p), height + (1 + p * p) / (1 - p * p)
    return 2 * math.log(c) - height / scale + math.log(beyond / (1 - p) + p / (1 - p) ** 2)


def log_gumbel_difference(lead: float) -> float:
    """ln P(G - G' > lead) of two Gumbel variates."""
    return -lead - math.log1p(math.exp(-lead)) if lead > 0 else -math.log1p(math.exp(lead))


def tick_counts(horizon: int, radix: int) -> dict[int, int]:
    """How many of the ticks 1..T have which sum of digits.

    >>> tick_counts(10, 3)
    {1: 3, 2: 4, 3: 2, 4: 1}
    """
    digits, rest = [], horizon + 1  # numbers below T + 1
    while rest:
        rest, digit = divmod(rest, radix)
        digits.append(digit)
    found: dict[int, int] = {}
    free = [{0: 1}]
    for _ in digits:
        free.append({s: sum(free[-1].get(s - d, 0) for d in range(radix)) for s in range(len(free) * (radix - 1) + 1)})
    before = 0
    for place in range(len(digits) - 1, -1, -1):
        for digit in range(digits[place]):
            for s, n in free[place].items():
                found[before + digit + s] = found.get(before + digit + s, 0) + n
        before += digits[place]
    found[0] -= 1  # 0 is no tick
    return {s: n for s, n in sorted(found.items()) if n}


def first_from(low: int, holds: Callable[[int], bool]) -> int:
    """The smallest number from `low` on for which something holds that holds from there on."""
    step = 1
    while not holds(low + step):
        step *= 2
    high = low + step
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
