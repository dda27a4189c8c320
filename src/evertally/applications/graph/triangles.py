"""How many triangles a graph has."""

from __future__ import annotations

from typing import ClassVar

from evertally.applications.encoder import Changes, Encoder, add
from evertally.applications.graph.followed import Followed
from evertally.applications.graph.following import GraphFunction
from evertally.applications.graph.links import Links
from evertally.applications.graph.prices import Price, copies_through_edge, one_signed, triangles_at_node
from evertally.applications.graph.situations import DegreeUse, Situation
from evertally.applications.records import Record
from evertally.contract.options import statistic


class TriangleCount(GraphFunction):
    """An edge closes as many triangles as its ends have neighbours in common."""

    def __init__(self, encoder: Encoder) -> None:
        self._links = encoder.keep(Links())

    def insert(self, edge: Record, changes: Changes) -> None:
        add(changes, 0, self._through(edge))
        self._links.link(*edge)

    def delete(self, edge: Record, changes: Changes) -> None:
        self._links.unlink(*edge)
        add(changes, 0, -self._through(edge))

    def _through(self, edge: Record) -> int:
        return len(self._links.of(edge[0]) & self._links.of(edge[1]))


class TriangleCountOfCopies(TriangleCount):
    """Three records make a triangle, whichever copies they are."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._copies = encoder.table()

    def insert(self, edge: Record, changes: Changes) -> None:
        super().insert(edge, changes)
        self._copies.add(edge, 1)

    def _through(self, edge: Record) -> int:
        one, other = edge
        common = self._links.of(one) & self._links.of(other)
        return sum(self._of(one, vertex) * self._of(other, vertex) for vertex in common)

    def _of(self, one: str, other: str) -> int:
        copies: int = self._copies.get((one, other) if one < other else (other, one), 0)
        return copies


@statistic
class Triangles(Followed):
    """How many triangles there are.

    One edge closes at most D - 1 triangles (D = `max_degree`). Unless that is declared, only the first D edges
    at each vertex count (the projection). Counts with copies: `copies="counted"`, three records make a triangle.

    Theorem: factorization-counting 6.5 [R]. Gamma^2 (l1): h^2 (h) without copies and with a D that holds by itself, 2
    h^2 (2h) with copies that are dropped, or deletions, 5 h^2 (3h) projected; h = D - 1, with copies (D - 1)^2; a node
    C(D,2)^2. Tier: exact. Error: noise of a counter times Gamma, and what the projection leaves out. Time: O(smaller
    degree) a record. Memory: O(edges).

    >>> import evertally as et
    >>> friends = Triangles(max_degree=50, guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> friends.step([("ann", "bob"), ("bob", "cid"), ("cid", "ann"), ("ann", "ann"), None]).tick
    1
    >>> friends.certified().change.l2_squared, friends.certified().section
    (12005, 'factorization-counting 6.5, Triangles, projected')
    """

    _word: ClassVar[str] = "Triangles"
    _uses: ClassVar[DegreeUse] = "bounds"
    _one_sign: ClassVar[bool] = True

    def _price(self, at: Situation) -> Price:
        if at.case == "node":
            return triangles_at_node(at.bound)
        h = copies_through_edge(at.bound, 3, 3, 6, counted=at.counted)
        return one_signed(h, "cut" if at.deletes else at.case)

    def _function(self, encoder: Encoder) -> GraphFunction:
        return TriangleCountOfCopies(encoder) if self._at.counted else TriangleCount(encoder)
