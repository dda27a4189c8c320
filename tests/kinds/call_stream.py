"""Calls between people, every kind of graph over them, and the truth by brute force; not a test."""

from __future__ import annotations

import json
from itertools import combinations
from math import comb
from typing import Any

from kind_runs import hour

ENDS = {"columns": ["caller", "called"]}
PEOPLE = list("abcde")
KNOWN = {**ENDS, "vertices": PEOPLE}
# By name: the table of the spec, beside `columns`, and what Python says for it where that is something else.
QUERIES: dict[str, dict[str, Any]] = {
    "edges": {"kind": "edge_count", **ENDS},
    "degrees": {"kind": "degree_vector", **KNOWN},
    "graph": {"kind": "cut_graph", **KNOWN},
    "minutes": {"kind": "cut_graph", **KNOWN, "weight": "minutes", "max_weight": 10, "copies": "counted"},
    "triangles": {"kind": "triangles", **KNOWN},
    "stars": {"kind": "stars", **KNOWN, "k": 2},
    "paths": {"kind": "subgraphs", **KNOWN, "pattern": [["w", "x"], ["x", "y"], ["y", "z"]]},
    "busy": {"kind": "high_degree", **ENDS, "threshold": 3},
    "by-degree": {"kind": "degree_histogram", **KNOWN, "max_degree": 3},
    "forest": {"kind": "spanning_forest_cost", **KNOWN, "weight": "minutes", "max_weight": 10},
    "groups": {"kind": "components", **KNOWN},
}
SPEC = [{"name": name, **table} for name, table in QUERIES.items()]
# (tick, caller, called, minutes)
CALLS: list[tuple[int, Any, Any, Any]] = [
    (1, "a", "b", 3),
    (1, "c", "b", 2),
    (1, "c", "a", 40),
    (2, "b", "a", 4),
    (2, "d", "a", 5),
    (4, "d", "c", 1),
    (4, "c", "b", 1),
]
# What a door drops, each by itself: loops, nobody, no names, unknown vertices
BAD: list[tuple[int, Any, Any, Any]] = [
    (1, "a", "a", 3),
    (1, None, "b", 3),
    (2, "a", None, 3),
    (2, 2.5, "b", 3),
    (3, ["a"], "b", 3),
    (3, {"a": 1}, "b", None),
    (4, "", "", 3),
]
UNTIL = hour(5)


def rows(calls: list[tuple[int, Any, Any, Any]] = CALLS) -> list[dict[str, Any]]:
    return [
        {"time": hour(tick, minute), "caller": one, "called": other, "minutes": minutes}
        for minute, (tick, one, other, minutes) in enumerate(calls)
    ]


def truth(tick: int) -> dict[str, Any]:
    """Everything by brute force, over the edges so far."""
    calls = [(*sorted((one, other)), minutes) for t, one, other, minutes in CALLS if t <= tick]
    edges = {(one, other) for one, other, _ in calls}
    degree = {v: sum(v in edge for edge in edges) for v in PEOPLE}
    joined = {frozenset(edge) for edge in edges}
    weights = {edge: min(min(10, m) for a, b, m in calls if (a, b) == edge) for edge in edges}
    forests = [
        sum(weights[edge] for edge in some)
        for size in range(len(PEOPLE))
        for some in combinations(sorted(edges), size)
        if len(PEOPLE) - size == groups(some) == groups(edges)
    ]
    return {
        "edges": len(edges),
        "degrees": degree,
        "graph": {json.dumps(pair): int(tuple(pair) in edges) for pair in map(list, combinations(PEOPLE, 2))},
        "minutes": {
            json.dumps(pair): sum(min(10, m) for a, b, m in calls if [a, b] == pair)
            for pair in map(list, combinations(PEOPLE, 2))
        },
        "triangles": sum(
            {frozenset(two) for two in combinations(some, 2)} <= joined for some in combinations("abcde", 3)
        ),
        "stars": sum(comb(d, 2) for d in degree.values()),
        # A path of three edges: a middle edge, and one more at each of its ends, that do not meet.
        "paths": sum(
            len({a, b, c, d}) == 4
            for a, b in edges
            for c in PEOPLE
            for d in PEOPLE
            if frozenset((a, c)) in joined and frozenset((b, d)) in joined
        ),
        "busy": sum(d >= 3 for d in degree.values()),
        "by-degree": {
            name: sum(min(d, 3) == n for d in degree.values()) for n, name in enumerate(["0", "1", "2", ">=3"])
        },
        "forest": min(forests),
        "groups": groups(edges),
    }


def groups(edges: Any) -> int:
    of = {v: v for v in PEOPLE}
    for one, other in edges:
        of = {v: of[one] if at == of[other] else at for v, at in of.items()}
    return len(set(of.values()))
