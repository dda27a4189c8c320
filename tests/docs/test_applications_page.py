"""The table of applications: every row of the chapter has a line, and whatever a line names is there."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from page_tables import gamma_and_l1, rows

import evertally as et
from evertally.audit import AUDITED
from printed import ROOT

TABLE = rows("docs/applications.md", "# Applications")


def named(line: list[str]) -> str:
    return line[0]


def test_every_section_of_the_chapter_has_a_line() -> None:
    theory = (ROOT / "docs" / "theory" / "factorization-counting.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^### (6\.\d+)", theory, flags=re.M)) - {"6.0"}
    assert len(sections) == 11
    assert {line[0].split()[0].strip(",") for line in TABLE} >= sections


@pytest.mark.parametrize("line", TABLE, ids=named)
def test_what_a_line_names_is_there(line: list[str]) -> None:
    row, call, _, test, _, page, _ = line
    for name in re.findall(r"`et\.([\w.]+)`", call):
        found = et
        for part in name.split("."):
            found = getattr(found, part)
    path, _, function = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert function in tests or (not function and any(name.startswith("test_") for name in tests)), (row, test)
    assert "](" in page or (ROOT / "docs" / f"{page}.md").exists()


def test_every_public_statistic_has_a_line() -> None:
    calls = " ".join(line[1] for line in TABLE)
    statistics = [f"et.graph.{name}" for name in et.graph.__all__ if hasattr(getattr(et.graph, name), "certified")]
    statistics += [f"et.strings.{name}" for name in et.strings.__all__]
    assert len(statistics) == 13
    assert [name for name in statistics if f"`{name}`" not in calls] == []


@pytest.mark.parametrize("line", TABLE, ids=named)
def test_it_is_audited(line: list[str]) -> None:
    audited = line[4]
    names = [entry.name for entry in AUDITED]
    if audited.startswith("tests/"):
        assert (ROOT / audited).exists()
    elif audited:
        assert any(audited.strip("`") in name for name in names), audited


D, W, B = 4, 3, 2
PATH = [(0, 1), (1, 2), (2, 3)]
MOVED: dict[str, tuple[Any, dict[str, Any], int]] = {  # by row: class, options, h
    "6.1 counting": (et.Counter, {}, 0),
    "6.3 histogram, whole events": (et.Histogram, {"categories": list("abcde"), "max_per_event": B}, 0),
    "6.3 histogram, one item, truncated": (
        et.Histogram,
        {"categories": list("abcde"), "max_per_event": B, "protects": "item"},
        0,
    ),
    "6.4 weighted edges, all cuts": (et.graph.CutGraph, {"vertices": 4, "copies": "counted", "max_weight": W}, 0),
    "6.5 number of edges": (et.graph.EdgeCount, {}, 0),
    "6.5 degrees": (et.graph.DegreeVector, {"vertices": 4}, 0),
    "6.5 adjacency": (et.graph.CutGraph, {"vertices": 4}, 0),
    "6.5 vertices of high degree": (et.graph.HighDegree, {"threshold": 2}, 0),
    "6.5 spanning forest": (et.graph.SpanningForestCost, {"max_weight": W}, 0),
    "6.5 components": (et.graph.Components, {"vertices": 4}, 0),
    "6.5 degree histogram": (et.graph.DegreeHistogram, {"max_degree": D, "mechanism": "sqrt"}, 0),
    "6.5 degree histogram, by a bank": (et.graph.DegreeHistogram, {"max_degree": D, "mechanism": "bank"}, 0),
    "6.5 stars": (et.graph.Stars, {"k": 2, "max_degree": D}, 2 * (D - 1)),
    "6.5 triangles": (et.graph.Triangles, {"max_degree": D}, D - 1),
    "6.5 patterns": (et.graph.Subgraphs, {"pattern": PATH, "max_degree": D}, 3 * (D - 1) ** 2),
}


@pytest.mark.parametrize("row", MOVED)
def test_what_is_printed_is_charged(row: str) -> None:
    kind, options, h = MOVED[row]
    (cell,) = [line[2] for line in TABLE if line[0] == row]
    made = kind(**options, guarantee=et.ZCDP(0.5), horizon=8, key=et.simulation(1))
    charged = made.sensitivity
    assert (charged.l2_squared, charged.l1) == gamma_and_l1(cell, D=D, W=W, b=B, h=h)
