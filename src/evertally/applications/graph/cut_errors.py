"""How far a cut may be off: the sum of the noise of many pairs, each rounded by itself.

At most half a unit is rounded in each pair, in all kp/2 of a cut: for large cuts far more than the noise. But the
roundings are independent, and symmetric but for ties. With r = floor(a + 1/2) - a of a noise a whose law is symmetric,
r(-a) = -r(a) unless a lies half-way, where r = 1/2; so r is a symmetric number within 1/2 (Hoeffding: the sum of m of
them is beyond x with probability at most 2 exp(-2 x^2/m)), and 1/2 for each tie. Ties of Honaker's process do not
occur; a tick of the square-root process is 2^-q Z plus what is independent of Z, so it is one with probability at most
P(Z = c mod 2^q) <= 1/(sigma sqrt(2 pi)) + 2^-q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evertally.bounds.tails import Spread
from evertally.counting.honaker import HonakerProcess
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.sqrt_factor import GRID_BITS
from evertally.dynamic.linear import Combination


def tie_probability(noise: Any) -> float | None:
    """How likely the noise of a column lies half-way between two integers; None: nobody knows."""
    if isinstance(noise, HonakerProcess):
        return 0.0
    if isinstance(noise, SqrtProcess):
        return 1 / math.sqrt(2 * math.pi * float(noise.law.sigma_squared)) + 2.0**-GRID_BITS
    return None


@dataclass(frozen=True)
class CutError:
    """The error of a sum over `pairs` columns with independent noise of one law.

    >>> column = Spread("gaussian", 4.0, 4.0, 1.0, 9.0, roundings=1)
    >>> [round(CutError(column, ties, 2500).radius(0.05)) for ties in (None, 0.0)]
    [1522, 387]
    """

    column: Spread
    ties: float | None
    pairs: int

    @property
    def stddev(self) -> float:
        return self.column.stddev * math.sqrt(self.pairs)

    def radius(self, beta: float) -> float:
        """What the error exceeds with probability at most beta."""
        m = float(self.pairs)
        return min(Combination(self.column, m, m, 1.0, plain=True).radius(beta), self.beyond(math.log(2 / beta)))

    def beyond(self, log_odds: float) -> float:
        """The same for beta = 2 exp(-log_odds), which may have no float: by Chernoff's bound."""
        c, m = self.column, self.pairs
        noise = Spread(c.law, c.variance * m, c.proxy * m, c.peak, 0.0)
        surely = noise.chernoff(log_odds) + 0.5 * c.roundings * m
        if not c.roundings or self.ties is None:
            return surely
        # Noise, symmetric roundings and ties: a third of beta for each, and of that a share for every rounding.
        third = log_odds + math.log(3)
        each = third + math.log(c.roundings)
        rounded = math.sqrt(m * each / 2) + 0.5 * most_ties(m, self.ties, each)
        return min(surely, noise.chernoff(third) + c.roundings * rounded)


def most_ties(count: int, probability: float, log_odds: float) -> int:
    """More than so many of `count` independent events of at most this probability come with probability at most
    exp(-log_odds) (Chernoff).

    >>> most_ties(2500, 1e-5, 20.0), most_ties(2500, 0.0, 20.0)
    (4, 0)
    """
    mean = count * probability
    if mean == 0:
        return 0
    found = math.ceil(mean) + 1
    while found <= count and found * math.log(found / mean) - found + mean < log_odds:
        found += 1
    return min(found - 1, count)
