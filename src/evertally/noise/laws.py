"""The two noise laws, exactly: what a draw is, decided from as many random bits as it takes.

A draw is a sign bit and a uniform V in (0, 1); its magnitude is M = #{k >= 1 : V < S(k)}, S(k) = P(|Z| >= k). So a draw
is a mathematical function of its bits, whichever code evaluates it: the tables and kernels of this room are fast ways
to the same integer, and the methods here are the slow way that settles every case, in ball arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from flint import arb, ctx

from evertally.balls import at_precision
from evertally.errors import ConfigurationError
from evertally.privacy._exact import ball

SMALLEST_SCALE = Fraction(1, 10)
LARGEST_SCALE = Fraction(2**40)

# Above this standard deviation the Euler-Maclaurin form of the Gaussian tail is used; below it, plain sums.
WIDE = 512


def _finite(value: Fraction | int | float) -> Fraction:
    try:
        return Fraction(value)
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(f"a noise scale is a finite number, not {value}") from error


class Law(Protocol):
    """An integer law that is symmetric around zero."""

    def text(self) -> str:
        """Its name with its parameter as a fraction: part of the key of its random bits, never to be changed.

        Written out, not `repr`: that of a data class remembers which calls are under way, and one that was interrupted
        makes it say "..." later.
        """

    def stddev(self) -> float:
        """Standard deviation of one draw."""

    def tail(self, k: int) -> arb:
        """S(k) = P(|Z| >= k) as a ball at the current precision."""

    def magnitude(self, v: arb) -> int | None:
        """#{k >= 1 : V < S(k)} if it is the same for all V in the ball `v`, otherwise None."""


@dataclass(frozen=True, init=False)
class DiscreteLaplace:
    """P(Z = z) proportional to exp(-|z| / scale), the scale a rational number.

    An integer query of l1-sensitivity D is D/scale-DP with it (price-of-continual-release 7.1).

    >>> round(DiscreteLaplace(10).stddev(), 3)
    14.136
    """

    scale: Fraction

    def __init__(self, scale: Fraction | int | float) -> None:
        scale = _finite(scale)
        if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
            raise ConfigurationError(
                f"the Laplace scale {float(scale):.6g} is outside [0.1, 2^40]; choose another epsilon or horizon"
            )
        object.__setattr__(self, "scale", scale)

    def text(self) -> str:
        return f"DiscreteLaplace(scale=Fraction({self.scale.numerator}, {self.scale.denominator}))"

    def stddev(self) -> float:
        # 2q/(1-q)^2 with q = exp(-1/scale) is 1/(2 sinh^2(1/(2 scale))).
        return 1.0 / (math.sqrt(2.0) * math.sinh(0.5 / float(self.scale)))

    def tail(self, k: int) -> arb:
        if k <= 0:
            return arb(1)
        q = (-1 / ball(self.scale)).exp()
        return 2 * (-k / ball(self.scale)).exp() / (1 + q)

    def shift(self) -> arb:
        """-scale * ln((1 + q)/2): V < S(k) iff k < -scale * ln V + shift."""
        q = (-1 / ball(self.scale)).exp()
        return -ball(self.scale) * ((1 + q) / 2).log()

    def magnitude(self, v: arb) -> int | None:
        if not v > 0:
            return None
        k = (self.shift() - ball(self.scale) * v.log()).floor().unique_fmpz()
        return None if k is None else int(k)


@lru_cache(maxsize=256)
def _narrow_stddev(s: float) -> float:
    """Of a narrow Gaussian, s = 2 sigma^2: sums of forty terms, which planners ask for at every tick."""
    weights = [(k * k, math.exp(-k * k / s)) for k in range(1, 40)]
    return math.sqrt(2 * sum(k2 * w for k2, w in weights) / (1 + 2 * sum(w for _, w in weights)))


