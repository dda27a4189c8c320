"""Ranges and linear queries of what is present, from the words of a spec to the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from visit_stream import save

from evertally.errors import ConfigurationError
from evertally.runtime import certificate, load_spec, plan, run
from evertally.runtime.spec import StreamSpec
from spec_text import spec_text

UPDATES = {"action": "what", "id": "visit"}
AGES = {"name": "ages", "kind": "dynamic_range", **UPDATES, "column": "age"}
LINEAR = {"name": "asked", "kind": "linear_queries", **UPDATES}
# (hour, what, visit, ward, age, floor)
CAME = [
    (1, "insert", "a", "north", 3, 0),
    (1, "insert", "b", "south", 70, 2),
    (1, "insert", "c", "south", 17, 1),
    (2, "delete", "a", None, None, None),
    (2, "insert", "d", "north", 99, 3),
    (2, "insert", "e", "north", 100, 3),  # outside of everything declared, like the next
    (2, "insert", "f", "attic", -1, None),
    (3, "delete", "b", None, None, None),
]
UNTIL = "2013-01-01T03:00:00Z"


def rows() -> list[dict[str, Any]]:
    names = ("what", "visit", "ward", "age", "floor")
    return [
        {"time": f"2013-01-01T{hour - 1:02d}:10:00Z", **dict(zip(names, rest, strict=True))} for hour, *rest in CAME
    ]


def written(folder: Path, *queries: dict[str, Any], **sections: Any) -> StreamSpec:
    """The noise of one visit is zero under this promise, all but surely."""
    path = folder / "visits.toml"
    path.write_text(spec_text(*queries, **{"guarantee": {"rho": 1e9}, **sections}))
    return load_spec(path)


def answers(spec: StreamSpec, source: Path) -> list[dict[str, Any]]:
    """What is released of the only query, tick by tick."""
    run(spec, source, until=UNTIL)
    assert spec.output_file is not None
    found: dict[int, dict[str, Any]] = {}
    for row in map(json.loads, spec.output_file.read_text().splitlines()):
        found.setdefault(row["tick"], {})[row["category"]] = row["value"]
    return list(found.values())


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_ranges_by_size(tmp_path: Path, suffix: str) -> None:
    spec = written(tmp_path, {**AGES, "size": 100, "ranges": [[0, 17], [65, 99], [17, 17], "all"]})
    assert spec.queries[0].categories == ["0..17", "65..99", "17", "all"]
    assert answers(spec, save(rows(), tmp_path / f"events{suffix}")) == [
        {"0..17": 2, "65..99": 1, "17": 1, "all": 3},
        {"0..17": 1, "65..99": 2, "17": 1, "all": 3},
        {"0..17": 1, "65..99": 1, "17": 1, "all": 2},
    ]


def test_ranges_by_edges(tmp_path: Path) -> None:
    path = tmp_path / "visits.toml"
    text = spec_text({**AGES, "edges": [0, 18, 65, 12345], "ranges": [[0, 18], [65, 12345]]}, guarantee={"rho": 1e9})
    path.write_text(text.replace("12345", "inf"))
    spec = load_spec(path)
    assert spec.queries[0].parameters["edges"] == [0.0, 18.0, 65.0, "inf"], "JSON has no infinity"
    found = answers(spec, save(rows(), tmp_path / "events.csv"))
    assert found == [{"[0, 18)": a, "[65, inf)": b} for a, b in ((2, 1), (1, 3), (1, 2))]
    assert written(tmp_path, {**AGES, "edges": [0, 18.5]}).queries[0].categories == ["all"]


def test_boxes_of_two_columns(tmp_path: Path) -> None:
    boxes = {**LINEAR, "columns": ["age", "floor"], "family": {"kind": "boxes", "shape": [100, 4]}}
    spec = written(tmp_path, {**boxes, "show": {"upstairs": ["all", [1, 3]], "old": [[65, 99], "all"]}})
    assert spec.columns() == ["time", "age", "floor", "what", "visit"]
    assert answers(spec, save(rows(), tmp_path / "events.parquet")) == [
        {"upstairs": 2, "old": 1},
        {"upstairs": 3, "old": 2},
        {"upstairs": 2, "old": 1},
    ]
    by_list = written(tmp_path, {**boxes, "show": [["all", [1, 3]]]})
    assert by_list.queries[0].categories == ["all x 1..3"]
    other = written(tmp_path, {**boxes, "show": {"old": [[65, 99], "all"], "upstairs": ["all", [1, 3]]}})
    assert other.queries[0].categories == ["old", "upstairs"]
    assert other.digest != spec.digest, "the order of answers is part of what a key is bound to"


def rows_of_tables() -> list[dict[str, Any]]:
    return [
        {**row, "patient": None if row["ward"] is None else {"ward": row["ward"], "floor": row["floor"]}}
        for row in rows()
    ]


def test_marginals_of_a_table(tmp_path: Path) -> None:
    family = {"kind": "marginals", "attributes": {"ward": ["north", "south"], "floor": 4}, "order": 1}
    spec = written(
        tmp_path, {**LINEAR, "column": "patient", "family": family, "show": [{"ward": "south"}, {"floor": 3}]}
    )
    found = answers(spec, save(rows_of_tables(), tmp_path / "events.jsonl"))
    assert found == [{"ward=south": 2, "floor=3": 0}, {"ward=south": 2, "floor=3": 2}, {"ward=south": 1, "floor=3": 2}]


def test_declared_queries_are_real_numbers(tmp_path: Path) -> None:
    family = {"kind": "queries", "universe": ["north", "south"], "queries": {"warm": [0.25, 1], "cold": [0.5, 0]}}
    spec = written(tmp_path, {**LINEAR, "column": "ward", "family": family})
    assert spec.queries[0].categories == ["warm", "cold"]
    first, *_, last = answers(spec, save(rows(), tmp_path / "events.csv"))
    assert first == pytest.approx({"warm": 2.25, "cold": 0.5}, abs=0.01)
    assert last == pytest.approx({"warm": 1.5, "cold": 1.0}, abs=0.01)


def test_half_spaces(tmp_path: Path) -> None:
    points = [[age, floor] for age in (3, 17, 70, 99) for floor in range(4)]
    family = {"kind": "half_spaces", "points": points, "declared": [[[1, 10], 50]]}
    spec = written(tmp_path, {**LINEAR, "columns": ["age", "floor"], "family": family})
    found = answers(spec, save(rows(), tmp_path / "events.csv"))
    assert found == [{"1 x1 + 10 x2 <= 50": n} for n in (2, 1, 1)]


def test_constructions_by_name(tmp_path: Path) -> None:
    """Each is planned, certified with its own section, and run."""
    family = {"kind": "ranges", "size": 100}
    sections = {}
    for mechanism, more in (
        ("linear", {}),
        ("anew", {"every": 1}),
        ("subtract", {}),
        ("tree", {"deletions": False}),
        ("doubling", {"deletions": False}),
    ):
        folder = tmp_path / mechanism
        folder.mkdir()
        query = {**LINEAR, "column": "age", "family": family, "mechanism": mechanism, **more}
        if more.get("deletions") is False:
            del query["action"]
        spec = written(folder, query)
        filed = certificate(spec)["queries"][0]
        sections[mechanism] = filed["proved_in"]["mechanism"]
        assert filed["mechanism"] == mechanism
        assert filed["proved_in"]["built_on"] != ""
        found = answers(spec, save(rows(), folder / "events.csv"))
        assert found == [{"all": n} for n in ((3, 4, 4) if "action" not in query else (3, 3, 2))]
    assert sections["anew"].startswith("dynamic-data 13.3")
    assert sections["tree"].startswith("dynamic-data 5")


def test_the_interval_tree_has_options_of_its_own(tmp_path: Path) -> None:
    """It needs a budget that leaves some noise to every node."""
    tree = {**LINEAR, "family": {"kind": "count"}, "mechanism": "interval-tree", "construction": {"max_rounds": 1}}
    spec = written(tmp_path, tree, guarantee={"rho": 50})
    filed = certificate(spec)["queries"][0]
    assert filed["mechanism"] == "interval-tree"
    assert filed["proved_in"]["mechanism"].startswith("dynamic-data 6.2")
    found = answers(spec, save(rows(), tmp_path / "events.csv"))
    assert [answer["count"] for answer in found] == pytest.approx([3, 5, 4], abs=30)
    with pytest.raises(ConfigurationError, match="max_round"):
        plan(written(tmp_path, {**tree, "construction": {"max_round": 1}}))


def test_multiplicative_weights_are_run_anew(tmp_path: Path) -> None:
    family = {"kind": "ranges", "size": 100}
    weights = {**LINEAR, "column": "age", "family": family, "static": "multiplicative-weights"}
    with pytest.raises(ConfigurationError, match="no linear encoder, and without `every` or `max_lifetime`"):
        plan(written(tmp_path, weights))
    spec = written(tmp_path, {**weights, "every": 2, "max_items": 100, "max_lifetime": 4}, guarantee={"rho": 50})
    planned, filed = plan(spec).queries[0], certificate(spec)["queries"][0]
    assert (planned.mechanism, planned.numbers) == ("anew", 1)
    assert filed["proved_in"]["built_on"] == "dynamic-data 3.3"
    assert len(answers(spec, save(rows(), tmp_path / "events.csv"))) == 3


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (AGES, "needs either 'size'"),
        ({**AGES, "size": 10, "edges": [0, 1]}, "needs either 'size'"),
        ({**AGES, "size": 10, "ranges": [[0, 10]]}, "ranges is refused: a query of ranges is"),
        ({**AGES, "size": 10, "ranges": []}, "ranges must be a list of ranges"),
        ({**AGES, "edges": [3, 2]}, "edges is refused: edges must rise"),
        ({**AGES, "size": 2**23}, "the universe has"),
        (LINEAR, "needs 'family'"),
        (
            {**LINEAR, "family": {"kind": "cubes"}, "column": "age"},
            "family is refused: a family is a table with a kind",
        ),
        ({**LINEAR, "family": {"kind": "ranges", "size": 3}}, "needs either 'column' (the value) or 'columns'"),
        ({**LINEAR, "family": {"kind": "count"}, "column": "age"}, "a count reads no value"),
        (
            {**LINEAR, "family": {"kind": "points", "categories": ["a"]}, "column": "ward", "show": ["b"]},
            "show is refused: a query of points is",
        ),
        ({**LINEAR, "family": {"kind": "count"}, "static": "magic"}, "magic"),
    ],
)
def test_what_is_refused_says_where_and_why(tmp_path: Path, query: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=r"visits\.toml:\d+: ") as refused:
        plan(written(tmp_path, query))
    assert problem in str(refused.value)


@pytest.mark.parametrize("columns", [["age"], ["age", "age"], ["age", "floor", "ward"]])
def test_a_value_has_a_column_for_each_coordinate(tmp_path: Path, columns: list[str]) -> None:
    """Otherwise no record would ever have a value, and the answer would be 0 for ever."""
    query = {**LINEAR, "columns": columns, "family": {"kind": "boxes", "shape": [100, 4]}}
    with pytest.raises(ConfigurationError, match="2 coordinates"):
        written(tmp_path, query)
