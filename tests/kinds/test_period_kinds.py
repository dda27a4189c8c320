"""Users of periods, retention and present items in a spec: planned, certified, run, and refused with their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kind_runs import by_hand, hour, values, written
from visit_stream import save

from evertally.errors import ConfigurationError
from evertally.runtime import certificate, plain_words, plan, run

USERS = {"name": "visits", "horizon": 6, "unit": "user", "user_column": "patient"}
LOUD = {"rho": 100}
RETURNING = {"name": "returning", "kind": "retention", "period": "2h", "ages": 2, "share": 0.4}
ENDED = {"name": "ended", "kind": "period_users", "period": 2, "share": 0.3}
TODAY = {"name": "today", "kind": "period_users", "period": "2h", "so_far": True, "share": 0.3}
VISITS = [(1, "ann"), (1, "bob"), (2, "ann"), (3, "ann"), (3, "cid"), (4, None), (5, "bob"), (5, "cid"), (6, "cid")]


def visits() -> list[dict[str, Any]]:
    return [{"time": hour(tick, minute), "patient": patient} for minute, (tick, patient) in enumerate(VISITS)]


def test_users_of_periods_in_a_spec(tmp_path: Path) -> None:
    spec = written(tmp_path, RETURNING, ENDED, TODAY, stream=USERS, guarantee=LOUD)
    events = save(visits(), tmp_path / "events.jsonl")
    run(spec, events, until="2013-01-01T06:00:00Z")
    made = by_hand(
        spec,
        {
            "returning": {"period": 2, "ages": 2, "by_cell": True},
            "ended": {"period": 2},
            "today": {"period": 2, "so_far": True},
        },
    )
    ticks = [[patient for at, patient in VISITS if at == tick] for tick in range(1, 7)]
    for name, mechanism in made.items():
        assert values(spec, name) == [mechanism.step_events(users).value for users in ticks]
    assert [list(found) for found in values(spec, "returning")[1:4]] == [
        ["cohort 1, age 0"],
        ["cohort 1, age 0"],
        ["cohort 1, age 0", "cohort 1, age 1", "cohort 2, age 0"],
    ]


def test_what_a_plan_and_a_certificate_say(tmp_path: Path) -> None:
    spec = written(tmp_path, RETURNING, ENDED, TODAY, stream=USERS)
    assert {row.mechanism for row in plan(spec).queries} <= {"centred", "independent"}
    assert "every period counts once" in plain_words(spec)
    filed = {query["name"]: query for query in certificate(spec)["queries"]}
    assert "users-and-domains" in str(filed["returning"]["proved_in"])


SEATS = {"name": "seats", "kind": "present", "action": "what", "id": "seat", "max_flips": 2}
UPDATES = [(1, "insert", "a"), (1, "insert", "b"), (2, "delete", "a"), (3, "insert", "a"), (3, "vanish", "b")]


def test_present_items_in_a_spec(tmp_path: Path) -> None:
    again = {"name": "any", "kind": "present_items", "action": "what", "id": "seat", "semantics": "copies"}
    spec = written(tmp_path, {**SEATS, "share": 0.5}, {**again, "share": 0.5}, guarantee=LOUD)
    rows = [{"time": hour(t, m), "what": what, "seat": seat} for m, (t, what, seat) in enumerate(UPDATES)]
    run(spec, save(rows, tmp_path / "events.jsonl"), until="2013-01-01T03:00:00Z")
    made = by_hand(spec, {"seats": {"max_flips": 2}, "any": {"semantics": "copies"}})
    ticks = [[(what, None, seat) for at, what, seat in UPDATES if at == tick] for tick in (1, 2, 3)]
    for name, mechanism in made.items():
        assert values(spec, name) == [mechanism.step(records).value for records in ticks]
    assert "a name in the column 'seat'" in str(plain_words(spec))


@pytest.mark.parametrize(
    ("query", "stream", "words"),
    [
        ({**ENDED, "column": "ward"}, USERS, "is not needed"),
        ({**ENDED, "period": "90m"}, USERS, "period"),
        ({"name": "x", "kind": "retention", "period": 2}, USERS, "ages"),
        (ENDED, {"name": "visits", "horizon": 6}, "user_column"),
        ({**SEATS, "column": "ward"}, {"name": "visits", "horizon": 6}, "is not needed"),
        ({**SEATS, "protects": "event"}, {"name": "visits", "horizon": 6}, "all later presence"),
        (SEATS, USERS, 'needs .stream. unit = "event"'),
    ],
)
def test_refused_with_its_line(tmp_path: Path, query: dict[str, Any], stream: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        plan(written(tmp_path, {**query, "share": 1}, stream=stream))
