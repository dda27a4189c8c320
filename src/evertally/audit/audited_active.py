"""Active users in configurations of realistic size, to be audited."""

from __future__ import annotations

from typing import Any

from evertally.audit.entries import Audited
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.users.active import ActiveUsers

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)

_CENTRED = "charged for the shared draw and the rest apart, which no single path shows entirely"
_RUNS = "charged by a bound on runs that few paths reach"
_ADDED = "what comes and what goes share noise, so one user shows less than all comings and goings"
_PATHS = "users-and-domains 1.4, 1.5 and 2.3"


def _active(guarantee: Guarantee, windows: list[int], horizon: int | None, why: str = "", **options: Any) -> Audited:
    words = [str(windows), repr(guarantee), f"T={horizon}", *(f"{name}={value}" for name, value in options.items())]
    return Audited(
        f"ActiveUsers({', '.join(words)})",
        lambda key: ActiveUsers(windows, guarantee=guarantee, horizon=horizon, key=key, **options),
        _PATHS,
        tight=not why,
        why=why,
    )


ACTIVE: tuple[Audited, ...] = (
    _active(CONCENTRATED, [1, 7, 28], 365, _CENTRED),
    _active(CONCENTRATED, [1], 365, neighbours="replace"),
    _active(CONCENTRATED, [28], 365, _RUNS, max_active=5),
    _active(CONCENTRATED, [7], None, _RUNS, unit="user-period", period=7),
    _active(APPROXIMATE, [7], None, _RUNS, unit="event"),
    _active(CONCENTRATED, [7], 365, _RUNS, by=["a", "b", "c"], max_categories=2),
    _active(PURE, [1], 365, _CENTRED),
    _active(PURE, [1], 365, neighbours="replace"),
    _active(PURE, [90], 365, _ADDED, mechanism="tree"),
)
