"""Clients that send rubbish, too much, too slowly or half of it, signals under load, and a receiver that is away."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import pytest
from clients import Listener, Receiver, Sender, World
from crash_stream import ARROW, CANARY, JSON, NDJSON, body, events, plain
from driver import differences_from_calm
from nursery import Nursery
from one_service import Service

from waiting import PATIENCE, until

MOST = 65_536
RUBBISH = (b"\x00", b"\xff\xfe", b"\r\n", b'{"', b"]", b"\xed\xa0\x80", b"1e999", b"NaN")
SMALL = f"max_batch_bytes = {MOST}\nmax_waiting_bytes = 10000000"


@pytest.fixture
def service(nursery: Nursery, tmp_path: Path) -> Iterator[Service]:
    running = Service(nursery, tmp_path, plain(serve=SMALL))
    running.start()
    yield running
    if running.child is not None and running.child.running:
        running.kill()


def ends_well(service: Service) -> None:
    """It still works; what it took is counted once; nobody has heard what was in it."""
    service.sent(1)
    service.close(5)
    service.stop()
    service.keeps_secrets()
    assert service.stderr() == ""
    assert differences_from_calm(service) == []


def exchange(world: World, data: bytes, wait: float = PATIENCE) -> bytes:
    """Sends bytes, then nothing more; all that comes back."""
    name, _, port = world.address().partition(":")
    answer = b""
    with socket.create_connection((name, int(port)), timeout=wait) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                answer += part
        except OSError:
            pass
    return answer


def request(service: Service, name: str, content: bytes, media_type: str = NDJSON, length: int | None = None) -> bytes:
    head = (
        f"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.world.tokens['ingest']}\r\n"
        f"Idempotency-Key: {name}\r\nContent-Type: {media_type}\r\n"
        f"Content-Length: {len(content) if length is None else length}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + content


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, cut out, put in, or taken from elsewhere."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(changed) + 1)
        kind = chance.randrange(5)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del changed[at : at + chance.randint(1, 20)]
        elif kind == 2:
            changed[at:at] = chance.choice(
                (b"\x00", b"\xff\xfe", b"\r\n", b'{"', b"]", b"\xed\xa0\x80", b"1e999", b"NaN")
            )
        elif kind == 3:
            changed[at:at] = changed[: chance.randint(1, 200)]
        else:
            changed[at:] = chance.randbytes(chance.randint(0, 30))
    return bytes(changed)


def test_mutated_bodies(service: Service) -> None:
    chance, statuses = random.Random(1), Counter[int]()
    nested = b"[" * 10_000
    corpus = [body(events(1, number, 1), number) for number in (1, 2, 3, 7, 20, 25, 33)]
    bodies = [(mutated(content, chance), media_type) for content, media_type in corpus * 30]
    bodies += [(b"", kind) for kind in (NDJSON, JSON, ARROW)]
    bodies += [
        (nested, NDJSON),
        (nested, JSON),
        (b'{"ward":' * 5000, JSON),
        (b"\xff" * 999, JSON),
        (b"\n" * 5000, NDJSON),
    ]
    bodies += [(b'{"time": 1e400, "ward": {"%s": 1}}' % CANARY.encode(), NDJSON), (b'[1, null, "x", []]', JSON)]
    for number, (content, media_type) in enumerate(bodies):
        answer = service.send_body(f"{CANARY}-{number}", content, media_type)
        assert answer is not None
        statuses[answer[0]] += 1
        assert answer[0] in (202, 400, 413), answer
        if answer[0] == 202:
            again = service.send_body(f"{CANARY}-{number}", content, media_type)
            assert again is not None
            assert again[1]["duplicate"]
        else:
            assert CANARY not in answer[1]["error"]
            del service.world.sent[f"{CANARY}-{number}"]
    assert statuses[202] > 30
    assert statuses[400] > 30
    ends_well(service)


def test_mutated_requests(service: Service) -> None:
    chance, statuses = random.Random(2), Counter[str]()
    for number in range(250):
        content, media_type = body(events(1, number % 40, 1), number % 3)
        whole = request(service, f"{CANARY}-{number}", content, media_type)
        head = whole.index(b"\r\n\r\n") + 4
        answer = exchange(service.world, mutated(whole[:head], chance) + whole[head:])
        status = answer[9:12].decode() if answer.startswith(b"HTTP/1.1 ") else "closed"
        statuses[status] += 1
        assert not status.startswith("5"), answer
        if status != "202":
            assert CANARY.encode() not in answer
    assert sum(count for status, count in statuses.items() if status[0] == "4") > 50, statuses
    service.sent(1)
    service.close(3)
    service.stop()
    service.keeps_secrets()
    assert service.stderr() == ""


def test_too_much(service: Service) -> None:
    record = b'{"time": "2013-01-01", "ward": "canary"}\n'
    big = record * (MOST // len(record) + 1)
    answer = exchange(service.world, request(service, "canary-big", big))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert str(MOST).encode() in answer
    # It says that it will be huge: refused before a byte of it has come.
    assert exchange(service.world, request(service, "canary-huge", b"", length=10**15)).startswith(b"HTTP/1.1 413 ")
    chunked = request(service, "canary-chunks", b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    assert exchange(service.world, chunked + b"5\r\nhello\r\n0\r\n\r\n").startswith(b"HTTP/1.1 411 ")
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"canary" * 100_000 + b"\r\n\r\n"
    assert exchange(service.world, head)[9:10] in (b"4", b"")
    ends_well(service)


def test_half_of_it_and_slowly(service: Service) -> None:
    """Two hundred connections that say a little and then nothing: others are answered as if they were not there."""
    name, _, port = service.world.address().partition(":")
    whole = request(service, "canary-half", body(events(1, 3, 1), 0)[0])

    def seconds(number: int) -> float:
        began = time.monotonic()
        service.sent(number)
        service.close(1)
        return time.monotonic() - began

    alone = seconds(12)
    with ExitStack() as waiting:
        for number in range(200):
            connection = waiting.enter_context(socket.create_connection((name, int(port)), timeout=PATIENCE))
            connection.sendall(whole[: (number * 7) % len(whole)])
            if number % 2:  # will be broken off, without a goodbye
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert median(map(seconds, range(2, 12))) < max(5.0, 10 * alone)  # those others may wait for 60 seconds
    ends_well(service)


def test_it_stops_though_some_never_finish(service: Service) -> None:
    name, _, port = service.world.address().partition(":")
    whole = request(service, "canary-half", body(events(1, 3, 1), 0)[0])
    token = service.world.tokens["read"]
    asking = f"GET /v1/releases/live?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    with ExitStack() as waiting:
        for number in range(40):
            connection = waiting.enter_context(socket.create_connection((name, int(port)), timeout=PATIENCE))
            connection.sendall(asking.encode() if number % 4 == 0 else whole[: -1 - number])
        service.sent(1)
        service.close(2)
        service.stop()
    service.start()
    ends_well(service)


def test_a_listener_that_takes_nothing_holds_nobody_up(service: Service) -> None:
    name, _, port = service.world.address().partition(":")
    token = service.world.tokens["read"]
    asking = f"GET /v1/releases/live?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}"
    with ExitStack() as silent:
        for _ in range(20):
            connection = silent.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((name, int(port)))
            connection.sendall(asking.encode())
        service.close(400)
        listener = Listener(service.world, 1)
        listener.start()
        until(lambda: 400 in service.world.frames)
        service.world.closing.set()
        assert sorted(service.world.frames) == list(range(1, 401))
    service.sent(1)
    service.stop()
    listener.join(PATIENCE)
    assert service.world.problems == []
    service.keeps_secrets()
    assert differences_from_calm(service) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_under_load(service: Service, number: int) -> None:
    """It finishes what it has taken; what it has not, its senders send again to the next one."""
    senders = [Sender(service.world, seed, seed) for seed in range(4)]
    for sender in senders:
        sender.start()
    for stop in range(1, 4):
        known = len(service.world.acknowledged)
        until(lambda known=known: len(service.world.acknowledged) > known + 10)
        service.close(stop)
        service.stop(number)
        service.start()
    service.world.stopping.set()
    for sender in senders:
        sender.join(PATIENCE)
    assert service.world.problems == []
    assert len(service.world.acknowledged) == len(service.world.sent) > 30
    ends_well(service)


def test_a_receiver_that_is_away(nursery: Nursery, tmp_path: Path) -> None:
    """The webhook is down for the whole life of one process; the next one delivers all of it, in order."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    sink = f'\n[[sink]]\nwebhook = "http://127.0.0.1:{port}/hook"\n'
    service = Service(nursery, tmp_path, plain(sink))
    service.start()
    service.sent(1)
    service.close(30)
    service.kill()
    service.start()
    service.close(31)
    service.stop()
    order: list[int] = []
    receiver = Receiver(lambda tick, _: order.append(tick), port)
    try:
        service.start()
        until(lambda: 31 in order)
        service.close(33)
        until(lambda: 33 in order)
    finally:
        receiver.close()
    service.stop()
    assert list(dict.fromkeys(order)) == list(range(1, 34))
    service.keeps_secrets()
    assert differences_from_calm(service) == []


