"""Statistics of graphs whose edges arrive as a stream (factorization-counting 6.4, 6.5)."""

from evertally.applications.graph.counts import EdgeCount
from evertally.applications.graph.cut_answers import FoundCut, GraphRelease
from evertally.applications.graph.cuts import CutGraph
from evertally.applications.graph.degrees import DegreeRelease, DegreeVector

__all__ = ["CutGraph", "DegreeRelease", "DegreeVector", "EdgeCount", "FoundCut", "GraphRelease"]
