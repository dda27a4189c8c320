"""Events over HTTP: each batch once, within bounds, and no answer that depends on a record."""

from __future__ import annotations

import csv
import gzip
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import NDJSON, SPEC, Served, hour, lines, served, visits

from waiting import PATIENCE, until

# So much budget that counts come out exact: the chance that one of them is off by one is far below 1e-6.
EXACT = SPEC.replace("rho = 0.5", "rho = 50000").replace("port = 0", "port = 0\nmax_batch_bytes = 100000")
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("exact"), EXACT) as running:
        yield running


def _arrow(records: list[dict[str, str]]) -> bytes:
    table, sink = pa.Table.from_pylist(records), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _csv(records: list[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def _released(service: Served) -> dict[str, Any]:
    latest = service.get("/v1/releases/latest").json()
    return {name: columns["value"] for name, columns in latest["queries"].items()} | {"tick": latest["tick"]}


_COUNTED = {"all": 0, "ward": [0, 0, 0], "tick": 0}


def _next_tick(service: Served, north: int = 0, south: int = 0) -> None:
    """Closes the open tick and checks what it added."""
    _COUNTED["tick"] += 1
    _COUNTED["all"] += north + south
    _COUNTED["ward"] = [_COUNTED["ward"][0] + north, _COUNTED["ward"][1] + south, 0]
    assert service.close_until(_COUNTED["tick"]).json() == {"released": _COUNTED["tick"]}
    assert _released(service) == _COUNTED


def test_every_media_type_counts_the_same(exact: Served) -> None:
    tick = _COUNTED["tick"] + 1
    records = [*visits(5, tick), *visits(3, tick, "south")]
    for number, (media_type, body) in enumerate(
        [
            (NDJSON, lines(records)),
            ("application/json", json.dumps(records).encode()),
            (ARROW, _arrow(records)),
            ("text/csv", _csv(records)),
            ("Application/X-NDJSON; charset=utf-8", lines(records)),
        ]
    ):
        answer = exact.send(f"media-{number}", body, media_type)
        assert answer.status_code == 202
        assert answer.json() == {"batch": f"media-{number}", "tick": tick, "duplicate": False}
    _next_tick(exact, 25, 15)


def test_a_batch_counts_once_however_often_it_comes(exact: Served) -> None:
    tick = _COUNTED["tick"] + 1
    body = lines(visits(7, tick))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: exact.send("again", body).json(), range(16)))
    assert sorted(answer["duplicate"] for answer in answers) == [False] + [True] * 15
    _next_tick(exact, 7)
    assert exact.send("again", body).json() == {"batch": "again", "tick": tick, "duplicate": True}
    other = exact.send("again", lines(visits(8, tick)))
    assert other.status_code == 409
    _next_tick(exact)


def test_many_clients_at_once(exact: Served) -> None:
    tick = _COUNTED["tick"] + 1
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: exact.send(f"many-{n}", lines(visits(10, tick, "south"))), range(60)))
    assert {answer.status_code for answer in answers} == {202}
    _next_tick(exact, 0, 600)


