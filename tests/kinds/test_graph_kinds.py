"""Kinds of graphs: from the words of a spec to counts, degrees and cuts of the edges in two columns."""

from __future__ import annotations

import json
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from kind_runs import QUIET, by_hand, hour, lines_of, plain, values, with_more, written
from visit_stream import save

from evertally.applications.graph.cuts import pair_labels
from evertally.errors import ConfigurationError
from evertally.kinds import OURS, find
from evertally.kinds.graph_tables import GraphQuery
from evertally.kinds.graphs import records
from evertally.runtime import certificate, plain_words, plan, run
from spec_text import ALL

ENDS = {"columns": ["caller", "called"]}
PEOPLE = list("abcde")
KNOWN = {**ENDS, "vertices": PEOPLE}
# By name: the table of the spec, beside `columns`, and what Python says for it where that is something else.
QUERIES: dict[str, dict[str, Any]] = {
    "edges": {"kind": "edge_count", **ENDS},
    "degrees": {"kind": "degree_vector", **KNOWN},
    "graph": {"kind": "cut_graph", **KNOWN},
    "minutes": {"kind": "cut_graph", **KNOWN, "weight": "minutes", "max_weight": 10, "copies": "counted"},
    "triangles": {"kind": "triangles", **KNOWN},
    "stars": {"kind": "stars", **KNOWN, "k": 2},
    "paths": {"kind": "subgraphs", **KNOWN, "pattern": [["w", "x"], ["x", "y"], ["y", "z"]]},
    "busy": {"kind": "high_degree", **ENDS, "threshold": 3},
    "by-degree": {"kind": "degree_histogram", **KNOWN, "max_degree": 3},
    "forest": {"kind": "spanning_forest_cost", **KNOWN, "weight": "minutes", "max_weight": 10},
    "groups": {"kind": "components", **KNOWN},
}
SPEC = [{"name": name, **table} for name, table in QUERIES.items()]
# (tick, caller, called, minutes)
CALLS: list[tuple[int, Any, Any, Any]] = [
    (1, "a", "b", 3),
    (1, "c", "b", 2),
    (1, "c", "a", 40),
    (2, "b", "a", 4),
    (2, "d", "a", 5),
    (4, "d", "c", 1),
    (4, "c", "b", 1),
]
# What a door drops, each by itself: loops, nobody, no names, unknown vertices
BAD: list[tuple[int, Any, Any, Any]] = [
    (1, "a", "a", 3),
    (1, None, "b", 3),
    (2, "a", None, 3),
    (2, 2.5, "b", 3),
    (3, ["a"], "b", 3),
    (3, {"a": 1}, "b", None),
    (4, "", "", 3),
]
UNTIL = hour(5)


def rows(calls: list[tuple[int, Any, Any, Any]] = CALLS) -> list[dict[str, Any]]:
    return [
        {"time": hour(tick, minute), "caller": one, "called": other, "minutes": minutes}
        for minute, (tick, one, other, minutes) in enumerate(calls)
    ]


def truth(tick: int) -> dict[str, Any]:
    """Everything by brute force, over the edges so far."""
    calls = [(*sorted((one, other)), minutes) for t, one, other, minutes in CALLS if t <= tick]
    edges = {(one, other) for one, other, _ in calls}
    degree = {v: sum(v in edge for edge in edges) for v in PEOPLE}
    joined = {frozenset(edge) for edge in edges}
    weights = {edge: min(min(10, m) for a, b, m in calls if (a, b) == edge) for edge in edges}
    forests = [
        sum(weights[edge] for edge in some)
        for size in range(len(PEOPLE))
        for some in combinations(sorted(edges), size)
        if len(PEOPLE) - size == groups(some) == groups(edges)
    ]
    return {
        "edges": len(edges),
        "degrees": degree,
        "graph": {json.dumps(pair): int(tuple(pair) in edges) for pair in map(list, combinations(PEOPLE, 2))},
        "minutes": {
            json.dumps(pair): sum(min(10, m) for a, b, m in calls if [a, b] == pair)
            for pair in map(list, combinations(PEOPLE, 2))
        },
        "triangles": sum(
            {frozenset(two) for two in combinations(some, 2)} <= joined for some in combinations("abcde", 3)
        ),
        "stars": sum(comb(d, 2) for d in degree.values()),
        # A path of three edges: a middle edge, and one more at each of its ends, that do not meet.
        "paths": sum(
            len({a, b, c, d}) == 4
            for a, b in edges
            for c in PEOPLE
            for d in PEOPLE
            if frozenset((a, c)) in joined and frozenset((b, d)) in joined
        ),
        "busy": sum(d >= 3 for d in degree.values()),
        "by-degree": {
            name: sum(min(d, 3) == n for d in degree.values()) for n, name in enumerate(["0", "1", "2", ">=3"])
        },
        "forest": min(forests),
        "groups": groups(edges),
    }


