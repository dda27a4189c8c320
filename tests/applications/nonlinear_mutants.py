"""Planted bugs of functions of graphs, each with the probe that finds it (factorization-counting 6.5, 12).

A probe returns what it found, in words; nothing, where nothing is wrong.

>>> plain = next(mutant for mutant in NONLINEAR_MUTANTS if mutant.name == "a projection at the price of the graph")
>>> plain.probe()
''
>>> with plain.patch():
...     plain.probe()
'neighbours differ by 45.0 and 9, claimed are 9 and 3'
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import factorial
from typing import Any
from unittest import mock

import graph_truths as truth
from graph_streams import drawn, edge_streams, edges_of, made, values, without, without_nodes, worst_of

from evertally.applications.graph import (
    DegreeHistogram,
    HighDegree,
    SpanningForestCost,
    Stars,
    Subgraphs,
    Triangles,
    patterns,
    prices,
    triangles,
)
from evertally.applications.graph.degree_functions import DegreeBins
from evertally.applications.graph.gates import FirstCopies, Ranked
from evertally.applications.graph.links import Links
from evertally.applications.graph.prices import Price
from evertally.applications.records import Records
from evertally.applications.refuter import Pair, Stream

Probe = Callable[[], str]
Patch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Mutant:
    """A bug: what it is, what the specification says of it, how to plant it, what finds it."""

    name: str
    docstring: str
    patch: Patch
    probe: Probe


def _compared(statistic: Any, pairs: list[Pair]) -> str:
    worst = worst_of(statistic, pairs)
    said = f"claimed are {worst.claim.l2_squared} and {worst.claim.l1}"
    return f"neighbours differ by {worst.l2_squared} and {worst.l1}, {said}" if worst.refuted else ""


def _removals(*all_streams: Stream) -> list[Pair]:
    return [without(stream, place) for stream in all_streams for place in range(len(stream))]


# -- probes ------------------------------------------------------------------------------------------------------------


def projected_stars() -> str:
    long = drawn("01 12 02 23 13 34 24 45 35 56 46 67 57")
    return _compared(made(Stars, max_degree=2, degree_bound="projected"), _removals(long))


def projected_triangles() -> str:
    late = drawn("01 02 12 03 13 04 14 25 35 45 26 36 46 05 16")
    return _compared(made(Triangles, max_degree=4), [without(late, 0)])


def counts_are_exact() -> str:
    stream = drawn("01 02 12 03 01 13 23 12 14 34 24 04")
    exact = [truth.triangles(truth.once(stream[: i + 1])) for i in range(len(stream))]
    bins = [truth.histogram(truth.once(stream[: i + 1]), list("01234"), 2) for i in range(len(stream))]
    if values(made(Triangles, vertices=5), stream) != exact:
        return "triangles are not those of the graph"
    kept = values(made(DegreeHistogram, vertices=5, max_degree=2), stream, 3)
    return "" if kept == bins else "bins are not those of the graph"


def replaced_edge() -> str:
    stream = drawn("01 04 15 07 18 26 39 2a 3b")
    pair = (stream, (("2", "3"), *stream[1:]))
    return _compared(made(HighDegree, threshold=2, neighbours="replace"), [pair])


def interrupted_call() -> str:
    encoder = made(Triangles, vertices=5).encoder()
    encoder.changes(Records(drawn("01 02")))
    encoder.begin(1)
    before = encoder.save()
    encoder.changes(Records(drawn("12 03 13")))
    encoder.undo(1)
    return "" if encoder.save() == before else "a call that was taken back left edges"


def node_of_triangles() -> str:
    statistic = made(Triangles, vertices=4, copies="absent", protects="node")
    return _compared(statistic, list(without_nodes(drawn("01 02 12 03 13 23"))))


def roots_are_rounded_up() -> str:
    """(sqrt(a) + sqrt(b))^2 <= v, in integers: v >= a + b and (v - a - b)^2 >= 4ab."""
    for D in range(1, 40):
        a, b = 4 * (6 * D - 2), 4 * (6 * D - 4)
        rest = prices.histogram("projected", D).gamma_squared - a - b
        if rest < 0 or rest * rest < 4 * a * b:
            return f"at D = {D} less is charged than is proved"
    return ""


def lightest_copy() -> str:
    some = list(edge_streams(3, 4, weights=(0, 1)))
    return _compared(made(SpanningForestCost, max_weight=1), _removals(*some))


def paths_through_an_edge() -> str:
    statistic = made(Subgraphs, [(0, 1), (1, 2), (2, 3)], vertices=4, copies="absent")
    return _compared(statistic, _removals(drawn("01 02 12 03 13 23")))


def deleted_triangles() -> str:
    statistic = made(Triangles, updates="delete", initial=edges_of(4), copies="absent")
    return _compared(statistic, _removals(drawn("01 02 12 03 13 23")))


# -- bugs --------------------------------------------------------------------------------------------------------------


def _kept_ranks(self: Any, edge: Any) -> bool:
    if max(self._ranks.get(end, 0) for end in edge[:2]) >= self._degree:
        return False
    return all(self._ranks.add(end, 1) for end in edge[:2])


def _leaves_above(self: Any, degree: int, sign: int, changes: Any) -> None:
    for at, amount in ((degree, sign), (degree - 1, -sign)):
        if self._lowest <= at <= self._largest:
            changes[at - self._lowest] = changes.get(at - self._lowest, 0) + amount


_one_signed = prices.one_signed


def _as_plain(*, where: str) -> Any:
    return lambda h, case: _one_signed(h, "plain" if case == where else case)


def _all_permutations(degree: int, nodes: int, edges: int, automorphisms: int, *, counted: bool = False) -> Any:
    return prices.copies_through_edge(degree, nodes, edges, factorial(nodes), counted=counted)


def _planted(target: Any, **attributes: Any) -> Patch:
    return lambda: mock.patch.multiple(target, **attributes)


NONLINEAR_MUTANTS = [
    Mutant(
        "ranks of kept edges",
        "6.5, projection: ranks that count kept edges only cascade",
        _planted(Ranked, _low=_kept_ranks),
        projected_stars,
    ),
    Mutant(
        "a projection at the price of the graph",
        "6.5: projected triangles are 5 (D-1)^2",
        _planted(triangles, one_signed=_as_plain(where="projected")),
        projected_triangles,
    ),
    Mutant(
        "copies that count",
        "6.5, door: copies of an edge are nothing after the first",
        _planted(FirstCopies, admit=lambda self, edge: True),
        counts_are_exact,
    ),
    Mutant(
        "vertices that leave the last bin",
        '6.5: the last bin means ">= D"',
        _planted(DegreeBins, between=_leaves_above),
        counts_are_exact,
    ),
    Mutant(
        "replacement at the price of removal",
        "6.5, REPLACE: Gamma times 2",
        _planted(Price, times=lambda self, factor: self),
        replaced_edge,
    ),
    Mutant(
        "links that stay after an interruption",
        "architecture, rule 4: a call that raises has used no tick",
        _planted(Links, undo=lambda self: None),
        interrupted_call,
    ),
    Mutant(
        "a node at the price of an edge",
        "6.5, node level: triangles C(D,2)",
        _planted(triangles, triangles_at_node=lambda degree: _one_signed(degree - 1, "plain")),
        node_of_triangles,
    ),
    Mutant(
        "a root rounded down",
        "12, trap 23: norms rounded to nearest instead of up",
        _planted(prices, square_of_sum=lambda a, b: int((a**0.5 + b**0.5) ** 2)),
        roots_are_rounded_up,
    ),
    Mutant(
        "the first copy's weight stays",
        "6.5: lightest copy counts; if the first copy's weight stays 8 W^2",
        _planted(SpanningForestCost, _every_copy=False),
        lightest_copy,
    ),
    Mutant(
        "all permutations for automorphisms",
        "6.5: h = 2 m (D-1)^(k-2) / |Aut H|",
        _planted(patterns, copies_through_edge=_all_permutations),
        paths_through_an_edge,
    ),
    Mutant(
        "deletions at the price of insertions",
        "6.5, deletion-only: triangles 2x plain, surviving copies vanish later",
        _planted(triangles, one_signed=_as_plain(where="cut")),
        deleted_triangles,
    ),
]