def test_a_retry_after_a_lost_answer(exact: Served) -> None:
    tick = _COUNTED["tick"] + 1
    body = lines(visits(11, tick))
    url = httpx.URL(exact.url)
    head = (
        f"POST /v1/events HTTP/1.1\r\nHost: {url.host}\r\nAuthorization: Bearer {exact.tokens['ingest']}\r\n"
        f"Idempotency-Key: lost\r\nContent-Type: {NDJSON}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((url.host, url.port)) as connection:
        connection.sendall(head.encode() + body)
    # The retry may overtake the first request: whichever comes second is the duplicate.
    until(lambda: exact.send("lost", body).json()["duplicate"])
    assert exact.send("lost", body).json()["tick"] == tick
    _next_tick(exact, 11)


def test_half_a_body_counts_nothing(exact: Served) -> None:
    tick = _COUNTED["tick"] + 1
    body = lines(visits(11, tick))
    url = httpx.URL(exact.url)
    head = (
        f"POST /v1/events HTTP/1.1\r\nHost: {url.host}\r\nAuthorization: Bearer {exact.tokens['ingest']}\r\n"
        f"Idempotency-Key: half\r\nContent-Type: {NDJSON}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((url.host, url.port)) as connection:
        connection.sendall(head.encode() + body[: len(body) // 2])
    assert exact.send("half", body).json()["duplicate"] is False
    _next_tick(exact, 11)


def test_batch_ids_of_two_tokens_are_two_ids(exact: Served) -> None:
    tick = _COUNTED["tick"] + 1
    other = exact.token_file.add("second-sensor", "ingest")
    same_name = exact.token_file.add("ingest", "ingest")
    assert exact.send("shared", lines(visits(1, tick))).json()["duplicate"] is False
    for token, duplicate in ((other, False), (same_name, True)):
        answer = exact.send("shared", lines(visits(1, tick)), headers={"Authorization": f"Bearer {token}"})
        assert answer.json()["duplicate"] is duplicate
    _next_tick(exact, 2)


# -- the envelope ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", " ", "a b", "a/b", "é", "x" * 129, "a\t"])
def test_batch_ids_are_checked(service: Served, key: str) -> None:
    headers = {"Idempotency-Key": key.encode("latin-1")} if key.strip() == key else {"Idempotency-Key": "a b"}
    assert service.send("ok", lines(visits(1)), headers=headers).status_code == 400


def test_a_batch_id_is_needed(service: Served) -> None:
    answer = service.client.post(
        "/v1/events", content=b"{}\n", headers=service.bearer("ingest") | {"Content-Type": NDJSON}
    )
    assert answer.status_code == 400
    assert answer.json() == {"error": "missing or not of the documented form: header Idempotency-Key"}
    assert service.send("x" * 128, lines(visits(1))).status_code == 202
    assert service.send("A.b_c:d-9", lines(visits(1))).status_code == 202


@pytest.mark.parametrize(
    "media_type", ["", "text/plain", "application/jsonl", "multipart/form-data", "application/x-ndjson2", "json"]
)
def test_other_media_types_are_refused(service: Served, media_type: str) -> None:
    assert service.send("media", lines(visits(1)), media_type).status_code == 415


def test_texts_are_read_as_utf_8_or_refused(service: Served) -> None:
    for number, charset in enumerate(("UTF-8", '"utf-8"', "us-ascii; header=present")):
        assert service.send(f"charset-{number}", lines(visits(1)), f"{NDJSON}; charset={charset}").status_code == 202
    for charset in ("latin-1", '"iso-8859-1"', "utf-16", ""):
        answer = service.send("charset", lines(visits(1)), f"{NDJSON}; charset={charset}")
        assert (answer.status_code, answer.json()) == (415, {"error": "texts are read as UTF-8; send them so"})


def test_compressed_bodies_are_refused(service: Served) -> None:
    body = gzip.compress(lines(visits(1)))
    assert service.send("gzip", body, headers={"Content-Encoding": "gzip"}).status_code == 415


def test_sizes(exact: Served) -> None:
    tick = _COUNTED["tick"] + 1
    full = lines(visits(1, tick)).ljust(100_000, b" ")
    assert exact.send("full", full).status_code == 202
    assert exact.send("over", full + b" ").status_code == 413
    _next_tick(exact, 1)

    def pieces() -> Iterator[bytes]:
        yield full

    headers = {**exact.bearer("ingest"), "Idempotency-Key": "chunks", "Content-Type": NDJSON}
    assert exact.client.post("/v1/events", content=pieces(), headers=headers).status_code == 411
    _next_tick(exact)


def test_a_length_that_promises_terabytes_costs_nothing(exact: Served) -> None:
    url = httpx.URL(exact.url)
    for length, status in (("1" + "0" * 12, 413), ("9" * 20, 413), ("9" * 30, 400), ("-1", 400), ("0x10", 400)):
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: {url.host}\r\nAuthorization: Bearer {exact.tokens['ingest']}\r\n"
            f"Idempotency-Key: huge\r\nContent-Type: {NDJSON}\r\nContent-Length: {length}\r\n\r\n"
        )
        with socket.create_connection((url.host, url.port), timeout=PATIENCE) as connection:
            connection.sendall(head.encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 %d " % status)


def test_bodies_of_other_endpoints_are_bounded_too(service: Served) -> None:
    for role, status in (("admin", 413), ("read", 403), (None, 401)):
        answer = service.client.post("/v1/ticks", content=b"x" * 5000, headers=service.bearer(role))
        assert answer.status_code == status


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"[1", "application/json"),
        (b'{"time": "2013"}', "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"not arrow", ARROW),
        (b"", ARROW),
        (_arrow([{"time": "2013-01-01", "ward": "north"}])[:-9], ARROW),
        (_arrow([{"time": "2013-01-01"}]), ARROW),
        (lines([{"tmie": "2013-01-01", "wrad": "north"}]), NDJSON),
        (b'[{"wrad": "north"}, 7]', "application/json"),
        (b"", "text/csv"),
        (b"time,wrad\n2013-01-01,north\n", "text/csv"),
    ],
)
def test_broken_envelopes(service: Served, body: bytes, media_type: str) -> None:
    answer = service.send("broken", body, media_type)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert "north" not in answer.text
    assert "wrad" not in answer.text


# -- nothing about records -----------------------------------------------------------------------------------------

_GOOD = visits(1, 5)[0]
_RECORDS: list[Any] = [
    _GOOD,
    {**_GOOD, "ward": "unknown"},
    {**_GOOD, "ward": None},
    {**_GOOD, "ward": ["north", "south"]},
    {**_GOOD, "ward": {"north": -10}},
    {**_GOOD, "time": "1813-01-01"},
    {**_GOOD, "time": "9813-01-01"},
    {**_GOOD, "time": "noon"},
    {**_GOOD, "time": 7},
    {"ward": "north"},
    {},
    [],
    17,
    "text",
    None,
]


def _answer(service: Served, number: int, body: bytes, media_type: str) -> tuple[Any, ...]:
    key = f"records-{number:06d}"
    answer = service.send(key, body, media_type)
    return answer.status_code, answer.headers.raw, answer.content.replace(key.encode(), b"KEY")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(_RECORDS), max_size=6), st.binary(max_size=40).filter(lambda b: b"\r" not in b))
