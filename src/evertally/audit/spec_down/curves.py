"""Conversions between notions of privacy, written down once more: nothing of `evertally.privacy` is asked.

* rho-zCDP implies (epsilon, delta) for every order a > 1 with

      ln delta = (a - 1)(a rho - epsilon) + a ln(1 - 1/a) - ln(a - 1)

  (Canonne, Kamath and Steinke 2020, Proposition 12; price-of-continual-release 2.1); the least over a is taken here by
  a search in ln(a - 1), where that function has one minimum. It is flat there, so that the error of the search is
  squared.
* Two normal laws at distance mu have delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from evertally.audit.gaussian import delta_of_mu

_HALVINGS = 100
_GOLDEN = (math.sqrt(5) - 1) / 2
_NARROW, _WIDE = -40.0, 60.0  # of ln(a - 1)


def log_delta(rho: float, epsilon: float) -> float:
    """ln of the delta at which rho-zCDP implies epsilon, by the best order.

    >>> round(math.exp(log_delta(0.5, 5.2215)) * 1e6, 3)
    1.0
    """

    def at(x: float) -> float:
        above = math.exp(x)  # a - 1
        a = 1 + above
        return above * (a * rho - epsilon) + a * (x - math.log1p(above)) - x

    low, high = _NARROW, _WIDE
    one, other = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    value_one, value_other = at(one), at(other)
    for _ in range(_HALVINGS):
        if value_one <= value_other:
            high, other, value_other = other, one, value_one
            one = high - _GOLDEN * (high - low)
            value_one = at(one)
        else:
            low, one, value_one = one, other, value_other
            other = low + _GOLDEN * (high - low)
            value_other = at(other)
    return min(value_one, value_other, 0.0)


def epsilon_of(rho: float, delta: float) -> float:
    """The least epsilon that follows from rho-zCDP at this delta.

    >>> round(epsilon_of(0.5, 1e-6), 4)
    5.2215
    """
    wanted = math.log(delta)
    return _threshold(lambda epsilon: log_delta(rho, epsilon) <= wanted)


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho that implies (epsilon, delta).

    >>> round(rho_of(1.0, 1e-6), 6)
    0.024356
    """
    wanted = math.log(delta)
    return _threshold(lambda rho: log_delta(rho, epsilon) > wanted)


def mu_of(epsilon: float, delta: float) -> float:
    """The largest distance of two normal laws that keeps (epsilon, delta).

    >>> round(mu_of(1.0, 1e-6), 6)
    0.236704
    """
    return _threshold(lambda mu: delta_of_mu(Fraction(mu), Fraction(epsilon)) > delta, halvings=60)


def _threshold(passed: Callable[[float], bool], halvings: int = _HALVINGS) -> float:
    """Where a condition that holds from some positive number on begins to hold."""
    low, high = 0.0, 1.0
    while not passed(high):
        low, high = high, 2 * high
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (low, middle) if passed(middle) else (middle, high)
    return (low + high) / 2
