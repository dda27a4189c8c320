"""Statistics of graphs whose edges arrive as a stream (factorization-counting 6.4, 6.5)."""

from evertally.applications.graph.counts import EdgeCount

__all__ = ["EdgeCount"]
