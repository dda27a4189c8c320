"""Those who talk to a service that keeps dying: they send again what was not acknowledged. Not a test.

Everything that an answer ever said is kept, so that it can be compared in the end with a stream that nobody killed.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from crash_stream import body, events, hour

from waiting import PATIENCE

LOST = (OSError, http.client.HTTPException, ValueError)  # an answer may end in the middle of its JSON


class World:
    """What the clients of one stream share: where it is now, how far it is, what they have seen."""

    def __init__(self, tokens: dict[str, str]) -> None:
        self.tokens = tokens
        self.serving = threading.Event()
        self._address = ""
        self.stopping = threading.Event()  # no new work; what was begun is finished
        self.closing = threading.Event()  # the readers may go
        self.tick = 1  # that is being filled, where ticks close on request
        self.lock = threading.Lock()
        self.sent: dict[str, tuple[bytes, str]] = {}  # batch -> body and media type
        self.events = 0  # that were sent
        self.acknowledged: dict[str, int] = {}  # batch -> tick
        self.frames: dict[int, set[bytes]] = defaultdict(set)  # of the live events
        self.answers: dict[int, set[str]] = defaultdict(set)  # of the release log
        self.delivered: dict[int, set[bytes]] = defaultdict(set)  # to the webhook
        self.problems: list[str] = []
        self.retries = 0

    def serves(self, address: str | None) -> None:
        """The service answers there, or does not answer for a while."""
        if address is None:
            self.serving.clear()
        else:
            self._address = address
            self.serving.set()

    def address(self) -> str:
        """Where the service answers, or answered last."""
        self.serving.wait(5)
        return self._address

    def ask(
        self, method: str, path: str, role: str, content: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes] | None:
        """Status and body, None if there was no whole answer."""
        try:
            connection = http.client.HTTPConnection(self.address(), timeout=30)
            try:
                given = {"Authorization": f"Bearer {self.tokens[role]}", **(headers or {})}
                connection.request(method, path, content, given)
                answer = connection.getresponse()
                return answer.status, answer.read()
            finally:
                connection.close()
        except LOST:
            return None

    def insist(
        self,
        method: str,
        path: str,
        role: str,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> bytes:
        """The same request until it is answered. Only a stop, or nothing at all, is a reason to ask again."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = self.ask(method, path, role, content, headers)
            if answer is not None and answer[0] < 300:
                return answer[1]
            if answer is not None and answer[0] != 503:
                raise AssertionError(f"{method} {path} was answered with {answer[0]}: {answer[1][:200]!r}")
            with self.lock:
                self.retries += 1
            time.sleep(0.02)
        raise AssertionError(f"{method} {path} was not answered")


