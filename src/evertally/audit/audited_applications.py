"""Graphs, strings, stacks, sketches and messages in configurations of realistic size, to be audited: the second part
of the list.

Most have no horizon and the noise of epoch trees: ticks in different epochs share no noise, so whatever neighbours
differ by can be shown entirely.
"""

from __future__ import annotations

from typing import Any

from evertally.applications import graph, strings
from evertally.applications.dashboard import Dashboard, GroupBy
from evertally.applications.stacked import Stacked
from evertally.applications.stacking import part
from evertally.audit.entries import Audited
from evertally.audit.local_messages import LocalMessage
from evertally.local import Protocol
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.sketches.count_sketch import CountSketch
from evertally.sketches.heavy_prefixes import HeavyPrefixes
from evertally.statistics import Histogram

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)

_SPLIT = "charged for any factor (S3), and this one shows less of what comes back later"
_GROUPS = "charged by the triangle inequality for several records, which show most at different ticks"
_PATTERN = "charged for more copies through an edge than small graphs have"
_EPISODES = "charged for all episodes at once, which no string reaches"
_LISTED = "charged as if one letter took away every listed word, and brought it back elsewhere"
_PARTS = "the parts show most on different neighbours"

_LINEAR, _CUTS, _FUNCTIONS = "factorization-counting 6.5", "factorization-counting 6.4", "factorization-counting 6.5"
_WORDS, _ORDERS = "factorization-counting 6.6", "factorization-counting 6.7"
_TYPES = "users-and-domains 7"
_STACKS, _LOCAL = "factorization-counting 12, trap 11", "factorization-counting 6.9"

_NODE: dict[str, Any] = {"vertices": 50, "copies": "absent", "protects": "node"}
_USER: dict[str, Any] = {"unit": "user", "max_events_per_user": 4}
_RING = [(i, (i + 1) % 9) for i in range(9)]
_PATH = [("a", "b"), ("b", "c"), ("c", "d")]
_TREE: dict[str, Any] = {"mechanism": "epoch-tree"}
_SKETCH, _PREFIXES = "users-and-domains 5.1", "users-and-domains 5.2"
_ONCE: dict[str, Any] = {"unit": "user", "max_labels_per_user": 2}
_WATCH: dict[str, Any] = {"width": 64, "watch": ["a", "b"]}
_DIGITS: dict[str, Any] = {"symbols": 2, "fanout": 16, "labels": "number", "width": 16, "threshold": 20}
_TWO_USERS = "charged as if two users met in all columns with opposite signs, which few labels do"


def _made(
    kind: Any, guarantee: Guarantee, horizon: int | None, section: str, why: str = "", first: Any = None, **options: Any
) -> Audited:
    shown = (f"{k}={len(v) if isinstance(v, list) else v}" for k, v in options.items())
    words = [repr(guarantee), f"T={horizon}", *shown]
    arguments = [] if first is None else [first]
    return Audited(
        f"{kind.__name__}({', '.join(words)})",
        lambda key: kind(*arguments, guarantee=guarantee, horizon=horizon, key=key, **options),
        section,
        tight=not why,
        why=why,
    )


def _message(guarantee: Any, clients: int, **options: Any) -> Audited:
    protocol = Protocol(guarantee=guarantee, clients=clients, low=0, high=120, **options)
    name = f"local.Client({guarantee!r}, clients={clients}, cells={protocol.cells})"
    return Audited(name, lambda key: LocalMessage(protocol, key), _LOCAL)


_STACK = {
    "letters": part(Histogram, categories=["a", "b", "c"]),
    "orders": part(strings.EpisodeCounts, alphabet="abc", words=["ab", "bc"], sequence="stream"),
}
_BOARD = {"all": "all", "some": ["a", "b"]}
_TABLE = {"sex": ["f", "m"], "ward": ["n", "s"]}
_GRAPHS = {"edges": part(graph.EdgeCount), "triangles": part(graph.Triangles, max_degree=20)}
_DEGREES = {
    "edges": part(graph.EdgeCount),
    "degrees": part(graph.DegreeVector, vertices=20),
    "bins": part(graph.DegreeHistogram, vertices=20, max_degree=5),
}

