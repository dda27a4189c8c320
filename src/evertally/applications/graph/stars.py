"""How many stars a graph has."""

from __future__ import annotations

from typing import ClassVar

from evertally.applications.encoder import Encoder
from evertally.applications.graph.degree_functions import StarCount
from evertally.applications.graph.followed import Followed
from evertally.applications.graph.following import GraphFunction
from evertally.applications.graph.options import DegreeBound
from evertally.applications.graph.prices import Price, one_signed, stars_at_node, stars_through_edge
from evertally.applications.graph.situations import DegreeUse, Situation
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint, Options
from evertally.integers import whole


@statistic
class Stars(Followed):
    """How many stars with k edges there are: C(degree, k), summed over the vertices; 2-stars are paths of two edges.

    A vertex with more than D = `max_degree` edges counts as one with D. One edge is in at most h = 2
    C(D-1, k-1) stars.

    Theorem: factorization-counting 6.5 [R]. Gamma^2 (l1): h^2 (h) without copies and with a D that holds by itself, 2
    h^2 (2h) otherwise and with deletions, 5 h^2 (3h) projected; a node (D C(D-1,k-1) + C(D,k))^2. Tier: exact. Error:
    noise of a counter times Gamma, and what is clipped. Time: O(1) a record. Memory: O(edges), O(vertices) where every
    copy counts.

    >>> import evertally as et
    >>> friends = Stars(k=2, max_degree=3, guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> friends.step([("ann", "bob"), ("bob", "cid")]).tick, friends.certified().change.l2_squared
    (1, 32)
    """

    k: int = option("How many edges a star has, at least 2.", default=2)
    degree_bound: DegreeBound = option(
        'Where max_degree comes from: a vertex with more edges counts as one with max_degree ("clipped"), edges beyond '
        'it are dropped ("projected"), or it is a declared fact that privacy rests on ("declared"): by construction of '
        "the source no vertex has more.",
        default="clipped",
    )

    _word: ClassVar[str] = "Stars"
    _uses: ClassVar[DegreeUse] = "clips"
    _one_sign: ClassVar[bool] = True

    def _price(self, at: Situation) -> Price:
        if at.case == "node":
            return stars_at_node(at.bound, self.k)
        return one_signed(stars_through_edge(at.bound, self.k), "cut" if at.deletes else at.case)

    def _function(self, encoder: Encoder) -> GraphFunction:
        return StarCount(encoder, self.k, self._at.bound)

    def _own_address(self) -> Options:
        return {"k": self.k}

    def _blueprint(self) -> Blueprint:
        # One edge alone would be counted at both ends: that is the number of edges, twice.
        self.k = whole("k", self.k, 2, 64)
        return super()._blueprint()