class Worker(threading.Thread, ABC):
    """A client: `work` once after the other, until the world stops. What goes wrong is a problem of the world."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(daemon=True)
        self.world = world
        self.random = random.Random(seed)

    def run(self) -> None:
        try:
            while not self.done():
                self.work()
        except Exception as error:
            self.world.problems.append(f"{type(self).__name__}: {type(error).__name__}: {error}")

    def done(self) -> bool:
        return self.world.stopping.is_set()

    @abstractmethod
    def work(self) -> None:
        """One round."""


class Sender(Worker):
    """Sends batches, each until it is acknowledged, and now and then one that was acknowledged long ago."""

    def __init__(self, world: World, seed: int, number: int) -> None:
        super().__init__(world, seed)
        self._client = number
        self._count = 0
        self._mine: list[str] = []

    def work(self) -> None:
        world = self.world
        if self._mine and self.random.random() < 0.15:
            self._send(self.random.choice(self._mine))
            return
        name = f"canary-{self._client}:{self._count}"
        records = events(self._client, self._count, world.tick)
        world.sent[name] = body(records, self._count)
        with world.lock:
            world.events += len(records)
        self._count += 1
        self._send(name)
        self._mine.append(name)

    def _send(self, name: str) -> None:
        world = self.world
        content, media_type = world.sent[name]
        headers = {"Idempotency-Key": name, "Content-Type": media_type}
        answer = json.loads(world.insist("POST", "/v1/events", "ingest", content, headers))
        known = world.acknowledged.get(name)
        if answer["batch"] != name:
            world.problems.append(f"the receipt of {name} is for {answer['batch']}")
        if known is not None and (answer["tick"] != known or not answer["duplicate"]):
            world.problems.append(f"{name} was acknowledged for tick {known}, then {answer}")
        world.acknowledged[name] = answer["tick"]


class Closer(Worker):
    """Closes ticks, mostly one at a time, sometimes more than one transaction of them."""

    def work(self) -> None:
        world = self.world
        last = world.tick - 1 + self.random.choice((1, 1, 1, 1, 2, 7))
        close(world, last)
        world.tick = last + 1


def close(world: World, tick: int) -> None:
    answer = world.insist(
        "POST", "/v1/ticks", "admin", json.dumps({"until": hour(tick)}).encode(), {"Content-Type": "application/json"}
    )
    if json.loads(answer)["released"] < tick:
        world.problems.append(f"asked to close tick {tick}, the stream answered {answer!r}")


class Listener(Worker):
    """Follows the live events: from where it was, or from somewhere before."""

    last = 0

    def done(self) -> bool:
        return self.world.closing.is_set()

    def work(self) -> None:
        after = self.last if self.random.random() < 0.8 else self.random.randint(0, self.last)
        try:
            connection = http.client.HTTPConnection(self.world.address(), timeout=5)
            try:
                headers = {"Authorization": f"Bearer {self.world.tokens['read']}", "Last-Event-ID": str(after)}
                connection.request("GET", "/v1/releases/live", headers=headers)
                self._follow(connection.getresponse(), after)
            finally:
                connection.close()
        except LOST:
            time.sleep(0.02)

    def _follow(self, answer: Any, position: int) -> None:
        frame = b""
        while not self.done():
            line = answer.readline()
            if not line.endswith(b"\n"):
                return  # it broke off: what came of this frame counts for nothing
            if line != b"\n":
                frame += line
                continue
            if frame.startswith(b"event: release\nid: "):
                tick = int(frame.split(b"\n")[1][4:])
                if tick != position + 1:
                    self.world.problems.append(f"live events went from tick {position} to {tick}")
                position = tick
                self.last = max(self.last, tick)
                self.world.frames[tick].add(frame + b"\n")
            frame = b""


class Reader(Worker):
    """Asks for the latest release and for pages of the log."""

    def done(self) -> bool:
        return self.world.closing.is_set()

    def work(self) -> None:
        path = "/v1/releases/latest"
        if self.random.random() < 0.5:
            first = self.random.randint(1, max(1, max(self.world.answers, default=1)))
            path = f"/v1/releases?first={first}&last={first + 30}"
        answer = self.world.ask("GET", path, "read")
        if answer is None or answer[0] != 200:
            if answer is not None and answer[0] not in (404, 503):
                self.world.problems.append(f"{path} was answered with {answer[0]}: {answer[1][:200]!r}")
        else:
            content = json.loads(answer[1])
            for release in content.get("releases", [content]):
                if "tick" in release:
                    self.world.answers[release["tick"]].add(json.dumps(release, sort_keys=True))
        time.sleep(0.01)


class Receiver:
    """The other end of a webhook. It refuses some deliveries, and is told some ticks twice."""

    def __init__(self, taken: Callable[[int, bytes], None], port: int = 0) -> None:
        asked = [0]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                content = self.rfile.read(length)
                if len(content) < length:
                    return  # the service was killed in the middle of it: nobody takes half a body
                taken(int(self.headers["Idempotency-Key"].rpartition("/")[2]), content)
                asked[0] += 1
                self.send_response(500 if asked[0] % 50 == 0 else 204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def host(url: str) -> str:
    return urlsplit(url).netloc
