"""One private selection: the exponential mechanism, and permute-and-flip (price-of-continual-release 3.7).

Both are report noisy max, with Gumbel and with exponential noise of scale 2 D/epsilon: a replaced record moves two
candidates in opposite directions, and without the 2 the loss is 2 epsilon (price-of-continual-release 8.1, P3). Where a
record moves all scores in one direction, D/epsilon is enough (additions 7). Their charges differ, and mixing them up is
a privacy bug: epsilon^2/8 belongs to the exponential mechanism alone, whose loss lies in an interval of length epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from evertally.errors import ConfigurationError
from evertally.noise import VariateKind, VariateSource
from evertally.privacy import ZCDP, PureDP
from evertally.selection.noisy_max import IntArray, noisy_argmax, require_scale
from evertally.selection.roots import root_down


@dataclass(frozen=True)
class _OneShot:
    epsilon: Fraction
    sensitivity: int = 1
    one_way: bool = False  # whether one record moves no score up and another one down

    _kind: ClassVar[VariateKind]
    _rho_divisor: ClassVar[int]  # rho = epsilon^2 / _rho_divisor

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", PureDP(self.epsilon).exact_epsilon)
        if not isinstance(self.sensitivity, int) or self.sensitivity < 1:
            raise ConfigurationError(
                f"sensitivity is a whole number from 1 (how far one record moves a score), not {self.sensitivity!r}"
            )
        require_scale(self.scale)

    @classmethod
    def within(cls, charge: PureDP | ZCDP, sensitivity: int = 1, *, one_way: bool = False) -> Self:
        """The selection with the largest epsilon that `charge` pays for, rounded down to a short fraction."""
        if isinstance(charge, PureDP):
            return cls(charge.exact_epsilon, sensitivity, one_way)
        return cls(root_down(cls._rho_divisor * charge.exact_rho), sensitivity, one_way)

    @property
    def scale(self) -> Fraction:
        """Of the noise: 2 sensitivity/epsilon, or half of it if scores move one way."""
        return (1 if self.one_way else 2) * self.sensitivity / self.epsilon

    @property
    def charge_pure(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def charge_zcdp(self) -> ZCDP:
        return ZCDP(self.epsilon**2 / self._rho_divisor)

    def select(self, scores: IntArray, source: VariateSource, lane: str, node: int) -> int:
        """The selected index. A node serves one selection: the same noise on other scores reveals data."""
        return noisy_argmax(scores, self.scale, source.variates(lane, self._kind, node, scores.size))[0]


class ExponentialMechanism(_OneShot):
    """Selects j with probability proportional to exp(scores[j] / scale), scale = 2 sensitivity/epsilon.

    Theorem (price-of-continual-release 3.7): if one record moves every score by at most `sensitivity`, in whatever
    directions, a selection is epsilon-DP, and epsilon^2/8-zCDP by bounded range. The second holds for the exactly
    sampled law only, which this is. With `one_way` the same at half the scale. With probability 1 - beta the score is
    at most scale ln(d/beta) below the largest. Exactness tier "exact". Time and memory O(d); the time
    depends on data in rare near-ties.

    >>> import numpy as np
    >>> from evertally.noise import ZeroNoise
    >>> mechanism = ExponentialMechanism(Fraction(1, 2))
    >>> mechanism.scale, mechanism.charge_pure, mechanism.charge_zcdp
    (Fraction(4, 1), PureDP(epsilon=0.5), ZCDP(rho=0.03125))
    >>> mechanism.select(np.array([2, 7, 5]), ZeroNoise().source("doc"), "pick", node=1)
    1
    >>> ExponentialMechanism.within(ZCDP(Fraction(1, 2))).epsilon
    Fraction(2, 1)
    """

    _kind = "gumbel"
    _rho_divisor = 8


class PermuteAndFlip(_OneShot):
    """Visits indices in random order, takes j with probability exp(-(max - scores[j]) / scale).

    Drawn as the largest score plus exponential noise, which has the same law (docs/theory/samplers.md, section 7).
    Theorem (price-of-continual-release 3.7): as the exponential mechanism, epsilon-DP, and never less accurate. In zCDP
    it costs epsilon^2/2, as every pure mechanism: epsilon^2/8 is false for it. With `one_way` the same at half the
    scale. Exactness tier "exact". Time and memory O(d); the time depends on data in rare near-ties.

    >>> import numpy as np
    >>> from evertally.noise import ZeroNoise
    >>> mechanism = PermuteAndFlip(Fraction(1, 2))
    >>> mechanism.scale, mechanism.charge_pure, mechanism.charge_zcdp
    (Fraction(4, 1), PureDP(epsilon=0.5), ZCDP(rho=0.125))
    >>> mechanism.select(np.array([2, 7, 5]), ZeroNoise().source("doc"), "pick", node=1)
    1
    >>> PermuteAndFlip.within(ZCDP(Fraction(1, 2))).epsilon
    Fraction(1, 1)
    """

    _kind = "exponential"
    _rho_divisor = 2
