"""Tiny streams of edges, up to the names of their vertices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import evertally as et
from evertally.applications.paths import Path, difference
from evertally.applications.records import Record, Records
from evertally.applications.refuter import Pair, Stream, Worst, search
from evertally.privacy import Change

COMMON: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 40}


def made(statistic: Any, *pattern: Any, **options: Any) -> Any:
    """A statistic that is asked for its claims, and whose noise nobody looks at."""
    return statistic(*pattern, **COMMON | {"key": et.simulation(1)} | options)


def edges_of(nodes: int) -> list[Record]:
    return [(str(a), str(b)) for a, b in combinations(range(nodes), 2)]


def edge_streams(nodes: int, length: int, copies: bool = True, weights: Sequence[int] = ()) -> Iterator[Stream]:
    """All streams of edges on so many vertices, where a new vertex always has the next name: every other stream is one
    of these with other names."""

    def grow(stream: Stream, used: int) -> Iterator[Stream]:
        if len(stream) == length:
            yield stream
            return
        for a in range(min(nodes, used + 1)):
            for b in range(a + 1, min(nodes, max(used, a + 1) + 1)):
                edge = (str(a), str(b))
                if copies or all(edge != before[:2] for before in stream if before):
                    for record in [(*edge, weight) for weight in weights] or [edge]:
                        yield from grow((*stream, record), max(used, b + 1))

    yield from grow((), 0)


def drawn(text: str, weights: Sequence[int] | None = None) -> Stream:
    """ "01 02" as a stream of edges."""
    edges: list[Record] = [(pair[0], pair[1]) for pair in text.split()]
    return tuple(edges if weights is None else [(*edge, w) for edge, w in zip(edges, weights, strict=True)])


def without(stream: Stream, place: int) -> Pair:
    return stream, (*stream[:place], None, *stream[place + 1 :])


def without_nodes(stream: Stream) -> Iterator[Pair]:
    """A stream, and it without all edges of one vertex."""
    for node in {end for record in stream if record for end in record[:2]}:
        yield stream, tuple(None if record and node in record[:2] else record for record in stream)


def played(statistic: Any, stream: Stream) -> Path:
    """What the encoder says, tick by tick."""
    encoder = statistic.encoder()
    return [encoder.changes(Records(() if record is None else (record,))) for record in stream]


def values(statistic: Any, stream: Stream, width: int = 1) -> list[Any]:
    """The exact statistic after each tick: a number, or a list of them."""
    rows, sums = [], [0] * width
    for changes in played(statistic, stream):
        sums = [total + changes.get(column, 0) for column, total in enumerate(sums)]
        rows.append(sums)
    return [row[0] for row in rows] if width == 1 else rows


def differing(statistic: Any, pair: Pair) -> Path:
    return difference(played(statistic, pair[0]), played(statistic, pair[1]))


def worst_of(statistic: Any, pairs: Iterable[Pair], claim: Change | None = None) -> Worst:
    return search(statistic.encoder, pairs, claim or statistic.certified().change)
