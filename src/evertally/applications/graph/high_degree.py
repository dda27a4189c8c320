"""How many vertices have many edges."""

from __future__ import annotations

from typing import ClassVar

from evertally.applications.encoder import Encoder
from evertally.applications.graph import prices
from evertally.applications.graph.degree_functions import CountAbove
from evertally.applications.graph.followed import Followed
from evertally.applications.graph.following import GraphFunction
from evertally.applications.graph.situations import DegreeUse, Situation
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint, Options
from evertally.errors import ConfigurationError
from evertally.integers import whole


@statistic
class HighDegree(Followed):
    """How many vertices have at least `threshold` edges.

    Theorem: factorization-counting 6.5 [R]. Gamma^2 (l1): 8 (4), without any degree bound; 32 (8) in the projected
    graph; a node with at most D edges (D+1)^2 + D^2 (2D+1). Tier: exact. Error: noise of a counter times Gamma. Time:
    O(1) a record. Memory: O(edges), O(vertices) where every copy counts.

    >>> import evertally as et
    >>> hubs = HighDegree(threshold=2, guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> hubs.step([("ann", "bob"), ("bob", "cid")]).tick, hubs.certified().change.l2_squared
    (1, 8)
    """

    threshold: int = option("How many edges a vertex needs to be counted.")

    _word: ClassVar[str] = "HighDegree"
    _uses: ClassVar[DegreeUse] = "ignores"

    def _price(self, at: Situation) -> prices.Price:
        if at.degree is not None and self.threshold > at.degree:
            raise ConfigurationError(f"no vertex has more than {at.degree} edges here: threshold is at most that")
        return prices.high_degree(at.case, at.degree)

    def _function(self, encoder: Encoder) -> GraphFunction:
        return CountAbove(encoder, self.threshold)

    def _own_address(self) -> Options:
        return {"threshold": self.threshold}

    def _blueprint(self) -> Blueprint:
        self.threshold = whole("threshold", self.threshold, 1, 2**40)
        return super()._blueprint()
