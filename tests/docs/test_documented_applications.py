"""The specs of graphs and strings in docs/command-line.md are read, and run."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from evertally.kinds import OURS
from evertally.kinds.graph_tables import GraphQuery
from evertally.kinds.string_tables import StringQuery
from evertally.runtime import load_spec, plan, run
from evertally.runtime.spec import StreamSpec
from printed import ROOT

PAGE = (ROOT / "docs" / "command-line.md").read_text()


def documented(folder: Path, name: str) -> StreamSpec:
    block = next(part for part in PAGE.split("```toml\n") if f'name = "{name}"' in part.split("[guarantee]")[0])
    (folder / f"{name}.toml").write_text(block.split("```")[0])
    return load_spec(folder / f"{name}.toml")


def ran(spec: StreamSpec, names: list[str], events: list[list[Any]]) -> list[dict[str, Any]]:
    path = spec.path.with_suffix(".csv")
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([names, *events])
    run(spec, path, until="2013-01-01T02:00:00Z")
    assert spec.output_file is not None
    return [json.loads(line) for line in spec.output_file.read_text().splitlines()]


def near(row: dict[str, Any], true: int) -> bool:
    """Within eight standard deviations: the key is a new one every time."""
    return abs(row["value"] - true) <= 8 * float(row["stddev"])


def test_the_documented_edges_run(tmp_path: Path) -> None:
    spec = documented(tmp_path, "calls")
    assert [query.kind for query in spec.queries] == ["cut_graph", "triangles", "degree_histogram", "edge_count"]
    assert len(plan(spec).queries) == 4
    calls = [["2013-01-01T00:30:00Z", "ann", "bob", 30, "adds"]] * 400 + [
        ["2013-01-01T01:30:00Z", "cem", "bob", 90, ""]
    ]
    rows = ran(spec, ["time", "caller", "called", "minutes", "what"], calls)
    last = [row for row in rows if row["tick"] == 2]
    shown = [row["category"] for row in last]
    assert shown[:2] == ['["ann", "bob"]', '["ann", "cem"]']
    assert shown[6:] == [None, "1", "2", "3", "4", ">=5", None]
    true = {'["ann", "bob"]': 400 * 30, '["bob", "cem"]': 60}
    assert all(near(row, true.get(row["category"], 0)) for row in last[:6])
    assert last[0]["value"] > 6000


def test_the_documented_letters_run(tmp_path: Path) -> None:
    spec = documented(tmp_path, "clicks")
    assert [query.kind for query in spec.queries] == ["substring_counts", "frequent_substrings", "episode_counts"]
    planned = {query.name: query.error_bound for query in plan(spec).queries}
    often = planned["often"]
    assert often is not None
    assert often < 400, "what occurs 1000 times is found"
    pages = ["home", "cart", "pay"]
    clicks = [["2013-01-01T00:30:00Z", f"v{i}", page] for i in range(1000) for page in pages]
    rows = ran(spec, ["time", "visitor", "page"], clicks)
    first = [row for row in rows if row["tick"] == 1]
    moves = {row["category"]: row for row in first if row["query"] == "moves"}
    assert list(moves) == ["cart pay", "home cart pay"]
    assert all(near(row, 1000) for row in moves.values())
    found = {row["category"] for row in first if row["query"] == "often"}
    assert {"home", "home cart", "home cart pay", "cart", "cart pay", "pay"} <= found
    assert [row["category"] for row in first if row["query"] == "funnel"] == ["search pay", "search cart pay"]


def test_every_kind_has_its_row() -> None:
    for title, model in (("Graphs", GraphQuery), ("Strings", StringQuery)):
        section = PAGE.split(f"### {title}\n")[1].split("\n### ")[0]
        told = {
            name
            for line in section.splitlines()
            if line.startswith("| `")
            for name in re.findall(r"`(\w+)`", line.split("|")[1])
        }
        assert told == {kind.name for kind in OURS if issubclass(kind.options, model)}
