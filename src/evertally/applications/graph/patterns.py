"""How many copies of a small graph another graph has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from evertally.applications.encoder import Changes, Encoder, add
from evertally.applications.graph.followed import Followed
from evertally.applications.graph.following import GraphFunction
from evertally.applications.graph.links import Links
from evertally.applications.graph.pattern import Pattern, Placing
from evertally.applications.graph.prices import Price, copies_through_edge, one_signed
from evertally.applications.graph.situations import DegreeUse, Situation
from evertally.applications.records import Record
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint, Options
from evertally.errors import ConfigurationError


class PatternCount(GraphFunction):
    """A new edge brings the copies that it is part of, and no others are looked at."""

    def __init__(self, encoder: Encoder, pattern: Pattern) -> None:
        self._links = encoder.keep(Links())
        self._placings, self._automorphisms = pattern.placings(), pattern.automorphisms

    def insert(self, edge: Record, changes: Changes) -> None:
        self._links.link(*edge)
        add(changes, 0, self._through(edge))

    def delete(self, edge: Record, changes: Changes) -> None:
        add(changes, 0, -self._through(edge))
        self._links.unlink(*edge)

    def _through(self, edge: Record) -> int:
        found = sum(placing.ways * self._laid(placing, list(edge), 0) for placing in self._placings)
        return found // self._automorphisms

    def _laid(self, placing: Placing, placed: list[str], node: int) -> int:
        """In how many ways the nodes from this one on can be placed."""
        if node == len(placing.earlier):
            return 1
        found = 0
        for vertex in self._free(placing.earlier[node], placed):
            weight = self._weight(vertex, [placed[i] for i in placing.earlier[node]])
            found += weight * self._laid(placing, [*placed, vertex], node + 1)
        return found

    def _free(self, earlier: tuple[int, ...], placed: list[str]) -> set[str]:
        first, *others = (self._links.of(placed[i]) for i in earlier)
        return set(first).intersection(*others).difference(placed)

    def _weight(self, vertex: str, neighbours: list[str]) -> int:
        return 1


class PatternCountOfCopies(PatternCount):
    """A copy of the pattern is made of records, whichever copies they are."""

    def __init__(self, encoder: Encoder, pattern: Pattern) -> None:
        super().__init__(encoder, pattern)
        self._copies = encoder.table()

    def insert(self, edge: Record, changes: Changes) -> None:
        super().insert(edge, changes)
        self._copies.add(edge, 1)

    def _weight(self, vertex: str, neighbours: list[str]) -> int:
        weight = 1
        for other in neighbours:
            weight *= self._copies.get((min(vertex, other), max(vertex, other)), 0)
        return weight


@statistic
class Subgraphs(Followed):
    """How many copies of a connected pattern there are, as subgraphs (other edges between their vertices may exist).

    With k nodes, m edges and D = `max_degree`, one edge is in at most h = 2 m (D-1)^(k-2) / |Aut| copies. Unless D is
    declared, only the first D edges at each vertex count (the projection). With `copies="counted"` records make a copy
    of the pattern, and h = 2 m (D-1)^(m-1) / |Aut|. Induced subgraphs can vanish when an edge comes: not counted here.

    Theorem: factorization-counting 6.5 [R]. Gamma^2 (l1): h^2 (h) without copies and with a D that holds by itself, 2
    h^2 (2h) with copies that are dropped, or deletions, 5 h^2 (3h) projected; nodes are not protected. Tier: exact.
    Error: noise of a counter times Gamma, and what the projection leaves out. Time: O(m D^(k-2)) a record. Memory:
    O(edges).

    >>> import evertally as et
    >>> square = [(1, 2), (2, 3), (3, 4), (4, 1)]
    >>> squares = Subgraphs(square, max_degree=3, guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> squares.step([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]).tick, squares.certified().change.l1
    (1, 12)
    """

    pattern: Sequence[Any] = option(
        "The edges of the pattern, pairs of labels: a connected graph on 3 to 6 nodes.", kw_only=False
    )

    _word: ClassVar[str] = "Subgraphs"
    _uses: ClassVar[DegreeUse] = "bounds"
    _one_sign: ClassVar[bool] = True

    def _price(self, at: Situation) -> Price:
        if at.case == "node":
            raise ConfigurationError('protects="node" is not proved for patterns; use Triangles or Stars')
        shape = self._shape
        h = copies_through_edge(at.bound, shape.nodes, len(shape.edges), shape.automorphisms, counted=at.counted)
        return one_signed(h, "cut" if at.deletes else at.case)

    def _function(self, encoder: Encoder) -> GraphFunction:
        return (PatternCountOfCopies if self._at.counted else PatternCount)(encoder, self._shape)

    def _own_address(self) -> Options:
        return {"pattern": self.pattern}

    def _blueprint(self) -> Blueprint:
        self._shape = Pattern.of(self.pattern)
        self.pattern = self._shape.edges
        return super()._blueprint()
