"""Graphs in a spec: what is refused, at its line and with a remedy; what is promised, and what it costs."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from call_stream import ENDS, KNOWN, PEOPLE, QUERIES, SPEC, rows
from kind_runs import QUIET, hour, values, written
from visit_stream import save

from evertally.errors import ConfigurationError
from evertally.runtime import certificate, plain_words, plan, run
from spec_text import ALL


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


def test_declared_facts_that_privacy_rests_on_are_in_the_certificate(tmp_path: Path) -> None:
    declared = {"copies": "absent", "max_degree": 3, "degree_bound": "declared"}
    spec = written(tmp_path, {"name": "triangles", **QUERIES["triangles"], **declared}, guarantee=QUIET)
    assumed = " ".join(certificate(spec)["assumptions"])
    for fact in ("no edge comes twice", "no vertex ever has more than 3 edges"):
        assert f"Declared, and not enforced: of the query 'triangles', by construction of its source {fact}" in assumed
        assert fact in plain_words(spec)
    assert "Declared, and not enforced" not in " ".join(
        certificate(written(tmp_path, *SPEC, guarantee=QUIET))["assumptions"]
    )


def test_who_is_named_by_others_is_not_promised_anything(tmp_path: Path) -> None:
    spec = written(tmp_path, {"name": "edges", **QUERIES["edges"]}, stream=USERS)
    told = plain_words(spec)
    assert "whether any one person (a name in the column 'owner') has events in the data" in told
    assert "who is only named at its other end is not" in told
    assert "is in the data at all" not in told
