"""Connections of those who show no token: they end nothing, shut nobody out, and are not kept for ever."""

from __future__ import annotations

import http.client
import re
import resource
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from crash_stream import plain
from nursery import Nursery
from one_service import Service

from waiting import PATIENCE, until

FILES = 256
LIVE = "/v1/releases/live"


def command_with_few_files(*arguments: str) -> None:
    from nursery import command

    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    command(*arguments)


@contextmanager
def serving(nursery: Nursery, folder: Path, serve: str = "", **how: Any) -> Iterator[Service]:
    service = Service(nursery, folder, plain(serve=serve))
    service.start(**how)
    try:
        yield service
        service.stop()
    finally:
        service.kill()


def connected(service: Service, source: str = "127.0.0.1") -> socket.socket:
    name, _, port = service.world.address().partition(":")
    return socket.create_connection((name, int(port)), PATIENCE, source_address=(source, 0))


def closed(connection: socket.socket) -> bool:
    """Waits for the end of a connection that nothing was said on."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@contextmanager
def silent(service: Service, count: int) -> Iterator[list[socket.socket]]:
    """Connections from as many addresses, on which nothing is ever said."""
    with ExitStack() as stack:
        sources = (f"127.0.{1 + number // 200}.{1 + number % 200}" for number in range(count))
        yield [stack.enter_context(connected(service, source)) for source in sources]


def asked(
    service: Service, path: str, role: str | None = None, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    with closing(http.client.HTTPConnection(service.world.address(), timeout=PATIENCE)) as connection:
        token = {} if role is None else {"Authorization": f"Bearer {service.world.tokens[role]}"}
        connection.request(method, path, headers={**token, **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers


@contextmanager
def listening(service: Service, role: str | None = None) -> Iterator[http.client.HTTPResponse]:
    with closing(http.client.HTTPConnection(service.world.address(), timeout=PATIENCE)) as connection:
        token = {} if role is None else {"Authorization": f"Bearer {service.world.tokens[role]}"}
        connection.request("GET", LIVE, headers=token)
        yield connection.getresponse()


def health(service: Service) -> list[int]:
    return [asked(service, path)[0] for path in ("/healthz", "/readyz")]


def test_more_silent_connections_than_files(nursery: Nursery, tmp_path: Path) -> None:
    """As if from a crowd of machines: others come in, ticks are released, whoever listens goes on listening."""
    with serving(nursery, tmp_path, call="test_connections:command_with_few_files") as service:
        with listening(service, "read") as events:
            assert events.status == 200
            with silent(service, FILES + 50) as crowd:
                assert health(service) == [200, 200]
                service.sent(1)
                service.close(2)
                assert closed(crowd[0])  # the oldest had to go
                while events.readline() != b"id: 2\n":
                    pass
        service.close(3)
    told = service.stderr()
    assert told.count("\n") == 1, told[:2000]  # what fits below the limit of files
    assert "112 connections at once" in told


def test_files_run_out_for_another_reason(nursery: Nursery, tmp_path: Path) -> None:
    """Whatever takes the last file: the service waits, says so once in a while, and goes on."""
    with serving(nursery, tmp_path) as service:
        assert service.child is not None
        enough = resource.prlimit(service.child.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(service.child.pid, resource.RLIMIT_NOFILE, (4, enough[1]))
        with silent(service, 30):
            until(lambda: service.stderr().count("no connection can be accepted: Too many open files") > 1)
            resource.prlimit(service.child.pid, resource.RLIMIT_NOFILE, enough)
            assert health(service) == [200, 200]
        service.close(1)
    # One line a second, and not many for each connection that waits.
    assert service.stderr().count("\n") < 100


def test_all_places_of_strangers_are_taken(nursery: Nursery, tmp_path: Path) -> None:
    """Listeners without a token hold them all. Tokens have places of their own, and so has health."""
    limits = "public = true\nconnections = 16\nconnections_per_address = 100\nlisteners_per_token = 100"
    with serving(nursery, tmp_path, limits) as service, ExitStack() as stack:
        for _ in range(8):
            assert stack.enter_context(listening(service)).status == 200
        status, body, headers = asked(service, "/v1/stream")
        assert (status, body) == (503, b'{"error":"too many connections; try again later"}')
        assert headers["Connection"] == "close"
        with silent(service, 40):  # more than there are places for health
            assert health(service) == [200, 200]
            assert asked(service, "/v1/stream", "read")[0] == 200
        # Who asks and is gone before the answer leaves no place behind.
        for _ in range(30):
            with connected(service) as hasty:
                token = service.world.tokens["read"]
                hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                head = f"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
                hasty.sendall(head.encode())
        # A token has at most half of the places of tokens.
        for _ in range(4):
            until(lambda: stack.enter_context(listening(service, "read")).status == 200)
        status, body, _ = asked(service, "/v1/stream", "read")
        assert (status, body) == (503, b'{"error":"too many connections under this token"}')
        assert asked(service, "/v1/stream", "admin")[0] == 200


def test_a_request_is_heard_among_silent_connections_of_the_same_address(nursery: Nursery, tmp_path: Path) -> None:
    """All are there before the service looks: those behind it must not close it before what it says was read."""
    with serving(nursery, tmp_path) as service, ExitStack() as stack:
        assert service.child is not None
        for role in (None, "read"):
            service.child.signal(signal.SIGSTOP)
            asking = stack.enter_context(connected(service))
            token = "" if role is None else f"Authorization: Bearer {service.world.tokens[role]}\r\n"
            path = "/healthz" if role is None else "/v1/stream"
            asking.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}\r\n".encode())
            for _ in range(300):
                stack.enter_context(connected(service))
            service.child.signal(signal.SIGCONT)
            assert asking.recv(15).startswith(b"HTTP/1.1 200")


def test_bounds_of_an_address_and_of_a_token(nursery: Nursery, tmp_path: Path) -> None:
    limits = 'connections_per_address = 3\nlisteners_per_token = 2\nhosts = ["Stats.example.org"]'
    with serving(nursery, tmp_path, limits) as service, ExitStack() as stack:
        other = stack.enter_context(connected(service, "127.0.0.8"))
        same = [stack.enter_context(connected(service, "127.0.0.9")) for _ in range(5)]
        assert closed(same[0])
        assert closed(same[1])
        for connection in (other, *same[2:]):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(15).startswith(b"HTTP/1.1 200")

        with ExitStack() as listeners:
            for _ in range(2):
                assert listeners.enter_context(listening(service, "read")).status == 200
            assert asked(service, LIVE, "read")[0] == 503
            assert listeners.enter_context(listening(service, "admin")).status == 200
        until(lambda: asked(service, LIVE, "read", method="HEAD")[0] == 200)  # which takes a slot, and gives it back
        assert [asked(service, LIVE, "read", method="HEAD")[0] for _ in range(5)] == [200] * 5

        for host, status in {
            "evil.example": 421,
            "evil.example:80": 421,
            "127.0.0.1.evil.example": 421,
            "": 421,
            "localhost": 200,
            "LOCALHOST:1": 200,
            "[::1]:8321": 200,
            "stats.example.org": 200,
        }.items():
            for path in ("/", "/v1/stream"):
                answer = asked(service, path, "read", headers={"Host": host})
                assert answer[0] == status, host
                assert (b"[serve] hosts" in answer[1]) == (status == 421)
            assert asked(service, "/healthz", headers={"Host": host})[0] == 200


def test_nobody_fills_the_disk_with_log_lines(nursery: Nursery, tmp_path: Path) -> None:
    """Each of these requests is worth a line: the token file is open to others."""
    began = time.monotonic()
    with serving(nursery, tmp_path) as service:
        tokens = service.spec.serve.tokens
        tokens.chmod(0o644)
        assert {asked(service, "/v1/stream", "read")[0] for _ in range(60)} == {401}
        tokens.chmod(0o600)
        assert asked(service, "/v1/stream", "read")[0] == 200
    minutes = 1 + (time.monotonic() - began) // 60
    told = service.stderr()
    lines = told.count("no token is accepted")
    summed_up = [int(count) for count in re.findall(r"(\d+) more lines of access.py:\d+ within a minute", told)]
    assert lines <= 20 * minutes
    assert lines + sum(summed_up) == 60
