"""A real `evertally serve` in a process of its own, and the clients that talk to it; not a test."""

from __future__ import annotations

import hashlib
import json
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.service.tokens import TokenFile
from spec_text import ALL, HOURLY, WARD, spec_text
from waiting import PATIENCE

SPEC = spec_text(ALL, WARD, clock={**HOURLY, "close": "request"}, serve={"port": 0})
ROLES = ("read", "ingest", "admin")
NDJSON = "application/x-ndjson"


def hour(number: int) -> str:
    """The end of tick `number`."""
    return f"2013-01-{1 + number // 24:02d}T{number % 24:02d}:00:00Z"


def lines(records: Sequence[Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def visits(count: int, tick: int = 1, ward: str = "north") -> list[dict[str, str]]:
    return [{"time": hour(tick - 1)[:-6] + "30:00Z", "ward": ward}] * count


class Served:
    """A running service. Every answer is kept, to look for what must not be in any."""

    def __init__(self, folder: Path, spec: str = SPEC, arguments: Sequence[str] = (), verify: Any = True) -> None:
        self.folder = folder
        self.spec_file = folder / "visits.toml"
        self.spec_file.write_text(spec)
        self.spec = load_spec(self.spec_file)
        if not self.spec.key_file.exists():  # the same noise in every run: an interval misses now and then
            Key(hashlib.sha256(spec.encode()).digest()).save(self.spec.key_file)
        self.token_file = TokenFile(self.spec.serve.tokens)
        self.tokens = {role: self.token_file.add(role, role) for role in ROLES}
        self.answers: list[httpx.Response] = []
        self._arguments = arguments
        self._verify = verify
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "evertally.cli", "serve", str(self.spec_file), *self._arguments]
        with open(self.folder / "stderr", "ab") as stderr:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, cwd=self.folder)
        said = self._said()
        self.url = re.search(r"https?://\S+", said)[0]
        self.client = httpx.Client(
            base_url=self.url, verify=self._verify, timeout=PATIENCE, event_hooks={"response": [self._keep]}
        )

    def _said(self) -> str:
        lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=lambda: lines.put(self.process.stdout.readline()), daemon=True).start()
        first = lines.get(timeout=PATIENCE).decode()
        assert first, self.stderr()
        self.first_line = first
        return first

    def _keep(self, response: httpx.Response) -> None:
        if "event-stream" not in response.headers.get("content-type", ""):
            response.read()
            self.answers.append(response)

    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit status and the rest of stdout."""
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
        if not self.process.stdout.closed:
            self.last_lines = self.process.stdout.read().decode()
            self.process.stdout.close()
        return self.process.wait(PATIENCE), self.last_lines

    # -- requests ------------------------------------------------------------------------------------------------

    def bearer(self, role: str | None) -> dict[str, str]:
        return {} if role is None else {"Authorization": f"Bearer {self.tokens[role]}"}

    def get(self, path: str, role: str | None = "read", **parameters: Any) -> httpx.Response:
        return self.client.get(path, headers=self.bearer(role), params=parameters)

    def send(
        self, batch: str, body: bytes, media_type: str = NDJSON, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        given = {**self.bearer("ingest"), "Idempotency-Key": batch, "Content-Type": media_type, **(headers or {})}
        return self.client.post("/v1/events", content=body, headers=given)

    def close_until(self, tick: int) -> httpx.Response:
        return self.client.post("/v1/ticks", json={"until": hour(tick)}, headers=self.bearer("admin"))

    @contextmanager
    def listening(
        self, headers: Mapping[str, str] | None = None, **parameters: Any
    ) -> Iterator[Iterator[dict[str, str]]]:
        """Server-sent events as they come; comments come as events without a field."""
        with self.client.stream(
            "GET", "/v1/releases/live", headers={**self.bearer("read"), **(headers or {})}, params=parameters
        ) as response:
            assert response.status_code == 200, response.read()
            yield _events(response)


def _events(response: httpx.Response) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    for line in response.iter_lines():
        if line == "":
            yield event
            event = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = value


@contextmanager
def served(folder: Path, spec: str = SPEC, arguments: Sequence[str] = (), verify: Any = True) -> Iterator[Served]:
    service = Served(folder, spec, arguments, verify)
    try:
        yield service
    finally:
        service.stop()
