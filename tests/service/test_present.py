"""What is present now, against a live service: items come and go over HTTP, and the count goes down."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
from served import Served, hour, lines, served

from spec_text import HOURLY, spec_text

ARROW = "application/vnd.apache.arrow.stream"
UPDATES = {"action": "what", "insert": "in", "delete": "out", "id": "visit"}
SPEC = spec_text(
    {"name": "present", "kind": "dynamic_count", **UPDATES},
    {"name": "wards", "kind": "dynamic_histogram", **UPDATES, "column": "ward", "categories": ["north", "south"]},
    guarantee={"rho": 1e9},  # the noise of one visit is zero then, all but surely
    clock={**HOURLY, "close": "request"},
    state={"file": "visits.state", "snapshot_every": 2},
    serve={"port": 0},
)


def update(what: Any, visit: Any, ward: Any = "north", tick: int = 1) -> dict[str, Any]:
    return {"time": hour(tick - 1)[:-6] + "30:00Z", "what": what, "visit": visit, "ward": ward}


def arrow(records: list[dict[str, Any]]) -> bytes:
    table = pa.Table.from_pylist(records)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def latest(service: Served) -> tuple[Any, Any]:
    queries = service.get("/v1/releases/latest").json()["queries"]
    return queries["present"]["value"], queries["wards"]["value"]


def test_items_come_and_go(tmp_path: Path) -> None:
    with served(tmp_path, SPEC) as service:
        assert service.send("one", lines([update("in", name) for name in range(5)])).status_code == 202
        south = [update("in", f"s{name}", "south") for name in range(3)]
        assert service.send("two", arrow(south), ARROW).status_code == 202
        assert service.close_until(1).json() == {"released": 1}
        assert latest(service) == (8, [5, 3])
        # A deletion needs no value; ids are one and the same as numbers and as texts.
        gone = [update("out", str(name), None, tick=2) for name in range(4)]
        assert service.send("three", lines(gone)).status_code == 202
        assert service.send("four", arrow([update("out", "s1", tick=2)]), ARROW).status_code == 202
        assert service.close_until(2).json() == {"released": 2}
        assert latest(service) == (3, [1, 2])

        # What a door drops is taken without a word: no answer depends on a record.
        odd = [update("out", 0, tick=3), update("in", 4, tick=3), update("up", "x", tick=3), update("in", None, tick=3)]
        answer = service.send("five", lines([*odd, {"time": hour(2)}, {"visit": ["a"], "what": {}}]))
        assert (answer.status_code, set(answer.json())) == (202, {"batch", "tick", "duplicate"})
        service.stop(signal.SIGKILL)
        service.start()
        assert service.close_until(4).json() == {"released": 4}
        assert latest(service) == (3, [1, 2]), "who lives is known after a crash too"
        assert service.send("six", lines([update("out", 4, tick=5)])).status_code == 202
        service.close_until(5)
        assert latest(service) == (2, [0, 2])

        about = service.get("/v1/stream").json()
        assert about["unit"] == "item"
        assert "whether any one item (a name in the column 'visit') was ever there" in about["plain_words"]
        assert [query["card"]["words"] for query in about["queries"]] == ["Present now", "Present now, by ward"]
        assert service.get("/v1/spec").json()["columns"] == ["time", "what", "visit", "ward"]
        assert service.get("/v1/certificate").json()["queries"][0]["protects"].startswith("one item")


def test_the_envelope_is_checked_for_every_column(tmp_path: Path) -> None:
    with served(tmp_path, SPEC) as service:
        without = [{name: cell for name, cell in update("in", 1).items() if name != "visit"}]
        refused = service.send("one", arrow(without), ARROW)
        assert (refused.status_code, refused.json()) == (
            400,
            {"error": "the batch must have exactly one column 'visit'"},
        )
        nested = service.send("one", arrow([update("in", [1])]), ARROW)
        assert nested.status_code == 400
        assert "'visit' has another type" in nested.json()["error"]
        assert service.send("one", lines(without)).status_code == 202, "a JSON record has the columns that it has"


@pytest.mark.parametrize("format", ["csv", "arrow"])
def test_history_has_both_queries(tmp_path: Path, format: str) -> None:
    with served(tmp_path, SPEC) as service:
        service.send("one", lines([update("in", 1), update("in", 2, tick=2), update("out", 1, tick=3)]))
        service.close_until(3)
        answer = service.get("/v1/releases", query="present", format=format)
        if format == "csv":
            found = [int(line.split(",")[4]) for line in answer.text.splitlines()[1:]]
        else:
            found = pa.ipc.open_stream(answer.content).read_all()["value"].to_pylist()
        assert found == [1, 2, 1]
