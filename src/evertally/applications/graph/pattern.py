"""Small connected graphs to look for, and how to find their copies through one edge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from evertally.encode.labels import canonical
from evertally.errors import ConfigurationError

_MOST_NODES = 6  # automorphisms are counted by trying all permutations


@dataclass(frozen=True)
class Placing:
    """One way to lay a pattern over an edge: its first two nodes lie on the ends, the others come one by one.

    `earlier[i]` are the places of earlier nodes that node i + 2 is joined to; `ways` is how many ways look the same
    by an automorphism of the pattern.
    """

    earlier: tuple[tuple[int, ...], ...]
    ways: int


@dataclass(frozen=True)
class Pattern:
    """A connected graph on 3 to 6 nodes.

    >>> path = Pattern.of([("a", "b"), ("b", "c"), ("c", "d")])
    >>> path.nodes, len(path.edges), path.automorphisms
    (4, 3, 2)
    >>> sorted((placing.earlier, placing.ways) for placing in path.placings())
    [(((0,), (1,)), 2), (((0,), (2,)), 2), (((1,), (2,)), 2)]
    """

    nodes: int
    edges: tuple[tuple[int, int], ...]  # smaller node first, sorted

    @classmethod
    def of(cls, given: Any) -> Pattern:
        """From a list of pairs of labels."""
        wrong = ConfigurationError(
            "pattern is a list of different edges, pairs of labels, that form one connected graph on 3 to "
            f'{_MOST_NODES} nodes, e.g. [("a", "b"), ("b", "c"), ("c", "a")]'
        )
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) > _MOST_NODES**2:
            raise wrong
        pairs = []
        for edge in given:
            if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
                raise wrong
            one, other = canonical(edge[0]), canonical(edge[1])
            if one is None or other is None or one == other:
                raise wrong
            pairs.append((min(one, other), max(one, other)))
        labels = sorted({end for pair in pairs for end in pair})
        edges = tuple(sorted((labels.index(a), labels.index(b)) for a, b in pairs))
        if len(set(edges)) != len(edges) or not 3 <= len(labels) <= _MOST_NODES or not _connected(len(labels), edges):
            raise wrong
        return cls(len(labels), edges)

    def joined(self, a: int, b: int) -> bool:
        return (min(a, b), max(a, b)) in self.edges

    @property
    def automorphisms(self) -> int:
        return sum(1 for _ in self._automorphisms())

    def _automorphisms(self) -> Iterator[tuple[int, ...]]:
        for order in permutations(range(self.nodes)):
            if all(self.joined(order[a], order[b]) for a, b in self.edges):
                yield order

    def placings(self) -> list[Placing]:
        """One for each kind of edge with a direction; together they cover every copy through an edge, each of them
        `automorphisms` times."""
        symmetries = list(self._automorphisms())
        left = {(a, b) for edge in self.edges for a, b in (edge, edge[::-1])}
        found = []
        while left:
            a, b = min(left)
            alike = {(order[a], order[b]) for order in symmetries}
            left -= alike
            found.append(Placing(self._earlier([a, b]), len(alike)))
        return found

    def _earlier(self, order: list[int]) -> tuple[tuple[int, ...], ...]:
        rows = []
        while len(order) < self.nodes:
            node = next(v for v in range(self.nodes) if v not in order and any(self.joined(v, u) for u in order))
            rows.append(tuple(i for i, u in enumerate(order) if self.joined(node, u)))
            order.append(node)
        return tuple(rows)


def _connected(nodes: int, edges: Sequence[tuple[int, int]]) -> bool:
    reached = {0}
    for _ in range(nodes):
        reached |= {end for edge in edges if reached & set(edge) for end in edge}
    return len(reached) == nodes
