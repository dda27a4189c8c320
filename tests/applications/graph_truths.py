"""Functions of small graphs by brute force, from the written definition: nothing here is kept from edge to edge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, permutations
from math import comb, prod
from typing import Any

Edge = tuple[Any, ...]  # (smaller end, larger end), or with a weight


def degrees(edges: Iterable[Edge]) -> Counter[str]:
    return Counter(end for edge in edges for end in edge[:2])


def triangles(edges: Sequence[Edge]) -> int:
    """Three records that form a triangle; of a graph without copies that is the number of triangles."""
    times = Counter(edge[:2] for edge in edges)
    ends = sorted(degrees(edges))
    return sum(times[a, b] * times[a, c] * times[b, c] for a, b, c in combinations(ends, 3))


def stars(edges: Sequence[Edge], k: int, largest: int) -> int:
    return sum(comb(min(degree, largest), k) for degree in degrees(edges).values())


def above(edges: Sequence[Edge], threshold: int) -> int:
    return sum(degree >= threshold for degree in degrees(edges).values())


def histogram(edges: Sequence[Edge], vertices: Sequence[str], largest: int) -> list[int]:
    found = degrees(edges)
    return [sum(min(found[v], largest) == bin_ for v in vertices) for bin_ in range(largest + 1)]


def copies(edges: Sequence[Edge], pattern: Sequence[tuple[int, int]]) -> int:
    """Sets of edges that form the pattern, weighted by how often each edge is there."""
    times = Counter(edge[:2] for edge in edges)
    nodes = 1 + max(end for edge in pattern for end in edge)
    found = set()
    for placed in permutations(sorted(degrees(edges)), nodes):
        image = frozenset((min(placed[a], placed[b]), max(placed[a], placed[b])) for a, b in pattern)
        if all(edge in times for edge in image):
            found.add(image)
    return sum(prod(times[edge] for edge in image) for image in found)


def forest_cost(edges: Sequence[Edge]) -> int:
    """The cheapest set of edges that leaves no two ends apart which could be joined: Kruskal, by merging sets."""
    parts = [{end} for end in degrees(edges)]
    cost = 0
    for one, other, weight in sorted(edges, key=lambda edge: edge[2]):
        mine, yours = (next(part for part in parts if end in part) for end in (one, other))
        if mine is not yours:
            parts = [part for part in parts if part is not mine and part is not yours] + [mine | yours]
            cost += weight
    return cost


def components(edges: Sequence[Edge], vertices: Sequence[str]) -> int:
    return len(vertices) - forest_cost([(*edge[:2], 1) for edge in edges])


def once(edges: Iterable[Edge]) -> list[Edge]:
    """The first copy of each edge."""
    found: dict[Any, Edge] = {}
    for edge in edges:
        found.setdefault(edge[:2], edge)
    return list(found.values())


def projected(edges: Iterable[Edge], largest: int, *, arrivals: bool = False) -> list[Edge]:
    """Those of the (different) edges that are among the first at both ends."""
    listed = list(edges) if arrivals else once(edges)
    return [
        edge
        for i, edge in enumerate(listed)
        if all(sum(end in before[:2] for before in listed[:i]) < largest for end in edge[:2])
    ]
