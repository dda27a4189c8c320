"""P(|Z| >= k) of the laws of integers, from their definitions, however wide they are; and what random bits say of Z.

Narrow Gaussian tails are added up. Wide ones are added up by Euler and Maclaurin at the integers themselves, with the
derivatives that a power series gives (docs/theory/samplers.md, 3, has the form at midpoints, with Hermite polynomials):

    sum_{j>=k} g(j) = int_k^inf g + g(k)/2 - sum_{m<=M} B_2m/(2m)! g^(2m-1)(k) + R,
    |R| <= |B_2M|/(2M)! int |g^(2M)| <= 4 (2 pi)^(-2M) s^(1-2M) sqrt(2 pi (2M)!).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache

from flint import arb, arb_series, fmpq

from evertally.balls import at_precision, with_terms
from evertally.noise import DiscreteGaussian, DiscreteLaplace

BITS = 320  # tails are integers in units of 2^-320
_PRECISION = 3 * BITS
_SMALLEST = 80  # tails below 2^-80 are not looked at,
_LISTED = 100  # and those below 2^-100 are not listed
_SUMMED = 1000.0  # scale up to which tails are listed
_MOST_TERMS = 60

IntegerLaw = DiscreteLaplace | DiscreteGaussian


class Tails:
    """The tails of a law. `says(bits)` is the magnitude that V = bits 2^-320 stands for.

    >>> tails = Tails(DiscreteLaplace(1))
    >>> tails.says(tails.at(3) - 1), tails.says(tails.at(3) + 1)
    (3, 2)
    """

    def __init__(self, law: IntegerLaw) -> None:
        self._law = law
        self._scale = float(law.scale) if isinstance(law, DiscreteLaplace) else math.sqrt(law.sigma_squared)

    @cached_property
    def _listed(self) -> list[int] | None:
        return tails_of(self._law)

    def at(self, k: int) -> int:
        """P(|Z| >= k), rounded down."""
        return _tail(self._law, k) if self._listed is None else self._listed[k - 1]

    @property
    def last(self) -> int:
        """The last k that is looked at."""
        if self._listed is not None:
            return max(1, sum(tail >> (BITS - _SMALLEST) > 0 for tail in self._listed))
        reach = _SMALLEST * math.log(2)
        return math.floor(self._scale * (reach if isinstance(self._law, DiscreteLaplace) else math.sqrt(2 * reach)))

    def says(self, bits: int) -> int:
        """#{k >= 1 : V < P(|Z| >= k)}."""
        if self._listed is not None:
            return bisect_left(self._listed, -bits, key=lambda tail: -tail)
        k = at_precision(_PRECISION, lambda: self._near(bits))
        while bits < self.at(k + 1):
            k += 1
        while k > 0 and bits >= self.at(k):
            k -= 1
        return k

    def _near(self, bits: int) -> int:
        v = arb(2 * bits + 1) / arb(2) ** (BITS + 1)
        size = -v.log() if isinstance(self._law, DiscreteLaplace) else arb(2).sqrt() * v.erfcinv()
        return max(0, math.floor(self._scale * float(size.mid())))


def tails_of(law: IntegerLaw) -> list[int] | None:
    """P(|Z| >= k) for k = 1, 2, ... in units of 2^-320, rounded; None where there are too many to list."""

    def laplace(scale: arb) -> list[int]:
        q = (-1 / scale).exp()
        tail, found = 2 * q / (1 + q), list[int]()
        while tail > arb(2) ** -_LISTED:
            found.append(_whole(tail))
            tail *= q
        return found

    def gauss(variance: arb) -> list[int]:
        weights, step = [arb(1)], (-1 / (2 * variance)).exp()
        odd, square = step, step * step  # exp(-(2k + 1)/(2 sigma^2)): the ratio of neighbours
        while weights[-1] > arb(2) ** -340:
            weights.append(weights[-1] * odd)
            odd *= square
        above, found = arb(0), list[arb]()
        for weight in reversed(weights[1:]):
            above += 2 * weight
            found.append(above)
        whole = 1 + above
        return [_whole(tail / whole) for tail in reversed(found) if tail > whole * arb(2) ** -_LISTED]

    if isinstance(law, DiscreteLaplace):
        if law.scale > _SUMMED:
            return None
        return at_precision(_PRECISION, lambda: laplace(_ball(law.scale)))
    if law.sigma_squared > _SUMMED**2:
        return None
    return at_precision(_PRECISION, lambda: gauss(_ball(law.sigma_squared)))


def _tail(law: IntegerLaw, k: int) -> int:
    if k <= 0:
        return 1 << BITS
    formula: Callable[[], arb]
    if isinstance(law, DiscreteLaplace):
        scale = law.scale
        formula = lambda: 2 * (-k / _ball(scale)).exp() / (1 + (-1 / _ball(scale)).exp())  # noqa: E731
    else:
        variance = law.sigma_squared
        formula = lambda: _added_up(variance, k) / _added_up_all(variance)  # noqa: E731
    return at_precision(_PRECISION, lambda: _whole(formula()))


@lru_cache(maxsize=4)
def _added_up_all(variance: Fraction) -> arb:
    """sum_j g(j) = 1 + 2 sum_{j>=1} g(j)."""
    return at_precision(_PRECISION, lambda: 1 + _added_up(variance, 1))


def _added_up(variance: Fraction, k: int) -> arb:
    """2 sum_{j>=k} exp(-j^2/2 sigma^2), for sigma of some hundreds at least."""
    s2 = _ball(variance)
    s = s2.sqrt()
    M, rest = 1, arb(1)
    while not (rest := 4 * (2 * arb.pi() * s) ** (-2 * M) * s * (2 * arb.pi() * arb(2 * M).fac()).sqrt()) < arb(2) ** (
        -BITS - 20
    ):
        M += 1
        assert M < _MOST_TERMS, "the law is too narrow for a series: its tails are listed"

    def derivatives() -> list[arb]:
        # g(k + x) = exp(-(k^2 + 2 k x + x^2)/2 sigma^2): n! times the coefficients are the derivatives at k.
        series = arb_series([-arb(k * k) / (2 * s2), -arb(k) / s2, -1 / (2 * s2)], prec=2 * M).exp()
        return [series[n] for n in range(2 * M)]

    g = with_terms(2 * M, derivatives)
    total = s * (arb.pi() / 2).sqrt() * (arb(k) / (s * arb(2).sqrt())).erfc() + g[0] / 2
    for m in range(1, M + 1):
        total -= arb.bernoulli(2 * m) / arb(2 * m) * g[2 * m - 1]
    return 2 * (total + arb(0, rest.upper()))


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def _whole(tail: arb) -> int:
    return int((tail * arb(2) ** BITS).mid().floor().unique_fmpz())
