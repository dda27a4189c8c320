"""Kinds of graphs: from the words of a spec to counts, degrees and cuts of the edges in two columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from call_stream import BAD, CALLS, KNOWN, PEOPLE, QUERIES, SPEC, UNTIL, rows, truth
from kind_runs import QUIET, by_hand, hour, lines_of, plain, values, with_more, written
from visit_stream import save

from evertally.applications.graph.cuts import pair_labels
from evertally.errors import ConfigurationError
from evertally.kinds import OURS, find
from evertally.kinds.graph_tables import GraphQuery
from evertally.kinds.graphs import records
from evertally.noise import Key
from evertally.runtime import plan, run
from made_keys import save_bound


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
            save_bound(Key.load(tmp_path / "in-1" / "visits.key"), spec.path)
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
