"""Ticks in one call, leaders that floats cannot tell, and what a ledger refuses: bugs that the rows must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.audit import leaders
from evertally.audit.at_once import at_once_attack
from evertally.audit.spec_down.overdrawn import overdrawn_report
from evertally.privacy import Ledger
from evertally.privacy._promise import Cost
from evertally.selection import noisy_max

CONTENT = {"stream": {"name": "s", "horizon": 9}, "guarantee": {"rho": 0.5}, "query": [{"name": "a", "share": 0.5}]}


def counter(key: Any) -> et.Counter:
    return et.Counter(guarantee=et.ZCDP(0.5), horizon=9, key=key)


def test_a_run_that_loses_a_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not at_once_attack(counter, [3, 0, 9]).leaked
    run: Callable[..., Any] = et.Counter.run

    def without_the_last(self: et.Counter, x: Any, **options: Any) -> Any:
        return run(self, [*x[:-1], 0], **options)

    monkeypatch.setattr(et.Counter, "run", without_the_last)
    found = at_once_attack(counter, [3, 0, 9])
    assert found.leaked
    assert "one key, one stream" in found.evidence


def test_users_come_tick_by_tick() -> None:
    def capped(key: Any) -> et.Counter:
        return et.Counter(guarantee=et.ZCDP(0.5), horizon=9, key=key, unit="user", max_events_per_user=2)

    assert not at_once_attack(capped, [3, 0, 9]).looked


def test_a_leader_by_the_middle_of_its_enclosure_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert leaders.wrong_leader() == ""

    def middle(scores: Any, scale: Any, variates: Any, count: int = 1) -> list[int]:
        noisy = scores + float(scale) * (variates.lower + variates.upper) / 2
        return [int(j) for j in np.argsort(-noisy)[:count]]

    monkeypatch.setattr(leaders, "noisy_argmax", middle)
    assert "lead" in leaders.wrong_leader()
    assert noisy_max.noisy_argmax is not middle


@pytest.mark.parametrize(
    ("place", "name", "wrong", "told"),
    [
        (Cost, "__add__", lambda one, other: one, "are said to cost"),
        (et.Stream, "__init__", None, "may be named ''"),
    ],
)
def test_what_is_not_refused_is_found(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, wrong: Any, told: str
) -> None:
    charges = [et.ZCDP(0.25)]
    assert overdrawn_report(CONTENT, et.ZCDP(0.5), 9, charges).passed
    if wrong is None:
        before = place.__init__

        def any_name(self: Any, given: Any, **options: Any) -> None:
            before(self, given or "nobody", **options)

        wrong = any_name
    monkeypatch.setattr(place, name, wrong)
    found = overdrawn_report(CONTENT, et.ZCDP(0.5), 9, charges)
    assert not found.passed
    assert told in found.stopped or "of it" in found.stopped


def test_a_ledger_that_lets_two_threads_in_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that are all let in at once, as if each had seen the same rest."""

    def always(self: Ledger, name: str, charge: Any) -> Any:
        self._entries[name] = charge
        return charge

    from evertally.audit.spec_down import overdrawn

    monkeypatch.setattr(Ledger, "promise", always)
    assert "threads had 4 times" in overdrawn._at_once(et.ZCDP(0.5))
