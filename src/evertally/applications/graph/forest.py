"""What the cheapest spanning forest costs, and how many components there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, ClassVar, Literal

from evertally.applications.encoder import Changes, Encoder
from evertally.applications.graph import prices
from evertally.applications.graph.edges import ends, entries_of
from evertally.applications.graph.followed import Followed
from evertally.applications.graph.following import GraphFunction
from evertally.applications.graph.forests import Forest
from evertally.applications.graph.options import among
from evertally.applications.graph.situations import DegreeUse, Situation
from evertally.applications.records import Record
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint, Options
from evertally.encode.plain import real
from evertally.encode.plain import whole as whole_amount
from evertally.errors import ConfigurationError
from evertally.integers import whole


@statistic
class SpanningForestCost(Followed):
    """What a minimum spanning forest costs: records are (one end, other end, weight).

    Weights are whole numbers from 0 to W = `max_weight`; fractions are cut, the rest is clipped. Of several copies of
    an edge the lightest counts; in the projected graph (`max_degree`) the first.

    Theorem: factorization-counting 6.5 [R]. Gamma^2 (l1): 2 W^2 (2W), without any degree bound; 18 W^2 (6W) projected;
    a node with at most D edges 2 D^2 W^2 (2DW). Tier: exact. Error: noise of a counter times Gamma. Time: O(vertices) a
    record; with deletions O(edges). Memory: O(vertices); with deletions O(edges).

    >>> import evertally as et
    >>> roads = SpanningForestCost(max_weight=10, guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> roads.step([("a", "b", 4), ("b", "c", 2.9), ("a", "c", 10**9), ("a", "c", "far")]).tick
    1
    >>> roads.certified().change.l2_squared
    200
    """

    max_weight: int = option("W, the largest weight; larger ones are clipped to it.")

    _word: ClassVar[str] = "SpanningForestCost"
    _uses: ClassVar[DegreeUse] = "ignores"
    _every_copy: ClassVar[bool] = True

    def _price(self, at: Situation) -> prices.Price:
        return prices.forest(at.case, at.degree, self.max_weight)

    def _function(self, encoder: Encoder) -> GraphFunction:
        return Forest(encoder, self.max_weight, self._at.deletes)

    def _own_address(self) -> Options:
        return {"max_weight": self.max_weight}

    @property
    def _weights(self) -> Literal["none", "may be", "needed"]:
        return "may be" if self.updates == "delete" else "needed"

    def _reader(self, names: list[str] | None) -> Callable[[Any], Record | None]:
        deletes = self.updates == "delete"
        return among(names, lambda record: _weighed(record, self.max_weight, deletes))

    def _public_edges(self, read: Callable[[Any], Record | None]) -> list[Record]:
        if self.initial is not None and not all(isinstance(r, Sequence) and len(r) == 3 for r in self.initial):
            raise ConfigurationError("initial is a list of (one end, other end, weight)")
        return super()._public_edges(read)

    def _blueprint(self) -> Blueprint:
        self.max_weight = whole("max_weight", self.max_weight, 1, 2**31)
        return super()._blueprint()


@statistic
class Components(Followed):
    """How many connected components there are, of the declared vertices.

    Theorem: factorization-counting 6.5 [R]: vertices minus the cost of a spanning forest with weights 1. Gamma^2 (l1):
    2 (2); 18 (6) projected; a node with at most D edges 2 D^2 (2D). Tier: exact. Error: noise of a counter times Gamma.
    Time: O(log vertices) a record; with deletions O(edges). Memory: O(vertices); with deletions O(edges).

    >>> import evertally as et
    >>> groups = Components(vertices=["a", "b", "c"], guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> groups.step([("a", "b"), ("b", "a")]).tick, groups.certified().change.l2_squared
    (1, 2)
    """

    _word: ClassVar[str] = "Components"
    _uses: ClassVar[DegreeUse] = "ignores"
    _every_copy: ClassVar[bool] = True

    def _price(self, at: Situation) -> prices.Price:
        return prices.forest(at.case, at.degree, 1)

    def _function(self, encoder: Encoder) -> GraphFunction:
        return Fewer(encoder, 1, self._at.deletes)

    def _empty(self) -> dict[int, int]:
        if self._names is None:
            raise ConfigurationError("components need vertices: one without any edge is a component of its own")
        return {0: len(self._names)}


def _weighed(record: Any, largest: int, deletes: bool) -> Record | None:
    """(smaller end, larger end, weight); a deletion needs no weight."""
    given = entries_of(record)
    if len(given) not in (2, 3) or (len(given) == 2 and not deletes):
        return None
    edge = ends(*given[:2])
    if edge is None or len(given) == 2:
        return edge and (*edge, 0)
    return (*edge, max(0, whole_amount(given[2], largest))) if isfinite(real(given[2])) else None


class Fewer(Forest):
    """Every edge of the forest is one component less."""

    def insert(self, edge: Record, changes: Changes) -> None:
        self._lessened(super().insert, edge, changes)

    def delete(self, edge: Record, changes: Changes) -> None:
        self._lessened(super().delete, edge, changes)

    def _lessened(self, change: Callable[[Record, Changes], None], edge: Record, changes: Changes) -> None:
        cost: Changes = {}
        change((*edge[:2], 1), cost)
        changes[0] = changes.get(0, 0) - cost.get(0, 0)
