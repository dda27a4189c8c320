"""A process that has loaded everything and forks others: a service starts in a tenth of the time. Not a test.

What it forks is a real process that runs the real command and can be killed. It is made of one thread, so that a fork
is safe; it takes one JSON object on a line and answers with one.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

sys.path.append(str(HERE.parent))  # what all tests share: a nursery by itself has no pytest

from waiting import PATIENCE  # noqa: E402


class Child:
    """A forked process."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery = nursery
        self.pid = pid
        self.status: int | None = None  # as of `os.waitstatus_to_exitcode`

    @property
    def running(self) -> bool:
        if self.status is None:
            self.status = self._nursery.ask(poll=self.pid)["status"]
        return self.status is None

    # As a `Popen` is asked:

    def poll(self) -> int | None:
        return None if self.running else self.status

    def send_signal(self, number: int) -> None:
        self.signal(number)

    def terminate(self) -> None:
        self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        # Until the nursery has reaped it, its number belongs to nobody else.
        os.kill(self.pid, number)

    def wait(self, seconds: float = PATIENCE) -> int:
        end = time.monotonic() + seconds
        while self.running:
            assert time.monotonic() < end, f"process {self.pid} does not end"
            time.sleep(0.002)
        assert self.status is not None
        return self.status

    def kill(self) -> int:
        if self.running:
            self.signal(signal.SIGKILL)
        return self.wait()

    def kill_at(self, path: Path, changes: int, delay: float, seconds: float) -> bool:
        """Kills it when a file has changed so often, after a delay, or after so many seconds; says whether it had."""
        answer = self._nursery.ask(kill=self.pid, path=str(path), changes=changes, delay=delay, seconds=seconds)
        self.status = answer["status"]
        return bool(answer["changed"])


class Nursery:
    """The parent's side. `load` names modules to import before the first fork."""

    def __init__(self, load: Sequence[str] = ()) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, __file__, *load], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, call: str, *arguments: Any, stdout: Path, stderr: Path) -> Child:
        """Forks a child that calls `module:function` with the arguments and exits; both files are appended to."""
        answer = self.ask(call=call, arguments=arguments, stdout=str(stdout), stderr=str(stderr))
        return Child(self, answer["pid"])

    def ask(self, **request: Any) -> Any:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        assert line, "the nursery has died"
        return json.loads(line)

    def close(self) -> None:
        """Ends the nursery and all its children."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@cache
def shared() -> Nursery:
    """The one of this process, until it ends."""
    nursery = Nursery()
    atexit.register(nursery.close)
    return nursery


# -- what children do ---------------------------------------------------------------------------------------------


def command(*arguments: str) -> None:
    """The command line `evertally ...`."""
    from evertally.cli import main

    sys.argv = ["evertally", *arguments]
    main()


def command_in(folder: str, *arguments: str) -> None:
    """The same in a folder."""
    os.chdir(folder)
    command(*arguments)


# -- the process itself -------------------------------------------------------------------------------------------


def _warm_up() -> None:
    """Loads what a service loads, and compiles what a query of any kind needs, once for all children."""
    from crash_stream import body, events, everything, hour

    import evertally.cli.app
    import evertally.cli.serve  # noqa: F401
    from evertally.runtime import load_spec
    from evertally.runtime.input.batches import parse
    from evertally.runtime.live import Live

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "visits.toml"
        file.write_text(everything())
        with Live(load_spec(file)) as live:
            for number in range(1, 13):
                live.accept([(hour(number), parse(*body(events(0, number, number), number), live.spec))])
                live.publish(live.release_through(number))
    assert threading.active_count() == 1


def _run(request: dict[str, Any]) -> None:
    """In the child: never returns."""
    # Whatever the suite was started by: a shell lets what runs in its background ignore Ctrl-C, children included.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, target in ((0, os.devnull), (1, request["stdout"]), (2, request["stderr"])):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(target, flags, 0o644)
        os.dup2(descriptor, number)
        os.close(descriptor)
    module, _, function = request["call"].partition(":")
    status = 1
    try:
        getattr(importlib.import_module(module), function)(*request["arguments"])
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        # Not sys.exit: pyarrow's pool of threads, made before the fork, would be taken down without its threads.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _kill_at(pid: int, path: str, changes: int, delay: float, seconds: float) -> dict[str, Any]:
    """Looks without a pause: from a change to the kill it takes some microseconds."""
    left, known, end = changes, _version(path), time.monotonic() + seconds
    while left > 0 and time.monotonic() < end:
        now = _version(path)
        if now != known:
            known, left = now, left - 1
    if delay:
        time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    return {"status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "changed": left == 0}


def _version(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _main() -> None:
    for name in sys.argv[1:]:
        importlib.import_module(name)
    _warm_up()
    children: dict[int, int | None] = {}
    # Not a loop over sys.stdin: a child would inherit what was read ahead.
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if "poll" in request:
            pid = request["poll"]
            if children[pid] is None:
                done, status = os.waitpid(pid, os.WNOHANG)
                children[pid] = os.waitstatus_to_exitcode(status) if done else None
            answer: dict[str, Any] = {"status": children[pid]}
        elif "kill" in request:
            pid = request.pop("kill")
            answer = _kill_at(pid, **request)
            children[pid] = answer["status"]
        else:
            pid = os.fork()
            if pid == 0:
                _run(request)
            children[pid] = None
            answer = {"pid": pid}
        print(json.dumps(answer), flush=True)
    for pid, status in children.items():
        if status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    _main()
