"""The page about graphs: its code runs, and its tables are the product's."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from page_tables import gamma_and_l1, noise_column, rows, value

import evertally as et
from evertally.applications import graph
from printed import run_as_printed

PAGE = "docs/graphs.md"
COMMON: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 8, "key": et.simulation(1)}
D, W, N = 3, 5, 5
PUBLIC = list(combinations(range(4), 2))  # its degrees are D
SHAPES = [graph.EdgeCount, graph.DegreeVector, graph.CutGraph]

# By the order of rows: options, for each of the three statistics.
LINEAR: list[list[dict[str, Any]]] = [
    [{}] * 3,
    [{"copies": "counted"}] * 2 + [{"copies": "counted", "max_weight": W}],
    [{"copies": "absent"}] * 3,
    [{"updates": "both", "copies": "counted"}] * 3,
    [{"updates": "both"}] * 3,
    [{"max_degree": D}] * 3,
    [{"copies": "absent", "protects": "node", "max_degree": D, "degree_bound": "declared"}] * 3,
]


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed(PAGE)
    assert capsys.readouterr().out.count("±") == 3
    assert {names[name].tick for name in ("friends", "degrees", "calls", "groups")} == {1}


def moved(kind: Any, **options: Any) -> tuple[int, int]:
    change = kind(**COMMON, **options).sensitivity
    return change.l2_squared, change.l1


def test_what_an_edge_moves_in_sums() -> None:
    table = rows(PAGE, "## Cuts, degrees, edges")
    assert len(table) == len(LINEAR)
    for (name, *cells), options in zip(table, LINEAR, strict=True):
        for kind, cell, chosen in zip(SHAPES, cells, options, strict=False):
            weights = 1 if "max_weight" not in chosen else W
            assert moved(kind, vertices=N, **chosen) == gamma_and_l1(cell, D=D, W=weights), (name, kind)
        replaced = [{**chosen, "neighbours": "replace"} for chosen in options]
        if cells[3] == "refused":
            with pytest.raises(et.ConfigurationError):
                moved(graph.EdgeCount, vertices=N, **replaced[0])
        elif cells[3].startswith("times"):
            squared, l1 = gamma_and_l1(cells[3].removeprefix("times "))
            for kind, chosen in zip(SHAPES, options, strict=True):
                before = moved(kind, vertices=N, **chosen)
                assert moved(kind, vertices=N, **chosen, neighbours="replace") == (squared * before[0], l1 * before[1])
        elif cells[3] != "the same":
            for kind, cell, chosen in zip(SHAPES, cells[3].split(";")[0].split(", "), replaced, strict=True):
                assert moved(kind, vertices=N, **chosen) == gamma_and_l1(cell, W=W), (name, kind)


K, PATTERN = 2, [(0, 1), (1, 2), (2, 3)]  # 3-edge paths: k = 4, m = 3, two automorphisms
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Triangles": (graph.Triangles, {}),
    "Subgraphs": (graph.Subgraphs, {"pattern": PATTERN}),
    "Stars": (graph.Stars, {"k": K}),
    "HighDegree": (graph.HighDegree, {"threshold": 2}),
    "DegreeHistogram": (graph.DegreeHistogram, {"mechanism": "sqrt"}),
    "DegreeHistogram by a bank": (graph.DegreeHistogram, {"mechanism": "bank"}),
    "SpanningForestCost": (graph.SpanningForestCost, {"max_weight": W}),
}
DECLARED = {"max_degree": D, "degree_bound": "declared"}
COLUMNS: list[dict[str, Any]] = [
    {"copies": "absent", **DECLARED},
    {"vertices": D + 1},
    {"max_degree": D},
    {"max_degree": D, "degree_bound": "projected"},
    {"updates": "delete", "initial": PUBLIC},
    {"copies": "absent", "protects": "node", **DECLARED},
]
BOUNDED = ("Triangles", "Subgraphs", "Stars", "DegreeHistogram", "DegreeHistogram by a bank")


def test_what_an_edge_moves_in_functions_of_the_graph() -> None:
    own = {row[0].strip("`"): row[2] for row in rows(PAGE, "D is `max_degree`, or n - 1")}
    h = {"Triangles": value(own["Triangles"].split(";")[0], D=D), "Stars": value(own["Stars"], D=D, k=K)}
    h["Subgraphs"] = value(own["Subgraphs"].split(";")[0].replace("abs(Aut)", "A"), D=D, k=4, m=3, A=2)
    checked = 0
    table = rows(PAGE, "there or not; noise grows")[1:]
    for name, cells in [(part.replace("`", "").strip(), row[1:]) for row in table for part in row[0].split(",")]:
        kind, chosen = KINDS[name]
        for at, (cell, column) in enumerate(zip(cells, COLUMNS, strict=True)):
            options = chosen | column
            if at == 2 and name not in BOUNDED:  # no degree bound is needed: every copy counts
                options = chosen | ({} if name == "SpanningForestCost" else {"copies": "counted"})
            if name == "SpanningForestCost" and "initial" in options:
                options["initial"] = [(*edge, 1) for edge in PUBLIC]
            if name not in BOUNDED and at in (0, 1):
                options = {key: given for key, given in options.items() if key not in DECLARED}
            refused = cell == "refused" or (name == "Subgraphs" and "patterns refused" in cell)
            if refused and at == 2:
                continue  # the projection takes its place
            if refused:
                with pytest.raises(et.ConfigurationError):
                    moved(kind, **options)
            else:
                letters = {"D": D, "W": W, "k": K, "h": int(h.get(name, 0))}
                assert moved(kind, **options) == gamma_and_l1(cell.removeprefix("`Triangles` "), **letters), (name, at)
            checked += 1
    assert checked >= 36


def test_the_table_of_noise_is_the_product_s() -> None:
    classes = {name: getattr(graph, name) for name in graph.__all__ if hasattr(getattr(graph, name), "certified")}
    common = {"guarantee": et.ApproxDP(1, 1e-6), "horizon": 365, "key": et.simulation(1)}
    found = noise_column(PAGE, classes, **common)
    assert len(found) > 15
    for call, printed, stated in found:
        assert printed == pytest.approx(stated, abs=0.051), call
    for mechanism, printed in (("auto", 8.6), ("pure-blocks", 8.6), ("bank", 11.2), ("sqrt", 13.3)):
        assert et.Counter(mechanism=mechanism, **common).stddev(365) == pytest.approx(printed, abs=0.051)
