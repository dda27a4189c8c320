"""Linear statistics of graphs, for the conformance checks: each encoder once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

from conformance.hostile import GARBAGE
from evertally.applications.graph import CutGraph, DegreeVector, EdgeCount
from evertally.checks.subject import Subject
from evertally.privacy import ZCDP, PureDP

_WRONG = ["abc", 7, None, {"a": "b"}, 1.5]
_TICKS = 12
_NODES = ("a", "b", "c", "d")
_ALL = list(combinations(_NODES, 2))

Edge = frozenset[str]


def edges(n: int) -> list[list[Any]]:
    """Edges with copies, loops, strangers, and nothing at times."""
    return [
        [_ALL[(t * t + i) % 6][:: 1 if i % 2 else -1] for i in range(t % 4)] + [("a", "a"), ("a", None)]
        for t in range(n)
    ]


def updates(n: int) -> list[list[Any]]:
    """Insertions and deletions; some find nothing to do."""
    return [
        [("insert", *edge) for edge in tick[:-2]] + [("delete", *_ALL[(5 * t) % 6]), ("toggle", "a", "b")]
        for t, tick in enumerate(edges(n))
    ]


def weighted(n: int) -> list[list[Any]]:
    """Weights in and out of range."""
    return [[(*edge, 3 * t - 7 * i) for i, edge in enumerate(tick)] for t, tick in enumerate(edges(n))]


def _edge(pair: Any) -> Edge | None:
    return frozenset(pair) if set(pair) <= set(_NODES) and len(set(pair)) == 2 else None


def _there(ticks: list[list[Any]]) -> list[set[Edge]]:
    """The edges after each tick; records are pairs, or begin with what is done."""
    there: set[Edge] = set()
    seen = []
    for tick in ticks:
        for record in tick:
            action, pair = record[0] if len(record) == 3 else "insert", record[-2:]
            edge = _edge(pair)
            if edge is not None and action == "insert":
                there.add(edge)
            elif edge is not None and action == "delete":
                there.discard(edge)
        seen.append(set(there))
    return seen


def _projected(ticks: list[list[Any]]) -> list[int]:
    """Edges of rank 1 or 2 at both ends; inside a tick in the order of their names, as the door has them."""
    met: list[Edge] = []
    counts = []
    for tick in ticks:
        for edge in sorted(filter(None, map(_edge, tick)), key=sorted):
            if edge not in met:
                met.append(edge)
        ranks = [[sum(v in other for other in met[: i + 1]) for v in edge] for i, edge in enumerate(met)]
        counts.append(sum(max(rank) <= 2 for rank in ranks))
    return counts


def _degrees(there: set[Edge], nodes: tuple[str, ...] = _NODES) -> dict[str, int]:
    return {node: sum(node in edge for edge in there) for node in nodes}


def _weights(ticks: list[list[Any]]) -> list[list[int]]:
    sums = dict.fromkeys(map(frozenset, _ALL), 0)
    rows = []
    for tick in ticks:
        for u, v, weight in tick:
            if (edge := _edge((u, v))) is not None:
                sums[edge] += max(-5, min(5, weight))
        rows.append(list(sums.values()))
    return rows


def _subject(
    kind: Any,
    feed: Callable[[int], list[Any]],
    truth: Callable[[list[Any]], list[Any]],
    users: bool = False,
    **options: Any,
) -> Subject:
    words = ", ".join(f"{name}={value}" for name, value in options.items())
    more = {"unit": "user", "max_events_per_user": 3} if users else {}
    return Subject(
        name=f"{kind.__name__}({words}{', users' if users else ''})",
        make=lambda key: kind(horizon=_TICKS, key=key, **options, **more),
        feed=feed,
        truth=truth,
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        growth=256,
        users=users,
        runs=60,
    )


LINEAR_GRAPH_MECHANISMS: tuple[Subject, ...] = (
    _subject(EdgeCount, edges, lambda ticks: [len(there) for there in _there(ticks)], guarantee=PureDP(1.0)),
    _subject(EdgeCount, edges, _projected, guarantee=ZCDP(0.5), max_degree=2, users=True),
    _subject(
        DegreeVector,
        updates,
        lambda ticks: [_degrees(there) for there in _there(ticks)],
        guarantee=ZCDP(0.5),
        vertices=_NODES,
        updates="both",
        neighbours="replace",
    ),
    _subject(
        DegreeVector,
        edges,
        lambda ticks: [_degrees(there, ("c", "nobody")) for there in _there(ticks)],
        guarantee=ZCDP(0.5),
        watch=("c", "nobody"),
    ),
    _subject(
        CutGraph,
        edges,
        lambda ticks: [[int(frozenset(pair) not in there) for pair in _ALL] for there in _there(ticks)],
        guarantee=PureDP(1.0),
        vertices=_NODES,
        updates="delete",
        initial=_ALL,
    ),
    _subject(
        CutGraph,
        weighted,
        _weights,
        guarantee=ZCDP(0.5),
        vertices=_NODES,
        copies="counted",
        max_weight=5,
        signed=True,
        max_window=2,
    ),
)
