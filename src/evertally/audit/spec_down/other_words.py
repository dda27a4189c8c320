"""A promise in other words: what the library says that it means as epsilon and delta, as rho, as a distance mu.

Charges are made by these conversions, certificates and users repeat them. They are held against `curves`, which is
written from the theorems once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from evertally.audit.report import Report
from evertally.audit.spec_down import curves
from evertally.audit.spec_down.overdrawn import OfStream
from evertally.privacy import ZCDP, ApproxZCDP, Guarantee, delta_of_rho, epsilon_of_rho, rho_of_epsilon_delta
from evertally.privacy.conversions import gaussian_mu

_DELTAS = (1e-9, 1e-6, 1e-3)
_CLOSE = 1e-6  # relative: the product rounds to the safe side, the curves are floats
_NOTHING = 1e-15  # what a search for 0 may end at


def other_words_report(guarantee: Guarantee, horizon: int | None) -> Report:
    """Whether some conversion of what is promised says less than follows from it.

    >>> from evertally.privacy import PureDP
    >>> other_words_report(PureDP(1.0), 9).verdict
    'holds (tight)'
    """
    wrong = next(_wrong(guarantee), "")
    told = wrong or "conversions of what is promised say at least what follows"
    return Report.attack(OfStream(guarantee, horizon), "other words", bool(wrong), told)


def _wrong(guarantee: Guarantee) -> Iterator[str]:
    # A promise of epsilon is looked at as one of epsilon^2/2; beyond 40 nobody converts, and floats end.
    rho = guarantee.rho if isinstance(guarantee, ZCDP | ApproxZCDP) else guarantee.epsilon**2 / 2
    rho = min(rho, 40.0)
    for delta in _DELTAS:
        own = curves.epsilon_of(rho, delta)
        own = own if own > _NOTHING else 0.0
        if float(epsilon_of_rho(rho, delta)) < own * (1 - _CLOSE):
            yield f"rho = {rho:.6g} is said to be less than epsilon = {own:.6g} at a delta of {delta:.0e}"
        least = math.exp(curves.log_delta(rho, own))
        if float(delta_of_rho(rho, own)) < least * (1 - _CLOSE):
            yield f"rho = {rho:.6g} is said to be less than delta = {least:.3e} at an epsilon of {own:.6g}"
        if own and float(rho_of_epsilon_delta(own, delta)) > curves.rho_of(own, delta) * (1 + _CLOSE):
            yield f"more than rho = {rho:.6g} is said to keep epsilon = {own:.6g} at a delta of {delta:.0e}"
        if own and float(gaussian_mu(own, delta)) > curves.mu_of(own, delta) * (1 + _CLOSE):
            yield f"too large a distance mu is said to keep epsilon = {own:.6g} at a delta of {delta:.0e}"
