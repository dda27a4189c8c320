"""Made-up neighbours for linear statistics of graphs. Records are read ones: (smaller end, larger end, amount)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from evertally.applications.graph import CutGraph, DegreeVector, EdgeCount
from evertally.applications.refuter import Pair, Stream
from evertally.noise import simulation
from evertally.privacy import ZCDP

SHAPES = (EdgeCount, DegreeVector, CutGraph)
NODES = ("a", "b", "c", "d")
K4 = [(u, v, 1) for u, v in combinations(NODES, 2)]
MEET = [("a", "b", 1), ("a", "c", 1)]  # two edges with a common end
APART = [("a", "b", 1), ("c", "d", 1)]


def made(kind: Any, **options: Any) -> Any:
    given = {"vertices": [*NODES, "e", "f"], "guarantee": ZCDP(0.5), "horizon": 8, "key": simulation(1)} | options
    return kind(**given)


def without_node(stream: Stream, node: str) -> Pair:
    """Node level: a node with all its edges becomes absent."""
    return stream, tuple(None if record is None or node in record[:2] else record for record in stream)


def without_two(some: Iterator[Stream]) -> Iterator[Pair]:
    """A user with two records becomes absent."""
    for stream in some:
        for i, j in combinations(range(len(stream)), 2):
            yield stream, tuple(None if k in (i, j) else record for k, record in enumerate(stream))
