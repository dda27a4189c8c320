"""Probes of users of periods, retention and items that come and go: all streams of one unit through the mechanism."""

from __future__ import annotations

from typing import Any

from audit.probes.dynamic import worst
from audit.probes.probing import Verdict, probe
from evertally.audit.presence import PathSearch
from evertally.noise import simulation
from evertally.privacy import ZCDP
from evertally.users.periods import PeriodUsers
from evertally.users.present import PresentItems
from evertally.users.retention import Retention

_ZCDP: dict[str, Any] = {"guarantee": ZCDP(0.5), "key": simulation(0)}


@probe("closed form", "a table of cohorts, all streams of a user")
def cohorts() -> Verdict:
    return worst(PathSearch(Retention(period=1, ages=2, horizon=4, **_ZCDP)).report())


@probe("closed form", "a table of cohorts, users in each other's place")
def cohorts_replaced() -> Verdict:
    return worst(PathSearch(Retention(period=1, ages=2, horizon=3, neighbours="replace", **_ZCDP)).report())


@probe("closed form", "users of periods, all streams of a user")
def periods() -> Verdict:
    return worst(
        PathSearch(PeriodUsers(period=2, horizon=4, **_ZCDP)).report(),
        PathSearch(PeriodUsers(period=2, horizon=4, so_far=True, max_active_periods=1, **_ZCDP)).report(),
    )


@probe("closed form", "items that come and go, all streams of an item")
def items() -> Verdict:
    ticks = 24
    often = [
        tuple("insert" if t % k == 0 else "delete" if t % k == k // 2 else None for t in range(ticks)) for k in (4, 8)
    ]
    many = PresentItems(max_flips=2, horizon=ticks, **_ZCDP)
    return worst(
        PathSearch(PresentItems(max_flips=2, horizon=4, **_ZCDP)).report(),
        PathSearch(many, some=[(None,) * ticks, *often]).report(),
    )
