"""What a [[query]] about a graph may say: the two columns that are an edge, its weight, what a record does."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from evertally.applications.graph.options import MOST_VERTICES
from evertally.encode.labels import canonical
from evertally.kinds.fields import Flag, Label, OptionError, Text, Whole, says
from evertally.kinds.query_table import Query, check_words

_TWO = 'must be the two columns that are the ends of an edge, for example ["caller", "called"]'
Ends = Annotated[list[Text], Field(min_length=2, max_length=2), says(_TWO)]
Edges = Annotated[
    list[Annotated[list[str | int], Field(min_length=2, max_length=3)]],
    Field(min_length=1),
    says('must be a list of edges such as [["a", "b"], ["b", "c"]]'),
]
Vertices = Annotated[
    list[str | int | bool] | Annotated[int, Field(ge=2, le=MOST_VERTICES)],
    says('must be a list of labels such as ["JFK", "LGA"], or a number n from 2 to 2^20 for the vertices 0 to n-1'),
]
_MOST_PAIRED = 1448  # vertices: a release has a line for each of 2^20 pairs


class GraphQuery(Query):
    """Where the edges are, and what is declared about them."""

    columns: Ends
    vertices: Vertices | None = None
    updates: Literal["insert", "delete", "both"] | None = None
    initial: Edges | None = None
    copies: Literal["ignored", "counted", "absent"] | None = None
    protects: Literal["edge", "node"] | None = None
    max_degree: Whole | None = None
    degree_bound: Literal["projected", "declared", "clipped"] | None = None

    @model_validator(mode="after")
    def _two_columns(self) -> Self:
        if self.column is not None:
            raise OptionError("column", "an edge has two ends: name both columns in columns = [...]")
        if len(set(self.columns)) != 2:
            raise OptionError("columns", "the two ends of an edge are two columns")
        return self


class LinearGraphQuery(GraphQuery):
    """Sums over edges: these may also be deleted one by one."""

    action: Text | None = None
    insert: Label | None = None
    delete: Label | None = None

    @model_validator(mode="after")
    def _actions_and_their_words(self) -> Self:
        if (self.action is not None) != (self.updates == "both"):
            raise OptionError(
                None,
                'updates = "both" goes with action = "...", the column that says whether an event inserts or deletes',
            )
        check_words(self.action, self.insert, self.delete)
        return self


class EdgeCountQuery(LinearGraphQuery):
    pass


class DegreeVectorQuery(LinearGraphQuery):
    vertices: Vertices


class CutGraphQuery(LinearGraphQuery):
    vertices: Vertices
    weight: Text | None = None
    max_weight: Whole | None = None
    signed: Flag | None = None

    @model_validator(mode="after")
    def _weights(self) -> Self:
        if self.weight is None and (self.max_weight is not None or self.signed is not None):
            raise OptionError(None, "max_weight and signed go with weight, the column that holds it")
        if self.weight is not None and self.action is not None:
            raise OptionError("weight", "weights add up, and are not deleted: leave out action, or use signed = true")
        alone = self.updates in (None, "insert") and self.protects in (None, "edge") and self.max_degree is None
        if self.weight is not None and not (alone and self.copies in ("counted", "absent")):
            # Otherwise an edge is there or not: its weight would be read, and mean nothing.
            raise OptionError(
                "weight",
                'weights add up: weight goes with copies = "counted" (or "absent", if no edge ever comes twice), '
                'updates = "insert", protects = "edge" and no max_degree',
            )
        return self

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if (self.vertices if isinstance(self.vertices, int) else len(self.vertices)) > _MOST_PAIRED:
            raise OptionError(
                "vertices",
                f"a release has a line for each pair, so there are at most {_MOST_PAIRED} vertices here: declare "
                "fewer, or ask for a degree_vector",
            )
        return self


class StarsQuery(GraphQuery):
    k: Whole = 2


class SubgraphsQuery(GraphQuery):
    pattern: Edges


class HighDegreeQuery(GraphQuery):
    threshold: Whole


class DegreeHistogramQuery(GraphQuery):
    @model_validator(mode="after")
    def _bins(self) -> Self:
        if self.max_degree is None and self.vertices is None and self.initial is None:
            raise OptionError(None, "needs max_degree (the last bin is for that many edges or more), or its vertices")
        return self


class SpanningForestCostQuery(GraphQuery):
    weight: Text
    max_weight: Whole


class ComponentsQuery(GraphQuery):
    vertices: Vertices


def vertices_of(parameters: Any) -> list[str]:
    """The declared vertices, as releases name them.

    >>> vertices_of({"vertices": 3})
    ['0', '1', '2']
    """
    given = parameters["vertices"]
    return [str(canonical(vertex)) for vertex in (range(given) if isinstance(given, int) else given)]
