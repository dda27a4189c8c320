"""Batches that nobody should be able to take: refused or counted, and the stream goes on for all others."""

from __future__ import annotations

import random
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from served import SPEC, Served, hour, lines, served, visits

import any_arrow
from long import LONG
from spec_text import ALL, HOURLY, WARD, spec_text
from waiting import until

ARROW = "application/vnd.apache.arrow.stream"
REFUSED = {
    "column 'time' has another type than time stamps, dates or text, which this clock needs",
    "column 'minutes' has another type than numbers or text, from which amounts are read",
    "column 'person' has another type than text or numbers: an event has exactly one user",
    "column 'ward' has another type than text, numbers, lists of them, or tables from labels to weights",
}
GOOD = {
    "time": pa.array([hour(0)] * 9),
    "ward": pa.array(["north", "south", None] * 3),
    "minutes": pa.array(range(9)),
    "person": pa.array([f"p{i}" for i in range(9)]),
}
# Every use of a column, and so every door.
DOORS = spec_text(
    {**ALL, "share": 0.2},
    {**WARD, "share": 0.2, "max_per_event": 2, "max_weight": 3},
    {"name": "minutes", "kind": "mean", "column": "minutes", "lower": 0, "upper": 50, "resolution": 1, "share": 0.2},
    {"name": "found", "kind": "unknown-histogram", "column": "ward", "max_per_event": 2, "share": 0.2},
    stream={
        "name": "visits",
        "horizon": 48,
        "unit": "user",
        "max_events_per_user": 10**6,
        "user_column": "person",
    },
    guarantee={"epsilon": 1, "delta": 1e-6},
    clock={**HOURLY, "close": "request"},
    serve={"port": 0, "requests_per_second": 100000},
)


def nulls(column: str) -> Any:
    if column == "fixed":
        return pa.FixedSizeListArray.from_arrays(pa.nulls(18), 2)
    return pa.ListArray.from_arrays(pa.array([0, *range(12, 21)], pa.int32()), pa.nulls(20))


def body(compression: str | None = None, **columns: Any) -> bytes:
    length = len(next(iter(columns.values())))
    others = {name: column[:length] for name, column in GOOD.items()}
    return any_arrow.body({**others, **columns}, compression=compression)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("doors"), DOORS) as running:
        yield running


@pytest.mark.parametrize("column", ["fixed", "list"])
def test_lists_of_nulls_end_nothing(doors: Served, column: str) -> None:
    """568 bytes that ended the process, in the thread that owns the stream."""
    assert doors.send(f"nulls-{column}", body(ward=nulls(column)), ARROW).status_code == 202
    assert doors.send(f"after-{column}", body(ward=GOOD["ward"]), ARROW).status_code == 202


def test_any_column_is_taken_or_refused_by_its_type_and_the_tick_is_released(doors: Served) -> None:
    rng = random.Random(18)
    taken = 0
    for number in range(3000 if LONG else 100):
        name = rng.choice(("ward", "ward", "ward", *GOOD))
        column = any_arrow.column(rng, rng.choice((0, 1, 3, 9)), rng.choice((1, 2)))
        compression = rng.choice((None, None, "lz4"))
        answer = doors.send(f"any-{number}", body(**{name: column}, compression=compression), ARROW)
        taken += answer.status_code == 202
        if answer.status_code != 202:
            assert answer.status_code == 400, answer.text
            assert answer.json()["error"] in REFUSED, (number, str(column.type), answer.text)
    assert taken > 20
    assert doors.close_until(2).json() == {"released": 2}
    figures = doors.get("/v1/admin/figures", "admin").json()
    assert (figures["failed"], figures["problem"], figures["failure"]) == (0, None, None)
    assert doors.stderr() == ""


# -- Files -------------------------------------------------------------------------------------------------------------


def _follows(folder: Path, exact: str = "rho = 50000") -> str:
    (folder / "incoming").mkdir()
    clock = {"start": "first serve", "tick": "1s"}
    spec = spec_text(WARD, clock=clock, serve={"port": 0, "publish_after": 0.5}, stream={"name": "v", "horizon": 10**6})
    return spec.replace("rho = 0.5", exact) + '\n[[source]]\nfolder = "incoming"\n'


def _put(folder: Path, name: str, content: bytes) -> None:
    hidden = folder / "incoming" / f".{name}"
    hidden.write_bytes(content)
    hidden.rename(folder / "incoming" / name)


def _counted(service: Served) -> Any:
    latest = service.get("/v1/releases/latest")
    return latest.json()["queries"]["ward"]["value"] if latest.status_code == 200 else None


def test_files_of_any_columns_hold_up_no_other(tmp_path: Path) -> None:
    """A poisoned file was a crash loop. Of a folder of them, what can be read is counted, and the rest is named."""
    spec = _follows(tmp_path)
    rng = random.Random(3)
    _put(tmp_path, "a-fixed.arrow", any_arrow.body({"ward": nulls("fixed")}))
    _put(tmp_path, "a-list.arrow", any_arrow.body({"ward": nulls("list")}))
    for number in range(200 if LONG else 15):
        column = any_arrow.column(rng, 3, 2)
        _put(tmp_path, f"b-{number:03d}.arrow", any_arrow.body({"ward": column}))
    _put(tmp_path, "c.csv", b"ward\n" + b"north\n" * 1000)
    with served(tmp_path, spec) as service:
        until(lambda: (_counted(service) or [0])[0] >= 1000, pause=0.2)
        figures = service.get("/v1/admin/figures", "admin").json()
        assert (figures["failed"], figures["quarantined"]) == (0, 0)
        assert "a-fixed" not in (figures["problem"] or "")
        assert service.stop(signal.SIGTERM)[0] == 0


