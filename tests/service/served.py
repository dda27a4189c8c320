"""A real `evertally serve` in a process of its own, and the clients that talk to it; not a test.

Processes come from the nursery of the crash tests, which has loaded everything already.
"""

from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.service.tokens import TokenFile
from made_keys import save_bound
from spec_text import ALL, HOURLY, WARD, spec_text
from waiting import PATIENCE, until

sys.path.append(str(Path(__file__).parents[1] / "crash"))

from nursery import shared

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
    """A running service. Every answer is kept, to look for what must not be in any. `fresh`: its process loads
    everything by itself."""

    def __init__(
        self, folder: Path, spec: str = SPEC, arguments: Sequence[str] = (), verify: Any = True, fresh: bool = False
    ) -> None:
        self.folder = folder
        self.spec_file = folder / "visits.toml"
        self.spec_file.write_text(spec)
        self.spec = load_spec(self.spec_file)
        if not self.spec.key_file.exists():  # the same noise in every run: an interval misses now and then
            save_bound(Key(hashlib.sha256(spec.encode()).digest()), self.spec_file)
        self.token_file = TokenFile(self.spec.serve.tokens)
        self.tokens = {role: self.token_file.add(role, role) for role in ROLES}
        self.answers: list[httpx.Response] = []
        self._arguments = arguments
        self._verify = verify
        self._fresh = fresh
        self.start()

    def start(self) -> None:
        self._stdout.unlink(missing_ok=True)
        self.process: Any = self._forked()
        until(lambda: "\n" in self._said() or self.process.poll() is not None, pause=0.003)
        self.first_line = self._said().partition("\n")[0] + "\n"
        if not self.first_line.strip():
            self.process.wait(PATIENCE)  # it has ended: one that nobody has waited for is a trouble of some other test
        assert self.first_line.strip(), self.stderr()
        self.url = re.search(r"https?://\S+", self.first_line)[0]
        self.client = httpx.Client(
            base_url=self.url, verify=self._verify, timeout=PATIENCE, event_hooks={"response": [self._keep]}
        )

    def _forked(self) -> Any:
        command, stderr = ["serve", str(self.spec_file), *self._arguments], self.folder / "stderr"
        if not self._fresh:
            return shared().start("nursery:command_in", str(self.folder), *command, stdout=self._stdout, stderr=stderr)
        whole = [sys.executable, "-m", "evertally.cli", *command]
        with open(self._stdout, "ab") as out, open(stderr, "ab") as err:
            return subprocess.Popen(whole, stdout=out, stderr=err, cwd=self.folder)

    @property
    def _stdout(self) -> Path:
        return self.folder / "stdout"

    def _said(self) -> str:
        return self._stdout.read_text() if self._stdout.exists() else ""

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
        return self.process.wait(PATIENCE), self._said().partition("\n")[2]

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
def served(
    folder: Path, spec: str = SPEC, arguments: Sequence[str] = (), verify: Any = True, fresh: bool = False
) -> Iterator[Served]:
    service = Served(folder, spec, arguments, verify, fresh)
    try:
        yield service
    finally:
        service.stop()
