"""Graph statistics, kept edge by edge, against brute force; what is refused; what a mechanism makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graph_truths as truth
import numpy as np
import pytest
from graph_streams import COMMON, edges_of, made, values
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.applications.graph import (
    Components,
    DegreeHistogram,
    HighDegree,
    SpanningForestCost,
    Stars,
    Subgraphs,
    Triangles,
)
from evertally.applications.graph.pattern import Pattern
from evertally.applications.records import Records
from evertally.counting.accumulate import AccumulatingProcess
from evertally.noise import ZeroNoise

PATH = [(0, 1), (1, 2), (2, 3)]
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]
PAW = [(0, 1), (1, 2), (2, 0), (2, 3)]
NODES = [str(i) for i in range(6)]
EDGES = edges_of(6)
K6 = [(*edge, (3 * i) % 4) for i, edge in enumerate(EDGES)]

Truth = Callable[[list[Any]], Any]

KEPT: dict[str, tuple[Callable[[], Any], Truth]] = {
    "triangles": (lambda: made(Triangles, vertices=6), lambda e: truth.triangles(truth.once(e))),
    "triangles projected": (
        lambda: made(Triangles, max_degree=2),
        lambda e: truth.triangles(truth.projected(e, 2)),
    ),
    "triangles of copies": (
        lambda: made(Triangles, max_degree=9, degree_bound="declared", copies="counted"),
        truth.triangles,
    ),
    "triangles of copies projected": (
        lambda: made(Triangles, max_degree=3, copies="counted"),
        lambda e: truth.triangles(truth.projected(e, 3, arrivals=True)),
    ),
    "stars": (lambda: made(Stars, k=3, max_degree=4), lambda e: truth.stars(truth.once(e), 3, 4)),
    "stars of copies": (
        lambda: made(Stars, max_degree=3, copies="counted"),
        lambda e: truth.stars(e, 2, 3),
    ),
    "paths": (lambda: made(Subgraphs, PATH, vertices=6), lambda e: truth.copies(truth.once(e), PATH)),
    "paws projected": (
        lambda: made(Subgraphs, PAW, max_degree=3),
        lambda e: truth.copies(truth.projected(e, 3), PAW),
    ),
    "squares of copies": (
        lambda: made(Subgraphs, SQUARE, max_degree=9, degree_bound="declared", copies="counted"),
        lambda e: truth.copies(e, SQUARE),
    ),
    "high degree": (lambda: made(HighDegree, threshold=2), lambda e: truth.above(truth.once(e), 2)),
    "histogram": (
        lambda: made(DegreeHistogram, vertices=6, max_degree=3),
        lambda e: truth.histogram(truth.once(e), NODES, 3),
    ),
    "histogram projected": (
        lambda: made(DegreeHistogram, vertices=6, max_degree=3, degree_bound="projected"),
        lambda e: truth.histogram(truth.projected(e, 3), NODES, 3),
    ),
    "histogram without vertices": (
        lambda: made(DegreeHistogram, max_degree=4),
        lambda e: truth.histogram(truth.once(e), NODES, 4)[1:],
    ),
    "components": (lambda: made(Components, vertices=6), lambda e: truth.components(e, NODES)),
    "forest": (lambda: made(SpanningForestCost, max_weight=3), truth.forest_cost),
    "forest projected": (
        lambda: made(SpanningForestCost, max_weight=3, max_degree=2),
        lambda e: truth.forest_cost(truth.projected(e, 2)),
    ),
}


@pytest.mark.parametrize("name", KEPT)
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_edge_by_edge_is_the_same_as_from_scratch(name: str, data: Any) -> None:
    make, exact = KEPT[name]
    records: Any = st.sampled_from(EDGES)
    if "forest" in name:
        records = st.tuples(records, st.integers(0, 3)).map(lambda pair: (*pair[0], pair[1]))
    stream = data.draw(st.lists(records, max_size=14))
    wanted = [exact(stream[: i + 1]) for i in range(len(stream))]
    assert values(make(), stream, 4 if "histogram" in name else 1) == wanted


GONE: dict[str, tuple[Callable[..., Any], Truth]] = {
    "triangles": (lambda **o: made(Triangles, **o), truth.triangles),
    "stars": (lambda **o: made(Stars, k=3, **o), lambda e: truth.stars(e, 3, 5)),
    "paws": (lambda **o: made(Subgraphs, PAW, **o), lambda e: truth.copies(e, PAW)),
    "high degree": (lambda **o: made(HighDegree, threshold=4, **o), lambda e: truth.above(e, 4)),
    "histogram": (lambda **o: made(DegreeHistogram, **o), lambda e: truth.histogram(e, NODES, 5)),
    "components": (lambda **o: made(Components, **o), lambda e: truth.components(e, NODES)),
    "forest": (lambda **o: made(SpanningForestCost, max_weight=3, **o), truth.forest_cost),
}


@pytest.mark.parametrize("name", GONE)
@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(gone=st.lists(st.sampled_from(K6), max_size=20))
def test_deletions_are_the_same_as_from_scratch(name: str, gone: list[Any]) -> None:
    make, exact = GONE[name]
    weighted = name == "forest"
    graph = K6 if weighted else EDGES
    statistic = make(updates="delete", initial=graph)
    left = [[edge for edge in graph if edge[:2] not in {g[:2] for g in gone[: i + 1]}] for i in range(len(gone))]
    stream = [edge if weighted else edge[:2] for edge in gone]
    assert values(statistic, stream, 6 if name == "histogram" else 1) == [exact(edges) for edges in left]


@pytest.mark.parametrize("name", [*KEPT, *(f"{name} gone" for name in GONE)])
def test_a_call_that_is_taken_back_leaves_nothing(name: str) -> None:
    graph = K6 if "forest" in name else EDGES
    gone = name.removesuffix(" gone")
    statistic = KEPT[name][0]() if name in KEPT else GONE[gone][0](updates="delete", initial=graph)
    encoder = statistic.encoder()
    first, second = Records(tuple(graph[:4])), Records((*graph[3:11], graph[0]))
    encoder.changes(first)
    encoder.begin(1)
    before = encoder.save()
    changes = encoder.changes(second)
    after = encoder.save()
    encoder.undo(1)
    assert encoder.save() == before != after
    restored = statistic.encoder()
    restored.load(1, before)
    for again in (encoder, restored):
        again.begin(1)
        assert again.changes(second) == changes
        assert again.save() == after


def test_patterns_have_as_many_automorphisms_as_they_should() -> None:
    whole = [(a, b) for a in range(5) for b in range(a)]
    for edges, nodes, number in ((PATH, 4, 2), (SQUARE, 4, 8), (PAW, 4, 2), (whole, 5, 120)):
        pattern = Pattern.of(edges)
        assert (pattern.nodes, pattern.automorphisms) == (nodes, number)
        assert sum(placing.ways for placing in pattern.placings()) == 2 * len(edges)
    for wrong in ("ab", [(0, 1)], [(0, 1), (2, 3)], [(0, 1), (1, 0), (1, 2)], [(0, 0), (0, 1)], [(0, 1, 2)], 7, None):
        with pytest.raises(et.ConfigurationError, match="pattern"):
            Pattern.of(wrong)


def test_a_star_with_many_arms_has_a_bound_that_is_no_integer() -> None:
    """h = 2 * 4 * (D-1)^3 / 24 = 8/3 at D = 3: rounded up where it is charged."""
    star = made(Subgraphs, [(0, i) for i in range(1, 5)], max_degree=3)
    assert (star.certified().change.l2_squared, star.certified().change.l1) == (36, 8)


REFUSED = {
    "both": (Triangles, {"max_degree": 3, "updates": "both"}, "again and again"),
    "no degree": (Triangles, {}, "max_degree is needed"),
    "copies without a degree": (Triangles, {"vertices": 5, "copies": "counted"}, "max_degree is needed"),
    "nothing to count": (Triangles, {"max_degree": 1}, "nothing can change"),
    "stars larger than degrees": (Stars, {"k": 4, "max_degree": 3}, "nothing can change"),
    "one arm": (Stars, {"k": 1, "max_degree": 3}, "k must be"),
    "degree above the others": (Stars, {"vertices": 4, "max_degree": 4}, "max_degree must be"),
    "node, replaced": (
        HighDegree,
        {"threshold": 1, "vertices": 4, "copies": "absent", "protects": "node", "neighbours": "replace"},
        "add_remove",
    ),
    "node, copies": (Components, {"vertices": 4, "protects": "node"}, "no edge comes twice"),
    "node, enforced": (
        Stars,
        {"max_degree": 3, "copies": "absent", "protects": "node"},
        "shifts the ranks",
    ),
    "node, users": (
        Stars,
        {"vertices": 4, "copies": "absent", "protects": "node", "unit": "user", "max_events_per_user": 2},
        "unit",
    ),
    "node, pattern": (
        Subgraphs,
        {"pattern": PATH, "vertices": 5, "copies": "absent", "protects": "node"},
        "not proved for patterns",
    ),
    "components without vertices": (Components, {}, "components need vertices"),
    "deletions from nothing": (Triangles, {"updates": "delete"}, "needs initial"),
    "insertions into a public graph": (Triangles, {"max_degree": 3, "initial": EDGES}, "goes with updates"),
    "deletions of copies": (Stars, {"updates": "delete", "initial": EDGES, "copies": "counted"}, "leave out"),
    "deletions, degree": (Stars, {"updates": "delete", "initial": EDGES, "max_degree": 9}, "that of initial"),
    "an edge of initial twice": (Stars, {"updates": "delete", "initial": [*EDGES, ("1", "0")]}, "each edge once"),
    "no edge in initial": (Stars, {"updates": "delete", "initial": [*EDGES, ("1", "1")]}, "each edge once"),
    "initial without weights": (
        SpanningForestCost,
        {"max_weight": 2, "updates": "delete", "initial": EDGES},
        "weight",
    ),
    "threshold above": (HighDegree, {"threshold": 4, "max_degree": 3}, "threshold"),
    "degree without use": (
        HighDegree,
        {"threshold": 2, "max_degree": 3, "degree_bound": "declared"},
        "no bound on degrees is needed",
    ),
    "clipped triangles": (Triangles, {"max_degree": 3, "degree_bound": "clipped"}, "degree_bound is one of"),
    "declared with copies": (Stars, {"max_degree": 3, "degree_bound": "declared"}, "saves nothing"),
    "copies projected": (Stars, {"max_degree": 3, "copies": "counted", "degree_bound": "projected"}, "clipped"),
    "a word": (Stars, {"max_degree": 3, "copies": "twice"}, "copies is one of"),
    "weights": (SpanningForestCost, {"max_weight": 0}, "max_weight"),
    "more than 64 bits": (Stars, {"k": 9, "max_degree": 2**20}, "fit 64 bits"),
    "more than there can be": (DegreeHistogram, {"max_degree": 10**30}, "max_degree must be"),
    "independent": (Stars, {"max_degree": 3, "neighbours": "independent"}, "add_remove"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    statistic, options, words = REFUSED[name]
    with pytest.raises(et.ConfigurationError, match=words):
        statistic(**COMMON | {"key": et.simulation(1)} | options)


def test_processes_of_others_get_what_only_appears(no_more_processes: None) -> None:
    name = "process of a graph test"

    def pile(charge: Any, setting: Any, source: Any) -> Any:
        return AccumulatingProcess(
            charge, setting.change, horizon=setting.horizon, columns=setting.columns, source=source
        )

    et.register_process(name, pile, proof="parameterized-histograms 3.1", pure=True)
    options: dict[str, Any] = {"guarantee": et.PureDP(1.0), "mechanism": name, "vertices": 5}
    for kind in (Triangles, Stars):
        assert made(kind, copies="absent", **options).step([("0", "1")]).tick == 1
        for wrong in ({}, {"copies": "absent", "neighbours": "replace"}):
            with pytest.raises(et.ConfigurationError, match="S3"):
                made(kind, **options, **wrong)
    for kind in (DegreeHistogram, Components):
        with pytest.raises(et.ConfigurationError, match="S3"):
            made(kind, copies="absent", **options)


def test_users_pay_for_all_their_records() -> None:
    capped: dict[str, Any] = {"unit": "user", "max_events_per_user": 3}
    assert made(HighDegree, threshold=2, **capped).sensitivity.l2_squared == 9 * 8
    # A user who is replaced takes three records away and brings three.
    replaced = made(HighDegree, threshold=2, neighbours="replace", **capped)
    assert (replaced.sensitivity.l2_squared, replaced.sensitivity.l1) == (36 * 8, 6 * 4)


def test_what_is_public_before_the_first_tick_is_there_and_in_no_window() -> None:
    shared: dict[str, Any] = COMMON | {"key": ZeroNoise(), "max_window": 9}
    groups = Components(vertices=6, **shared)
    assert [groups.step(edges).value for edges in ([], [(0, 1), (1, 0)], [(1, 2)])] == [6, 5, 4]
    assert groups.last(3).value == -2
    degrees = DegreeHistogram(updates="delete", initial=EDGES, **shared)
    assert degrees.step([("0", "1"), ("1", "0"), ("0", "9")]).value == {
        "0": 0, "1": 0, "2": 0, "3": 0, "4": 2, ">=5": 4,
    }  # fmt: skip
    assert degrees.last(1).value == {"0": 0, "1": 0, "2": 0, "3": 0, "4": 2, ">=5": -2}
    again = et.restore(degrees.snapshot(), key=ZeroNoise())
    assert again.step([("0", "1"), ("2", "3")]).value == degrees.step([("3", "2")]).value


def test_the_order_inside_a_tick_says_nothing() -> None:
    edges = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("c", "d")]
    one, other = (Triangles(max_degree=2, guarantee=et.ZCDP(0.5), horizon=9, key=ZeroNoise()) for _ in range(2))
    assert one.step(edges).value == other.step(edges[::-1]).value


def test_weights_are_bounded_one_by_one() -> None:
    forest = SpanningForestCost(max_weight=5, **COMMON | {"key": ZeroNoise()})
    records = [("a", "b", 9), ("b", "c", -4), ("c", "d", 2.9), ("d", "e", "3"), ("e", "f", True)]
    useless = [("f", "g", None), ("f", "g", "far"), ("f", "g", float("inf")), ("f", "g"), ("f", "f", 1), "fg1", 7]
    assert forest.step([*records, *useless]).value == 5 + 0 + 2 + 3 + 1


@pytest.mark.parametrize(
    "options",
    [
        {"initial": 5},
        {"initial": []},
        {"updates": np.array(["insert", "delete"])},
        {"copies": ["ignored"]},
        {"degree_bound": None},
    ],
)
def test_options_of_other_types_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(et.ConfigurationError):
        made(Triangles, max_degree=3, **options)
