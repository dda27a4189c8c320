"""Several ticks of a cap at once: who is forgotten, or counted as of another tick, is seen; the product is the same."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from evertally.audit.ways.ticks_of_caps import KINDS, wrong_kinds, wrong_ticks
from evertally.encode.caps import Cap
from evertally.encode.user_table import UserTable


def test_the_product_keeps_the_same_of_several_ticks() -> None:
    assert wrong_kinds() == ""


def test_every_kind_of_cap_is_tried() -> None:
    assert {type(new()) for new in KINDS.values()} == set(Cap.__subclasses__())


def test_one_field_is_remembered(monkeypatch: Any) -> None:
    honest = UserTable.write

    def first_field(self: UserTable, number: int, *given: Any) -> None:
        if number == 0 or sys._getframe(1).f_code.co_name != "_keep_at_once":
            honest(self, number, *given)

    monkeypatch.setattr(UserTable, "write", first_field)
    assert "separated ticks: several ticks in" in wrong_kinds()


def test_several_ticks_that_all_count_as_the_first(monkeypatch: Any) -> None:
    honest = Cap._keep_at_once

    def as_one(self: Any, users: Any, edges: Any) -> Any:
        kept = honest(self, users, edges)
        self.last = replace(self.last, tick=edges[0][0])
        return kept

    monkeypatch.setattr(Cap, "_keep_at_once", as_one)
    assert "events of a user: several ticks in" in wrong_kinds()


def test_the_last_tick_of_several_is_forgotten(monkeypatch: Any) -> None:
    honest = Cap.keep_ticks

    def all_but_the_last(self: Any, users: Any, edges: Any) -> Any:
        kept = honest(self, users, edges)
        self.last = replace(self.last, after=self.last.before) if len(edges) > 1 else self.last
        return kept

    monkeypatch.setattr(Cap, "keep_ticks", all_but_the_last)
    assert "events of a user: several ticks in" in wrong_kinds()


def test_the_first_tick_of_a_call_is_forgotten_where_a_cap_was_put_away(monkeypatch: Any) -> None:
    honest = Cap._keep_at_once

    def forgetful(self: Any, users: Any, edges: Any) -> Any:
        kept = honest(self, users, edges)
        kept[slice(*edges[0][1:])] |= self._put_away
        return kept

    restored = Cap.from_bytes.__func__  # type: ignore[attr-defined]

    def marked(cls: Any, blob: bytes) -> Any:
        cap = restored(cls, blob)
        cap._put_away = True
        return cap

    monkeypatch.setattr(Cap, "_put_away", False, raising=False)
    monkeypatch.setattr(Cap, "_keep_at_once", forgetful)
    monkeypatch.setattr(Cap, "from_bytes", classmethod(marked))
    assert "put away between them keep other events" in wrong_ticks(KINDS["events of a user"])


def test_the_answer_to_a_call_alone_is_wrong(monkeypatch: Any) -> None:
    honest = Cap._keep_at_once
    monkeypatch.setattr(Cap, "_keep_at_once", lambda self, *given: honest(self, *given) & np.True_ ^ True)
    assert "in one call keep other events" in wrong_kinds()
