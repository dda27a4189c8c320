"""Active users in a spec: planned, certified, run, and refused with their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kind_runs import by_hand, hour, values, written
from visit_stream import save

from evertally.errors import ConfigurationError
from evertally.runtime import certificate, plain_words, plan, run

USERS = {"name": "visits", "horizon": 5, "unit": "user", "user_column": "patient"}
ACTIVE = {"name": "active", "kind": "active", "windows": [1, "3h"], "share": 0.5}
BY_WARD = {
    "name": "wards",
    "kind": "active_users",
    "windows": [2],
    "column": "ward",
    "categories": ["north", "south"],
    "other": "rest",
    "max_categories": 2,
    "share": 0.5,
}
VISITS = [(1, "ann", "north"), (1, "bob", "south"), (2, "ann", "south"), (3, None, "north"), (4, "cid", "moon")]


def test_active_users_in_a_spec(tmp_path: Path) -> None:
    spec = written(tmp_path, ACTIVE, BY_WARD, stream=USERS, guarantee={"rho": 100})
    rows = [{"time": hour(t, m), "patient": who, "ward": ward} for m, (t, who, ward) in enumerate(VISITS)]
    run(spec, save(rows, tmp_path / "events.jsonl"), until="2013-01-01T05:00:00Z")
    made = by_hand(
        spec,
        {
            "active": {"windows": [1, 3]},
            "wards": {"windows": [2], "by": ["north", "south"], "other": "rest", "max_categories": 2},
        },
    )
    for tick, found, wards in zip(range(1, 6), values(spec, "active"), values(spec, "wards"), strict=True):
        users = [who for at, who, _ in VISITS if at == tick]
        labels = [ward for at, _, ward in VISITS if at == tick]
        expected = made["active"].step_events(users).value
        assert found == {str(window): number for window, number in expected.items()}
        assert wards == made["wards"].step_events(labels, users=users).value


def test_what_a_plan_and_a_certificate_say(tmp_path: Path) -> None:
    spec = written(tmp_path, ACTIVE, BY_WARD, stream=USERS, guarantee={"rho": 0.5})
    assert {row.mechanism for row in plan(spec).queries} == {"path"}
    assert "whether there was an event in the last 1 and 3 ticks" in plain_words(spec)
    (active, _) = certificate(spec)["queries"]
    assert "users-and-domains 1.4, 1.5 and 2.3" in str(active["proved_in"])


def test_one_block_of_a_user_without_an_end(tmp_path: Path) -> None:
    block = {"name": "visits", "unit": "user-period", "period": "2h", "user_column": "patient"}
    spec = written(tmp_path, {**ACTIVE, "share": 1}, stream=block)
    assert "any one block of 2 ticks" in plain_words(spec)
    twice = written(tmp_path, {**ACTIVE, "kind": "active_users", "share": 1}, stream=block)
    assert spec.digest == twice.digest


@pytest.mark.parametrize(
    ("query", "stream", "words"),
    [
        ({**ACTIVE, "windows": ["90m"]}, USERS, "whole ticks"),
        ({**ACTIVE, "windows": []}, USERS, "must be a list of lengths"),
        ({**ACTIVE, "windows": [3, 1]}, USERS, "shortest first"),
        ({**ACTIVE, "column": "ward"}, USERS, "column needs categories"),
        ({**ACTIVE, "categories": ["north"]}, USERS, "categories needs column"),
        ({**ACTIVE, "max_categories": 1}, USERS, "max_categories needs categories"),
        (ACTIVE, {"name": "visits", "horizon": 5}, "user_column"),
        (ACTIVE, {"name": "visits", "unit": "user", "user_column": "patient"}, "horizon"),
    ],
)
def test_refused_with_its_line(tmp_path: Path, query: dict[str, Any], stream: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        plan(written(tmp_path, {**query, "share": 1}, stream=stream))
