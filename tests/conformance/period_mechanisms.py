"""Users of periods, retention and present items, for the conformance checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject, numbers
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.users.periods import PeriodUsers
from evertally.users.present import PresentItems
from evertally.users.retention import Retention
from evertally.users.retention_table import Cells

_TICKS = 8
_WRONG = ["abc", 7, None, {"a": 1}, [1, 2]]


def visitors(n: int) -> list[list[Any]]:
    """Some come back soon, some late, some events have no user; one tick has none at all."""
    return [[f"u{(3 * t + i) % 11}" for i in range(1 + t % 4)] + [None] if t % 7 != 5 else [] for t in range(n)]


def of_periods(ticks: list[list[Any]], period: int, so_far: bool, most: int | None) -> list[int]:
    """A plain model: who was active in which period."""
    used: dict[str, list[int]] = {}
    shown, seen = 0, []
    for tick, users in enumerate(ticks):
        now, place = divmod(tick, period)
        for user in users:
            periods = used.setdefault(user, []) if user is not None else [now]
            if now not in periods and (most is None or len(periods) < most):
                periods.append(now)
        if so_far or place == period - 1:
            shown = sum(now in periods for periods in used.values())
        seen.append(shown)
    return seen


def cohorts(ticks: list[list[Any]], period: int, ages: int) -> list[dict[int, list[int]]]:
    """A plain model: the periods in which each user was active."""
    active: dict[str, set[int]] = {}
    seen = []
    for tick, users in enumerate(ticks):
        for user in users:
            if user is not None:
                active.setdefault(user, set()).add(tick // period + 1)
        over = (tick + 1) // period
        seen.append(
            {
                c: [
                    sum(min(periods) == c and c + a in periods for periods in active.values())
                    for a in range(min(ages, over + 1 - c))
                ]
                for c in range(1, over + 1)
            }
        )
    return seen


def _subject(name: str, make: Any, truth: Any, **more: Any) -> Subject:
    given: dict[str, Any] = {"ticks": _TICKS, "owned": True, "growth": 600, "runs": 60}
    return Subject(
        name=name,
        make=make,
        feed=visitors,
        truth=truth,
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        independent_numbers=False,  # before the first period is over there is no noise
        **given | more,
    )


def _periods(guarantee: Guarantee, period: int, **options: Any) -> Subject:
    given = {"horizon": _TICKS} | options
    so_far, most = bool(options.get("so_far")), options.get("max_active_periods")
    return _subject(
        f"PeriodUsers({guarantee!r}, {period}, {options})",
        lambda key: PeriodUsers(period=period, guarantee=guarantee, key=key, **given),
        lambda inputs: of_periods(inputs, period, so_far, most),
    )


def _retention(guarantee: Guarantee, period: int, ages: int, **options: Any) -> Subject:
    cells = Cells(period, _TICKS // period, ages)

    def error(value: Any, exact: Any) -> NDArray[np.float64]:
        assert {c: len(row) for c, row in value.items()} == {c: len(row) for c, row in exact.items()}
        found = numbers(value) - numbers(exact)
        return np.concatenate([found, np.zeros(len(cells) - len(found))])

    return _subject(
        f"Retention({guarantee!r}, {period}, {ages}, {options})",
        lambda key: Retention(period=period, ages=ages, guarantee=guarantee, horizon=_TICKS, key=key, **options),
        lambda inputs: cohorts(inputs, period, ages),
        error=error,
        shape=lambda tick: list(range(1, tick // period + 1)),
    )


def updates(n: int) -> list[list[Any]]:
    """Items that come and go, also twice in a tick, and what cannot be used."""
    ticks: list[list[Any]] = []
    for t in range(n):
        records: list[Any] = [("insert", None, f"i{(2 * t + i) % 5}") for i in range(t % 3)]
        records += [("delete", None, f"i{(3 * t + 1) % 5}"), ("vanish", None, "i1"), (True, None, None)]
        ticks.append([*records, *[(1, None, "twice"), (-1, None, "twice")] * (t % 2)])
    return ticks


def present(ticks: list[list[Any]], copies: bool, most: int | None) -> list[int]:
    """A plain model: how many of each item there are, and how often it has come and gone."""
    there: dict[str, int] = {}
    flips: dict[str, int] = {}
    seen = []
    for records in ticks:
        now = dict(there)
        for action, _, name in records:
            if action in ("insert", 1) and name is not None:
                now[name] = now.get(name, 0) + 1 if copies else 1
            elif action in ("delete", -1):
                now[name] = max(0, now.get(name, 0) - 1)
        for name, count in now.items():
            if most is None or flips.get(name, 0) < most:
                flips[name] = flips.get(name, 0) + ((count > 0) != (there.get(name, 0) > 0))
                there[name] = count
        seen.append(sum(count > 0 for count in there.values()))
    return seen


def _present(guarantee: Guarantee, runs: int = 60, **options: Any) -> Subject:
    copies, most = options.get("semantics") == "copies", options.get("max_flips")
    return Subject(
        name=f"PresentItems({guarantee!r}, {options})",
        make=lambda key: PresentItems(guarantee=guarantee, horizon=_TICKS, key=key, **options),
        feed=updates,
        truth=lambda inputs: present(inputs, copies, most),
        garbage=GARBAGE,
        wrong_calls=["abc", 7, None, {"insert": 1}, 1.5],
        ticks=_TICKS,
        growth=600,
        runs=runs,
    )


PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)

PERIOD_MECHANISMS: tuple[Subject, ...] = (
    _periods(CONCENTRATED, 2),
    _periods(PURE, 3, max_active_periods=1, horizon=None),
    _periods(CONCENTRATED, 4, so_far=True),
    _periods(APPROXIMATE, 1, neighbours="replace"),
    _periods(PURE, 3, so_far=True, max_active_periods=2, neighbours="replace"),
    _retention(CONCENTRATED, 2, 3),
    _retention(PURE, 1, 2),
    _retention(APPROXIMATE, 3, 2, neighbours="replace"),
    _present(CONCENTRATED, max_flips=2, runs=200),
    _present(CONCENTRATED, semantics="copies"),
    _present(PURE, max_flips=1),
    _present(CONCENTRATED, max_flips=3, neighbours="replace"),
    _present(CONCENTRATED, protects="event"),
)