def test_the_answer_to_any_records_is_the_same_bytes(service: Served, records: list[Any], junk: bytes) -> None:
    service.number = getattr(service, "number", 0) + 4
    normal = _answer(service, service.number, lines([_GOOD]), NDJSON)
    assert normal[0] == 202
    assert _answer(service, service.number + 1, lines(records), NDJSON) == normal
    assert _answer(service, service.number + 2, json.dumps(records).encode(), "application/json") == normal
    assert _answer(service, service.number + 3, junk, NDJSON) == normal


# -- too much, too late ----------------------------------------------------------------------------------------------


def test_back_pressure_and_the_end_of_the_stream(tmp_path: Path) -> None:
    spec = SPEC.replace("port = 0", "port = 0\nmax_batch_bytes = 20000\nmax_waiting_bytes = 100000")
    spec = spec.replace("horizon = 48", "horizon = 2")
    with served(tmp_path, spec) as service:
        body = lines(visits(200)).ljust(20_000, b" ")
        answers = [service.send(f"fill-{number}", body) for number in range(120)]
        statuses = [answer.status_code for answer in answers]
        taken = statuses.index(503)
        assert set(statuses[:taken]) == {202}
        assert set(statuses[taken:]) == {503}
        assert answers[-1].headers["Retry-After"] == "1"
        # What was refused comes again when there is room, and what was taken is known.
        assert service.close_until(1).status_code == 200
        assert service.send(f"fill-{taken}", body).json() == {"batch": f"fill-{taken}", "tick": 2, "duplicate": False}
        assert service.send("fill-0", body).json() == {"batch": "fill-0", "tick": 1, "duplicate": True}
        # The end.
        assert service.get("/readyz", None).json() == {"status": "ready"}
        assert service.close_until(2).json() == {"released": 2}
        assert service.send("late", lines(visits(1, 2))).status_code == 410
        assert service.get("/readyz", None).json() == {"status": "ended"}
        about = service.get("/v1/stream").json()
        assert (about["ended"], about["budget"]["ticks_left"], about["next_release"]) == (True, 0, None)
        assert (
            service.client.post("/v1/ticks", json={"until": hour(3)}, headers=service.bearer("admin")).status_code
            == 400
        )
        with service.listening({"Last-Event-ID": "1"}) as events:
            assert [event.get("event") for event in events] == [None, "release", "ended"]


