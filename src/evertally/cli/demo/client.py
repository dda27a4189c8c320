"""A client of the live service in forty lines: what a program that feeds a stream has to do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evertally.errors import StateError

_SECONDS_TO_STOP = 30


@contextmanager
def service(spec_file: Path) -> Iterator[str]:
    """`evertally serve` as a process of its own; gives its address, and stops it cleanly at the end."""
    command = [sys.executable, "-m", "evertally.cli", "serve", str(spec_file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 (our own program)
    assert process.stdout is not None
    try:
        address = next((word for word in process.stdout.readline().split() if word.startswith("http")), None)
        if address is None:
            raise StateError("the service did not start; it says why above")
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=_SECONDS_TO_STOP)


class Client:
    """Sends batches and closes ticks. A batch that is sent again under its id is counted once."""

    def __init__(self, address: str, token: str) -> None:
        self._connection = HTTPConnection(urlsplit(address).netloc, timeout=60)
        self._authorization = {"Authorization": f"Bearer {token}"}

    def send(self, batch_id: str, lines: bytes) -> None:
        """Events as JSON lines; they are durable when this returns."""
        self._ask("POST", "/v1/events", lines, {"Content-Type": "application/x-ndjson", "Idempotency-Key": batch_id})

    def close_until(self, time: str | int) -> None:
        """No more events before `time` will come: release the ticks."""
        self._ask("POST", "/v1/ticks", json.dumps({"until": time}).encode(), {"Content-Type": "application/json"})

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None, {})

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Any:
        self._connection.request(method, path, body, {**headers, **self._authorization})
        answer = self._connection.getresponse()
        content = json.loads(answer.read())
        if answer.status >= 300:
            raise StateError(f"the service answered {answer.status}: {content.get('error')}")
        return content
