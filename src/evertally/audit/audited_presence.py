"""Users of periods, retention tables and present items in configurations of realistic size, to be audited."""

from __future__ import annotations

from evertally.audit.entries import Audited, made
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.users.periods import PeriodUsers
from evertally.users.present import PresentItems
from evertally.users.retention import Retention

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)

_CENTRED = "charged for the shared draw and the rest apart, which no single path shows entirely"
_RUNS = "charged by a bound on runs that few paths reach"
_TWO = "charged for two paths that show most apart"
_BLOCKS = "what comes and what goes share noise, so one item shows less than its changes"
_PERIODS, _TABLE, _ITEMS = "users-and-domains 2.4", "users-and-domains 2.4", "users-and-domains 2.5"


PRESENCE: tuple[Audited, ...] = (
    made(PeriodUsers, CONCENTRATED, 365, _PERIODS, _CENTRED, period=1),
    made(PeriodUsers, PURE, None, _PERIODS, period=7, max_active_periods=3),
    made(PeriodUsers, PURE, 364, _PERIODS, _CENTRED, period=7),
    made(PeriodUsers, APPROXIMATE, 364, _PERIODS, period=7, neighbours="replace"),
    made(PeriodUsers, CONCENTRATED, 8760, _PERIODS, _CENTRED, period=24, so_far=True),
    made(PeriodUsers, PURE, 8760, _PERIODS, period=24, so_far=True, max_active_periods=2, neighbours="replace"),
    made(Retention, CONCENTRATED, 364, _TABLE, _CENTRED, period=7, ages=12),
    made(Retention, CONCENTRATED, 364, _TABLE, period=7, ages=12, neighbours="replace"),
    made(Retention, PURE, 364, _TABLE, period=7, ages=2),
    made(Retention, APPROXIMATE, 364, _TABLE, period=7, ages=2, neighbours="replace"),
    made(PresentItems, CONCENTRATED, 4096, _ITEMS, _RUNS, max_flips=8),
    made(PresentItems, CONCENTRATED, 365, _ITEMS, _CENTRED, semantics="copies"),
    made(PresentItems, CONCENTRATED, 365, _ITEMS, _TWO, max_flips=4, neighbours="replace"),
    made(PresentItems, CONCENTRATED, 365, _ITEMS, _RUNS, protects="event"),
    made(PresentItems, PURE, 365, _ITEMS, _BLOCKS, max_flips=2),
)
