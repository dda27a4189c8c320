"""Streams of edges to try: all short ones, the families that are known to be bad, and random ones.

Vertices are numbers here; the statistic's own names take their place. The families are those of factorization-counting
6.5: an edge whose ends get other edges before and after (stars, histograms, thresholds), an edge under all others of a
small complete graph (triangles, patterns), chains of edges that flip each other in a projection, copies of all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from evertally.applications.graph import CutGraph, SpanningForestCost
from evertally.applications.graph.options import GraphStatistic
from evertally.audit.application_streams import Sent, Stream, World

Dice = np.random.Generator
Edge = tuple[int, int]
Edges = tuple[Edge, ...]

_NODES = 4  # of streams that are all tried
_ALL_WAYS = 4  # longer streams have some weights and actions, not all
_GOLDEN = (
    "01",
    "01 23",
    "01 02 13",  # D = 1: both ends are full
    "01 12 23 34 45",  # ranks of kept edges alone would flip all of them
    "01 12 02 23 13 34 24 45 35 56 46 67 57",
    "01 02 12 03 13 04 14 25 35 45 26 36 46 05 16",  # triangles that two flipped edges take away
    "01 04 15 07 18 26 39 2a 3b",  # thresholds at four ends, where 23 is in the place of 01
    "01 02 12 03 13 23 01",  # K4, and its first edge once more
    "02 12 03 13 01 01",
    "02 03 14 15 01 06 17 01",
    "01 02 03 04 05 06 12 34 56",  # a star, then a matching of its leaves
    "02 13 01 23 03 12",
    "02 02 02 12 12 12 01 01",  # where every copy counts
    "01 02 01 02",  # two edges of one user, and both once more
    "01 02 03 01 02 03",
)


def drawn(text: str) -> Edges:
    """ "01 02" as edges; letters go on where digits end."""
    return tuple((int(pair[0], 36), int(pair[1], 36)) for pair in text.split())


def short_streams(nodes: int, length: int) -> Iterator[Edges]:
    """All of a length, up to the names of vertices: a new one always has the next name."""

    def grow(edges: Edges, used: int) -> Iterator[Edges]:
        if len(edges) == length:
            yield edges
            return
        for a in range(min(nodes, used + 1)):
            for b in range(a + 1, min(nodes, max(used, a + 1) + 1)):
                yield from grow((*edges, (a, b)), max(used, b + 1))

    yield from grow((), 0)


def double_stars(length: int) -> Iterator[Edges]:
    """The edge 01, once or twice, among new edges at its ends, in every order."""
    for word in product("lre", repeat=length):
        if 1 <= word.count("e") <= 2 and word.index("e") <= 2:
            leaf = iter(range(2, 2 + length))
            yield tuple((0, 1) if letter == "e" else ("lr".index(letter), next(leaf)) for letter in word)


def random_streams(dice: Dice, number: int, nodes: int, length: int) -> Iterator[Edges]:
    """The edges of a complete graph in a random order, and copies of some of them."""
    edges = list(combinations(range(nodes), 2))
    for _ in range(number):
        order = [edges[i] for i in dice.permutation(len(edges))]
        again = [order[i] for i in dice.integers(len(order), size=2)]
        yield tuple((order + again)[:length]) if dice.random() < 0.5 else tuple(order[: length - 1] + order[:1])


def all_others(length: int, dice: Dice) -> list[Edges]:
    """Streams that nobody has chosen."""
    return [
        *random_streams(dice, 12, 4, 7),
        *random_streams(dice, 8, 5, 10),
        *double_stars(length + 1),
        *short_streams(_NODES, length),
        *short_streams(_NODES, length - 1),
    ]


# -- records -----------------------------------------------------------------------------------------------------------


def world_of_edges(model: GraphStatistic, length: int, seed: int = 0) -> World:
    """What may be sent to a statistic of graphs, by what is declared."""
    dice = np.random.default_rng(seed)
    names: Sequence[Any] | None = getattr(model, "_names", None)
    variants = _variants(model)

    def known(edges: Edges) -> bool:
        return names is None or all(end < len(names) for edge in edges for end in edge)

    def record(edge: Edge, variant: Any) -> Any:
        u, v = (str(end) if names is None else names[end] for end in edge)
        if variant is None:
            return u, v
        return (variant, u, v) if model.updates == "both" else (u, v, variant)

    def of(edges: Edges) -> Iterator[Stream]:
        ways: Iterable[tuple[Any, ...]] = product(variants, repeat=len(edges))
        if len(edges) > _ALL_WAYS and len(variants) > 1:
            ways = [
                (variants[0],) * len(edges),
                *(tuple(variants[i] for i in dice.integers(len(variants), size=len(edges))) for _ in range(2)),
            ]
        for way in ways:
            yield tuple(Sent(record(edge, variant)) for edge, variant in zip(edges, way, strict=True))

    bad = list(map(drawn, _GOLDEN))
    if model.updates == "both":
        bad = [(a, b, a, b)[:n] for n in (3, 4) for a, b in (((0, 1), (0, 1)), ((0, 1), (0, 2)))]
    tried = all_others(length if len(variants) == 1 else length - 1, dice)
    streams, others = ([stream for edges in some if known(edges) for stream in of(edges)] for some in (bad, tried))
    if model.updates == "both":  # toggles, which must be nothing
        streams += [tuple(Sent(record((0, 1), "toggle")) for _ in range(n)) for n in (3, 4, 5)]
    loop = record((0, 0), variants[0])
    every = [edge for edge in combinations(range(_NODES), 2) if known((edge,))]

    def instead(stream: Stream, sent: Sent) -> Iterator[Any]:
        yield loop  # which is nothing
        yield from (record(edge, variant) for variant in variants for edge in every)

    return World(streams, others, instead, _legal(model), ends_of)


def _variants(model: Any) -> list[Any]:
    """What stands beside the ends of an edge: an action, or weights, the largest first; None: nothing."""
    if model.updates == "both":
        return ["insert", "delete"]
    if isinstance(model, SpanningForestCost):
        return [model.max_weight, 0]
    if isinstance(model, CutGraph) and (model.max_weight > 1 or model.signed):
        return [model.max_weight, -model.max_weight] if model.signed else [model.max_weight]
    return [None]


def ends_of(record: Any) -> tuple[Any, ...]:
    """The vertices of a raw record, in one order."""
    ends = record[1:] if record[0] in ("insert", "delete") and len(record) == 3 else record[:2]
    return tuple(sorted(map(str, ends)))


def _legal(model: GraphStatistic) -> Callable[[Stream], bool]:
    """Whether the declared facts hold: no edge comes twice, no vertex has more edges than was said."""
    degree = model.max_degree if model.degree_bound == "declared" else None
    counted = model.copies == "counted"

    def legal(stream: Stream) -> bool:
        edges = [ends_of(one.record) for one in stream if one is not None]
        edges = [edge for edge in edges if len(set(edge)) == 2]
        if model.copies == "absent" and len(set(edges)) < len(edges):
            return False
        if degree is None:
            return True
        degrees = Counter(end for edge in (edges if counted else set(edges)) for end in edge)
        return max(degrees.values(), default=0) <= degree

    return legal
