"""Neighbours among many others, and beside what nobody can read: doors take other ways then, and bugs live there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evertally.audit.spec_down.search import LossSearch
from evertally.audit.spec_down.small import Small
from evertally.encode import cutting, user_table
from evertally.encode.door import EventDoor
from evertally.runtime.mechanisms import build
from evertally.runtime.table.given import spec_from

_WARD = {"name": "q", "kind": "histogram", "column": "ward", "categories": ["a", "b", "c", "d", "e"]}
_WARD |= {"max_per_event": 2, "max_weight": 2, "mechanism": "tree"}
_USERS = {"unit": "user", "user_column": "who", "max_events_per_user": 2}


def worst(query: dict[str, Any], **stream: Any) -> float:
    content = {"stream": {"name": "s", "horizon": 3, **stream}, "guarantee": {"rho": 0.5}, "query": [query]}
    spec = spec_from(content | {"clock": {"start": 0, "tick": 1}})
    return LossSearch(Small(spec, build(spec, None)["q"], 3), content["stream"], query).worst.lost


def forgetting(self: Any, size: int) -> None:
    now = self._now
    now.hidden = user_table.grown(now.hidden, size)
    now.columns = [c if size <= len(c) else np.zeros(2 * size, np.int64) for c in now.columns]


def test_a_cap_that_is_forgotten_when_its_table_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"name": "q", "kind": "counter", "mechanism": "tree"}
    assert worst(query, **_USERS) == pytest.approx(1, abs=1e-5)
    monkeypatch.setattr(user_table.UserTable, "_make_room", forgetting)
    assert worst(query, **_USERS) > 1.1


def test_what_many_events_are_cut_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worst(_WARD) == pytest.approx(1, abs=1e-5)
    real = cutting.compiled

    def one_more(name: str) -> Any:
        def keep(*arguments: Any) -> Any:
            *before, most, kept = arguments
            return real(name)(*before, most + 1, kept)

        return keep if name == "keep_first" else real(name)

    monkeypatch.setattr(cutting, "compiled", one_more)
    assert worst(_WARD) > 1.1


def test_weights_beside_what_is_strange(monkeypatch: pytest.MonkeyPatch) -> None:
    real = EventDoor._items

    def unclipped(self: Any, event: object) -> Any:
        largest = max(map(abs, event.values()), default=0) if isinstance(event, dict) else 1
        return dict.fromkeys(real(self, event), largest)

    monkeypatch.setattr(EventDoor, "_items", unclipped)
    assert worst(_WARD) > 1.1
