"""A minimum spanning forest, kept edge by edge."""

from __future__ import annotations

from collections.abc import Iterator

from evertally.applications.encoder import Changes, Encoder, add
from evertally.applications.graph.following import GraphFunction
from evertally.applications.graph.links import Links
from evertally.applications.records import Record


class Forest(GraphFunction):
    """The cost of a cheapest spanning forest; an edge is (one end, other end, weight).

    A new edge joins two trees, or takes the place of the heaviest edge on the path between its ends, if that is
    heavier. A copy of an edge is an edge like any other: the lightest counts. `deletes`: edges go, and none comes.
    """

    def __init__(self, encoder: Encoder, largest: int, deletes: bool) -> None:
        self._largest, self._deletes = largest, deletes
        self._tree = encoder.keep(Links())
        self._weights = encoder.table()  # of the edges of the forest
        self._above, self._sizes = encoder.table(), encoder.table()  # who is joined: trees by size, without weights
        self._all = encoder.table()  # all edges that there are, if they can go

    def insert_all(self, edges: list[Record], changes: Changes) -> None:
        for edge in sorted(edges, key=lambda record: int(record[2]) if len(record) == 3 else 0):
            self.insert(edge, changes)

    def insert(self, edge: Record, changes: Changes) -> None:
        one, other, weight = edge
        if self._deletes:
            self._all.put((one, other), weight)
        if self._join(one, other):
            add(changes, 0, weight)
            self._plant(one, other, weight)
        elif weight < self._largest and not self._deletes:  # otherwise nothing heavier is in the forest
            heaviest = max(self._path(one, other))
            if heaviest[0] > weight:
                add(changes, 0, weight - heaviest[0])
                self._fell(*heaviest[1:])
                self._plant(one, other, weight)

    def delete(self, edge: Record, changes: Changes) -> None:
        pair = edge[:2]
        self._all.put(pair, None)
        if pair not in self._weights:
            return
        add(changes, 0, -self._weights.get(pair))
        self._fell(*pair)
        side = self._reached(pair[0])
        bridges = [(self._all.get(e), *e) for e in self._all if (e[0] in side) != (e[1] in side)]
        if bridges:
            weight, one, other = min(bridges)
            add(changes, 0, weight)
            self._plant(one, other, weight)

    def _plant(self, one: str, other: str, weight: int) -> None:
        self._tree.link(one, other)
        self._weights.put((one, other), weight)

    def _fell(self, one: str, other: str) -> None:
        self._tree.unlink(one, other)
        self._weights.put((one, other), None)

    def _path(self, one: str, other: str) -> Iterator[tuple[int, str, str]]:
        """The edges between two vertices of a tree: (weight, smaller end, larger end)."""
        came_from, waiting = {one: one}, [one]
        while other not in came_from:
            here = waiting.pop()
            for there in self._tree.of(here):
                if there not in came_from:
                    came_from[there] = here
                    waiting.append(there)
        while other != one:
            before = came_from[other]
            pair = (before, other) if before < other else (other, before)
            yield (self._weights.get(pair), *pair)
            other = before

    def _reached(self, vertex: str) -> set[str]:
        seen, waiting = {vertex}, [vertex]
        while waiting:
            for there in self._tree.of(waiting.pop()):
                if there not in seen:
                    seen.add(there)
                    waiting.append(there)
        return seen

    def _join(self, one: str, other: str) -> bool:
        """Whether two vertices were in different trees, which are one from now on."""
        a, b = self._root(one), self._root(other)
        if a == b:
            return False
        if self._sizes.get(a, 1) < self._sizes.get(b, 1):
            a, b = b, a
        self._above.put(b, a)
        self._sizes.put(a, self._sizes.get(a, 1) + self._sizes.get(b, 1))
        return True

    def _root(self, vertex: str) -> str:
        while (above := self._above.get(vertex)) is not None:
            vertex = above
        return vertex