def groups(edges: Any) -> int:
    of = {v: v for v in PEOPLE}
    for one, other in edges:
        of = {v: of[one] if at == of[other] else at for v, at in of.items()}
    return len(set(of.values()))


def test_every_kind_of_graph_is_here() -> None:
    graphs = {kind.name for kind in OURS if issubclass(kind.options, GraphQuery)}
    assert {table["kind"] for table in QUERIES.values()} == graphs


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_every_kind_counts_what_a_file_holds(tmp_path: Path, suffix: str) -> None:
    spec = written(tmp_path, *SPEC)
    assert len(plan(spec).queries) == len(SPEC)
    # Typed columns hold names only; what no column of names can hold comes as JSON.
    bad = BAD if suffix == ".jsonl" else [call for call in BAD if type(call[1]) in (str, type(None))]
    run(spec, save(rows([*CALLS, *bad]), tmp_path / f"calls{suffix}"), until=UNTIL)
    for name in QUERIES:
        assert values(spec, name) == [truth(tick)[name] for tick in range(1, 5)], name


def test_restarts_and_sinks(tmp_path: Path) -> None:
    """Cut in two between ticks: the same bytes as in one piece. CSV and Parquet have the same rows."""
    sinks = '\n[[sink]]\nfile = "visits.csv"\n\n[[sink]]\nfile = "visits.parquet"\n'
    found = []
    for parts in ([CALLS], [CALLS[:5], CALLS[5:]]):
        folder = tmp_path / f"in-{len(parts)}"
        folder.mkdir()
        spec = with_more(written(folder, *SPEC, guarantee=QUIET), sinks)
        if found:  # the same key: the same noise
            (folder / "visits.key").write_bytes((tmp_path / "in-1" / "visits.key").read_bytes())
            (folder / "visits.key").chmod(0o600)
        for number, calls in enumerate(parts):
            until = UNTIL if calls is parts[-1] else hour(3)
            run(spec, save(rows(calls), folder / f"calls-{number}.csv"), until=until)
        assert spec.output_file is not None
        found.append(spec.output_file.read_bytes())
        lines = lines_of(spec.output_file)
        assert len(lines) == 4 * spec.rows == 4 * (1 + 5 + 10 + 10 + 1 + 1 + 1 + 1 + 4 + 1 + 1)
        table = pq.read_table(folder / "visits.parquet").to_pylist()
        assert [(r["query"], r["category"], r["value"]) for r in table] == [
            (r["query"], r["category"], r["value"]) for r in lines
        ]
        assert len((folder / "visits.csv").read_text().splitlines()) == 1 + len(lines)
    assert found[0] == found[1]


def test_a_spec_is_what_python_says(tmp_path: Path) -> None:
    """The same key and the same edges: the same noisy values."""
    spec = written(tmp_path, *SPEC, guarantee=QUIET)
    run(spec, save(rows([*CALLS, *BAD]), tmp_path / "calls.jsonl"), until=UNTIL)
    options = {
        name: {option: value for option, value in table.items() if option not in ("kind", "columns", "weight")}
        for name, table in QUERIES.items()
    }
    made = by_hand(spec, options)
    for query in spec.queries:
        weighted = "weight" in QUERIES[query.name]
        labels = pair_labels(PEOPLE) if "cut" in query.kind else PEOPLE if query.kind == "degree_vector" else None
        expected = [
            plain(
                made[query.name].step([call[1:] if weighted else call[1:3] for call in CALLS if call[0] == tick]).value,
                labels,
            )
            for tick in range(1, 5)
        ]
        assert values(spec, query.name) == expected, query.name


