"""Active users, for the conformance checks. Inputs are the users of a tick, or labels and users."""

from __future__ import annotations

from typing import Any

from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.users.active import ActiveUsers

_TICKS = 10
_WRONG = ["abc", 7, None, {"a": 1}, [1, 2]]
_WARDS = ["north", "south", "west"]


def comers(n: int) -> list[list[Any]]:
    """Users who come again after various gaps, some events without a user; a tick without events."""
    return [
        [f"u{(t * t + 5 * i) % 13}" for i in range(1 + t % 4)] * 2 + [None, t] if t % 5 != 3 else [] for t in range(n)
    ]


def placed(n: int) -> list[tuple[list[Any], list[Any]]]:
    names = [*_WARDS, "moon", None]
    return [
        ([names[(t * i + i) % 5] for i in range(t % 6 + 1)], [f"u{(t + 2 * i) % 9}" for i in range(t % 6 + 1)])
        for t in range(n)
    ]


def active_users(ticks: list[list[str]], windows: list[int], active: int | None = None) -> list[dict[int, int]]:
    """A plain model: the set of users of every tick, and unions of the last ones."""
    used: dict[str, int] = {}
    sets: list[set[str]] = []
    for users in ticks:
        here = {user for user in users if active is None or used.get(user, 0) < active}
        for user in here:
            used[user] = used.get(user, 0) + 1
        sets.append(here)
    return [
        {window: len(set().union(*sets[max(0, t - window) : t])) for window in windows} for t in range(1, len(sets) + 1)
    ]


def active_by(inputs: list[Any], windows: list[int], most: int, other: str | None) -> list[dict[str, int]]:
    """The same, with the first `most` categories of each user in a list."""
    labels = [*_WARDS, *([other] if other else [])]
    held: dict[str, list[str]] = {}
    ticks: list[dict[str, list[str]]] = []
    for events, users in inputs:
        here: dict[str, list[str]] = {label: [] for label in labels}
        for event, user in zip(events, users, strict=True):
            label = event if event in _WARDS else other if event is not None else None
            if label is None or user is None:
                continue
            mine = held.setdefault(str(user), [])
            if label not in mine and len(mine) < most:
                mine.append(label)
            if label in mine:
                here[label].append(str(user))
        ticks.append(here)
    by_label = {label: active_users([tick[label] for tick in ticks], windows) for label in labels}
    return [
        {f"{label}, {window}": by_label[label][t][window] for window in windows for label in labels}
        for t in range(len(ticks))
    ]


def _active(windows: list[int], horizon: int | None = _TICKS, runs: int = 150, **options: Any) -> Subject:
    def truth(inputs: list[Any]) -> list[Any]:
        named = [[str(user) for user in users if user is not None] for users in inputs]
        return active_users(named, windows, options.get("max_active"))

    return Subject(
        name=f"ActiveUsers({windows}, T={horizon}, {', '.join(f'{name}={value}' for name, value in options.items())})",
        make=lambda key: ActiveUsers(windows, horizon=horizon, key=key, **options),
        feed=comers,
        truth=truth,
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        owned=True,
        growth=600,
        runs=runs,
    )


def _by(windows: list[int], most: int, other: str | None, **options: Any) -> Subject:
    return Subject(
        name=f"ActiveUsers(by {most}, {windows}, other={other}, {', '.join(f'{n}={v}' for n, v in options.items())})",
        make=lambda key: ActiveUsers(
            windows, by=_WARDS, other=other, max_categories=most, horizon=_TICKS, key=key, **options
        ),
        feed=placed,
        truth=lambda inputs: active_by(inputs, windows, most, other),
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        owned=True,
        growth=600,
        runs=60,
    )


ACTIVE_MECHANISMS: tuple[Subject, ...] = (
    _active([1, 3], guarantee=ZCDP(0.5)),
    _active([2], guarantee=PureDP(1.0)),
    _active([9], guarantee=PureDP(1.0), mechanism="tree"),
    _active([3], guarantee=ZCDP(0.5), max_active=2),
    _active([1, 4], guarantee=ApproxDP(1.0, 1e-6), neighbours="replace", runs=80),
    _active([3], None, guarantee=ZCDP(0.5), unit="user-period", period=2, runs=80),
    _active([2], None, guarantee=PureDP(1.0), unit="event", runs=80),
    _by([2], 2, "rest", guarantee=ZCDP(0.5)),
)
