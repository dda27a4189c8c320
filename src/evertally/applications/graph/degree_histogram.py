"""How many vertices have how many edges."""

from __future__ import annotations

from typing import ClassVar

from evertally.applications.encoder import Encoder
from evertally.applications.graph import prices
from evertally.applications.graph.degree_functions import DegreeBins
from evertally.applications.graph.followed import Followed
from evertally.applications.graph.following import GraphFunction
from evertally.applications.graph.options import DegreeBound
from evertally.applications.graph.situations import DegreeUse, Situation
from evertally.contract.options import option, statistic


@statistic
class DegreeHistogram(Followed):
    """How many vertices have 0, 1, ..., D edges (D = `max_degree`); the last bin means "D or more".

    Bin 0 needs declared vertices; without them there are bins 1 to D. Several vertices with the same number of edges
    are what is counted: which ones they are stays secret.

    Theorem: factorization-counting 6.5 [R]. Gamma^2 (l1): 4(6D-2) (8D); 4(6D-4) (8D-4) without copies and with a D
    that holds by itself; (2 sqrt(6D-2) + 2 sqrt(6D-4))^2 (16D-4) projected; a node with at most D edges (sqrt(2D+1) + D
    sqrt(6D-4))^2 (4D^2+1). That is three-entry S4; of banks it is not proved, and 8D takes the place of 6D there (S3:
    4(8D-4), 4(8D-8), ...). Tier: exact. Error: noise of a counter times Gamma, in every bin. Time: O(1) a record, O(D)
    a tick. Memory: O(edges), O(vertices) where every copy counts.

    >>> import evertally as et
    >>> degrees = DegreeHistogram(
    ...     vertices=5, max_degree=3, guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1)
    ... )
    >>> list(degrees.step([(0, 1), (0, 2)]).value), degrees.certified().change.l2_squared
    (['0', '1', '2', '>=3'], 64)
    """

    degree_bound: DegreeBound = option(
        'Where max_degree comes from: a vertex with more edges counts as one with max_degree ("clipped"), edges beyond '
        'it are dropped ("projected"), or it is a declared fact that privacy rests on ("declared"): by construction of '
        "the source no vertex has more.",
        default="clipped",
    )

    _word: ClassVar[str] = "DegreeHistogram"
    _uses: ClassVar[DegreeUse] = "clips"

    @property
    def _lowest(self) -> int:
        return 1 if self._names is None else 0

    def _price(self, at: Situation) -> prices.Price:
        return prices.histogram(at.case, at.bound)

    def _function(self, encoder: Encoder) -> GraphFunction:
        return DegreeBins(encoder, self._lowest, self._at.bound)

    def _empty(self) -> dict[int, int]:
        return {} if self._names is None else {0: len(self._names)}

    def _labels(self) -> list[str]:
        return self.bins(self._at.bound, self._names is not None)

    @staticmethod
    def bins(largest: int, known: bool) -> list[str]:
        """The names of the bins; where vertices are `known`, those without an edge have one."""
        return [*map(str, range(0 if known else 1, largest)), f">={largest}"]