# -- One client, and the others ----------------------------------------------------------------------------------------


def test_more_rows_than_a_batch_may_have_are_refused_whatever_they_are(tmp_path: Path) -> None:
    spec = SPEC.replace("port = 0", "port = 0\nmax_batch_rows = 100\nrows_per_second = 0.001")
    with served(tmp_path, spec) as service:
        for number, content in enumerate((b"{}\n" * 101, b"\n" * 101, b"x\n" * 101, lines(visits(101)))):
            answer = service.send(f"lines-{number}", content)
            assert (answer.status_code, "max_batch_rows" in answer.text) == (400, True)
        for number, (content, media_type) in enumerate(
            [
                (b"[" + b",".join([b"{}"] * 101) + b"]", "application/json"),
                (b"[" + b",".join([b"7"] * 101) + b"]", "application/json"),
                (b"time,ward\n" + b",\n" * 101, "text/csv"),
                (any_arrow.body({"time": pa.nulls(101), "ward": pa.nulls(101)}), ARROW),
                (any_arrow.body({"time": pa.nulls(1), "ward": pa.array([[7] * 808])}), ARROW),
                (b'[{"ward": [' + b"7," * 808 + b"7]}]", "application/json"),
            ]
        ):
            answer = service.send(f"other-{number}", content, media_type)
            assert (answer.status_code, "max_batch_rows" in answer.text) == (400, True)
        # Rows of a second: ten of the hundred were taken by the envelopes above. Bad rows count like good ones.
        assert service.send("good", lines(visits(50))).status_code == 202
        for content in (b"x\n" * 50, lines(visits(50))):
            answer = service.send("more", content)
            assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
        other = {"Authorization": f"Bearer {service.token_file.add('other', 'ingest')}"}
        assert service.send("others", lines(visits(50)), headers=other).status_code == 202
        figures = service.get("/v1/admin/figures", "admin").json()
        assert figures["refused_busy"] == 2
        assert figures["clients"]["ingest"] | {"bytes": 0, "waiting_bytes": 0} == {
            "batches": 1,
            "rows": 50,
            "bytes": 0,
            "refused_busy": 2,
            "failed": 0,
            "waiting_rows": 50,
            "waiting_bytes": 0,
        }
        assert figures["clients"]["other"]["rows"] == 50
        assert figures["waiting_rows"] == 100
        assert figures["waiting_bytes"] > 0
        # What has left its tick waits no longer.
        service.close_until(1)
        after = service.get("/v1/admin/figures", "admin").json()
        assert (after["waiting_rows"], after["waiting_bytes"], after["queued"]) == (0, 0, 0)
        metrics = service.get("/v1/admin/metrics", "admin").text
        assert 'evertally_admin_client_rows{client="other",stream="visits"} 50.0' in metrics


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    limits = "port = 0\nmax_batch_rows = 10\nmax_waiting_rows = 40\nmax_batch_bytes = 1000"
    with served(tmp_path_factory.mktemp("narrow"), SPEC.replace("port = 0", limits)) as running:
        yield running


def test_a_caller_may_have_half_of_what_may_wait(narrow: Served) -> None:
    others = [{"Authorization": f"Bearer {narrow.token_file.add(name, 'ingest')}"} for name in ("other", "third")]
    answers = [narrow.send(f"greedy-{i}", lines(visits(10))).status_code for i in range(3)]
    assert answers == [202, 202, 503]
    answers = [narrow.send(f"other-{i}", lines(visits(10)), headers=others[0]).status_code for i in range(3)]
    assert answers == [202, 202, 503]
    assert narrow.send("third", lines(visits(1)), headers=others[1]).status_code == 503
    figures = narrow.get("/v1/admin/figures", "admin").json()
    assert figures["refused_busy"] == 3
    refused = {name: client["refused_busy"] for name, client in figures["clients"].items()}
    assert refused == {"ingest": 1, "other": 1, "third": 1}
    narrow.close_until(1)
    assert narrow.send("third", lines(visits(1)), headers=others[1]).status_code == 202


def test_bodies_that_are_not_read_because_others_are_being_read_are_counted(narrow: Served) -> None:
    """Eight of the largest bodies fit into memory, four of one caller: the fifth is asked to come again."""
    before = narrow.get("/v1/admin/figures", "admin").json()
    url = httpx.URL(narrow.url)
    head = (
        f"POST /v1/events HTTP/1.1\r\nHost: {url.host}\r\nAuthorization: Bearer {narrow.tokens['ingest']}\r\n"
        "Idempotency-Key: slow\r\nContent-Type: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n{"
    )
    with ExitStack() as stack:

        def full() -> bool:
            """One more that is never finished (the fifth may have come before the fourth, and taken its room)."""
            stack.enter_context(socket.create_connection((url.host, url.port))).sendall(head.encode())
            return narrow.send("fifth", b"{}".ljust(1000)).status_code == 503

        until(full)
        after = narrow.get("/v1/admin/figures", "admin").json()
    refused = after["refused_busy"] - before["refused_busy"]
    assert refused >= 1
    assert after["clients"]["ingest"]["refused_busy"] - before["clients"]["ingest"]["refused_busy"] == refused