@pytest.mark.parametrize(
    ("words", "said"), [({}, ("insert", "delete")), ({"insert": "new", "delete": "gone"}, ("new", "gone"))]
)
def test_edges_come_and_go(tmp_path: Path, words: dict[str, Any], said: tuple[str, str]) -> None:
    both = {"updates": "both", "action": "what", **words}
    queries = [{"name": name, **QUERIES[name], **both} for name in ("edges", "degrees", "graph")]
    spec = written(tmp_path, *queries, {"name": "raw", **QUERIES["edges"], **both, "copies": "counted"})
    new, gone = said
    updates = [
        (1, new, "a", "b"),
        (1, new, "b", "c"),
        (2, gone, "b", "a"),
        (2, gone, "a", "d"),  # is not there
        (3, new, "b", "c"),  # is there already
        (3, "toggle", "c", "d"),
        (3, None, "c", "d"),
        (4, gone, "c", "b"),
    ]
    found = [{"time": hour(t), "what": what, "caller": a, "called": b} for t, what, a, b in updates]
    run(spec, save(found, tmp_path / "calls.jsonl"), until=UNTIL)
    assert values(spec, "edges") == [2, 1, 1, 0]
    assert values(spec, "raw") == [2, 0, 1, 0], "every record adds 1 or -1"
    assert [sum(degrees.values()) for degrees in values(spec, "degrees")] == [4, 2, 2, 0]
    assert [graph['["b", "c"]'] for graph in values(spec, "graph")] == [1, 1, 1, 0]


def test_edges_of_a_public_graph_go(tmp_path: Path) -> None:
    """Bins are as many as the public graph needs, not as many as there are vertices."""
    begun = {"updates": "delete", "initial": [["a", "b"], ["b", "c"], ["c", "d"]]}
    names = ("edges", "triangles", "groups")
    histogram = {"kind": "degree_histogram", **KNOWN, **begun}
    spec = written(
        tmp_path,
        *({"name": name, **QUERIES[name], **begun} for name in names),
        {"name": "by-degree", **histogram},
        {"name": "of-ends", **{option: histogram[option] for option in histogram if option != "vertices"}},
    )
    run(spec, save(rows([(2, "b", "a", 1), (3, "b", "a", 1), (3, "a", "e", 1)]), tmp_path / "calls.csv"), until=UNTIL)
    assert values(spec, "edges") == [3, 2, 2, 2]
    assert values(spec, "groups") == [2, 3, 3, 3]
    assert values(spec, "by-degree")[1] == {"0": 2, "1": 2, ">=2": 1}
    assert values(spec, "of-ends")[1] == {"0": 1, "1": 2, ">=2": 1}


def test_weights_are_bounded_one_by_one(tmp_path: Path) -> None:
    signed = {**QUERIES["minutes"], "signed": True}
    spec = written(tmp_path, {"name": "plus", **QUERIES["minutes"]}, {"name": "both", **signed})
    weights = [3, "4", 7.9, -2, 1000, None, "many", float("nan"), float("inf"), True, [], -(10**400)]
    found = [{**row, "minutes": m} for m in weights for row in rows([(1, "a", "b", 0)])]
    run(spec, save(found, tmp_path / "calls.jsonl"), until=hour(2))
    assert values(spec, "plus")[0]['["a", "b"]'] == 3 + 4 + 7 + 10 + 1
    assert values(spec, "both")[0]['["a", "b"]'] == 3 + 4 + 7 - 2 + 10 + 1 - 10


def test_records_are_made_of_cells() -> None:
    cells = {"columns": [["a", None], ["b", 7]], "weight": [1.0, float("nan")]}
    assert [record[:2] for record in records(2, cells, {})] == [("a", "b"), (None, 7)]
    words = {"insert": 1, "delete": "café"}
    told = {"columns": [["a"] * 4, ["b"] * 4], "action": [1.0, "cafe\u0301", True, [1]]}
    assert [record[0] for record in records(4, told, words)] == ["insert", "delete", None, None]
    assert records(0, {"columns": [[], []]}, {}) == []


