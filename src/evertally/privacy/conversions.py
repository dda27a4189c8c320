"""Conversions between zero-concentrated and approximate differential privacy, rounded towards more privacy.

Notation: `L = ln(1/delta)`, `a > 1` the Renyi order, `b = a - 1`. Every bound below holds for *every* order, so the
order may be chosen carelessly; only the evaluation at the chosen order must be certain. It is done in ball arithmetic,
and the last step rounds outwards to 53 bits: what is reported as loss goes up, what may be spent goes down. Parameters
are read as the exact rationals they denote, and the results are exact fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from flint import arb

from evertally.balls import certain
from evertally.privacy._exact import (
    LAST_RESORT_BITS,
    SEARCH_BITS,
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
    return _rho_of_epsilon_delta(positive(epsilon, "epsilon"), probability(delta, "delta"))


@lru_cache(maxsize=64)  # half a millisecond, and asked for every process that is weighed up when a mechanism is made
def _rho_of_epsilon_delta(e: Fraction, d: Fraction) -> Fraction:
    b = root_of(lambda b: ball(e) + (1 / b).log1p() + (ball(d).log() + b.log1p()) * (1 + 2 * b) / (b * b))
    return round_down(enclose(lambda: (ball(e) + (ball(d).log() + b.log1p()) / b + (1 / b).log1p()) / (1 + b)))


def gaussian_mu(epsilon: Number, delta: Number) -> Fraction:
    """The largest certified mu such that every mu-GDP mechanism is (epsilon, delta)-DP; rounded down.

    Theorem (optimal-counting 2.2 [R]; Balle and Wang): for real Gaussian noise, adaptive inputs included, exactly
    `delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)`, which increases with mu. About 7 % less noise
    than by way of rho; mu^2/2 is *more* rho than `rho_of_epsilon_delta` gives, so it is for a process that is alone
    under its promise, and says nothing about what it costs beside others but (epsilon, delta) itself.

    >>> mu = gaussian_mu(1, 1e-6)
    >>> round(float(mu), 6), round(float(mu**2 / 2 / rho_of_epsilon_delta(1, 1e-6)), 3)
    (0.236704, 1.15)
    """
    return _gaussian_mu(positive(epsilon, "epsilon"), probability(delta, "delta"))


@lru_cache(maxsize=64)  # milliseconds, and asked several times whenever a process is made
def _gaussian_mu(e: Fraction, d: Fraction) -> Fraction:
    by_rho = pure_epsilon_of_rho(rho_of_epsilon_delta(e, d))  # always enough
    if e > 10**9:
        return by_rho
    # The point that the search finds is not certified: it lies within 2^-60 of the sign change, if all went well.
    mu, below = round_down(root_of(lambda mu: _over_delta(mu, ball(e), d))), 1 - Fraction(1, 2**52)
    for _ in range(8):
        if _surely_within(mu, e, d):
            return mu
        mu, below = mu * below, below * below
    return by_rho


def epsilon_of_mu(mu: Number, delta: Number) -> Fraction:
    """Smallest certified epsilon such that every mu-GDP mechanism is (epsilon, delta)-DP; rounded up.

    Theorem (optimal-counting 2.2 [R]): the curve of `gaussian_mu`, which falls as epsilon grows; 0 where delta alone
    covers the loss. The inverse of `gaussian_mu`, and never above `epsilon_of_rho(mu^2/2, delta)`.

    >>> mu = gaussian_mu(1, 1e-6)
    >>> [round(float(epsilon_of_mu(mu, delta)), 4) for delta in (1e-3, 1e-6, 1e-9)]
    [0.5547, 1.0, 1.3177]
    """
    m, d = positive(mu, "mu"), probability(delta, "delta")
    if _surely_within(m, Fraction(0), d):
        return Fraction(0)
    found = round_up(root_of(lambda e: -_over_delta(ball(m), e, d)))
    by_rho = epsilon_of_rho(m * m / 2, d)  # (mu^2/2)-zCDP follows: a bound also where the search went astray
    for above in (Fraction(0), *(Fraction(1, 2**bits) for bits in range(52, 19, -4))):
        epsilon = _up_to_53_bits(found * (1 + above))
        if _surely_within(m, epsilon, d):
            return min(epsilon, by_rho)
    return by_rho


def _up_to_53_bits(value: Fraction) -> Fraction:
    return round_up(enclose(lambda: ball(value)))


def _over_delta(mu: Ball, epsilon: Ball, delta: Fraction) -> Ball:
    """The exact Gaussian curve at epsilon, less delta."""
    far, near = (epsilon / mu + mu / 2) / arb(2).sqrt(), (epsilon / mu - mu / 2) / arb(2).sqrt()
    return (near.erfc() - epsilon.exp() * far.erfc()) / 2 - ball(delta)


def _surely_within(mu: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the curve is below delta; False also where no precision decides it."""
    bits = SEARCH_BITS
    while bits <= LAST_RESORT_BITS:
        value = certain(lambda: _over_delta(ball(mu), ball(epsilon), delta), bits)
        if value < 0 or value > 0:
            return bool(value < 0)
        bits *= 2
    return False


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


def _delta_from_log(log_formula: Callable[[], Ball]) -> Fraction:
    if enclose(log_formula) < -745:  # below 2^-1074; written out, e^(-10^15) would fill a disk with zeros
        return SMALLEST_FLOAT
    delta = round_up(enclose(lambda: log_formula().exp()))
    return min(Fraction(1), max(SMALLEST_FLOAT, delta))
