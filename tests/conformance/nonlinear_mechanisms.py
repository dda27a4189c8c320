"""Functions of graphs (factorization-counting 6.5), for the conformance checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import Any

from conformance.hostile import GARBAGE
from evertally.applications.graph import (
    Components,
    DegreeHistogram,
    HighDegree,
    SpanningForestCost,
    Stars,
    Subgraphs,
    Triangles,
)
from evertally.checks.subject import Subject
from evertally.privacy import ZCDP, ApproxDP, PureDP

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)
_WRONG = ["abc", 7, None, {"a": "b"}, 1.5]
_TICKS = 8
_NODES = 6
_ALL = [(a, b) for a, b in combinations(range(_NODES), 2)]
_WHOLE = [(str(a), str(b)) for a, b in _ALL]

Edges = list[tuple[int, ...]]


def _fed(n: int) -> list[list[Any]]:
    """Edges with copies, both ways round, some unusable."""
    pairs = [[((t * t + i) % _NODES, (3 * t + 2 * i + 1) % _NODES) for i in range(t % 4)] for t in range(n)]
    return [[*tick, (2, 2), tick[0][::-1] if tick else "nothing"] for tick in pairs]


def _weighted(n: int) -> list[list[Any]]:
    return [
        [(*edge, (t + 2 * i) % 5) if isinstance(edge, tuple) else edge for i, edge in enumerate(tick)]
        for t, tick in enumerate(_fed(n))
    ]


def _usable(tick: list[Any]) -> Edges:
    """As the door orders them."""
    read = [(min(r[:2]), max(r[:2]), *r[2:]) for r in tick if isinstance(r, tuple) and r[0] != r[1]]
    return sorted(read)


def _arrived(ticks: list[Any]) -> list[Edges]:
    """All usable records up to each tick."""
    return [[edge for tick in ticks[: t + 1] for edge in _usable(tick)] for t in range(len(ticks))]


def _once(edges: Edges) -> Edges:
    return list(dict.fromkeys(edges))


def _kept(edges: Edges, largest: int) -> Edges:
    ranks: Counter[int] = Counter()
    kept = []
    for edge in _once(edges):
        ranks.update(edge)
        if max(ranks[end] for end in edge) <= largest:
            kept.append(edge)
    return kept


def _degrees(edges: Edges) -> Counter[int]:
    return Counter(end for edge in edges for end in edge)


def _triangles(edges: Edges) -> int:
    times = Counter(edges)
    return sum(times[a, b] * times[a, c] * times[b, c] for a, b, c in combinations(range(_NODES), 3))


def _histogram(edges: Edges, largest: int) -> dict[str, int]:
    degrees = _degrees(edges)
    found = Counter(min(degrees[v], largest) for v in range(_NODES))
    return {(str(d) if d < largest else f">={d}"): found[d] for d in range(largest + 1)}


def _two_paths(edges: Edges) -> int:
    """Paths of three edges: choose the middle one; triangles would be closed."""
    degrees = _degrees(edges)
    return sum((degrees[a] - 1) * (degrees[b] - 1) for a, b in edges) - 3 * _triangles(edges)


def _forest(edges: Edges) -> int:
    part = list(range(_NODES))
    cost = 0
    for a, b, weight in sorted(edges, key=lambda edge: edge[2]):
        if part[a] != part[b]:
            old, new = part[a], part[b]
            part = [new if p == old else p for p in part]
            cost += weight
    return cost


def graph(
    kind: Any,
    exact: Callable[[Edges], Any],
    *pattern: Any,
    guarantee: Any = CONCENTRATED,
    horizon: int | None = _TICKS,
    feed: Callable[[int], list[Any]] = _fed,
    **options: Any,
) -> Subject:
    """A function of the edges so far."""

    def make(key: Any) -> Any:
        return kind(*pattern, guarantee=guarantee, horizon=horizon, key=key, **options)

    shown = {name: value for name, value in options.items() if name != "initial"}
    words = [repr(guarantee), f"T={horizon}", *(f"{k}={v}" for k, v in shown.items())]
    return Subject(
        name=f"{kind.__name__}({', '.join(words)})",
        make=make,
        feed=feed,
        truth=lambda ticks: [exact(edges) for edges in _arrived(ticks)],
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        growth=1024,  # edges seen
        users="unit" in options,
        runs=60,
    )


def _left(edges: Edges) -> Edges:
    return [edge for edge in _ALL if edge not in edges]


NONLINEAR_MECHANISMS: tuple[Subject, ...] = (
    graph(Triangles, lambda e: _triangles(_kept(e, 3)), max_degree=3),
    graph(
        Triangles,
        _triangles,
        max_degree=30,
        degree_bound="declared",
        copies="counted",
        unit="user",
        max_events_per_user=2,
    ),
    graph(
        Stars,
        lambda e: sum(comb(min(d, 3), 2) for d in _degrees(_once(e)).values()),
        max_degree=3,
        guarantee=PURE,
        horizon=None,
    ),
    graph(Subgraphs, lambda e: _two_paths(_once(e)), [(1, 2), (2, 3), (3, 4)], vertices=_NODES),
    graph(
        HighDegree,
        lambda e: sum(d >= 2 for d in _degrees(_once(e)).values()),
        threshold=2,
        guarantee=APPROXIMATE,
        neighbours="replace",
    ),
    graph(
        DegreeHistogram, lambda e: _histogram(_kept(e, 2), 2), vertices=_NODES, max_degree=2, degree_bound="projected"
    ),
    graph(SpanningForestCost, _forest, max_weight=4, feed=_weighted),
    graph(
        Components,
        lambda e: _NODES - _forest([(*edge, 1) for edge in _left(e)]),
        updates="delete",
        initial=_WHOLE,
        guarantee=PURE,
    ),
)