def test_no_core_file(nursery: Nursery, tmp_path: Path) -> None:
    """Memory holds records and the key: a process that crashes must not write it down."""
    service = Service(nursery, tmp_path, plain())
    child = service.start(call="test_network_faults:command_with_cores", given=(str(tmp_path),))
    service.sent(7)
    child.signal(signal.SIGABRT)
    assert child.wait() == -signal.SIGABRT
    assert [path.name for path in tmp_path.iterdir() if "core" in path.name] == []
    service.keeps_secrets()
    service.start()
    service.close(2)
    service.stop()
    assert differences_from_calm(service) == []


def command_with_cores(folder: str, *arguments: str) -> None:
    """The command line, where the system would write core files into this folder."""
    from nursery import command

    os.chdir(folder)
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    command(*arguments)


def test_what_clients_hear_of_a_stream_that_fails(nursery: Nursery, tmp_path: Path) -> None:
    """A store that is damaged while it is in use: 5xx without a word of it, and the process ends with one line."""
    service = Service(nursery, tmp_path, plain())
    service.start()
    service.sent(7)
    side = tmp_path / "visits.key.bound"
    side.unlink()
    side.mkdir()  # cannot be replaced by a file
    answer = service.world.ask("POST", "/v1/ticks", "admin", json.dumps({"until": "2013-01-01T03:00"}).encode())
    assert answer is None or answer[0] == 503
    assert CANARY.encode() not in (answer or (0, b""))[1]
    assert "visits.key.bound: Is a directory; the stream stops" in service.failed()
    assert "cannot read" in service.refused()
    service.keeps_secrets()
