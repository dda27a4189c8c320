"""Edges and degrees: what is refused, what is dropped, what can be asked for, restarts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linear_streams import K4, NODES, SHAPES, made

import evertally as et
from evertally.applications.graph import CutGraph, DegreeVector, EdgeCount
from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.processes import PROCESSES
from evertally.noise import ZeroNoise

PUBLIC = [record[:2] for record in K4]
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"updates": "toggle"}, "updates is one of"),
    ({"copies": "merged"}, "copies is one of"),
    ({"protects": "graph"}, "protects is one of"),
    ({"degree_bound": "hoped"}, "degree_bound is one of"),
    ({"updates": "both", "copies": "absent"}, "comes twice"),
    ({"updates": "delete"}, "initial goes with"),
    ({"initial": PUBLIC}, "initial goes with"),
    ({"updates": "delete", "initial": PUBLIC, "copies": "counted"}, "lost twice"),
    ({"updates": "delete", "initial": [("a", "a")]}, "different edges"),
    ({"updates": "delete", "initial": [("a", "b"), ("b", "a")]}, "different edges"),
    ({"updates": "delete", "initial": []}, "different edges"),
    ({"updates": "delete", "initial": "ab"}, "list of pairs"),
    ({"vertices": ["a"]}, "different labels"),
    ({"vertices": ["a", "a"]}, "different labels"),
    ({"vertices": ["a", "\ud83d"]}, "different labels"),
    ({"vertices": "ab"}, "list of labels"),
    ({"vertices": 1}, "vertices must be"),
    ({"max_degree": 0}, "max_degree must be"),
    ({"max_degree": 3, "degree_bound": "declared"}, "need no max_degree"),
    ({"max_degree": 3, "updates": "both"}, "need no max_degree"),
    ({"protects": "node"}, "proved for"),
    ({"protects": "node", "copies": "absent", "updates": "delete", "initial": PUBLIC}, "proved for"),
    ({"protects": "node", "copies": "absent", "neighbours": "replace"}, "add_remove"),
    ({"protects": "node", "copies": "absent", "unit": "user", "max_events_per_user": 2}, "add_remove"),
    ({"protects": "node", "copies": "absent", "max_degree": 2}, "enforce"),
    ({"protects": "node", "copies": "absent", "vertices": None}, "declared vertices"),
    ({"neighbours": "independent"}, "add_remove"),
    ({"mechanism": "sparse"}, "unknown mechanism"),
]


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize(("options", "words"), REFUSED, ids=lambda part: str(part)[:70])
def test_what_no_row_is_about_is_refused(kind: Any, options: Any, words: str) -> None:
    with pytest.raises(et.ConfigurationError, match=words):
        made(kind, **options)


@pytest.mark.parametrize("options", [
    {"max_weight": 2},
    {"signed": True},
    {"max_weight": 2, "copies": "counted", "updates": "both"},
    {"max_weight": 2, "copies": "counted", "max_degree": 2},
    {"max_weight": 2, "copies": "absent", "protects": "node"},
])  # fmt: skip
def test_weights_are_refused_where_nothing_adds_up(options: Any) -> None:
    with pytest.raises(et.ConfigurationError, match="weights add up"):
        made(CutGraph, **options)


@pytest.mark.parametrize("options", [
    {"max_window": 2},
    {"updates": "delete", "initial": PUBLIC},
    {"watch": "ann"},
    {"watch": [None]},
    {"askable": 0},
])  # fmt: skip
def test_what_needs_declared_vertices(options: Any) -> None:
    with pytest.raises(et.ConfigurationError):
        made(DegreeVector, vertices=None, **options)
    with pytest.raises(et.ConfigurationError, match="watch"):
        made(DegreeVector, watch=["a"])


BAD: list[Any] = [
    None, "ab", b"ab", 7, (), ("a",), ("a", "a"), ("a", None), ("a", "b", "c", "d"), {"a": "b"}, {"a", "b"},
    ("a", "zz"), ("a", float("nan")), ("\ud83d", "\ude00"), ("toggle", "a", "b"), ("x" * 2000, "a"), (7, 7.0),
]  # fmt: skip


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("options", [{}, {"updates": "both"}, {"updates": "delete", "initial": PUBLIC}], ids=str)
def test_bad_records_are_nothing(kind: Any, options: Any) -> None:
    def values(records: Any) -> list[int]:
        shown = made(kind, key=ZeroNoise(), **options).step_events(records).value
        return list(shown.values()) if isinstance(shown, dict) else np.atleast_1d(shown).tolist()

    good = [("insert", "b", "a")] if options.get("updates") == "both" else [("b", "a")]
    assert values([*BAD, *good, *BAD]) == values(good)
    assert values(good) != values([])


def test_spellings_are_one_edge() -> None:
    count = made(EdgeCount, vertices=None, key=ZeroNoise())
    records = [(1, "2"), ("1", 2.0), np.array([2, 1]), ["2", 1], (True, 1), ("cafe\u0301", "x"), ("caf\u00e9", "x")]
    assert count.step(records).value == 3


def test_order_matters_only_where_presence_is_kept() -> None:
    come, go = ("insert", "a", "b"), ("delete", "a", "b")
    for copies, other in (("ignored", [1, 0]), ("counted", [0, 0])):
        values = [
            made(EdgeCount, updates="both", copies=copies, key=ZeroNoise()).step(records).value
            for records in ([go, come], [come, go])
        ]
        assert values == other
    counted = made(EdgeCount, updates="both", copies="counted", key=ZeroNoise())
    assert counted.step([go, go, go]).value == -3


def test_declared_degrees_lower_the_charge_of_nodes() -> None:
    assert made(EdgeCount, protects="node", copies="absent").sensitivity.l2_squared == 25
    declared = {"protects": "node", "copies": "absent", "max_degree": 2, "degree_bound": "declared"}
    assert made(EdgeCount, **declared).sensitivity.l2_squared == 4
    assert made(DegreeVector, vertices=None, **declared).sensitivity.l2_squared == 6
    assert made(CutGraph, **declared).protected_unit == "node"


@pytest.mark.parametrize("mechanism", ["bank", "bank-open", "pure-blocks", "sqrt", "tree", "honaker", "epoch-tree"])
def test_every_process_counts_on_demand(mechanism: str) -> None:
    """What is asked has the noise of its label: alone, watched or not, after a restart."""
    record = PROCESSES[mechanism]
    promise = et.PureDP(1.0) if mechanism == "pure-blocks" else et.ZCDP(0.5)
    options = {"vertices": None, "horizon": 8 if record.bounded else None, "mechanism": mechanism}
    options |= {"guarantee": promise, "key": et.simulation(4)}
    plain = made(DegreeVector, **options)
    watched = made(DegreeVector, watch=["x", "a"], **options)
    for records in ([("a", "b")], [], [("a", "c"), ("a", "b")]):
        some, shown = plain.step(records), watched.step(records)
        plain = et.restore(plain.snapshot(), key=et.simulation(4))
        asked = plain.step(records, tick=plain.tick)
        assert shown.value == {name: asked.degree(name).value for name in ("x", "a")}
        assert watched.step(records, tick=watched.tick).degree("b").value == asked.degree("b").value
        with pytest.raises(et.ConfigurationError, match="gone"):
            some.degree("a")
        before = plain.snapshot()
        asked.degree("b")
        assert plain.snapshot() == before
    assert made(DegreeVector, **(options | {"key": ZeroNoise()})).step([("a", "b")]).value == {}


def test_questions() -> None:
    pairs = made(CutGraph, vertices=None, copies="counted", max_weight=4, key=ZeroNoise())
    first = pairs.step([("a", "b", 9), ("b", "a"), ("c", "d", 2)])
    assert [first.weight(*pair).value for pair in (("b", "a"), ("a", "b"), ("c", "d"), ("a", "x"))] == [5, 5, 2, 0]
    with pytest.raises(et.ConfigurationError, match="no coordinate"):
        first.weight("a", "a")
    with pytest.raises(et.ConfigurationError, match="declared vertices"):
        first.cut(["a"])
    pairs.step([])
    with pytest.raises(et.ConfigurationError, match="over"):
        first.weight("a", "b")
    listed = made(DegreeVector, key=ZeroNoise()).step([("a", "b")])
    assert (listed.degree("a").value, listed.degree("c").value) == (1, 0)
    with pytest.raises(et.ConfigurationError, match="no such vertex"):
        listed.degree("nobody")
    few, many = (made(DegreeVector, vertices=None, askable=n).error_bound(0.05) for n in (1, 10**6))
    assert few < many


def test_users_are_capped() -> None:
    count = made(EdgeCount, unit="user", max_events_per_user=1, key=ZeroNoise())
    release = count.step_events([("a", "b"), ("a", "c"), ("a", "d")], users=["ann", "ann", "bob"])
    assert release.value == 2


@pytest.mark.parametrize("kind", SHAPES)
def test_a_restart_remembers_edges(kind: Any) -> None:
    key = et.simulation(9)
    one, other = made(kind, key=key, vertices=NODES), made(kind, key=key, vertices=NODES)
    ticks = [[("a", "b")], [("a", "b"), ("c", "d")], [("d", "c"), ("a", "c")]]
    steps = []
    for records in ticks:
        steps.append(one.step(records).value)
        one = et.restore(one.snapshot(), key=key)
    run = other.run(ticks)
    for step, row in zip(steps, run, strict=True):
        flat = list(step.values()) if isinstance(step, dict) else step
        assert np.array_equal(flat, row)


def test_tables() -> None:
    ticks = [[("a", "b")], []]
    assert made(DegreeVector, vertices=None).run(ticks, full=True).num_rows == 0
    assert made(DegreeVector, vertices=None, watch=["a"]).run(ticks, full=True).column_names[1] == "column"
    pairs = made(CutGraph, vertices=["a", "b", 3]).run(ticks, full=True)
    assert pairs["column"].to_pylist() == ['["a", "b"]', '["a", "3"]', '["b", "3"]'] * 2


def test_processes_of_others_have_rows_without_memory_only(no_more_processes: None) -> None:
    """S3 needs a Gram matrix that is nowhere negative; nobody knows that of a process that is not ours."""

    def pile(charge: Any, setting: Any, source: Any) -> Any:
        return AccumulatingProcess(
            charge, setting.change, horizon=setting.horizon, columns=setting.columns, source=source
        )

    name = "pile of a graph"
    et.register_process(name, pile, proof="parameterized-histograms 3.1", pure=True)
    for kind in SHAPES:
        assert made(kind, copies="counted", mechanism=name).step([("a", "b")]).tick == 1
        for options in ({}, {"updates": "both"}, {"copies": "counted", "max_degree": 2}):
            with pytest.raises(et.ConfigurationError, match="S3"):
                made(kind, mechanism=name, **options)


def test_plans_rank_processes() -> None:
    ranked = et.plan(CutGraph, vertices=NODES, guarantee=et.ZCDP(0.5), horizon=100)
    assert all(name in str(ranked) for name in ("sqrt", "tree", "honaker"))


def test_weights_are_in_the_address_without_vertices_too() -> None:
    """Other bounds of weights are other data under one name: the same noise would publish the difference."""
    options: dict[str, Any] = {"copies": "counted", "max_weight": 5, "guarantee": et.ZCDP(1), "horizon": 9}
    prints = {
        et.graph.CutGraph(**options | other, key=et.simulation(1)).noise_fingerprint
        for other in ({}, {"signed": True}, {"max_weight": 6})
    }
    assert len(prints) == 3