@dataclass(frozen=True, init=False)
class DiscreteGaussian:
    """P(Z = z) proportional to exp(-z^2 / (2 sigma^2)), sigma^2 a rational number.

    An integer query of l2-sensitivity D is D^2/(2 sigma^2)-zCDP with it, the same as the continuous law
    (price-of-continual-release 7.1); exact Gaussian (eps, delta) curves do *not* carry over (2.1 there).

    >>> DiscreteGaussian(100).stddev()
    10.0
    """

    sigma_squared: Fraction

    def __init__(self, sigma_squared: Fraction | int | float) -> None:
        sigma_squared = _finite(sigma_squared)
        if not SMALLEST_SCALE**2 <= sigma_squared <= LARGEST_SCALE**2:
            raise ConfigurationError(
                f"the Gaussian variance {float(sigma_squared):.6g} is outside [0.01, 2^80]; "
                "choose another budget or horizon"
            )
        object.__setattr__(self, "sigma_squared", sigma_squared)

    def text(self) -> str:
        v = self.sigma_squared
        return f"DiscreteGaussian(sigma_squared=Fraction({v.numerator}, {v.denominator}))"

    def stddev(self) -> float:
        if self.sigma_squared >= 4:  # the variance is sigma^2 up to exp(-2 pi^2 sigma^2) < 1e-34
            return math.sqrt(self.sigma_squared)
        return _narrow_stddev(2.0 * float(self.sigma_squared))

    def is_wide(self) -> bool:
        return self.sigma_squared >= WIDE**2

    def tail(self, k: int) -> arb:
        if k <= 0:
            return arb(1)
        return self._wide_tail(k) if self.is_wide() else self._summed_tail(k)

    def magnitude(self, v: arb) -> int | None:
        if not v > 0:
            return None
        # Where to look; the comparisons below decide. erfc(z / sqrt 2) = V is the continuous law's answer.
        k = at_precision(64, lambda: self._near(arb(v.mid())))
        while v < self.tail(k + 1):
            k += 1
        while k > 0 and v > self.tail(k):
            k -= 1
        return k if v > self.tail(k + 1) and (k == 0 or v < self.tail(k)) else None

    def _near(self, v: arb) -> int:
        guess = ball(self.sigma_squared).sqrt() * arb(2).sqrt() * v.erfcinv() + arb(1) / 2
        return max(0, int(float(guess.mid()))) if guess.is_finite() else 0

    def _summed_tail(self, k: int) -> arb:
        # Successive terms shrink by at least the ratio at J, so all terms from J on add at most g(J)/(1 - ratio).
        J = k + math.ceil(math.sqrt(2 * float(self.sigma_squared) * (ctx.prec + 8) * math.log(2)))
        # One fraction for all terms: each of its own would take five times as long, and save some eight bits.
        rate = ball(-1 / (2 * self.sigma_squared))
        ratio = (rate * (2 * J + 1)).exp()
        rest = (rate * (J * J)).exp() / (1 - ratio)
        above = arb(0, rest.upper())
        below = arb(0)
        for j in range(1, J):
            if j >= k:
                above += (rate * (j * j)).exp()
            else:
                below += (rate * (j * j)).exp()
        return 2 * above / (1 + 2 * (above + below))

    def _wide_tail(self, k: int) -> arb:
        # Midpoint Euler-Maclaurin at a = k - 1/2, g(x) = exp(-x^2/2s^2) (docs/theory/samplers.md, section 3):
        #   sum_{j>=k} g(j) = int_a^inf g - sum_{m<=M} B_{2m}(1/2)/(2m)! g^(2m-1)(a) + R,
        #   |R| <= |B_{2M}|/(2M)! * int |g^(2M)| <= 4 (2 pi)^(-2M) * s^(1-2M) sqrt(2 pi) sqrt((2M)!).
        s = ball(self.sigma_squared).sqrt()
        x = ball(Fraction(2 * k - 1, 2)) / s
        M = 1
        while True:
            remainder = 4 * (2 * arb.pi() * s) ** (-2 * M) * arb(2 * M).fac().sqrt()
            if remainder < arb(2) ** (-ctx.prec):
                break
            if M == 200:  # the series gives out near 3200 bits: nobody ever gets there, but the law is exact there
                return self._summed_tail(k)
            M += 1
        total = (x / arb(2).sqrt()).erfc() / 2
        density = (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
        hermite_previous, hermite, n = arb(1), x, 1  # He_{n-1}, He_n
        for m in range(1, M + 1):
            while n < 2 * m - 1:
                hermite_previous, hermite = hermite, x * hermite - n * hermite_previous
                n += 1
            coefficient = (arb(2) ** (1 - 2 * m) - 1) * arb.bernoulli(2 * m) / arb(2 * m).fac()
            # g^(2m-1)(a) = -s^(1-2m) He_{2m-1}(x) g(a); one more 1/s from the normalisation
            total += coefficient * s ** (-2 * m) * hermite * density
        total += arb(0, remainder.upper())
        normaliser = 1 + arb(0, (4 * (-2 * arb.pi() ** 2 * ball(self.sigma_squared)).exp()).upper())
        return 2 * total / normaliser
