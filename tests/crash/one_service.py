"""One service in one folder: started, refused, killed, stopped, and asked. Not a test."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from clients import World, close, host
from crash_stream import CANARY, body, events
from nursery import Child, Nursery

from evertally.runtime import load_spec
from evertally.runtime.spec import StreamSpec
from evertally.service.tokens import TokenFile
from waiting import until

ROLES = ("read", "ingest", "admin")


def written(folder: Path, text: str) -> StreamSpec:
    folder.mkdir(exist_ok=True)
    (folder / "visits.toml").write_text(text)
    return load_spec(folder / "visits.toml")


class Service:
    """The command `evertally serve` on a spec, run by children of a nursery one after the other."""

    def __init__(self, nursery: Nursery, folder: Path, text: str) -> None:
        self._nursery = nursery
        self.folder = folder
        self.text = text
        self.spec = written(folder, text)
        tokens = TokenFile(self.spec.serve.tokens)
        self.world = World({role: tokens.add(role, role) for role in ROLES})
        self.starts = 0
        self.child: Child | None = None

    def fork(self, *arguments: str, call: str = "nursery:command", given: tuple[Any, ...] = ()) -> Child:
        """Starts it and does not wait."""
        (self.folder / "stdout").unlink(missing_ok=True)
        self.child = self._nursery.start(
            call,
            *given,
            "serve",
            str(self.folder / "visits.toml"),
            *arguments,
            stdout=self.folder / "stdout",
            stderr=self.folder / "stderr",
        )
        self.starts += 1
        return self.child

    def start(self, *arguments: str, call: str = "nursery:command", given: tuple[Any, ...] = ()) -> Child:
        """Starts it and waits until it answers."""
        child = self.fork(*arguments, call=call, given=given)
        until(lambda: "\n" in self.said() or not child.running, pause=0.003)
        text = self.said()
        assert "\n" in text, f"the service ended with {child.status}: {self.stderr()[-2000:]}"
        self.world.serves(host(next(word for word in text.split() if word.startswith("http"))))
        return child

    def refused(self, *arguments: str, call: str = "nursery:command", given: tuple[Any, ...] = ()) -> str:
        """Starts it and expects that it does not want to; what it says. One line, and status 2."""
        before = len(self.stderr())
        child = self.fork(*arguments, call=call, given=given)
        assert child.wait() == 2, self.stderr()[before:] or self.said()
        return self._one_line(before)

    def failed(self, status: int = 2, before: int = 0) -> str:
        """Waits until it has ended by itself; its last words."""
        assert self.child is not None
        self.world.serves(None)
        assert self.child.wait() == status, self.stderr()
        return self._one_line(before)

    def _one_line(self, before: int) -> str:
        told = self.stderr()[before:]
        assert "Traceback" not in told
        line = told.rstrip("\n").rpartition("\n")[2]
        assert line.startswith("evertally: "), told
        assert "internal error" not in line, told
        return line

    def kill(self) -> None:
        assert self.child is not None
        self.world.serves(None)
        self.child.kill()

    def stop(self, number: int = signal.SIGTERM) -> None:
        """In good order."""
        assert self.child is not None
        self.child.signal(number)
        self.world.serves(None)
        assert self.child.wait() == 0, self.stderr()
        assert "everything that was acknowledged is on disk" in self.said()

    def said(self) -> str:
        return _text(self.folder / "stdout")

    def stderr(self) -> str:
        return _text(self.folder / "stderr")

    # -- events ------------------------------------------------------------------------------------------------------

    def send(self, number: int, tick: int = 1) -> tuple[int, dict[str, Any]] | None:
        """One batch, once: status and answer."""
        return self.send_body(f"canary-0:{number}", *body(events(0, number, tick), number))

    def send_body(self, name: str, content: bytes, media_type: str) -> tuple[int, dict[str, Any]] | None:
        """Some bytes under an id that is always used for the same ones; the first ones count."""
        content, media_type = self.world.sent.setdefault(name, (content, media_type))
        answer = self.world.ask(
            "POST", "/v1/events", "ingest", content, {"Idempotency-Key": name, "Content-Type": media_type}
        )
        if answer is None:
            return None
        told = json.loads(answer[1])
        if answer[0] == 202:
            self.world.acknowledged[name] = told["tick"]
        return answer[0], told

    def sent(self, number: int, tick: int = 1) -> dict[str, Any]:
        """One batch that must be taken."""
        answer = self.send(number, tick)
        assert answer is not None
        assert answer[0] == 202, answer
        return answer[1]

    def close(self, tick: int) -> None:
        close(self.world, tick)

    # -- what may not be anywhere ------------------------------------------------------------------------------------

    def keeps_secrets(self) -> None:
        """No record, user or batch id in any file of the folder: outputs, logs, store, what is temporary."""
        for path in self.folder.rglob("*"):
            if path.is_file():
                assert CANARY.encode() not in path.read_bytes(), path.name


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""
