"""Drivers in processes of their own, with all that they start; not a test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from waiting import until

TESTS = Path(__file__).resolve().parents[1]


def path_of_tests() -> str:
    """Where Python processes of an application find the library, helpers, and the functions of tests."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    ours = [str(TESTS.parent / "src"), str(TESTS), str(TESTS / "spark")]
    return os.pathsep.join([*ours, *(place for place in given if place and place not in ours)])


def session_of(leader: int) -> list[int]:
    """Processes of a session: PySpark's workers leave the group of their driver, but never its session."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError):  # one that ends meanwhile
                state, _parent, _group, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state not in "ZX":
                    found.append(int(folder.name))
    return found


def command_of(process: int) -> str:
    """The command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def parent_of(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def kill(processes: Iterable[int]) -> None:
    """kill -9, of those that are still there."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


class Apart:
    """A process that leads a session, what it starts, and what they print."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str], folder: Path | None = None) -> None:
        self.log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | environment,
                start_new_session=True,
                cwd=folder,
            )

    def said(self) -> str:
        """All that was printed so far."""
        return self.log.read_text(errors="replace")

    def until_said(self, words: str, times: int = 1) -> None:
        """Waits for words in the log. One that ends without them fails the test, and shows its log."""
        ended = False

        def heard() -> bool:
            nonlocal ended
            ended = self.process.poll() is not None
            return self.said().count(words) >= times or ended

        until(heard, pause=0.2)
        assert self.said().count(words) >= times, f"it ended with {self.process.returncode}:\n{self.said()}"

    def processes(self) -> list[int]:
        """Of the whole session."""
        return session_of(self.process.pid)

    def python_workers(self) -> list[int]:
        """Those that run tasks: children of the daemon that the JVM started."""
        daemons = [process for process in self.processes() if "spark.daemon" in command_of(process)]
        return [process for process in daemons if parent_of(process) in daemons]

    def executors(self) -> list[int]:
        """JVMs of executors."""
        return [process for process in self.processes() if "CoarseGrainedExecutorBackend" in command_of(process)]

    def kill(self) -> None:
        """kill -9 of everything, until nothing is left."""

        def gone() -> bool:
            kill(self.processes())
            return self.process.poll() is not None and not self.processes()

        until(gone, pause=0.02)
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()


class Driver(Apart):
    """A script that runs a Spark application. `go` answers its `input()`."""

    def __init__(self, script: Path, arguments: Iterable[object], log: Path, environment: dict[str, str]) -> None:
        shared = {"PYTHONPATH": path_of_tests(), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, str(script), *(str(argument) for argument in arguments)]
        super().__init__(command, log, shared | environment)

    def go(self) -> None:
        """An empty line on its standard input."""
        self.say("")

    def say(self, line: str) -> None:
        """One line on its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def finished(self) -> str:
        """Waits for its end, which must be a good one; gives what it printed."""
        until(lambda: self.process.poll() is not None, pause=0.05)
        assert self.process.returncode == 0, self.said()
        return self.said()
