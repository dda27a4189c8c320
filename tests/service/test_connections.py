"""Connections of those who show no token: they end nothing, shut nobody out, and are not kept for ever."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from served import SPEC, Served, lines, served, visits

from evertally.errors import ConfigurationError
from evertally.service import open_files
from evertally.service.places import Place, Places
from waiting import PATIENCE, until

FILES = 256


def few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


def with_limits(**options: Any) -> str:
    text = "".join(f"{name} = {str(value).lower()}\n" for name, value in options.items())
    return SPEC.replace("port = 0\n", f"port = 0\n{text}")


def connected(service: Served, source: str = "127.0.0.1") -> socket.socket:
    url = httpx.URL(service.url)
    return socket.create_connection((url.host, url.port), PATIENCE, source_address=(source, 0))


def closed(connection: socket.socket) -> bool:
    """Waits for the end of a connection that nothing was said on."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def address(number: int) -> str:
    return f"127.0.{1 + number // 200}.{1 + number % 200}"


@contextmanager
def silent(service: Served, count: int) -> Iterator[list[socket.socket]]:
    """Connections from as many addresses, on which nothing is ever said."""
    with ExitStack() as stack:
        yield [stack.enter_context(connected(service, address(number))) for number in range(count)]


def test_more_silent_connections_than_files(tmp_path: Path) -> None:
    """As if from a crowd of machines: others come in, ticks are released, whoever listens goes on listening."""
    with served(tmp_path, prepare=few_files) as service, service.listening() as events:
        assert next(events) == {"retry": "2000"}
        with silent(service, FILES + 50) as crowd:
            for path in ("/healthz", "/readyz"):
                assert httpx.get(service.url + path[1:], timeout=PATIENCE).status_code == 200
            assert service.send("one", lines(visits(5))).status_code == 202
            assert service.close_until(1).json() == {"released": 1}
            assert next(events)["id"] == "1"
            assert closed(crowd[0])  # the oldest had to go
        assert service.close_until(2).json() == {"released": 2}
        service.process.send_signal(0)
    assert service.process.returncode == 0
    assert service.stderr().count("\n") == 1  # what fits below the limit of files
    assert "112 connections at once" in service.stderr()


def test_files_run_out_for_another_reason(tmp_path: Path) -> None:
    """Whatever takes the last file: the service waits, says so once in a while, and goes on."""
    with served(tmp_path) as service:
        assert service.get("/v1/stream").status_code == 200
        few, many = 4, resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (few, many[1]))
        with silent(service, 30):
            until(lambda: service.stderr().count("no connection can be accepted: Too many open files") > 1)
            resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, many)
            assert httpx.get(service.url + "healthz", timeout=PATIENCE).status_code == 200
        # One line a second, not one for each connection that waits: there were two when we looked.
        assert service.stderr().count("\n") < 30
        assert service.close_until(1).json() == {"released": 1}


def test_who_asks_for_health_is_answered_when_all_places_are_taken(tmp_path: Path) -> None:
    """Listeners without a token hold all places of strangers. Tokens have their own, and so has health."""
    spec = with_limits(public=True, connections=16, connections_per_address=100, listeners_per_token=100)
    with served(tmp_path, spec) as service, ExitStack() as stack:
        for _ in range(8):
            client = stack.enter_context(httpx.Client(base_url=service.url, timeout=PATIENCE))
            assert stack.enter_context(client.stream("GET", "/v1/releases/live")).status_code == 200
        refused = httpx.get(service.url + "v1/stream", timeout=PATIENCE)
        assert (refused.status_code, refused.json()) == (503, {"error": "too many connections; try again later"})
        assert refused.headers["Connection"] == "close"
        for path in ("healthz", "readyz"):
            assert httpx.get(service.url + path, timeout=PATIENCE).status_code == 200
        assert service.get("/v1/stream").status_code == 200
        with silent(service, 40):  # more than there are places for health
            assert httpx.get(service.url + "healthz", timeout=PATIENCE).status_code == 200
            assert service.get("/v1/stream").status_code == 200


def test_one_address_has_its_own_bound(tmp_path: Path) -> None:
    with served(tmp_path, with_limits(connections_per_address=3)) as service, ExitStack() as stack:
        other = stack.enter_context(connected(service, "127.0.0.8"))
        same = [stack.enter_context(connected(service, "127.0.0.9")) for _ in range(5)]
        assert closed(same[0])
        assert closed(same[1])
        for connection in (other, *same[2:]):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(15).startswith(b"HTTP/1.1 200")


def test_a_token_has_at_most_half_of_the_places(tmp_path: Path) -> None:
    with served(tmp_path, with_limits(connections=16)) as service, ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(service.listening())
        refused = service.get("/v1/stream")
        assert (refused.status_code, refused.json()) == (503, {"error": "too many connections under this token"})
        assert service.get("/v1/stream", role="admin").status_code == 200


def test_places_count_what_is_there() -> None:
    places = Places(strangers=4, known=4, health=2, each=2)
    gone: list[str] = []

    def came(name: str, owner: str) -> tuple[Place, bool]:
        place = Place(lambda: gone.append(name))
        return place, places.enter(place, owner)

    first, _ = came("first", "192.0.2.1")
    first.works()
    second, _ = came("second", "192.0.2.1")
    second.works()
    third, entered = came("third", "192.0.2.1")
    assert entered
    assert third.only_health  # both places of this address are at work
    assert first.vouch("till")
    assert first.vouch("till")
    assert not first.stranger
    assert [pool.size for pool in (places.strangers, places.known, places.health)] == [1, 1, 1]
    fourth, _ = came("fourth", "192.0.2.1")
    assert not fourth.only_health
    came("fifth", "192.0.2.1")
    assert gone == ["fourth"]
    for place in (first, second, third, fourth):
        place.leave()
        place.leave()
    assert [pool.size for pool in (places.strangers, places.known, places.health)] == [1, 0, 0]


def test_a_limit_that_is_too_low_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: asked.append(limits))

    def limits(soft: int, hard: int) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))

    limits(1024, 524_288)
    assert open_files.connections_within(800) == 800
    assert asked == [(65_536, 524_288)]
    limits(256, 256)
    assert open_files.connections_within(800) == 112
    limits(100, 100)
    with pytest.raises(ConfigurationError, match="LimitNOFILE"):
        open_files.connections_within(800)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "localhost"}, 200),
        ({"Host": "LOCALHOST:1"}, 200),
        ({"Host": "[::1]:8321"}, 200),
        ({"Host": "stats.example.org"}, 200),
    ],
)
def test_names_by_which_it_is_asked(named: Served, given: Mapping[str, str], status: int) -> None:
    for path in ("/", "/v1/stream"):
        answer = named.client.get(path, headers={**named.bearer("read"), **given})
        assert answer.status_code == status
        if status == 421:
            assert "hosts" in answer.json()["error"]
    assert named.client.get("/healthz", headers=dict(given)).status_code == 200


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    spec = SPEC.replace("port = 0\n", 'port = 0\nhosts = ["Stats.example.org"]\nlisteners_per_token = 2\n')
    with served(tmp_path_factory.mktemp("named"), spec) as running:
        yield running


def test_listeners_of_one_token_leave_room_for_others(named: Served) -> None:
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(named.listening())
        with named.client.stream("GET", "/v1/releases/live", headers=named.bearer("read")) as refused:
            assert refused.status_code == 503
        with named.client.stream("GET", "/v1/releases/live", headers=named.bearer("admin")) as other:
            assert other.status_code == 200
    with named.listening() as events:
        assert next(events) == {"retry": "2000"}
