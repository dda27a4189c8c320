"""Erased users, in every statistic that knows users by name: gone, and never counted again (users-and-domains 9, 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evertally as et
from conformance import MECHANISMS
from evertally.checks.interruptions import interrupted, lines_of
from evertally.noise import ZeroNoise

_BEFORE, _TICKS = 4, 12  # a period ends with the last tick before the erasure
_KEY: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": _TICKS}
_CAPS: dict[str, Any] = {**_KEY, "unit": "user", "max_events_per_user": 9}

# What makes one, and the events of one user in one tick; None where only users count.
MADE: dict[str, tuple[Callable[..., Any], list[Any] | None]] = {
    "active": (lambda **key: et.ActiveUsers(windows=[1, 3], **_KEY, **key), None),
    "active, some ticks": (lambda **key: et.ActiveUsers(windows=[2], max_active=7, **_KEY, **key), None),
    "active, by": (lambda **key: et.ActiveUsers(windows=[2], by=["a", "b"], **_KEY, **key), ["a"]),
    "distinct": (lambda **key: et.DistinctUsers(**_KEY, **key), None),
    "distinct, some": (lambda **key: et.DistinctUsers(max_users=4, **_KEY, **key), None),
    "distinct, by": (lambda **key: et.DistinctUsers(by=["a", "b"], max_categories=2, **_KEY, **key), ["a", "b"]),
    "distinct, pages": (
        lambda **key: et.UnknownDistinctUsers(
            max_categories=2, **{**_KEY, "guarantee": et.ApproxDP(50.0, 1e-6)}, **key
        ),
        ["a", "b"],
    ),
    "period ends": (lambda **key: et.PeriodUsers(period=2, **_KEY, **key), None),
    "period so far": (lambda **key: et.PeriodUsers(period=4, so_far=True, **_KEY, **key), None),
    "some periods": (lambda **key: et.PeriodUsers(period=2, max_active_periods=5, **_KEY, **key), None),
    "retention": (lambda **key: et.Retention(period=2, ages=6, **_KEY, **key), None),
    "joined": (lambda **key: et.JoinedEvents(after=["a"], then=["b"], max_pairs=9, **_KEY, **key), ["a", "b"]),
    "sketch": (
        lambda **key: et.CountSketch(rows=1, width=8, max_labels_per_user=9, unit="user", **_KEY, **key),
        ["a", "b"],
    ),
    "prefixes": (
        lambda **key: et.HeavyPrefixes(
            symbols=2, rows=1, width=16, threshold=1, max_labels_per_user=9, unit="user", **_KEY, **key
        ),
        ["aa", "ab"],
    ),
    "sum": (lambda **key: et.RunningSum(lower=0, upper=5, max_total_per_user=50, unit="user", **_KEY, **key), [2]),
    "capped": (lambda **key: et.Counter(**_CAPS, **key), [1]),
    "capped quantiles": (lambda **key: et.ValueQuantile(edges=[0, 1, 2, 3], q=[0.5], **_CAPS, **key), [2]),
    "capped variance": (lambda **key: et.RunningVariance(lower=0, upper=3, **_CAPS, **key), [2]),
}


def begun(name: str, **key: Any) -> Any:
    return MADE[name][0](**({"key": ZeroNoise()} | key))


def step(mechanism: Any, name: str, users: list[str]) -> list[Any]:
    events = MADE[name][1]
    if events is None:
        mechanism.step_events(users)
    else:
        mechanism.step_events(events * len(users), users=[user for user in users for _ in events])
    if isinstance(mechanism, et.UnknownDistinctUsers):  # so few are never shown
        return mechanism._worker().table.counts.tolist()
    return np.asarray(mechanism._kept.played.recent[-1]).tolist()


def crowd(tick: int) -> list[str]:
    return ["bob"] * (tick % 2) + ["eve"] * (tick % 3)


def name_of(user: bytes, mechanism: Any) -> bool:
    return user in mechanism.snapshot()


@pytest.mark.parametrize("name", MADE)
def test_the_erased_are_as_if_silent_for_ever(name: str) -> None:
    erased, silent = begun(name), begun(name)
    for tick in range(1, _BEFORE + 1):
        assert step(erased, name, ["planted-ann", *crowd(tick)]) == step(silent, name, ["planted-ann", *crowd(tick)])
    assert name_of(b"planted-ann", erased)
    erased.erase(["planted-ann", "never-here"])
    for tick in range(_BEFORE + 1, _TICKS + 1):
        users = ["planted-ann", "never-here", *crowd(tick)]
        assert step(erased, name, users) == step(silent, name, crowd(tick)), tick
        assert not name_of(b"planted-ann", erased)
        assert not name_of(b"never-here", erased)
        if tick % 3 == 0:
            erased = et.restore(erased.snapshot(), key=ZeroNoise())


@pytest.mark.parametrize("name", MADE)
def test_who_is_not_erased_goes_on(name: str) -> None:
    """The test above is able to fail: it is not that nobody counts after an erasure."""
    erased, silent = begun(name), begun(name)
    for mechanism in (erased, silent):
        step(mechanism, name, ["ann"])
        mechanism.erase(["somebody"])
    assert any(step(erased, name, ["ann", "dora"]) != step(silent, name, []) for _ in range(5))


@pytest.mark.parametrize("name", ["period so far", "retention"])
def test_an_erasure_that_is_interrupted_at_any_line_can_be_done_again(name: str) -> None:
    def before() -> Any:
        mechanism = begun(name)
        for users in (["ann", "bob"], ["ann", "cid"], ["cid"]):
            step(mechanism, name, users)
        return mechanism

    def after(mechanism: Any) -> list[Any]:
        mechanism.erase(["ann", "dora"])
        return [*(step(mechanism, name, ["ann", "bob", "dora"]) for _ in range(3)), mechanism.snapshot()]

    expected, fresh = after(before()), before()
    for line in lines_of(lambda: fresh.erase(["ann", "dora"]))[1]:
        mechanism = before()
        assert interrupted(lambda: mechanism.erase(["ann", "dora"]), line)  # noqa: B023
        assert after(mechanism) == expected


def test_users_who_are_erased_in_a_period_that_runs() -> None:
    so_far, cohorts = begun("period so far"), begun("retention")
    assert step(so_far, "period so far", ["ann", "bob"]) == [2]
    step(cohorts, "retention", ["ann", "bob"])
    for mechanism in (so_far, cohorts):
        mechanism.erase(["ann"])
    assert step(so_far, "period so far", ["ann", "bob"]) == [2], "until the period is over"
    assert cohorts.step_events(["ann"]).value == {1: [1]}, "a cell that was not yet over is without them"


def test_more_erased_users_than_are_counted_at_all() -> None:
    few = et.DistinctUsers(max_users=2, key=ZeroNoise(), **_KEY)
    assert few.step_events(["ann"]).value == 1
    few.erase(["x", "y", "z"])
    assert few.step_events(["bob", "cid", "dora", "eve"]).value == 1


def test_items_are_not_users() -> None:
    items = et.PresentItems(key=ZeroNoise(), **_KEY)
    with pytest.raises(et.ConfigurationError, match=r"knows no users.*pseudonyms"):
        items.erase(["a1"])


def test_no_statistic_is_left_out() -> None:
    """Every class of the conformance suite that bounds users by itself."""
    kinds = {type(subject.make(ZeroNoise())) for subject in MECHANISMS if subject.owned}
    assert kinds <= {type(begun(name)) for name in MADE}
