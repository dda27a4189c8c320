"""The specs of users, values and dashboards in docs/command-line.md are read and run, and name every option."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from evertally import kinds
from evertally.kinds.query_table import Apart, Query
from evertally.runtime import load_spec, run
from printed import ROOT

PAGE = (ROOT / "docs" / "command-line.md").read_text()
SECTIONS = {"Users": "visitors", "Values": "till", "Many counts at once": "page"}


def section(title: str) -> str:
    return PAGE.split(f"### {title}\n")[1].split("\n### ")[0]


def told(title: str) -> set[str]:
    """The kinds that have a row in the section's table."""
    return {line.split("|")[1].strip(" `") for line in section(title).splitlines() if line.startswith("| `")}


@pytest.mark.parametrize(("title", "name"), SECTIONS.items())
def test_the_documented_spec_runs(title: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.toml"
    path.write_text(section(title).split("```toml\n")[1].split("```")[0])
    spec = load_spec(path)
    assert {query.kind for query in spec.queries} - {"counter"} <= told(title)
    columns = sorted(set(spec.columns()) - {"time"})
    with open(tmp_path / "events.csv", "w", newline="") as file:
        csv.writer(file).writerows([["time", *columns], *[["2013-01-01T00:30:00Z", *("7" for _ in columns)]] * 9])
    run(spec, tmp_path / "events.csv", until="2013-01-01T02:00:00Z")
    rows = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
    # A retention table has its first cell when the first period is over.
    assert {row["query"] for row in rows} == {query.name for query in spec.queries if query.kind != "retention"}


@pytest.mark.parametrize("title", SECTIONS)
def test_every_option_is_named(title: str) -> None:
    for name in told(title):
        kind = kinds.find(name)
        assert kind is not None, name
        inherited = Query if title == "Users" else Apart  # rules of users are documented once
        for option in set(kind.options.model_fields) - set(inherited.model_fields):
            assert re.search(rf"\b{option}\b", section(title)), (name, option)
        assert all(f"`{spelling}`" in section(title) for spelling in kind.spellings), name


def test_every_statistic_of_these_rooms_has_its_row() -> None:
    rooms = ("evertally.users.", "evertally.values.", "evertally.applications.dashboard")
    there = {kind.name for kind in kinds.OURS if kind.statistic.__module__.startswith(rooms)}
    assert there == set().union(*(told(title) for title in SECTIONS))