APPLICATIONS: tuple[Audited, ...] = (
    # graphs: sums over edges
    _made(graph.EdgeCount, PURE, None, _LINEAR),
    _made(graph.EdgeCount, PURE, 100, _LINEAR, copies="counted"),
    _made(graph.EdgeCount, CONCENTRATED, None, _LINEAR, max_degree=20, **_TREE),
    _made(graph.EdgeCount, CONCENTRATED, 100, _LINEAR, **_NODE),
    _made(graph.EdgeCount, PURE, None, _LINEAR, **_USER),
    _made(graph.EdgeCount, CONCENTRATED, 365, _LINEAR, why=_SPLIT, neighbours="replace", **_USER),
    _made(graph.DegreeVector, PURE, None, _LINEAR, vertices=20, updates="both"),
    _made(graph.DegreeVector, CONCENTRATED, None, _LINEAR, vertices=9, updates="delete", initial=_RING, **_TREE),
    _made(graph.DegreeVector, CONCENTRATED, 100, _LINEAR, why=_SPLIT),
    _made(graph.CutGraph, CONCENTRATED, 100, _CUTS, vertices=9, copies="counted", max_weight=60, neighbours="replace"),
    _made(graph.CutGraph, PURE, 100, _CUTS, vertices=9, copies="counted", max_weight=60, signed=True),
    _made(graph.CutGraph, CONCENTRATED, None, _LINEAR, vertices=9, **_TREE),
    # graphs: functions
    _made(graph.Triangles, PURE, None, _FUNCTIONS, max_degree=50),
    _made(graph.Triangles, CONCENTRATED, 100, _FUNCTIONS, **_NODE),
    _made(graph.Triangles, CONCENTRATED, None, _FUNCTIONS, updates="delete", initial=[*_RING, (0, 2)], **_TREE),
    _made(graph.Stars, CONCENTRATED, None, _FUNCTIONS, max_degree=30, **_TREE),
    _made(graph.Stars, PURE, None, _FUNCTIONS, max_degree=30),
    _made(graph.Subgraphs, CONCENTRATED, 100, _FUNCTIONS, why=_PATTERN, first=_PATH, max_degree=9),
    _made(graph.HighDegree, PURE, None, _FUNCTIONS, threshold=10, neighbours="replace", **_TREE),
    _made(graph.HighDegree, APPROXIMATE, 100, _FUNCTIONS, why=_SPLIT, threshold=10),
    _made(graph.DegreeHistogram, CONCENTRATED, None, _FUNCTIONS, vertices=40, max_degree=9, **_TREE),
    _made(
        graph.DegreeHistogram,
        CONCENTRATED,
        100,
        _FUNCTIONS,
        why=_GROUPS,
        vertices=40,
        max_degree=9,
        degree_bound="projected",
    ),
    _made(
        graph.DegreeHistogram,
        CONCENTRATED,
        100,
        _FUNCTIONS,
        why=_GROUPS,
        vertices=40,
        max_degree=9,
        degree_bound="projected",
        mechanism="bank",
    ),
    _made(graph.SpanningForestCost, CONCENTRATED, None, _FUNCTIONS, max_weight=10, **_TREE),
    _made(graph.SpanningForestCost, CONCENTRATED, 100, _FUNCTIONS, why=_SPLIT, max_weight=10, max_degree=9),
    _made(graph.Components, PURE, None, _FUNCTIONS, vertices=40),
    _made(graph.Components, PURE, 100, _FUNCTIONS, updates="delete", initial=_RING),
    # strings
    _made(strings.SubstringCounts, CONCENTRATED, 365, _WORDS, alphabet="abcd", longest=4, sequence="stream"),
    _made(
        strings.SubstringCounts,
        PURE,
        None,
        _WORDS,
        alphabet="abcd",
        longest=4,
        sequence="stream",
        neighbours="replace",
    ),
    _made(
        strings.SubstringCounts, CONCENTRATED, 100, _WORDS, alphabet="abc", longest=3, sequence="user", removal="null"
    ),
    _made(strings.SubstringCounts, CONCENTRATED, 100, _WORDS, alphabet="abc", longest=3, sequence="user", **_USER),
    _made(
        strings.SubstringCounts,
        APPROXIMATE,
        None,
        _WORDS,
        why=_GROUPS,
        alphabet="abc",
        longest=2,
        sequence="stream",
        neighbours="replace",
        **_USER,
    ),
    _made(
        strings.SubstringCounts,
        CONCENTRATED,
        None,
        _WORDS,
        why=_LISTED,
        alphabet="abcd",
        words=["ab", "abc"],
        sequence="stream",
        **_TREE,
    ),
    _made(
        strings.SubstringCounts,
        PURE,
        100,
        _WORDS,
        why=_GROUPS,
        alphabet="abc",
        longest=3,
        sequence="user",
        gap=2,
        neighbours="replace",
        replaces="record",
    ),
    _made(
        strings.FrequentSubstrings,
        CONCENTRATED,
        100,
        _WORDS,
        alphabet="abcd",
        longest=4,
        sequence="stream",
        above=50,
    ),
    _made(
        strings.EpisodeCounts, CONCENTRATED, 100, _ORDERS, why=_EPISODES, alphabet="abc", longest=2, sequence="stream"
    ),
    _made(
        strings.EpisodeCounts,
        PURE,
        None,
        _ORDERS,
        why=_LISTED,
        alphabet="abc",
        words=["ab", "bc"],
        sequence="user",
        neighbours="replace",
        replaces="letter",
    ),
    _made(
        strings.EpisodeCounts,
        CONCENTRATED,
        100,
        _ORDERS,
        alphabet="abc",
        words=["ab", "bc"],
        sequence="user",
        once_per_user=True,
        **_USER,
    ),
    # stacks
    _made(Stacked, PURE, 100, _STACKS, why=_PARTS, first=_STACK, multipliers={"letters": 2, "orders": 2}),
    _made(Stacked, PURE, None, _STACKS, first=_DEGREES, **_TREE),
    _made(Stacked, PURE, 100, _STACKS, why=_PARTS, first=_STACK, mechanism="tree"),
    _made(Stacked, CONCENTRATED, 100, _STACKS, why=_PARTS, first=_GRAPHS),
    # exclusive types
    _made(Dashboard, PURE, 100, _TYPES, types=["a", "b", "c"], metrics=_BOARD),
    _made(Dashboard, CONCENTRATED, 100, _TYPES, types=["a", "b", "c"], metrics=_BOARD, neighbours="replace"),
    _made(Dashboard, CONCENTRATED, 100, _TYPES, types=["a", "b", "c"], metrics=_BOARD, **_USER),
    _made(GroupBy, CONCENTRATED, 100, _TYPES, columns=_TABLE, tables=[["sex"], []]),
    # sketches
    _made(CountSketch, CONCENTRATED, 100, _SKETCH, **_WATCH),
    _made(CountSketch, CONCENTRATED, None, _SKETCH, neighbours="replace", rows=3, max_per_event=2, **_TREE, **_WATCH),
    _made(CountSketch, PURE, 64, _SKETCH, neighbours="replace", max_weight=3, signs=False, **_WATCH),
    _made(CountSketch, APPROXIMATE, None, _SKETCH, neighbours="replace", **_USER, **_WATCH),
    _made(CountSketch, CONCENTRATED, 100, _SKETCH, rows=3, **_ONCE, **_WATCH),
    _made(HeavyPrefixes, CONCENTRATED, 100, _PREFIXES, **_DIGITS),
    _made(HeavyPrefixes, PURE, 64, _PREFIXES, neighbours="replace", rows=1, **_DIGITS),
    _made(
        HeavyPrefixes, CONCENTRATED, 100, _PREFIXES, why=_TWO_USERS, neighbours="replace", rows=1, **_ONCE, **_DIGITS
    ),
    # messages
    _message(ZCDP(0.5), 100, cells=32),
    _message(ApproxDP(1.0, 1e-9), 10_000),
)
