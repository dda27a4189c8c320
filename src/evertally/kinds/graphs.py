"""Graphs: events of two columns are edges."""

from __future__ import annotations

import json
from functools import lru_cache, partial
from typing import Any

from evertally.applications.graph import (
    Components,
    CutGraph,
    DegreeHistogram,
    DegreeVector,
    EdgeCount,
    HighDegree,
    SpanningForestCost,
    Stars,
    Subgraphs,
    Triangles,
)
from evertally.applications.graph.cuts import pair_labels
from evertally.encode.labels import canonical
from evertally.kinds.graph_tables import (
    ComponentsQuery,
    CutGraphQuery,
    DegreeHistogramQuery,
    DegreeVectorQuery,
    EdgeCountQuery,
    GraphQuery,
    HighDegreeQuery,
    SpanningForestCostQuery,
    StarsQuery,
    SubgraphsQuery,
    vertices_of,
)
from evertally.kinds.kind import Arguments, Card, Items, Kind, Result
from evertally.kinds.proofs import NOISE_PROCESSES
from evertally.kinds.reads import AMOUNTS, NAMES, Cells, Parameters, Records
from evertally.noise import simulation
from evertally.privacy import ZCDP

_OF_THE_INPUT = ("columns", "weight", "action", "insert", "delete")  # the class never hears of columns


def records(count: int, cells: Cells, parameters: Parameters) -> list[Any]:
    """Edges: (one end, other end), with a weight behind them or an action before them.

    >>> records(2, {"columns": [["a", "b"], ["c", "d"]], "action": ["new", "?"]}, {"insert": "new", "delete": "gone"})
    [('insert', 'a', 'c'), (None, 'b', 'd')]
    """
    parts: list[Any] = list(cells["columns"])
    if "weight" in cells:
        parts.append(cells["weight"])
    if "action" in cells:
        actions = cells["action"]
        if "insert" in parameters:
            known = {canonical(parameters[word]): word for word in ("insert", "delete")}
            actions = [known.get(canonical(cell)) for cell in actions]
        parts.insert(0, actions)
    return list(zip(*parts, strict=True))


def items(parameters: Parameters) -> Items | None:
    """The vertices, where a query protects them."""
    if parameters.get("protects") != "node":
        return None
    ends = sorted(parameters["columns"])
    return Items(
        ("node", *ends),
        f"a name in the columns {ends[0]!r} and {ends[1]!r}",
        f"A node is one name in the columns {ends[0]!r} and {ends[1]!r}, with all its edges. How many edges it has at "
        "most, and that no edge comes twice, is declared: privacy rests on it.",
        one="node",
        single="edge",
        whole="a vertex with all its edges",
    )


def rests_on(parameters: Parameters) -> list[str]:
    """What was declared of the edges, and is not enforced."""
    facts = []
    if parameters.get("copies") == "absent":
        facts.append("by construction of its source no edge comes twice")
    if parameters.get("degree_bound") == "declared":
        facts.append(f"by construction of its source no vertex ever has more than {parameters['max_degree']} edges")
    return facts


def _arguments(parameters: Parameters) -> Arguments:
    return {option: value for option, value in parameters.items() if option not in _OF_THE_INPUT}


@lru_cache(maxsize=256)
def _named_bins(written: str) -> tuple[str, ...]:
    model = DegreeHistogram(**json.loads(written), guarantee=ZCDP(1), horizon=1, key=simulation(0))
    return tuple(model.step([]).value)


def _bins(parameters: Parameters) -> list[str]:
    """As the statistic names them: how many there are follows from all that is declared. Asked for at every release, so
    remembered."""
    decide = ("vertices", "max_degree", "degree_bound", "updates", "initial", "copies", "protects")
    return list(_named_bins(json.dumps({name: parameters[name] for name in decide if name in parameters})))


@lru_cache(maxsize=16)
def _named_pairs(vertices: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(pair_labels(list(vertices)))


def _pairs(parameters: Parameters) -> list[str]:
    return list(_named_pairs(tuple(vertices_of(parameters))))


_graph = partial(
    Kind,
    reads=NAMES,
    records=Records({"columns": NAMES, "weight": AMOUNTS, "action": NAMES}, records),
    items=items,
    rests_on=rests_on,
    ordered=lambda parameters: True,  # the first edges of a vertex are kept, and a deletion finds what came before it
    names_others="An edge concerns two people: whose event it is, is protected; who is only named at its other end is "
    "not.",
    proofs=NOISE_PROCESSES,
    change_proof="factorization-counting 6.0 and 6.5",
    arguments=_arguments,
)
_figure = partial(_graph, result=Result())

KINDS = (
    _figure(statistic=EdgeCount, options=EdgeCountQuery, card=Card("figure", "Edges so far")),
    _graph(
        statistic=DegreeVector,
        options=DegreeVectorQuery,
        result=Result(categories=vertices_of),
        card=Card("bars", "Edges of each vertex"),
    ),
    _graph(
        statistic=CutGraph,
        options=CutGraphQuery,
        result=Result(categories=_pairs),
        card=Card("cuts", "The graph, by its cuts", vertices=vertices_of),
        change_proof="factorization-counting 6.0, 6.4 and 6.5",
    ),
    _figure(statistic=Triangles, options=GraphQuery, card=Card("figure", "Triangles so far")),
    _figure(statistic=Stars, options=StarsQuery, card=Card("figure", "Stars with {k} edges so far")),
    _figure(statistic=Subgraphs, options=SubgraphsQuery, card=Card("figure", "Copies of a pattern so far")),
    _figure(
        level=True,
        statistic=HighDegree,
        options=HighDegreeQuery,
        card=Card("figure", "Vertices with at least {threshold} edges"),
    ),
    _graph(
        level=True,
        statistic=DegreeHistogram,
        options=DegreeHistogramQuery,
        result=Result(categories=_bins),
        card=Card("bars", "Vertices by their number of edges"),
    ),
    _figure(
        level=True,
        statistic=SpanningForestCost,
        options=SpanningForestCostQuery,
        card=Card("figure", "Weight of the lightest spanning forest"),
    ),
    _figure(level=True, statistic=Components, options=ComponentsQuery, card=Card("figure", "Connected components")),
)
