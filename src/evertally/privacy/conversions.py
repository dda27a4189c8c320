"""Conversions between zero-concentrated and approximate differential privacy, rounded towards more privacy.

Notation: `L = ln(1/delta)`, `a > 1` the Renyi order, `b = a - 1`. Every bound below holds for *every* order, so the
order may be chosen carelessly; only the evaluation at the chosen order must be certain. It is done in ball arithmetic,
and the last step rounds outwards to 53 bits: what is reported as loss goes up, what may be spent goes down. Parameters
are read as the exact rationals they denote, and the results are exact fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from evertally.errors import ConfigurationError
from evertally.privacy._exact import (
    SMALLEST_FLOAT,
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


def epsilon_of_rho(rho: Number, delta: Number) -> Fraction:
    """Smallest certified epsilon such that every rho-zCDP mechanism is (epsilon, delta)-DP; rounded up.

    Theorem (Canonne, Kamath, Steinke; price-of-continual-release 2.1 row 3, factorization-counting 3.1):
    `epsilon = a rho + ln(1 - 1/a) + (L - ln a)/(a - 1)` for any order `a > 1`. The minimum lies
    where `rho b^2 + ln(1 + b) = L`; the left side increases in b. 0 where delta alone covers the loss.

    >>> round(float(epsilon_of_rho(0.024356, 1e-6)), 4)
    1.0
    """
    r, d = positive(rho, "rho"), probability(delta, "delta")
    b = root_of(lambda b: ball(r) * b * b + b.log1p() + ball(d).log())

    def bound() -> Ball:
        return (1 + b) * ball(r) - (1 / b).log1p() - (ball(d).log() + b.log1p()) / b

    return max(Fraction(0), round_up(enclose(bound)))


def delta_of_rho(rho: Number, epsilon: Number) -> Fraction:
    """Smallest certified delta such that every rho-zCDP mechanism is (epsilon, delta)-DP; rounded up.

    Theorem (Canonne, Kamath, Steinke; price-of-continual-release 2.1 row 3): `delta = exp((a-1)(a rho -
    epsilon)) / (a-1) * (1 - 1/a)^a` for any order `a > 1`. Its logarithm is convex in a, with the minimum
    at `(2b + 1) rho - epsilon = ln(1 + 1/b)`. Never below 2^-1074, never above 1.

    >>> delta_of_rho(0.024356, 1) < Fraction("1.0001e-6")
    True
    """
    r, e = positive(rho, "rho"), non_negative(epsilon, "epsilon")
    b = root_of(lambda b: (2 * b + 1) * ball(r) - ball(e) - (1 / b).log1p())
    return _delta_from_log(lambda: b * ((1 + b) * ball(r) - ball(e)) - b * (1 / b).log1p() - b.log1p())


def rho_of_epsilon_delta(epsilon: Number, delta: Number) -> Fraction:
    """Largest certified rho such that every rho-zCDP mechanism is (epsilon, delta)-DP; rounded down.

    Theorem (price-of-continual-release 2.1 row 3, certified form): for any order `a > 1`,
    `rho = (epsilon + ln(a delta)/(a - 1) - ln(1 - 1/a))/a` is safe. The best order solves
    `(L - ln(1 + b))(1 + 2b)/b^2 = epsilon + ln(1 + 1/b)`; it is unique, and rho is positive there.

    >>> round(float(rho_of_epsilon_delta(1, 1e-6)), 6)
    0.024356
    """
    e, d = positive(epsilon, "epsilon"), probability(delta, "delta")
    b = root_of(lambda b: ball(e) + (1 / b).log1p() + (ball(d).log() + b.log1p()) * (1 + 2 * b) / (b * b))
    return round_down(enclose(lambda: (ball(e) + (ball(d).log() + b.log1p()) / b + (1 / b).log1p()) / (1 + b)))


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


def pure_epsilon_of_rho(rho: Number) -> Fraction:
    """The largest epsilon that a pure mechanism may have under a promise of rho: sqrt(2 rho), rounded down.

    Theorem (Bun and Steinke; price-of-continual-release 2): eps-DP implies eps^2/2-zCDP.

    >>> pure_epsilon_of_rho(0.5)
    Fraction(1, 1)
    """
    r = positive(rho, "rho")
    root = round_down(enclose(lambda: (2 * ball(r)).sqrt()))
    # Rounding down loses a perfect square; the next float is kept where it is one.
    above = round_up(enclose(lambda: (2 * ball(r)).sqrt()))
    return above if above * above == 2 * r else root


def discounted_delta(delta: Number, epsilon: Number) -> Fraction:
    """delta e^-epsilon, rounded down: what a step may spend whose delta is multiplied by e^epsilon on the way.

    >>> round(float(discounted_delta(0.1, 1)), 6)
    0.036788
    """
    d, e = probability(delta, "delta"), non_negative(epsilon, "epsilon")
    return round_down(enclose(lambda: ball(d) * (-ball(e)).exp()))


def group_delta(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """`delta (e^{k epsilon} - 1)/(e^epsilon - 1)` for a group of k, rounded up, at most 1.

    Theorem: group privacy, price-of-continual-release 2 [P 2.3].

    >>> float(group_delta(Fraction(1), Fraction(1, 1000), 2))
    0.0037182818284590457
    """
    if size == 1:
        return delta
    if (size - 1) * epsilon > 800:  # e^800 times the smallest delta is far above one already
        return Fraction(1)

    def bound() -> Ball:
        return ball(delta) * (ball(size * epsilon).expm1() / ball(epsilon).expm1())

    return min(Fraction(1), round_up(enclose(bound)))


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


def _delta_from_log(log_formula: Callable[[], Ball]) -> Fraction:
    if enclose(log_formula) < -745:  # below 2^-1074; written out, e^(-10^15) would fill a disk with zeros
        return SMALLEST_FLOAT
    delta = round_up(enclose(lambda: log_formula().exp()))
    return min(Fraction(1), max(SMALLEST_FLOAT, delta))


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