@pytest.mark.parametrize(
    ("query", "change", "without", "problem"),
    [
        ("edges", {"column": "caller"}, None, "name both columns in columns = [...]"),
        ("edges", {"columns": ["caller"]}, None, "must be the two columns that are the ends of an edge"),
        ("edges", {"columns": ["a", "a"]}, None, "the two ends of an edge are two columns"),
        ("edges", {}, "columns", "needs 'columns' for an edge_count"),
        ("edges", {"updates": "both"}, None, 'updates = "both" goes with action'),
        ("edges", {"action": "what"}, None, 'updates = "both" goes with action'),
        ("edges", {"insert": "in", "delete": "out"}, None, "a word of the column that 'action' names"),
        ("edges", {"updates": "both", "action": "what", "insert": "in"}, None, "insert and delete go together"),
        ("edges", {"updates": "both", "action": "w", "insert": 7, "delete": "7"}, None, "another word than insert"),
        ("edges", {"copies": "twice"}, None, "copies must be one of 'ignored', 'counted', 'absent'"),
        ("edges", {"protects": "item"}, None, "protects must be one of 'edge', 'node'"),
        ("edges", {"weight": "minutes"}, None, "has no option 'weight'"),
        ("edges", {"updates": "delete"}, None, "initial goes with updates"),
        ("edges", {"initial": [["a", "b"]]}, None, "initial goes with updates"),
        ("edges", {"mechanism": "magic"}, None, "unknown mechanism 'magic'"),
        ("degrees", {}, "vertices", "needs 'vertices' for a degree_vector"),
        ("degrees", {"vertices": 1}, None, "vertices must be a list of labels"),
        ("degrees", {"vertices": 2**20 + 1}, None, "a number n from 2 to 2^20"),
        ("degrees", {"vertices": ["a", "a"]}, None, "different labels"),
        ("degrees", {"vertices": True}, None, "vertices must be a list of labels"),
        ("graph", {"vertices": 1449}, None, "at most 1448 vertices here"),
        ("graph", {"max_weight": 3}, None, "max_weight and signed go with weight"),
        ("graph", {"weight": "minutes"}, None, 'weight goes with copies = "counted"'),
        ("minutes", {"updates": "both", "action": "what"}, None, "weights add up, and are not deleted"),
        ("minutes", {"copies": "ignored"}, None, 'weight goes with copies = "counted"'),
        ("minutes", {"max_degree": 3}, None, "no max_degree"),
        ("minutes", {"max_weight": 0}, None, "max_weight must be an integer of at least 1"),
        ("minutes", {"max_weight": 2**40}, None, "max_weight"),
        ("forest", {}, "weight", "needs 'weight' for a spanning_forest_cost"),
        ("forest", {}, "max_weight", "needs 'max_weight'"),
        ("triangles", {"updates": "both"}, None, "count edges, degrees or cuts"),
        ("triangles", {"action": "what"}, None, "has no option 'action'"),
        ("triangles", {}, "vertices", "max_degree is needed here"),
        ("stars", {"k": 1}, None, "k"),
        ("paths", {"pattern": [["a"]]}, None, "pattern must be a list of edges"),
        ("paths", {"pattern": [["a", "b"]]}, None, "pattern"),
        ("busy", {}, "threshold", "needs 'threshold' for a high_degree"),
        ("by-degree", {"vertices": PEOPLE, "max_degree": 9}, None, "max_degree"),
        ("by-degree", {"copies": "counted", "degree_bound": "projected"}, None, "degree_bound"),
        ("groups", {"max_degree": 2, "degree_bound": "declared"}, None, "leave max_degree out"),
        ("edges", {"protects": "node"}, None, 'protects="node" is proved for updates="insert" and copies="absent"'),
        ("paths", {"protects": "node", "copies": "absent"}, None, "node"),
    ],
)
def test_what_is_refused_says_where_and_why(
    tmp_path: Path, query: str, change: dict[str, Any], without: str | None, problem: str
) -> None:
    table = {option: value for option, value in {**QUERIES[query], **change}.items() if option != without}
    with pytest.raises(ConfigurationError, match=r"visits\.toml:\d+: ") as refused:
        plan(written(tmp_path, {"name": query, **table}))
    assert problem in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["visits.toml"], "nothing is made before that"


NODE = {"protects": "node", "copies": "absent"}
USERS = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "owner", "max_events_per_user": 3}


def test_one_stream_makes_one_promise(tmp_path: Path) -> None:
    nodes = {"name": "nodes", **QUERIES["degrees"], **NODE}
    turned = {"name": "more", "kind": "edge_count", **KNOWN, "columns": ENDS["columns"][::-1], **NODE}
    elsewhere = {"name": "other", **QUERIES["degrees"], **NODE, "columns": ["caller", "owner"]}
    for beside in (ALL, elsewhere, {"name": "edges", **QUERIES["edges"]}):
        for queries in ((nodes, beside), (beside, nodes)):
            with pytest.raises(ConfigurationError, match="a promise about nodes") as refused:
                written(tmp_path, *queries)
            assert 'write protects = "edge", or give the query a stream of its own' in str(refused.value)
    with pytest.raises(ConfigurationError, match=r'protects = "node" needs \[stream\] unit = "event"'):
        written(tmp_path, nodes, stream=USERS)
    for neighbours in ("replace", "independent"):
        with pytest.raises(ConfigurationError, match=r"visits\.toml:\d+"):
            plan(written(tmp_path, nodes, stream={"name": "visits", "horizon": 48, "neighbours": neighbours}))
    plan(written(tmp_path, nodes, turned))
    plan(written(tmp_path, ALL, {"name": "edges", **QUERIES["edges"]}))


