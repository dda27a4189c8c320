"""How the budget of a partition is divided, and the noise that each part buys: parameterized-histograms 2.2-2.4.

A partition pays four times: for the noisy threshold (tau), for the noisy test (mu), optionally for an extra release at
a close (update), and for the histogram H that the intervals are inserted into. The loss is the sum of the four; a delta
enters through Gaussian parts only, and is multiplied by e^(what is paid before it).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from evertally.counting.process import Budget
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law, round_up
from evertally.privacy import ApproxDP, PureDP
from evertally.privacy.conversions import discounted_delta


@dataclass(frozen=True)
class Split:
    """Shares of epsilon. Any positive split is private (parameterized-histograms 2.4); they add up to 1.

    >>> Split.halves().histogram, Split.thirds().update
    (Fraction(1, 2), Fraction(1, 3))
    """

    tau: Fraction
    mu: Fraction
    update: Fraction
    histogram: Fraction

    def __post_init__(self) -> None:
        if min(self.tau, self.mu, self.histogram) <= 0 or self.update < 0:
            raise ConfigurationError("every part of a split is positive (the update part may be 0)")
        if self.tau + self.mu + self.update + self.histogram != 1:
            raise ConfigurationError("the parts of a split add up to 1")

    @classmethod
    def of(cls, tau: str | Fraction, mu: str | Fraction, histogram: str | Fraction) -> Split:
        """A split without an update."""
        return cls(Fraction(tau), Fraction(mu), Fraction(0), Fraction(histogram))

    @classmethod
    def halves(cls) -> Split:
        """Algorithms 2, 3, 5, 7, 10, 15 and the variants V1-V4."""
        return cls.of("1/4", "1/4", "1/2")

    @classmethod
    def thirds(cls) -> Split:
        """Algorithms 8, 12, 13, 17: a third of the budget updates the thresholds."""
        return cls(Fraction(1, 6), Fraction(1, 6), Fraction(1, 3), Fraction(1, 3))


@dataclass(frozen=True)
class Noise:
    """The laws that a promise buys, for rows that one event moves by at most `linf` in a column.

    tau: Lap(linf/eps_tau), one for each interval. mu: Lap(2 linf/eps_mu), fresh at every tick, or Lap(linf/eps_mu)
    where neighbours move one way (additions 7). update: L1 shift k linf or squared L2 shift k linf^2
    for k queries. `histogram`: what H may spend, pure or zCDP.

    >>> noise = noise_of(PureDP(1.0), Split.thirds(), queries=10)
    >>> noise.tau.scale, noise.mu.scale, noise.update.scale, noise.histogram
    (Fraction(6, 1), Fraction(12, 1), Fraction(30, 1), PureDP(epsilon=1/3))
    >>> noise_of(PureDP(1.0), Split.thirds(), one_way=True).mu.scale
    Fraction(6, 1)
    """

    tau: DiscreteLaplace
    mu: DiscreteLaplace
    update: Law | None
    histogram: Budget


def noise_of(
    promise: PureDP | ApproxDP, split: Split, *, queries: int = 1, linf: int = 1, one_way: bool = False
) -> Noise:
    """The noise of one partition that keeps `promise`.

    `one_way`: of two neighbouring streams one has at least the counts of the other everywhere, and queries are
    monotone. Then a test moves by at most linf, and not by linf up while it waits and linf down when it closes.

    Pure: parameterized-histograms 2.2 and 2.3 [R]. With a delta, H and the update are Gaussian: delta_H = delta
    e^-(eps_tau + eps_mu) without an update, and half of delta each, discounted by what comes before, with one.
    Discrete Gaussians are accounted by zCDP and converted (8.4 there): classic and analytic variances are too small.
    """
    epsilon = promise.exact_epsilon
    e_tau, e_mu, e_update, e_histogram = (epsilon * s for s in (split.tau, split.mu, split.update, split.histogram))
    tau = DiscreteLaplace(round_up(linf / e_tau))
    mu = DiscreteLaplace(round_up((1 if one_way else 2) * linf / e_mu))
    if isinstance(promise, PureDP):
        update = DiscreteLaplace(round_up(queries * linf / e_update)) if e_update else None
        return Noise(tau, mu, update, PureDP(e_histogram))
    if not e_update:
        delta = discounted_delta(promise.exact_delta, e_tau + e_mu)
        return Noise(tau, mu, None, ApproxDP(e_histogram, delta, force=True).to_zcdp())
    half = promise.exact_delta / 2
    rho = ApproxDP(e_update, discounted_delta(half, e_tau + e_mu), force=True).to_zcdp().exact_rho
    gaussian = DiscreteGaussian(round_up(queries * linf**2 / (2 * rho)))
    delta = discounted_delta(half, e_tau + e_mu + e_update)
    return Noise(tau, mu, gaussian, ApproxDP(e_histogram, delta, force=True).to_zcdp())
