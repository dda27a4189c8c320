"""Webhooks against real servers that fail, hang and redirect: at least once, in order, and never in anybody's way."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from release_stream import released
from visit_stream import WriteSpec

from evertally.errors import StateError
from evertally.runtime.releases import TickRelease, as_json
from evertally.runtime.sinks import Webhook
from evertally.runtime.sinks import webhook as webhook_module
from evertally.runtime.spec import StreamSpec, load_spec
from evertally.runtime.spec.types import SinkSpec
from waiting import PATIENCE, until

Answer = Callable[["Receiver"], None]


class Receiver(BaseHTTPRequestHandler):
    """Notes every request and answers as the script of its server says; at its end with 204."""

    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.path, dict(self.headers), json.loads(body or b"null")))
        script = self.server.script
        (script.pop(0) if script else status(204))(self)

    def do_GET(self) -> None:  # what clients make of a redirection that they follow
        self.do_POST()

    def log_message(self, *_: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *script: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.script = list(script)
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.over = threading.Event()

    def ticks(self) -> list[int]:
        return [body["tick"] for _, _, body in self.requests]

    def handle_error(self, *_: Any) -> None:
        pass  # a client that goes away is what some tests are about


def status(code: int, **headers: str) -> Answer:
    def answer(receiver: Receiver) -> None:
        receiver.send_response(code)
        for name, value in headers.items():
            receiver.send_header(name, value)
        receiver.send_header("Content-Length", "6")
        receiver.end_headers()
        receiver.wfile.write(b"secret")

    return answer


def hang(receiver: Receiver) -> None:
    receiver.server.over.wait(PATIENCE)


def hang_up(receiver: Receiver) -> None:
    receiver.connection.shutdown(socket.SHUT_RDWR)


def nonsense(receiver: Receiver) -> None:
    receiver.wfile.write(b"secret nonsense\r\n\r\n")


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*script: Answer) -> Server:
        servers.append(Server(*script))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1]

    yield start
    for server in servers:
        server.over.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def spec(write_spec: WriteSpec) -> StreamSpec:
    return load_spec(write_spec())


@pytest.fixture
def ticks(spec: StreamSpec) -> list[TickRelease]:
    return [kept for kept, _ in released(spec, 5)]


class Delivery:
    """A webhook, a list of published ticks that it reads, and the ticks that it says it has delivered."""

    def __init__(self, spec: StreamSpec, url: str, ticks: Sequence[TickRelease], after: int = 0, **options: Any):
        self.published = list(ticks)
        self.done: list[int] = []
        self.reads = 0
        sink = SinkSpec("webhook-1", None, url, options.pop("timeout", 5.0))
        options = {"first_wait": 0.01, "longest_wait": 0.05} | options
        self.webhook = Webhook(spec, sink, self.read, self.tell, after, **options)

    def read(self, after: int) -> list[TickRelease]:
        self.reads += 1
        return [release for release in self.published if release.tick > after][:2]

    def tell(self, tick: int) -> None:
        self.done.append(tick)

    def __enter__(self) -> Delivery:
        self.webhook.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.webhook.stop()
        self.webhook.join(PATIENCE)
        assert not self.webhook.is_alive()

    def wait_for(self, tick: int) -> None:
        until(lambda: tick in self.done)


def url_of(server: Server, path: str = "/hook?room=1") -> str:
    return f"http://127.0.0.1:{server.server_address[1]}{path}"


def test_every_tick_is_posted_once_and_in_order(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server]
) -> None:
    server = serve()
    with Delivery(spec, url_of(server), ticks) as delivery:
        delivery.wait_for(5)
    assert delivery.done == [1, 2, 3, 4, 5]
    assert (delivery.webhook.delivered, delivery.webhook.failure) == (5, None)
    for release, (path, headers, body) in zip(ticks, server.requests, strict=True):
        assert path == "/hook?room=1"
        assert body == as_json(spec, release)
        assert headers["Idempotency-Key"] == f"visits/{release.tick}"
        assert headers["Content-Type"] == "application/json"


def test_an_address_without_a_path_and_a_later_start(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server]
) -> None:
    server = serve()
    with Delivery(spec, url_of(server, ""), ticks, after=3) as delivery:
        delivery.wait_for(5)
    assert (delivery.done, server.ticks(), server.requests[0][0]) == ([4, 5], [4, 5], "/")


def test_what_is_not_taken_comes_again(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server]
) -> None:
    elsewhere = serve()
    script = [
        status(500),
        status(404),
        status(302, Location=url_of(elsewhere)),
        status(308, Location=url_of(elsewhere)),
        hang_up,
        nonsense,
        status(200),
        status(429),
        status(202),
    ]
    server = serve(*script)
    with Delivery(spec, url_of(server), ticks) as delivery:
        delivery.wait_for(5)
    assert server.ticks() == [1] * 7 + [2] * 2 + [3, 4, 5]
    assert delivery.done == [1, 2, 3, 4, 5]
    assert elsewhere.requests == []  # a redirection would send releases to another place than the spec says


def test_why_it_fails_is_said_without_the_words_of_the_receiver(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server]
) -> None:
    for answer, words in (
        (status(503), "the receiver answered with status 503"),
        (nonsense, "BadStatusLine"),
        (hang_up, "RemoteDisconnected"),
        (hang, "did not answer in time"),
    ):
        server = serve(*[answer] * 3)
        timeout = 0.1 if answer is hang else 5.0
        with Delivery(spec, url_of(server), ticks, timeout=timeout, first_wait=5.0) as delivery:
            until(lambda delivery=delivery: delivery.webhook.failure is not None)
            assert words in (delivery.webhook.failure or "")
            assert "secret" not in (delivery.webhook.failure or "")
        assert delivery.done == []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with Delivery(spec, f"http://127.0.0.1:{free.getsockname()[1]}/", ticks, first_wait=5.0) as delivery:
            until(lambda: delivery.webhook.failure == "Connection refused")


def test_a_receiver_that_hangs_is_left_after_the_timeout(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server]
) -> None:
    server = serve(hang, hang)
    with Delivery(spec, url_of(server), ticks, timeout=0.1) as delivery:
        delivery.wait_for(5)
    # On a busy machine a willing receiver may be too slow for this timeout too: then a tick comes once more.
    assert server.ticks()[:3] == [1, 1, 1]
    assert server.ticks() == sorted(server.ticks())
    assert delivery.done == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("piece", [b"a", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_an_answer_that_never_ends_is_left(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server], piece: bytes
) -> None:
    """Each byte comes within the time-out, and the answer never does."""

    def drip(receiver: Receiver) -> None:
        receiver.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: " if piece == b"a" else b"")
        while not receiver.server.over.wait(0.02):
            receiver.wfile.write(piece)

    told: list[str | None] = []
    server = serve(drip)
    with Delivery(spec, url_of(server), ticks, timeout=0.5, trouble=told.append) as delivery:
        delivery.wait_for(5)
    assert server.ticks()[:2] == [1, 1]
    assert delivery.done == [1, 2, 3, 4, 5]
    assert told[0] == "the receiver did not answer in time"


def test_attempts_become_rarer_up_to_a_limit(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server]
) -> None:
    waits: list[float | None] = []

    class Noted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            return self.is_set()

    server = serve(*[status(500)] * 6)
    delivery = Delivery(spec, url_of(server), ticks[:1], first_wait=5, longest_wait=20)
    delivery.webhook._stopping = Noted()
    with delivery:
        delivery.wait_for(1)
    assert waits == [5, 10, 20, 20, 20, 20]


@pytest.mark.parametrize("state", ["hanging", "waiting", "idle", "refused"])
def test_it_stops_at_once_whatever_it_waits_for(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server], state: str
) -> None:
    server = serve(*[hang if state == "hanging" else status(500)] * (state != "idle"))
    address = "http://127.0.0.1:9/" if state == "refused" else url_of(server)
    delivery = Delivery(spec, address, ticks, timeout=3 * PATIENCE, first_wait=3 * PATIENCE)
    delivery.webhook.start()
    if state == "idle":
        delivery.wait_for(5)
    elif state == "hanging":
        until(lambda: server.requests != [])
    else:
        until(lambda: delivery.webhook.failure is not None)
    delivery.webhook.stop()
    delivery.webhook.join(PATIENCE)  # much shorter than what it waits for
    assert not delivery.webhook.is_alive()
    reads = delivery.reads
    delivery.webhook.wake()
    assert delivery.done == ([1, 2, 3, 4, 5] if state == "idle" else [])
    assert delivery.reads == reads
    delivery.webhook.stop()  # again is harmless


def test_one_that_was_never_started_stops_too(spec: StreamSpec) -> None:
    Delivery(spec, "http://127.0.0.1:9/", []).webhook.stop()


def test_news_wake_it(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_module, "_POLL", 60.0)
    with Delivery(spec, url_of(serve()), []) as delivery:
        until(lambda: delivery.reads == 1)
        delivery.published += ticks
        delivery.webhook.wake()
        delivery.wait_for(5)


def test_it_looks_for_news_by_itself(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_module, "_POLL", 0.02)
    with Delivery(spec, url_of(serve()), []) as delivery:
        until(lambda: delivery.reads > 1)
        delivery.published += ticks
        delivery.wait_for(5)


def test_what_is_not_remembered_is_delivered_again(
    spec: StreamSpec, ticks: list[TickRelease], serve: Callable[..., Server]
) -> None:
    server, failures = serve(), ["done", "read"]

    class Forgetful(Delivery):
        def tell(self, tick: int) -> None:
            if tick == 2 and "done" in failures:
                failures.remove("done")
                raise StateError("the disk is full")
            super().tell(tick)

        def read(self, after: int) -> list[TickRelease]:
            if after == 3 and "read" in failures:
                failures.remove("read")
                raise StateError("the store is busy")
            return super().read(after)

    with Forgetful(spec, url_of(server), ticks) as delivery:
        delivery.wait_for(5)
    assert failures == []
    assert server.ticks() == [1, 2, 2, 3, 4, 5]
    assert delivery.done == [1, 2, 3, 4, 5]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    both = tmp_path / "both.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    options = [*words.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(both), "-out", f"{both}.cert"]
    subprocess.run(["openssl", *options], check=True, capture_output=True)
    both.write_bytes(both.read_bytes() + Path(f"{both}.cert").read_bytes())
    return both


def test_certificates_are_verified(
    spec: StreamSpec,
    ticks: list[TickRelease],
    serve: Callable[..., Server],
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = serve()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    address = f"https://127.0.0.1:{server.server_address[1]}/"
    with Delivery(spec, address, ticks, first_wait=5.0) as delivery:
        until(lambda: delivery.webhook.failure is not None)
        assert "certificate of the receiver was refused: self-signed" in (delivery.webhook.failure or "")
    assert server.requests == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # as an operator adds a certificate of the house
    with Delivery(spec, address, ticks) as delivery:
        delivery.wait_for(5)
    assert server.ticks() == [1, 2, 3, 4, 5]


def test_only_a_webhook_is_one(spec: StreamSpec, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a webhook"):
        Webhook(spec, SinkSpec("x", tmp_path / "x.csv", None, 5.0), lambda after: [], lambda tick: None)
