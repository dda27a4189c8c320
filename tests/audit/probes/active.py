"""Probes of active users: everything that one user can do, regular habits, restarts, crowds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from audit.probes.dynamic import worst
from audit.probes.probing import Verdict, probe
from evertally.audit.active import ActiveSearch
from evertally.counting.centred import active_laws
from evertally.counting.runs import Presence
from evertally.noise import DiscreteGaussian, simulation
from evertally.privacy import ZCDP
from evertally.users.active import ActiveUsers


def search(windows: list[int], horizon: int | None = 365, ticks: int = 5, **options: Any) -> ActiveSearch:
    model = ActiveUsers(windows, guarantee=ZCDP(0.5), horizon=horizon, key=simulation(0), **options)
    return ActiveSearch(model, ticks)


@probe("closed form", "daily active users, all short streams")
def daily() -> Verdict:
    return worst(search([1]).report(), search([1], neighbours="replace").report())


@probe("closed form", "the cost of one run, in integers")
def one_run() -> Verdict:
    """A user who is there once, and gone before the horizon: ||R y||^2 in integers, against the variance of Z."""
    for window in (1, 3, 7, 28, 90):
        laws = active_laws(ZCDP(0.5), Presence.windows(365, window, active=1))
        assert isinstance(laws.fresh, DiscreteGaussian)
        assert laws.shared is None
        moved = np.convolve(np.array(laws.factor.r, dtype=object), np.ones(window, dtype=object))
        spent = sum(int(x) ** 2 for x in moved[:365]) / (2 * laws.fresh.sigma_squared)
        if spent > Fraction(1, 2):
            return True, f"one run of {window} ticks loses rho {float(spent):.8f}, claimed 0.5"
    return False, "no run loses more than its rho"


@probe("closed form", "active users by category, all short streams")
def by_category() -> Verdict:
    return worst(search([1], ticks=5, by=["a", "b"], max_categories=1).report())


@probe("closed form", "monthly active users who come and go")
def monthly() -> Verdict:
    return worst(search([28]).habits())


@probe("attack", "active users of one block, put away and restored")
def restored() -> Verdict:
    return worst(search([3], None, unit="user-period", period=2).whole())


@probe("attack", "a user who stays while a crowd comes")
def crowd() -> Verdict:
    return worst(search([2]).returning())
