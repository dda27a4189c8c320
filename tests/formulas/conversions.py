"""Conversions that nothing released is calibrated by: the textbook ones, and the exact Gaussian curve.

References for tests and planted bugs; `evertally.privacy.conversions` has what promises are converted with.
"""

from __future__ import annotations

from fractions import Fraction

from evertally.errors import ConfigurationError
from evertally.privacy import delta_of_rho, epsilon_of_rho  # noqa: F401  # for the examples
from evertally.privacy._exact import (
    Ball,
    Number,
    ball,
    enclose,
    non_negative,
    positive,
    probability,
    root_of,
    round_down,
    round_up,
)
from evertally.privacy.conversions import _delta_from_log


def simple_epsilon_of_rho(rho: Number, delta: Number) -> Fraction:
    """`rho + 2 sqrt(rho L)`, rounded up: the textbook conversion, a reference that is never better.

    Theorem: Bun and Steinke; price-of-continual-release 2 [P 2.15], streaming-selection 2.1 (1).

    >>> simple_epsilon_of_rho(0.1, 1e-6) > epsilon_of_rho(0.1, 1e-6)
    True
    """
    r, d = positive(rho, "rho"), probability(delta, "delta")
    return round_up(enclose(lambda: ball(r) + 2 * (-ball(r) * ball(d).log()).sqrt()))


def simple_delta_of_rho(rho: Number, epsilon: Number) -> Fraction:
    """`exp(-(epsilon - rho)^2 / (4 rho))` where epsilon > rho (else 1), rounded up: the textbook conversion.

    Theorem: the conversion of `simple_epsilon_of_rho`, solved for delta.

    >>> simple_delta_of_rho(0.1, 2) > delta_of_rho(0.1, 2)
    True
    """
    r, e = positive(rho, "rho"), non_negative(epsilon, "epsilon")
    if e <= r:
        return Fraction(1)
    return _delta_from_log(lambda: -ball((e - r) ** 2 / (4 * r)))


def simple_rho_of_epsilon_delta(epsilon: Number, delta: Number) -> Fraction:
    """`(epsilon / (sqrt(L + epsilon) + sqrt(L)))^2`, rounded down: inverts `simple_epsilon_of_rho` exactly.

    Theorem: `(sqrt(rho) + sqrt(L))^2 = epsilon + L`; price-of-continual-release 2.1 row 2.

    >>> round(float(simple_rho_of_epsilon_delta(1, 1e-6)), 7)
    0.0174689
    """
    e, d = positive(epsilon, "epsilon"), probability(delta, "delta")

    def bound() -> Ball:
        L = -ball(d).log()
        return (ball(e) / ((L + ball(e)).sqrt() + L.sqrt())) ** 2

    return round_down(enclose(bound))


def ideal_gaussian_delta(mu: Number, epsilon: Number, *, noise: str = "continuous") -> float:
    """REFERENCE ONLY: delta of an ideal continuous Gaussian release shifted by `mu` standard deviations.

    `Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)` (Balle and Wang; factorization-counting 3.1,
    streaming-selection 2.4). For simulations and for auditing. Released noise is discrete; for discrete noise of the
    same variance this curve is refuted (price-of-continual-release 2.1 row 4), hence any other `noise` is refused.

    >>> f"{ideal_gaussian_delta(1 / 4.224679, 1):.4e}"
    '1.0000e-06'
    """
    _refuse_released_noise(noise)
    m, e = positive(mu, "mu"), non_negative(epsilon, "epsilon")
    return float(enclose(lambda: _ideal_gaussian(ball(m), e)).mid())


def ideal_gaussian_rho(epsilon: Number, delta: Number, *, noise: str = "continuous") -> float:
    """REFERENCE ONLY: largest `rho = mu^2/2` at which ideal continuous Gaussian noise is (epsilon, delta)-DP.

    Inverts `ideal_gaussian_delta` (price-of-continual-release 2.1 row 4, tag [U] for everything released):
    at this rho the discrete Gaussian misses the target (1, 1e-6); its true delta is 1.0197e-6.

    >>> round(ideal_gaussian_rho(1, 1e-6), 7)
    0.0280145
    """
    _refuse_released_noise(noise)
    e, d = positive(epsilon, "epsilon"), probability(delta, "delta")
    mu = root_of(lambda mu: _ideal_gaussian(mu, e) - ball(d))
    return float(mu) ** 2 / 2


def _refuse_released_noise(noise: str) -> None:
    if noise != "continuous":
        raise ConfigurationError(
            f"the exact Gaussian curve holds for ideal continuous noise only, not for {noise!r} noise: "
            "a discrete Gaussian calibrated by it misses its delta (price-of-continual-release 2.1). "
            "Use rho_of_epsilon_delta, which holds for every zCDP mechanism."
        )


def _ideal_gaussian(mu: Ball, epsilon: Fraction) -> Ball:
    e, root_half = ball(epsilon), ball(Fraction(1, 2)).sqrt()
    near_tail = ((e / mu - mu / 2) * root_half).erfc()
    far_tail = ((e / mu + mu / 2) * root_half).erfc()
    return (near_tail - e.exp() * far_tail) / 2
