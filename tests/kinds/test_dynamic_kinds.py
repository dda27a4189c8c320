"""Kinds of what is present now: from the words of a spec to counts that go up and down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from visit_stream import save

from evertally.errors import ConfigurationError
from evertally.kinds import find
from evertally.kinds.dynamic import records
from evertally.runtime import Asked, certificate, load_spec, plain_words, plan, run
from evertally.runtime.spec import StreamSpec
from spec_text import ALL, spec_text

LOUD = {"rho": 1e9}  # the noise of one visit is zero then, all but surely
PRESENT = {"name": "present", "kind": "dynamic_count", "action": "what", "id": "visit"}
WARDS = {
    "name": "wards",
    "kind": "dynamic_histogram",
    "column": "ward",
    "categories": ["north", "south"],
    "other": "elsewhere",
    "action": "what",
    "id": "visit",
}
# (hour, what, visit, ward): the last hour has what a door must drop
UPDATES: list[tuple[int, Any, Any, Any]] = [
    (1, "insert", "a", "north"),
    (1, "insert", "b", "south"),
    (1, "insert", "c", "attic"),
    (2, "delete", "a", None),
    (2, "insert", "d", "north"),
    (3, "delete", "b", "north"),
    (3, "delete", "c", None),
    (4, "delete", "a", None),  # is gone already
    (4, "insert", "b", "south"),  # has lived already
    (4, "insert", "d", "south"),  # is there already
    (4, "delete", "nobody", None),
    (4, "vanish", "d", None),
    (4, None, "d", "north"),
    (4, "insert", None, "north"),
]
TOTALS = [3, 3, 1, 1]
BY_WARD = [(1, 1, 1), (1, 1, 1), (1, 0, 0), (1, 0, 0)]


def rows(updates: list[tuple[int, Any, Any, Any]] = UPDATES, **words: Any) -> list[dict[str, Any]]:
    return [
        {
            "time": f"2013-01-01T{hour - 1:02d}:{minute:02d}:00Z",
            "what": words.get(what, what),
            "visit": visit,
            "ward": ward,
        }
        for minute, (hour, what, visit, ward) in enumerate(updates)
    ]


def written(folder: Path, *queries: dict[str, Any], **sections: Any) -> StreamSpec:
    path = folder / "visits.toml"
    path.write_text(spec_text(*queries, **{"guarantee": LOUD, **sections}))
    return load_spec(path)


def values(spec: StreamSpec, query: str) -> list[Any]:
    """The values of a query, tick by tick; tuples where there are several."""
    assert spec.output_file is not None
    by_tick: dict[int, list[Any]] = {}
    for line in spec.output_file.read_text().splitlines():
        row = json.loads(line)
        if row["query"] == query:
            by_tick.setdefault(row["tick"], []).append(row["value"])
    return [tuple(found) if len(found) > 1 else found[0] for _, found in sorted(by_tick.items())]


UNTIL = "2013-01-01T04:00:00Z"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_what_is_present_goes_up_and_down_whatever_the_file(tmp_path: Path, suffix: str) -> None:
    spec = written(tmp_path, PRESENT, WARDS)
    run(spec, save(rows(), tmp_path / f"events{suffix}"), until=UNTIL)
    assert values(spec, "present") == TOTALS
    assert values(spec, "wards") == BY_WARD


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"insert": "in", "delete": "out"}, {"insert": "in", "delete": "out"}),
        ({}, {"insert": True, "delete": False}),
        ({}, {"insert": 1, "delete": -1}),
        ({"insert": 3, "delete": "caf\u00e9"}, {"insert": 3.0, "delete": "cafe\u0301"}),
    ],
)
def test_the_words_of_a_source(tmp_path: Path, words: dict[str, Any], said: dict[str, Any]) -> None:
    spec = written(tmp_path, {**PRESENT, **words})
    run(spec, save(rows(**said), tmp_path / "events.jsonl"), until=UNTIL)
    assert values(spec, "present") == TOTALS


def test_declared_words_replace_the_usual_ones() -> None:
    words = {"insert": "in", "delete": "out"}
    cells = {"action": ["insert", True, "in", 1, [], "out"], "id": list("abcdef")}
    assert [action for action, _, _ in records(6, cells, words)] == [None, None, "insert", None, None, "delete"]
    truth = {"insert": True, "delete": 1}
    assert [action for action, _, _ in records(2, {"action": [1, True], "id": [1, 2]}, truth)] == ["delete", "insert"]
    assert records(0, {"action": [], "id": []}, {}) == []


def test_items_that_only_come_go_by_themselves(tmp_path: Path) -> None:
    there = {"name": "present", "kind": "dynamic_count", "id": "visit", "max_lifetime": 2}
    spec = written(tmp_path, there)
    came = [(1, None, "a", None), (1, None, "b", None), (2, None, "c", None), (4, None, "d", None)]
    run(spec, save(rows(came), tmp_path / "events.csv"), until=UNTIL)
    assert values(spec, "present") == [2, 3, 1, 1]


def test_without_names(tmp_path: Path) -> None:
    by_value = {**WARDS, "identity": "value", "protects": "event"}
    raw = {"name": "raw", "kind": "dynamic_count", "action": "what", "identity": "raw", "protects": "event"}
    del by_value["id"]
    spec = written(tmp_path, by_value, raw)
    updates = [(1, "insert", None, "north"), (2, "delete", None, "south"), (3, "delete", None, "north")]
    run(spec, save(rows([*updates, (4, "insert", None, "attic")]), tmp_path / "events.jsonl"), until=UNTIL)
    assert values(spec, "wards") == [(1, 0, 0), (1, 0, 0), (0, 0, 0), (0, 0, 1)], "none of the south was there"
    assert values(spec, "raw") == [1, 0, -1, 0], "every deletion counts"


def test_a_run_that_is_cut_in_two_goes_on(tmp_path: Path) -> None:
    spec = written(tmp_path, PRESENT, WARDS)
    run(spec, save(rows(UPDATES[:4]), tmp_path / "first.csv"), until="2013-01-01T02:00:00Z")
    run(spec, save(rows(UPDATES)[4:], tmp_path / "second.parquet"), until=UNTIL, asked=Asked(late="count"))
    assert values(spec, "present") == [3, 2, *TOTALS[2:]], "the insertion of d came late"
    assert values(spec, "wards")[2:] == BY_WARD[2:]


@pytest.mark.parametrize(
    ("change", "without", "problem"),
    [
        ({}, "id", "needs 'id', the column that names the item"),
        ({"identity": "raw"}, None, 'id names items; with identity = "raw" they have no names'),
        ({"identity": "token"}, None, "identity must be one of 'id', 'value', 'raw'"),
        ({}, "action", "needs 'action'"),
        ({"insert": "in"}, None, "insert and delete go together"),
        ({"insert": 7, "delete": "7"}, None, "delete must be another word"),
        ({"column": "ward"}, None, "column is not needed: a count reads no value"),
        ({"categories": ["north"]}, None, "has no option 'categories'"),
        ({"protects": "user"}, None, "protects must be one of 'event', 'item'"),
        ({"lifetimes": 0}, None, "lifetimes must be an integer of at least 1"),
        ({"identity": "raw"}, "id", 'identity="raw" cannot protect items'),
        ({"unique_deletions": True}, None, "unique_deletions belongs to"),
        ({"mechanism": "magic"}, None, "unknown mechanism 'magic'"),
    ],
)
def test_what_is_refused_says_where_and_why(
    tmp_path: Path, change: dict[str, Any], without: str | None, problem: str
) -> None:
    query = {name: value for name, value in {**PRESENT, **change}.items() if name != without}
    with pytest.raises(ConfigurationError, match=r"visits\.toml:\d+: ") as refused:
        plan(written(tmp_path, query))
    assert problem in str(refused.value)


def test_one_stream_makes_one_promise(tmp_path: Path) -> None:
    """An event that a counter counts by itself is half of an item: what the two pay does not add up."""
    other = {**PRESENT, "name": "other", "id": "patient"}
    for beside in (ALL, other, {**WARDS, "protects": "event"}):
        for queries in ((PRESENT, beside), (beside, PRESENT)):
            with pytest.raises(ConfigurationError, match="a promise about items"):
                written(tmp_path, *queries)
    users = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "patient", "max_events_per_user": 3}
    with pytest.raises(ConfigurationError, match=r'protects = "item" needs \[stream\] unit = "event"'):
        written(tmp_path, PRESENT, stream=users)
    for queries in ((PRESENT, WARDS), (ALL, {**PRESENT, "protects": "event"})):
        plan(written(tmp_path, *queries))
    plan(written(tmp_path, {**PRESENT, "protects": "event"}, ALL, stream=users))


def test_users_are_capped(tmp_path: Path) -> None:
    users = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "patient", "max_events_per_user": 3}
    spec = written(tmp_path, {**PRESENT, "protects": "event"}, stream=users)
    updates = [(1, "insert", name, None) for name in "abcd"] + [(2, "delete", "a", None)]
    found = [{**row, "patient": "ann" if row["visit"] in "abc" else "bob"} for row in rows(updates)]
    run(spec, save(found, tmp_path / "events.csv"), until="2013-01-01T02:00:00Z")
    assert values(spec, "present") == [4, 4], "the deletion is the fourth event of ann"


def test_the_certificate_says_what_one_unit_is(tmp_path: Path) -> None:
    filed = certificate(written(tmp_path, PRESENT, WARDS, guarantee={"rho": 0.5}))
    assert filed["unit"]["protects"] == "item"
    assert "a name in the column 'visit'" in filed["neighbours"]["meaning"]
    assert "An item is one name in the column 'visit'" in " ".join(filed["assumptions"])
    for query in filed["queries"]:
        assert query["protects"] == "one item: its insertion and everything that names it"
        assert query["made_by"] == "evertally"
        assert query["mechanism"] == "linear"
        assert query["proved_in"]["mechanism"].startswith("dynamic-data 13.1")
        assert query["proved_in"]["change_of_one_unit"].startswith("dynamic-data")
        assert query["error_bound"] > query["stddev"] > 0
    assert [query["in_plain_words"] for query in filed["queries"]] == ["Present now", "Present now, by ward"]
    assert filed["composition"]["within_guarantee"] is True
    words = plain_words(written(tmp_path, PRESENT))
    assert "whether any one item (a name in the column 'visit') was ever there" in words
    assert "A person with many items is protected less" in words
    events = certificate(written(tmp_path, ALL, {**PRESENT, "protects": "event"}))
    assert events["unit"]["protects"] == "event"
    assert [query["protects"] for query in events["queries"]] == [
        "one event",
        "one update: an insertion or a deletion",
    ]
    assert "whether any one event happened" in events["in_plain_words"]
    replaced = {"name": "visits", "horizon": 48, "neighbours": "replace"}
    assert (
        "is replaced by another one"
        in certificate(written(tmp_path, PRESENT, stream=replaced))["neighbours"]["meaning"]
    )


def test_an_event_costs_more_than_an_item(tmp_path: Path) -> None:
    """A name from outside whose first insertion is missing may begin another life (dynamic-data 6.3)."""
    item, event = (
        plan(written(tmp_path, {**PRESENT, "protects": unit}, guarantee={"rho": 0.5})).queries[0].stddev
        for unit in ("item", "event")
    )
    assert item is not None
    assert event == pytest.approx(2 * item, rel=0.01)


def test_kinds_know_their_cards() -> None:
    for name, view, words in (
        ("dynamic_count", "figure", "Present now"),
        ("dynamic_histogram", "bars", "Present now, by ward"),
    ):
        kind = find(name)
        assert kind is not None
        assert (kind.card.view, kind.card.shown("ward", {})) == (view, words)


def test_names_may_be_declared_as_numbers(tmp_path: Path) -> None:
    columns = {"time": "time", "what": "text", "visit": "integer"}
    assert written(tmp_path, PRESENT, events=columns).columns() == list(columns)
    with pytest.raises(ConfigurationError, match="visit is \"number\", but the dynamic_count 'present' reads"):
        written(tmp_path, PRESENT, events={**columns, "visit": "number"})
