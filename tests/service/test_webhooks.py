"""Webhooks of a running service: every tick, in order, at least once, across restarts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from served import SPEC, Served

from waiting import until


class _Receiver(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ticks: list[int] = []
        self.keys: list[str] = []
        self.windows: dict[int, float] = {}  # of the counter, by tick
        self.status = 200


class _Handler(BaseHTTPRequestHandler):
    server: _Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.status == 200:
            self.server.ticks.append(body["tick"])
            self.server.keys.append(self.headers["Idempotency-Key"])
            if "all/2" in body["queries"]:
                self.server.windows[body["tick"]] = body["queries"]["all/2"]["value"]
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[_Receiver]:
    with _Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _wait_for(receiver: _Receiver, tick: int) -> None:
    until(lambda: bool(receiver.ticks) and receiver.ticks[-1] >= tick)


def test_ticks_are_delivered_across_restarts_and_failures(tmp_path: Path, receiver: _Receiver) -> None:
    spec = SPEC.replace('kind = "counter"', 'kind = "counter"\nwindow = 2', 1)
    spec += f'\n[[sink]]\nwebhook = "http://127.0.0.1:{receiver.server_port}/hook"\n'
    service = Served(tmp_path, spec)
    try:
        service.close_until(20)
        _wait_for(receiver, 20)
        service.stop()
        service.start()
        receiver.status = 500
        service.close_until(22)
        assert service.get("/v1/stream").json()["released"] == 22  # nobody waits for a receiver
        refused = {"webhook-1": "the receiver answered with status 500"}
        until(lambda: service.get("/v1/admin/figures", "admin").json()["webhooks"] == refused)
        receiver.status = 200
        _wait_for(receiver, 22)
        windows = service.get("/v1/windows", query="all", every=1).json()
    finally:
        service.stop()
    assert receiver.windows == dict(zip(windows["tick"], windows["value"][0], strict=True))
    assert len(receiver.windows) == 21
    assert list(dict.fromkeys(receiver.ticks)) == list(range(1, 23))
    assert receiver.ticks == sorted(receiver.ticks)
    assert len(receiver.ticks) <= 23  # one may have been under way when the service stopped
    assert receiver.keys[0] == "visits/1"
    said = [line.partition("warning: ")[2] for line in service.stderr().splitlines()]
    assert said == ["webhook-1: the receiver answered with status 500", "webhook-1: delivers again"]
