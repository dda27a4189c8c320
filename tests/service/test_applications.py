"""Graphs and strings against a live service: edges and letters over HTTP, in every envelope, through a crash."""

from __future__ import annotations

import csv
import json
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
from served import Served, hour, lines, served

from spec_text import HOURLY, spec_text

ARROW = "application/vnd.apache.arrow.stream"
PEOPLE = ["ann", "bob", "cem"]
EDGE = {"columns": ["caller", "called"], "vertices": PEOPLE}
PAGES = {"column": "page", "alphabet": ["home", "pay"], "longest": 2, "sequence": "user", "by": "caller"}
SPEC = spec_text(
    {"name": "calls", "kind": "cut_graph", **EDGE, "weight": "minutes", "max_weight": 9, "copies": "counted"},
    {"name": "groups", "kind": "components", **EDGE},
    {"name": "live", "kind": "edge_count", **EDGE, "updates": "both", "action": "what"},
    {"name": "words", "kind": "substring_counts", **PAGES},
    {"name": "often", "kind": "frequent_substrings", **PAGES, "above": 2},
    guarantee={"rho": 1e9},  # the noise of one event is zero then, all but surely
    clock={**HOURLY, "close": "request"},
    state={"file": "visits.state", "snapshot_every": 2},
    serve={"port": 0},
)


def event(tick: int, **cells: Any) -> dict[str, Any]:
    usual = {"caller": "ann", "called": "bob", "minutes": 2, "what": "insert", "page": "home"}
    return {"time": hour(tick - 1)[:-6] + "30:00Z", **usual, **cells}


def arrow(records: list[dict[str, Any]]) -> bytes:
    table = pa.Table.from_pylist(records)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def latest(service: Served, query: str) -> Any:
    return service.get("/v1/releases/latest").json()["queries"][query]["value"]


def test_edges_and_letters_come_in_every_envelope(tmp_path: Path) -> None:
    with served(tmp_path, SPEC) as service:
        assert service.send("one", lines([event(1)])).status_code == 202
        body = json.dumps([event(1, page="pay")]).encode()
        assert service.send("two", body, "application/json").status_code == 202
        assert (
            service.send("three", arrow([event(1, caller="bob", called="cem", minutes=50)]), ARROW).status_code == 202
        )
        assert service.close_until(1).json() == {"released": 1}
        assert latest(service, "calls") == [4, 0, 9], "ann-bob, ann-cem, bob-cem: each call is cut to nine minutes"
        assert latest(service, "groups") == 1
        assert latest(service, "live") == 2
        assert latest(service, "words") == [2, 1, 0, 1, 0, 0], "home, pay, home home, home pay, pay home, pay pay"
        often = service.get("/v1/releases/latest").json()["queries"]["often"]
        assert (often["category"], often["value"]) == (["home"], [2])

        # What a door drops is taken without a word: no answer depends on a record.
        odd = [
            {"called": "ann", "what": "delete", "page": None},
            {"called": None, "minutes": -5, "what": "delete", "page": 1.5},
            {"caller": None, "minutes": "many", "page": ["pay"]},
            {"caller": 2.5, "minutes": None, "what": 7, "page": {}},
            {"called": "nobody", "minutes": 10**30, "page": "PAY"},
            {"called": "cem", "what": "delete", "minutes": -1, "page": "\ud800"},  # was never there
        ]
        answers = [
            service.send("four", lines([event(2, **cells) for cells in odd])),
            service.send("five", lines([event(2, called="ann")])),
        ]
        assert {(one.status_code, *sorted(one.json())) for one in answers} == {(202, "batch", "duplicate", "tick")}
        service.stop(signal.SIGKILL)
        service.start()
        assert service.close_until(2).json() == {"released": 2}
        assert latest(service, "calls") == [4, 0, 9]
        assert latest(service, "live") == 2
        assert latest(service, "words")[1] == 1

        # After the crash the edges that are there, and the last letters of everybody, are known.
        more = [event(3, what="delete"), event(3, caller="bob", called="cem", what="delete", page="pay")]
        assert service.send("six", lines(more)).status_code == 202
        service.close_until(3)
        assert latest(service, "live") == 0
        assert latest(service, "words")[3] == 2, "home of bob, before the crash, then pay"

        text = service.get("/v1/releases", query="calls", format="csv").text
        first = [row["category"] for row in csv.DictReader(text.splitlines())][:3]
        assert first == ['["ann", "bob"]', '["ann", "cem"]', '["bob", "cem"]']
        table = pa.ipc.open_stream(service.get("/v1/releases", query="calls", format="arrow").content).read_all()
        assert table["category"].to_pylist()[:3] == first
        assert table["value"].to_pylist() == [4, 0, 9, 4, 0, 9, 6, 0, 11]

        queries = {query["name"]: query for query in service.get("/v1/stream").json()["queries"]}
        assert queries["calls"]["card"]["view"] == "cuts"
        assert queries["calls"]["card"]["vertices"] == PEOPLE
        assert queries["groups"]["card"]["vertices"] is None
        assert queries["often"]["labels"] is None
        columns = ["time", "caller", "called", "minutes", "what", "page"]
        assert service.get("/v1/spec").json()["columns"] == columns

        without = [{name: cell for name, cell in event(4).items() if name != "called"}]
        refused = service.send("seven", arrow(without), ARROW)
        assert (refused.status_code, refused.json()) == (
            400,
            {"error": "the batch must have exactly one column 'called'"},
        )
        nested = service.send("seven", arrow([event(4, page=["home"])]), ARROW)
        assert nested.status_code == 400
        assert "'page' has another type" in nested.json()["error"]
