"""Probes of active users: everything that one user can do, regular habits, restarts, crowds."""

from __future__ import annotations

from typing import Any

from audit.probes.dynamic import worst
from audit.probes.probing import Verdict, probe
from evertally.audit.active import ActiveSearch
from evertally.noise import simulation
from evertally.privacy import ZCDP
from evertally.users.active import ActiveUsers


def search(windows: list[int], horizon: int | None = 365, ticks: int = 5, **options: Any) -> ActiveSearch:
    model = ActiveUsers(windows, guarantee=ZCDP(0.5), horizon=horizon, key=simulation(0), **options)
    return ActiveSearch(model, ticks)


@probe("closed form", "daily active users, all short streams")
def daily() -> Verdict:
    return worst(search([1]).report(), search([1], neighbours="replace").report())


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
