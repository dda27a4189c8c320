"""Statistics that bound a user by themselves, for the conformance checks. Inputs are the users of a tick, or labels and
users."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.users.distinct import DistinctUsers
from evertally.users.distinct_unknown import UnknownDistinctUsers
from evertally.users.joins import JoinedEvents

_TICKS = 8
_WRONG = ["abc", 7, None, {"a": 1}, [1, 2]]
_WARDS = ["north", "south", "west"]


def _shown(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())


def visitors(n: int) -> list[list[Any]]:
    """Some old users, some new ones, some events without a user; one tick without events."""
    return [[f"u{(3 * t + i) % 40}" for i in range(2 + t % 5)] + [None, t] if t % 7 != 3 else [] for t in range(n)]


def distinct(inputs: list[list[Any]], most: int | None = None) -> list[int]:
    """A plain model: a set of names."""
    seen: set[str] = set()
    found = []
    for tick in inputs:
        seen |= {str(user) for user in tick if user is not None}
        found.append(len(seen) if most is None else min(most, len(seen)))
    return found


def _users(**options: Any) -> Subject:
    bits, sample = options.get("bits"), options.get("sample")
    estimated = bits is not None or sample is not None
    return Subject(
        name=f"DistinctUsers({_shown(options)})",
        make=lambda key: DistinctUsers(key=key, **options),
        feed=visitors,
        truth=lambda inputs: distinct(inputs, options.get("max_users")),
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        owned=True,
        growth=600,
        runs=60,
        tolerance=12.0 if estimated else 0.0,  # users that share a bit, or are not in the sample
        bound=_bound_of_estimates if estimated else Subject.bound,
    )


def _bound_of_estimates(mechanism: Any, beta: float, t: int | None) -> float:
    # The chance of all ticks together, by the union over them: bounds of estimates are about one tick.
    return float(mechanism.error_bound(beta / _TICKS, tick=t, users=50))


def placed(n: int) -> list[tuple[list[Any], list[Any]]]:
    """Labels and users: some users come with several labels, some labels nobody declared."""
    names = [*_WARDS, "moon", "mars", None]
    return [
        ([names[(t * i + i) % 6] for i in range(t % 6 + 1)], [f"u{(t + 2 * i) % 17}" for i in range(t % 6 + 1)])
        for t in range(n)
    ]


def first_categories(inputs: list[Any], labels: list[str], other: str | None, most: int) -> list[dict[str, int]]:
    """A plain model: the first `most` columns of each user, in a list."""
    kept: dict[str, list[str]] = {}
    counts = dict.fromkeys([*labels, *([other] if other else [])], 0)
    found = []
    for events, users in inputs:
        for label, user in zip(events, users, strict=True):
            column = label if label in labels else other if label is not None else None
            mine = kept.setdefault(str(user), [])
            if column is not None and column not in mine and len(mine) < most:
                mine.append(column)
                counts[column] += 1
        found.append(dict(counts))
    return found


def _by(most: int, other: str | None, **options: Any) -> Subject:
    return Subject(
        name=f"DistinctUsers(by {most}, other={other}, {_shown(options)})",
        make=lambda key: DistinctUsers(by=_WARDS, other=other, max_categories=most, key=key, **options),
        feed=placed,
        truth=lambda inputs: first_categories(inputs, _WARDS, other, most),
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        owned=True,
        growth=600,
        runs=60,
    )


_PAGES = [f"page {j}" for j in range(5)]


def clicks(n: int) -> list[tuple[list[Any], list[Any]]]:
    """Pages with many visitors from the first tick on, whom later ticks bring again; a page of one visitor."""
    ticks = []
    for t in range(n):
        pairs = [(page, f"v{j} {i}") for j, page in enumerate(_PAGES) for i in range(40 if not t else 3)]
        pairs += [(page, f"w{j} {t} {i}") for j, page in enumerate(_PAGES) for i in range(2)]
        pairs += [("lonely", f"only {t}"), ("page 0", None), (None, "nobody")]
        ticks.append(([page for page, _ in pairs], [user for _, user in pairs]))
    return ticks


def visitors_of(inputs: list[Any]) -> list[dict[str, int]]:
    seen: set[tuple[str, str]] = set()
    found = []
    for events, users in inputs:
        seen |= {(e, u) for e, u in zip(events, users, strict=True) if e is not None and u is not None}
        found.append({page: sum(1 for one, _ in seen if one == page) for page in {page for page, _ in seen}})
    return found


def _error(value: dict[str, int], exact: dict[str, int]) -> NDArray[np.float64]:
    return np.array([value[page] - exact[page] for page in _PAGES], dtype=np.float64)


def _pages(guarantee: Any, **options: Any) -> Subject:
    return Subject(
        name=f"UnknownDistinctUsers({guarantee!r}, {_shown(options)})",
        make=lambda key: UnknownDistinctUsers(guarantee=guarantee, horizon=_TICKS, radix=2, key=key, **options),
        feed=clicks,
        truth=visitors_of,
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        owned=True,
        growth=2**15,
        error=_error,
        bound=lambda mechanism, beta, t: float(mechanism.error_bound(beta, tick=t, items=len(_PAGES))),
        noise="items",
        labels=lambda mechanism, inputs: set(visitors_of(inputs)[-1]),
        runs=40,
    )


def followed(inputs: list[Any], most: int) -> list[dict[str, int]]:
    """A plain model: who has been north, and how often he was elsewhere since."""
    been: dict[str, int] = {}
    counts, found = {"south": 0, "west": 0}, []
    for events, users in inputs:
        for label, user in zip(events, users, strict=True):
            if label == "north":
                been.setdefault(str(user), 0)
            elif label in counts and been.get(str(user), most) < most:
                been[str(user)] += 1
                counts[label] += 1
        found.append(dict(counts))
    return found


def _joined(most: int, **options: Any) -> Subject:
    return Subject(
        name=f"JoinedEvents({most}, {_shown(options)})",
        make=lambda key: JoinedEvents(after=["north"], then=["south", "west"], max_pairs=most, key=key, **options),
        feed=placed,
        truth=lambda inputs: followed(inputs, most),
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        owned=True,
        growth=600,
        runs=60,
    )


_CONCENTRATED: dict[str, Any] = {"guarantee": ZCDP(0.5), "horizon": _TICKS, "mechanism": "tree"}

USER_MECHANISMS: tuple[Subject, ...] = (
    _users(guarantee=ZCDP(0.5), horizon=_TICKS),
    _users(guarantee=PureDP(1.0), horizon=None, mechanism="epoch-tree", unit="event", max_window=3),
    _users(guarantee=ApproxDP(1.0, 1e-6), horizon=_TICKS, unit="user-period", period=3),
    _users(max_users=7, **_CONCENTRATED),
    _users(bits=256, **_CONCENTRATED),
    _users(sample="3/4", **_CONCENTRATED),
    _by(2, "rest", neighbours="replace", **_CONCENTRATED),
    _by(1, None, guarantee=PureDP(1.0), horizon=_TICKS, mechanism="tree"),
    _joined(2, neighbours="replace", **_CONCENTRATED),
    _pages(ApproxDP(20.0, 1e-6), max_categories=2, sticky=True, neighbours="replace"),
    _pages(ApproxDP(20.0, 1e-6), max_categories=2, max_labels=500),
)
