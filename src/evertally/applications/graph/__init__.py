"""Statistics of graphs whose edges arrive as a stream (factorization-counting 6.4, 6.5)."""

from evertally.applications.graph.counts import EdgeCount
from evertally.applications.graph.cut_answers import FoundCut, GraphRelease
from evertally.applications.graph.cuts import CutGraph
from evertally.applications.graph.degree_histogram import DegreeHistogram
from evertally.applications.graph.degrees import DegreeRelease, DegreeVector
from evertally.applications.graph.forest import Components, SpanningForestCost
from evertally.applications.graph.high_degree import HighDegree
from evertally.applications.graph.patterns import Subgraphs
from evertally.applications.graph.stars import Stars
from evertally.applications.graph.triangles import Triangles

__all__ = [
    "Components",
    "CutGraph",
    "DegreeHistogram",
    "DegreeRelease",
    "DegreeVector",
    "EdgeCount",
    "FoundCut",
    "GraphRelease",
    "HighDegree",
    "SpanningForestCost",
    "Stars",
    "Subgraphs",
    "Triangles",
]