def test_users_own_edges(tmp_path: Path) -> None:
    """The cap is of whoever is recorded as the owner of an edge."""
    spec = written(tmp_path, {"name": "edges", **QUERIES["edges"]}, stream=USERS)
    pairs = list(combinations("abcd", 2))
    found = [{**row, "owner": "ann"} for row in rows([(1, *pair, 1) for pair in pairs])]
    run(spec, save(found, tmp_path / "calls.csv"), until=hour(2))
    assert values(spec, "edges") == [3]


def test_the_certificate_says_what_one_unit_is(tmp_path: Path) -> None:
    filed = certificate(written(tmp_path, *SPEC, guarantee=QUIET))
    assert filed["unit"]["protects"] == "event"
    assert {query["protects"] for query in filed["queries"]} == {"one event"}
    assert filed["composition"]["within_guarantee"] is True
    for query in filed["queries"]:
        assert query["proved_in"]["change_of_one_unit"].startswith("factorization-counting 6.0")
        assert query["error_bound"] > query["stddev"] > 0
    words = {query["name"]: query["in_plain_words"] for query in filed["queries"]}
    assert words["stars"] == "Stars with 2 edges so far"
    assert words["busy"] == "Vertices with at least 3 edges"
    assert "whether any one event happened" in filed["in_plain_words"]

    spec = written(tmp_path, {"name": "degrees", **QUERIES["degrees"], **NODE}, guarantee=QUIET)
    nodes = certificate(spec)
    assert nodes["unit"]["protects"] == spec.protects == "node"
    assert nodes["queries"][0]["protects"] == "one node: a vertex with all its edges"
    assert nodes["neighbours"]["meaning"] == (
        "one node (a name in the columns 'called' and 'caller'), a vertex with all its edges, is there or not; "
        "all else stays"
    )
    told = plain_words(spec)
    assert "whether any one node (a name in the columns 'called' and 'caller') was ever there" in told
    assert "A person with many nodes is protected less than one node is" in told
    assert "no edge comes twice, is declared: privacy rests on it" in " ".join(nodes["assumptions"])
    assert "Whoever is behind several nodes" in " ".join(nodes["assumptions"])


@pytest.mark.parametrize(
    ("query", "more", "squared"),
    [
        ("edges", {}, 2),
        ("edges", {"copies": "counted"}, 1),
        ("degrees", {}, 4),
        ("degrees", NODE, 4 * 4 + 4),
        ("graph", {}, 2),
        ("minutes", {}, 100),
        ("minutes", {"signed": True}, 100),
        ("by-degree", {}, 4 * (6 * 3 - 2)),
        ("groups", {}, 2),
        ("forest", {}, 2 * 100),
    ],
)
def test_what_is_paid_is_what_the_table_says(tmp_path: Path, query: str, more: dict[str, Any], squared: int) -> None:
    """One release of one tick: its noise is that of Gamma^2/(2 rho), but for rounding up."""
    one_tick = {"name": "visits", "horizon": 1}
    spec = written(tmp_path, {"name": query, **QUERIES[query], **more}, guarantee={"rho": 1e-4}, stream=one_tick)
    stddev = plan(spec).queries[0].stddev
    assert stddev == pytest.approx((squared / 2e-4) ** 0.5, rel=0.01)


def test_cards() -> None:
    views = {table["kind"]: find(table["kind"]).card.view for table in QUERIES.values()}  # type: ignore[union-attr]
    assert views["degree_histogram"] == views["degree_vector"] == "bars"
    assert views["cut_graph"] == "cuts"
    assert set(views.values()) == {"figure", "bars", "cuts"}


def test_names_may_be_declared_as_numbers(tmp_path: Path) -> None:
    columns = {"time": "time", "caller": "integer", "called": "text", "minutes": "number"}
    assert written(tmp_path, *SPEC, events=columns).columns() == list(columns)
    with pytest.raises(ConfigurationError, match="caller is \"number\", but the edge_count 'edges' reads"):
        written(tmp_path, *SPEC, events={**columns, "caller": "number"})
