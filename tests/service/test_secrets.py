"""Nothing private in any answer or log line, whatever goes wrong; and the headers of every answer."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import socket
import sqlite3
import ssl
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.ipc
import pytest
from served import NDJSON, SPEC, Served, lines, served, visits

from evertally.errors import StateError
from evertally.service.logs import PublicFormatter, described
from evertally.service.problems import QuietErrors
from waiting import PATIENCE

CANARY = "canary7Zq"


def _bodies() -> list[tuple[bytes, str]]:
    """Batches full of canaries: good ones, wrong ones, and broken in every way."""
    record = {**visits(1, 4)[0], "ward": CANARY, "name": CANARY}
    table, sink = pa.table({"time": [CANARY], "ward": [CANARY], CANARY: [1]}), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    nested = pa.table({"time": [CANARY], "ward": [[[CANARY]]]})
    deep = io.BytesIO()
    with pa.ipc.new_stream(deep, nested.schema) as writer:
        writer.write_table(nested)
    quoted = json.dumps(CANARY).encode()
    ndjson = [
        lines([record]),
        lines([{**record, "time": CANARY}]),
        lines([{**record, "ward": {CANARY: CANARY}}]),
        quoted + b"\n",
        f'{{"{CANARY}": '.encode(),
        f'{{"ward": "{CANARY}'.encode() + b"\xff\n",
        f'{{"ward": "{CANARY}", "ward": "{CANARY}"}}\n'.encode(),
        f'{{"ward": 1e999, "time": "{CANARY}"}}\n'.encode(),
        b"[" * 5000 + quoted,
    ]
    array = [
        json.dumps([record]).encode(),
        json.dumps({CANARY: CANARY}).encode(),
        quoted,
        b"[" + quoted,
        b"[" * 5000 + quoted,
        CANARY.encode(),
    ]
    arrow = [sink.getvalue(), sink.getvalue()[:-20], CANARY.encode() * 50, deep.getvalue(), sink.getvalue() + quoted]
    return [
        *((body, NDJSON) for body in ndjson),
        *((body, "application/json") for body in array),
        *((body, "application/vnd.apache.arrow.stream") for body in arrow),
        *((body, f"text/{CANARY}") for body in ndjson[:1]),
    ]


def _raw(service: Served, request: bytes) -> bytes:
    url = httpx.URL(service.url)
    with socket.create_connection((url.host, url.port), timeout=PATIENCE) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received


def test_nothing_of_a_request_comes_back_or_is_logged(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        raw: list[bytes] = []
        for number, (body, media_type) in enumerate(_bodies()):
            assert service.send(f"batch-{number}", body, media_type).status_code in (202, 400, 415)
        service.close_until(5)
        bearer = {"Authorization": f"Bearer evt_admin_{CANARY}"}
        for path in ("/v1/stream", "/v1/admin/figures", f"/{CANARY}", f"/static/{CANARY}", "/metrics"):
            assert service.client.get(path, headers=bearer).status_code in (401, 404)
        for parameters in (
            {"first": CANARY},
            {"query": CANARY},
            {"format": CANARY},
            {CANARY: CANARY},
            {"token": CANARY},
        ):
            assert service.get("/v1/releases", **parameters).status_code in (200, 400, 404)
        headers = service.bearer("admin")
        for content in (f'{{"until": "{CANARY}"}}', f'{{"{CANARY}": 1}}', CANARY):
            assert service.client.post("/v1/ticks", content=content, headers=headers).status_code == 400
        assert service.client.request(CANARY.upper(), "/v1/stream").status_code == 405
        live = service.client.get("/v1/releases/live", headers={**service.bearer("read"), "Last-Event-ID": CANARY})
        assert live.status_code == 400
        for head in (
            f"GET /{CANARY} HTTP/9.9\r\n\r\n",
            f"{CANARY}\r\n\r\n",
            f"GET / HTTP/1.1\r\nHost: localhost\r\n{CANARY} : y\r\n\r\n",
            f"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX: {CANARY}\r\n\r\n",
            f"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: {CANARY}\r\n\r\n{CANARY}",
            f"POST /v1/ticks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{CANARY}",
        ):
            raw.append(_raw(service, head.encode()))
        assert all(answer.startswith(b"HTTP/1.1 ") for answer in raw)
        for path in ("/v1/stream", "/v1/releases", "/metrics", "/v1/releases/latest"):
            service.get(path)
        service.get("/v1/admin/figures", "admin")
        _, said = service.stop()
        everything = [answer.content + str(answer.headers.raw).encode() for answer in service.answers] + raw
        everything += [service.first_line.encode(), said.encode(), service.stderr().encode()]
        everything += [(tmp_path / name).read_bytes() for name in ("visits.jsonl", "visits.tokens")]
        assert len(everything) > 40
        for text in everything:
            for secret in (CANARY, CANARY.lower(), CANARY.upper(), *service.tokens.values()):
                assert secret.encode() not in text
        assert service.stderr() == ""


def test_the_state_file_does_not_show_events(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        record = {**visits(1)[0], "ward": CANARY}
        assert service.send(CANARY, lines([record] * 50)).status_code == 202
        service.stop()
        for file in tmp_path.iterdir():
            if file.is_file():
                assert CANARY.encode() not in file.read_bytes()


def test_an_unexpected_error_is_told_by_type_and_place_only(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/late":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError(CANARY)

    async def answers(path: str) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await QuietErrors(broken)({"type": "http", "path": path}, None, send)
        return sent

    sent = asyncio.run(answers("/"))
    assert sent[0]["status"] == 500
    assert json.loads(sent[1]["body"]) == {"error": "internal error"}
    assert [message["type"] for message in asyncio.run(answers("/late"))] == ["http.response.start"]
    assert [record.message.partition(" at ")[0] for record in caplog.records] == ["internal error: ValueError"] * 2
    assert CANARY not in caplog.text


def test_log_lines_of_others_show_their_place_only() -> None:
    formatter = PublicFormatter()

    def line(name: str, text: str, error: BaseException | None = None) -> str:
        info = None if error is None else (type(error), error, error.__traceback__)
        return formatter.format(logging.LogRecord(name, logging.ERROR, "x/h11.py", 7, text, (), info))

    assert line("uvicorn.error", f"about {CANARY}").endswith(" error: uvicorn.error, h11.py:7")
    assert line("asyncio", CANARY, ValueError(CANARY)).endswith(" error: asyncio, h11.py:7: ValueError")
    assert line("evertally.service", "a text of ours").endswith(" error: a text of ours")
    assert described(StateError("written to be shown")) == "written to be shown"


def test_a_damaged_release_is_not_shown(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        service.close_until(3)
        with sqlite3.connect(tmp_path / "visits.state") as connection:
            connection.execute("UPDATE release SET payload = ? WHERE tick = 3", (CANARY.encode(),))
        connection.close()
        assert service.get("/readyz").status_code == 200, "nobody has seen it"
        for path in ("/v1/releases/latest", "/metrics", "/v1/releases"):
            answer = service.get(path)
            assert answer.status_code == 503, path
            assert CANARY not in answer.text
        assert service.get("/readyz").status_code == 503
        assert service.get("/v1/releases", last=2).status_code == 200
        assert "damaged" in service.stderr()
        assert CANARY not in service.stderr()


# -- headers -----------------------------------------------------------------------------------------------------


def _check_headers(answer: httpx.Response, cache: str = "no-store") -> None:
    headers = answer.headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == cache
    for absent in ("Server", "Date", "X-Powered-By", "Access-Control-Allow-Origin", "Set-Cookie"):
        assert absent not in headers


def test_every_answer_has_the_security_headers(service: Served) -> None:
    get, admin = service.client.get, service.bearer("admin")
    for path in (
        "/v1/stream",
        "/v1/releases",
        "/metrics",
        "/healthz",
        "/nothing",
        "/v1/admin/figures",
    ):
        _check_headers(get(path, headers=admin))
        _check_headers(get(path, headers={"Origin": "https://elsewhere.example"}))
    _check_headers(service.client.post("/v1/events", headers=admin))
    _check_headers(service.client.put("/v1/stream"))
    for path in ("/", "/static/index.html", "/openapi.json"):  # bytes that never change while it runs: they have tags
        _check_headers(get(path), "no-cache")
    with service.client.stream("GET", "/v1/releases/live", headers=admin) as answer:
        _check_headers(answer)


def test_tls(tmp_path: Path) -> None:
    certificate = _self_signed(tmp_path)
    spec = SPEC.replace(
        "port = 0", 'port = 0\ncertificate = "tls.pem"\nprivate_key = "tls.key"\nconnections_per_address = 2'
    )
    trusting = ssl.create_default_context(cafile=certificate)
    with served(tmp_path, spec, ["--host", "localhost"], verify=trusting) as service:
        assert service.url.startswith("https://localhost:")
        answer = service.get("/v1/stream")
        assert answer.status_code == 200
        assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
        _check_headers(answer)
        with pytest.raises(httpx.ConnectError, match="certificate"):
            httpx.get(service.url)
        port = httpx.URL(service.url).port
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://localhost:{port}/healthz")
        # Whoever does not even begin with TLS has a place like any other stranger, and loses it first.
        with ExitStack() as stack:
            silent = [stack.enter_context(socket.create_connection(("localhost", port), PATIENCE)) for _ in range(5)]
            assert [connection.recv(1) for connection in silent[:3]] == [b""] * 3
            assert service.get("/healthz").status_code == 200


def _self_signed(folder: Path) -> Path:
    import datetime as dt

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "tls.pem").write_bytes(made.public_bytes(pem))
    (folder / "tls.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "tls.pem"