def test_many_large_bodies_at_once_wait_outside(tmp_path: Path) -> None:
    """Bodies that are announced and never come may hold room for four of the largest size; the rest is told to wait."""
    with served(tmp_path, SPEC.replace("port = 0", "port = 0\nmax_batch_bytes = 20000")) as service:
        url = httpx.URL(service.url)
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: {url.host}\r\nAuthorization: Bearer {service.tokens['ingest']}\r\n"
            f"Idempotency-Key: slow\r\nContent-Type: {NDJSON}\r\nContent-Length: 20000\r\n\r\n"
        )

        def answered() -> int:
            return service.send("quick", lines(visits(200)).ljust(20_000, b" ")).status_code

        connections = [socket.create_connection((url.host, url.port), timeout=PATIENCE) for _ in range(4)]
        try:
            for connection in connections:
                connection.sendall(head.encode() + b"x")
            until(lambda: answered() == 503)
        finally:
            for connection in connections:
                connection.close()
        until(lambda: answered() == 202)


def test_wrong_times_to_close(service: Served) -> None:
    post = service.client.post
    headers = service.bearer("admin")
    for moment in ("2013-01-01T00:30:00Z", "noon", 7, "2014-01-01", None, True, 1.5, [], {}, "x" * 100):
        answer = post("/v1/ticks", json={"until": moment}, headers=headers)
        assert answer.status_code == 400
    for content in (b"", b"{", b"[]", b"{}", b'{"until": 1, "secret-key": 2}'):
        answer = post("/v1/ticks", content=content, headers=headers)
        assert answer.status_code == 400
        assert "secret-key" not in answer.text
    # What is over already stays as it is.
    assert post("/v1/ticks", json={"until": hour(1)}, headers=headers).json() == {"released": 3}


def test_ticks_that_close_on_the_wall_clock(tmp_path: Path) -> None:
    spec = SPEC.replace('close = "request"', "").replace("start = 2013-01-01T00:00:00Z", 'start = "first serve"')
    spec = spec.replace('tick = "1h"', 'tick = "1s"').replace("horizon = 48", "horizon = 6")
    with served(tmp_path, spec) as service:
        assert service.close_until(1).status_code == 409
        about = service.get("/v1/stream").json()
        assert about["released"] == 6 or about["next_release"] > about["clock"]["start"]
        seen: list[int] = []

        def listen() -> None:
            with service.listening(after=0) as events:
                seen.extend(int(event["id"]) for event in events if event.get("event") == "release")

        thread = threading.Thread(target=listen)
        thread.start()
        statuses = []
        while not statuses or statuses[-1] != 410:
            statuses.append(service.send(f"wall-{len(statuses)}", lines(visits(1))).status_code)
            time.sleep(0.05)
        assert set(statuses[:-1]) <= {202}
        thread.join(PATIENCE)
        assert seen == [1, 2, 3, 4, 5, 6]
        assert service.get("/v1/stream").json()["released"] == 6
