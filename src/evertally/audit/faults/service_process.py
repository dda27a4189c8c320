"""A real process `evertally serve` on a copy of a stream: started, asked, killed.

Each is forked by a server of processes (`multiprocessing`) that has read the package once, so that a start takes a
tenth of the time; what it runs is the command line, and it dies by SIGKILL like any other.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evertally.errors import StateError
from evertally.runtime.spec import StreamSpec

_PROCESSES = get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__, "evertally.cli.app", "evertally.cli.serve"])
_PATIENCE = 120.0  # seconds after which something is said to hang
_LOST = (OSError, http.client.HTTPException, ValueError)


class Service:
    """The service of one folder. What it does not answer is asked again by whoever asked."""

    def __init__(self, spec: StreamSpec, like: Service | None = None) -> None:
        """`like` another one: with its tokens."""
        self.spec, self.folder = spec, spec.path.parent
        self._process: Any = None
        self._address, self._out = "", "stdout"
        self._new = True  # the key is there before the stream, on purpose
        if like is not None and like.folder != self.folder:
            shutil.copy2(like.spec.serve.tokens, spec.serve.tokens)
        self.tokens: dict[str, str] = {} if like is None else like.tokens
        for role in ("ingest", "admin") if like is None else ():
            self.tokens[role] = self._token(role)

    def beside(self) -> Service:
        """Another process on the same files."""
        other = Service(self.spec, self)
        other._new, other._out = self._new, "stdout of the second"
        return other

    def _token(self, role: str) -> str:
        said = self.folder / f"token {role}"
        made = _command(["token", "add", str(self.spec.path), "--role", role, "--name", role], said, self._told())
        made.join(_PATIENCE)
        if made.exitcode:
            raise StateError(f"the service makes no token: {self.reason}")
        return said.read_text("utf-8").strip()

    def begin(self) -> None:
        """Starts the process, and does not wait."""
        self._said().unlink(missing_ok=True)
        options = ["--nothing-was-released"] if self._new else []
        self._process = _command(["serve", str(self.spec.path), *options], self._said(), self._told())

    def start(self) -> bool:
        """Starts it and waits: whether it answers, or has ended by itself."""
        self.begin()
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end and self.running:
            words = self._said().read_text("utf-8").split() if self._said().exists() else []
            found = next((word for word in words if word.startswith("http")), None)
            if found is not None and words[-1:] != [found]:
                self._address, self._new = urlsplit(found).netloc, False
                return True
            time.sleep(0.01)
        if self.running:
            self.kill()
            raise StateError("the service neither answers nor ends")
        return False

    def _said(self) -> Path:
        return self.folder / self._out

    def _told(self) -> Path:
        return self.folder / "stderr"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.is_alive()

    @property
    def reason(self) -> str:
        """What it said last."""
        lines = self._told().read_text("utf-8").strip().splitlines() if self._told().exists() else []
        return lines[-1].replace(f"{self.folder}/", "")[:200] if lines else ""

    def kill(self) -> None:
        """SIGKILL, and nothing else: whatever was not on the disk is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.join(_PATIENCE)

    def stop(self) -> None:
        """In good order."""
        self._process.terminate()
        self._process.join(_PATIENCE)

    def kill_after_change(self, file: Path, changes: int, seconds: float) -> None:
        """Kills it at once when a file has changed so often, or after so many seconds."""
        known, end = _version(file), time.monotonic() + seconds
        while changes and time.monotonic() < end:
            now = _version(file)
            changes, known = changes - (now != known), now
        self.kill()

    def send(self, name: str, content: bytes) -> int | None:
        """One batch under an id: the status of the answer, None if there was none."""
        return self._ask("/v1/events", "ingest", content, {"Idempotency-Key": name})

    def close(self, tick: int) -> int | None:
        """Asks for the end of a tick."""
        content = json.dumps({"until": self.spec.clock.end_of(tick)}).encode()
        return self._ask("/v1/ticks", "admin", content, {})

    def _ask(self, path: str, role: str, content: bytes, headers: dict[str, str]) -> int | None:
        given = {"Authorization": f"Bearer {self.tokens[role]}", "Content-Type": "application/json", **headers}
        try:
            connection = http.client.HTTPConnection(self._address, timeout=_PATIENCE)
            try:
                connection.request("POST", path, content, given)
                answer = connection.getresponse()
                answer.read()
                return answer.status
            finally:
                connection.close()
        except _LOST:
            return None


def _command(arguments: Sequence[str], said: Path, told: Path) -> Any:
    """A process that runs the command line, what it says in two files."""
    process = _PROCESSES.Process(target=_run, args=(list(arguments), str(said), str(told)), daemon=True)
    process.start()
    return process


def _run(arguments: list[str], said: str, told: str) -> None:
    """In the process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in ((1, said), (2, told)):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.argv = ["evertally", *arguments]
    # By its name: an auditor knows nothing of the service but what it answers.
    import_module("evertally.cli").main()


def _version(path: Path) -> Any:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
