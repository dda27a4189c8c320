"""What readers get: the same releases in every form, what is public about the stream, metrics, the page."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
from served import SPEC, Served, lines, served, visits

# A query of every shape: one number, declared labels, ranks, labels as values, found labels, more labels than metrics.
SHAPES = (
    SPEC.replace("rho = 0.5", "epsilon = 60\ndelta = 1e-6")
    .replace("horizon = 48", "horizon = 400\nmax_events_per_tick = 50")
    .replace('kind = "counter"', 'kind = "counter"\nshare = 0.2')
    .replace('kind = "histogram"', 'kind = "histogram"\nshare = 0.2')
    + """
[[query]]
name = "top"
kind = "top"
k = 2
share = 0.1
column = "ward"
categories = ["north", "south"]

[[query]]
name = "first"
kind = "leader"
share = 0.1
column = "ward"
categories = ["north", "south"]

[[query]]
name = "found"
kind = "unknown-histogram"
share = 0.2
column = "ward"

[[query]]
name = "many"
kind = "histogram"
share = 0.2
column = "ward"
"""
    + f"categories = {json.dumps([f'ward-{number}' for number in range(101)])}\n"
)
ODD = 'north "wing", 3\r\nfloor\udcff'


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("shapes"), SHAPES) as running:
        body = lines([*visits(200), *visits(300, ward="south"), *visits(400, ward=ODD)])
        assert running.send("one", body).status_code == 202
        assert running.close_until(300).json() == {"released": 300}
        yield running


def _rows(releases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for release in releases:
        for query, columns in release["queries"].items():
            parts = [columns[name] for name in ("category", "value", "lower", "upper")]
            for category, value, lower, upper in [parts] if parts[0] is None else zip(*parts, strict=True):
                rows.append(
                    {"tick": release["tick"], "time": release["time"], "query": query, "category": category}
                    | {"value": value, "stddev": columns["stddev"], "lower": lower, "upper": upper}
                )
    return rows


def test_json_csv_arrow_and_the_output_file_agree(shapes: Served) -> None:
    releases = shapes.get("/v1/releases", limit=1000).json()["releases"]
    assert [release["tick"] for release in releases] == list(range(1, 301))
    rows = _rows(releases)
    found = {row["category"] for row in rows if row["query"] == "found"}
    assert ODD in found  # as JSON has it: with its line breaks and its lone surrogate

    written = [json.loads(line) for line in (shapes.folder / "visits.jsonl").read_text().splitlines()]
    assert written == rows
    shown = [{**row, "category": _utf8(row["category"])} for row in rows]

    answer = shapes.get("/v1/releases", limit=1000, format="csv")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    table = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [row.pop("label") != "" for row in (dict(row) for row in table)] == [r["query"] == "first" for r in shown]
    merged = [{**row, "value": row["value"] or row["label"]} for row in table]  # of the two one is empty
    assert [{name: cell for name, cell in row.items() if name != "label"} for row in merged] == [
        {name: "" if cell is None else str(cell) for name, cell in row.items()} for row in shown
    ]

    answer = shapes.get("/v1/releases", limit=1000, format="arrow")
    assert answer.headers["Content-Type"] == "application/vnd.apache.arrow.stream"
    arrow = pa.ipc.open_stream(answer.content).read_all().to_pylist()
    assert len(arrow) == len(shown)
    for got, wanted in zip(arrow, shown, strict=True):
        assert got["time"].isoformat().replace("+00:00", "Z") == wanted["time"]
        value = got["label"] if wanted["query"] == "first" else got["value"]
        cells = {name: got[name] for name in ("tick", "query", "category", "stddev", "lower", "upper")}
        assert {**cells, "value": value, "time": wanted["time"]} == wanted


def _utf8(label: str | None) -> str | None:
    return label and label.encode("utf-8", "backslashreplace").decode()


def _ticks(service: Served, **parameters: Any) -> list[int]:
    return [release["tick"] for release in service.get("/v1/releases", **parameters).json()["releases"]]


def test_stretches(shapes: Served) -> None:
    assert _ticks(shapes) == list(range(1, 301))
    assert _ticks(shapes, limit=5) == [296, 297, 298, 299, 300]
    assert _ticks(shapes, first=10, last=12) == [10, 11, 12]
    assert _ticks(shapes, first=299) == [299, 300]
    assert _ticks(shapes, last=2) == [1, 2]
    assert _ticks(shapes, last=10, limit=2) == [9, 10]
    assert _ticks(shapes, first=0, last=100, every=30) == [30, 60, 90]
    assert _ticks(shapes, points=3) == [100, 200, 300]
    assert _ticks(shapes, first=101, last=200, points=10) == list(range(110, 201, 10))
    assert _ticks(shapes, first=12, last=10) == []
    assert _ticks(shapes, first=10**15) == []
    assert len(_ticks(shapes, points=10_000)) == 300


def test_some_queries(shapes: Served) -> None:
    answer = shapes.get("/v1/releases", query=["top", "all"], last=1).json()["releases"]
    assert [list(release["queries"]) for release in answer] == [["all", "top"]]
    assert shapes.get("/v1/releases", query="nothing").status_code == 404
    assert shapes.get("/v1/releases", query=["all", "secret"]).json() == {
        "error": "the stream has no query of that name"
    }


@pytest.mark.parametrize(
    "parameters",
    [
        *({"first": -1}, {"first": "x"}, {"first": "1.5"}, {"last": 2**60}, {"every": 0}, {"limit": 0}, {"limit": ""}),
        *({"limit": 10**6}, {"points": 0}, {"format": "xml"}),
    ],
)
def test_wrong_parameters_are_named_and_not_repeated(shapes: Served, parameters: dict[str, Any]) -> None:
    answer = shapes.get("/v1/releases", **parameters)
    assert answer.status_code == 400
    assert answer.json() == {"error": f"missing or not of the documented form: query {next(iter(parameters))}"}


def test_latest_is_the_last_element(shapes: Served) -> None:
    latest = shapes.get("/v1/releases/latest").json()
    assert latest == shapes.get("/v1/releases", limit=1).json()["releases"][0]
    assert latest["tick"] == 300


def test_nothing_released_yet(tmp_path_factory: pytest.TempPathFactory) -> None:
    with served(tmp_path_factory.mktemp("new")) as service:
        assert service.get("/v1/releases/latest").status_code == 404
        assert service.get("/v1/releases").json() == {"releases": []}
        assert service.get("/v1/releases", format="csv").text == "tick,time,query,category,value,stddev,lower,upper\n"
        assert pa.ipc.open_stream(service.get("/v1/releases", format="arrow").content).read_all().num_rows == 0
        assert "evertally_value{" not in service.get("/metrics").text
        about = service.get("/v1/stream").json()
        assert (about["released"], about["released_time"], about["ended"]) == (0, None, False)


def test_about_the_stream(shapes: Served) -> None:
    about = shapes.get("/v1/stream").json()
    assert about["guarantee"] == "ApproxDP(epsilon=60.0, delta=1e-06)"
    assert about["budget"] == {"epsilon": 60.0, "rho": None, "delta": 1e-6, "spent_share": 1.0, "ticks_left": 100}
    assert about["clock"]["tick_seconds"] == 3600
    assert (about["released"], about["released_time"]) == (300, "2013-01-13T12:00:00Z")
    queries = {query["name"]: query for query in about["queries"]}
    assert queries["ward"]["labels"] == ["north", "south", "elsewhere"]
    assert queries["top"]["labels"] == ["1", "2"]
    assert queries["top"]["kind"] == "top_k"
    assert queries["top"]["card"]["words"] == "The 2 largest counts by ward, without their names"
    assert (queries["top"]["card"]["places"], queries["top"]["ours"]) == (True, True)
    assert queries["found"]["labels"] is None
    planned = {query["name"]: query for query in shapes.get("/v1/plan").json()["queries"]}
    entries = {entry["query"]: entry for entry in shapes.get("/v1/ledger").json()["entries"]}
    for name, query in queries.items():
        assert query["error_bound"] == planned[name]["error_bound"]
        assert query["charge"] == planned[name]["charge"] == entries[name]["amounts"]
        assert query["share"] == entries[name]["share"]
    certificate = shapes.get("/v1/certificate").json()
    assert certificate["in_plain_words"] == about["plain_words"]
    assert certificate["spec_digest"] == shapes.get("/v1/spec").json()["digest"] == shapes.spec.digest


def test_no_answer_names_a_file_or_a_folder(shapes: Served) -> None:
    for path in ("stream", "plan", "certificate", "ledger", "spec", "releases/latest"):
        text = shapes.get(f"/v1/{path}").text
        for private in (
            str(shapes.folder),
            shapes.folder.name,
            "visits.key",
            "visits.state",
            "visits.jsonl",
            ".tokens",
        ):
            assert private not in text


_SERIES = r'^evertally_%s{category="((?:\\.|[^"\\])*)",query="(\w+)",\S*} (\S+)$'


def _unescaped(label: str) -> str:
    return label.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")


def test_metrics_hold_released_and_public_values_only(shapes: Served) -> None:
    answer = shapes.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    families = set(re.findall(r"^# TYPE (\S+)", answer.text, re.M))
    assert families == {f"evertally_{name}" for name in ("released_tick", "horizon_ticks", "value", "lower", "upper")}
    latest = shapes.get("/v1/releases/latest").json()["queries"]
    for column in ("value", "lower", "upper"):
        series = re.findall(_SERIES % column, answer.text, re.M)
        shown = {(query, _unescaped(category)): float(number) for category, query, number in series}
        wanted = {}
        for query, columns in latest.items():
            if query not in ("many", "first"):
                categories = [""] if columns["category"] is None else map(_utf8, columns["category"])
                numbers = [columns[column]] if columns["category"] is None else columns[column]
                wanted |= {(query, category): number for category, number in zip(categories, numbers, strict=True)}
        assert shown == wanted


def test_figures_are_for_administrators(shapes: Served) -> None:
    figures = shapes.get("/v1/admin/figures", "admin").json()
    assert (figures["batches"], figures["failure"]) == (1, None)
    names = [query["name"] for query in shapes.get("/v1/stream").json()["queries"]]
    assert list(figures["memory"]) == names
    assert min(figures["memory"].values()) > 1000
    assert "evertally_admin_memory_bytes" in shapes.get("/v1/admin/metrics", "admin").text
    assert "evertally_admin_batches" in shapes.get("/v1/admin/metrics", "admin").text
    assert "evertally_admin" not in shapes.get("/metrics").text


def test_the_page_and_its_files(shapes: Served) -> None:
    page = shapes.client.get("/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    names = re.findall(r'(?:src|href)="static/([^"]+)"', page.text)
    assert "main.js" in names
    for name in names:
        answer = shapes.client.get(f"/static/{name}")
        assert answer.status_code == 200
        kinds = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
        assert answer.headers["Content-Type"] == kinds[name.rpartition(".")[2]]
    # The policy forbids what is written into the page itself.
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|<style|\son\w+=|javascript:", page.text)
