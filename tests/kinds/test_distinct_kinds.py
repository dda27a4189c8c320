"""Kinds of distinct users: from the words of a spec to counts of people, who need no cap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kind_runs import hour, values, written
from visit_stream import save

from evertally.errors import ConfigurationError
from evertally.runtime import certificate, plan, run

USERS = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "who"}
WARD: dict[str, Any] = {"column": "ward", "categories": ["north", "south"]}
SPEC: list[dict[str, Any]] = [
    {"name": "all", "kind": "distinct"},
    {"name": "first", "kind": "distinct_users", **WARD, "other": "elsewhere"},
    {"name": "both", "kind": "distinct", **WARD, "max_categories": 2},
    {"name": "three", "kind": "distinct", "max_users": 3},
    {"name": "half", "kind": "distinct", "sample": "1"},
    {"name": "map", "kind": "distinct", "bits": 65536},
]
# (tick, who, ward)
VISITS: list[tuple[int, Any, Any]] = [
    (1, "ann", "north"),
    (1, "bob", "attic"),
    (1, "ann", "south"),
    (2, None, "north"),
    (2, "bob", "south"),
    (2, "cid", None),
    (4, "dan", "south"),
    (4, "cid", "south"),
]


def rows() -> list[dict[str, Any]]:
    return [{"time": hour(t, i), "who": who, "ward": ward} for i, (t, who, ward) in enumerate(VISITS)]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_every_way_counts_what_a_file_holds(tmp_path: Path, suffix: str) -> None:
    spec = written(tmp_path, *SPEC, stream=USERS)
    assert len(plan(spec).queries) == len(SPEC)
    run(spec, save(rows(), tmp_path / f"events{suffix}"), until=hour(5))
    assert values(spec, "all") == values(spec, "half") == values(spec, "map") == [2, 3, 3, 4]
    assert values(spec, "three") == [2, 3, 3, 3]
    assert values(spec, "first")[-1] == {"north": 1, "south": 2, "elsewhere": 1}
    assert values(spec, "both") == [
        {"north": 1, "south": 1},
        {"north": 1, "south": 2},
        {"north": 1, "south": 2},
        {"north": 1, "south": 4},
    ]


def test_every_spelling_is_one_stream(tmp_path: Path) -> None:
    digests = {
        written(tmp_path, {"name": "all", "kind": kind}, stream=USERS).digest for kind in ("distinct", "distinct_users")
    }
    assert len(digests) == 1


def test_categories_are_bars(tmp_path: Path) -> None:
    queries = written(tmp_path, *SPEC[:2], stream=USERS).queries
    assert [query.record.card.view_of(query.parameters) for query in queries] == ["figure", "bars"]


def test_a_certificate_says_what_counts_of_a_user(tmp_path: Path) -> None:
    told = str(certificate(written(tmp_path, *SPEC, stream=USERS)))
    for words in ("the first event", "the first 2 categories, each once", "one bit, set once", "users-and-domains 2.1"):
        assert words in told


def test_pages_that_nobody_listed(tmp_path: Path) -> None:
    query = {"name": "pages", "kind": "unknown-distinct", "column": "page", "max_categories": 2}
    spec = written(tmp_path, query, stream=USERS, guarantee={"epsilon": 100, "delta": 1e-6})
    visits = [("home", f"v{i}") for i in range(60)] * 2 + [("secret", "ann")] * 50
    lines = [{"time": hour(1, i % 60), "who": who, "page": page} for i, (page, who) in enumerate(visits)]
    run(spec, save(lines, tmp_path / "events.jsonl"), until=hour(2))
    assert list(values(spec, "pages")[0]) == ["home"]
    assert abs(values(spec, "pages")[0]["home"] - 60) < 10


@pytest.mark.parametrize(
    ("query", "stream", "told"),
    [
        ({"column": "ward"}, {}, "go together"),
        ({"categories": ["north"]}, {}, "go together"),
        ({"bits": 65536, "max_users": 9}, {}, "do not go together"),
        ({**WARD, "max_categories": 3}, {}, "max_categories"),
        ({}, {"max_events_per_user": 3}, "not needed"),
        ({**WARD}, {"unit": "event"}, "unit"),
    ],
)
def test_what_is_refused(tmp_path: Path, query: dict[str, Any], stream: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        plan(written(tmp_path, {"name": "all", "kind": "distinct", **query}, stream=USERS | stream))
