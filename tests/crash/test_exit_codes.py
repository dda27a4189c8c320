"""What the command line ends with, as docs/command-line.md and docs/operating.md say it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from crash_stream import CANARY, plain
from nursery import Child, Nursery
from one_service import Service

from waiting import until


def ran(nursery: Nursery, folder: Path, *arguments: str, call: str = "nursery:command") -> Child:
    return nursery.start(call, *arguments, stdout=folder / "stdout", stderr=folder / "stderr")


def told(folder: Path) -> str:
    text = (folder / "stderr").read_text()
    (folder / "stderr").unlink()
    return text


def command_with_a_bug(*arguments: str) -> None:
    from nursery import command

    import evertally.runtime.live as live
    from evertally.cli import app

    def bug(*_: object) -> None:
        raise RuntimeError(CANARY)

    app.plan = live.Live.release_through = bug
    command(*arguments)


def command_without_a_reader(*arguments: str) -> None:
    from nursery import command

    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)
    command(*arguments)


def test_done_refused_and_internal(nursery: Nursery, tmp_path: Path) -> None:
    spec, sample = tmp_path / "visits.toml", tmp_path / "sample.csv"
    spec.write_text(plain())
    sample.write_text("colour\nred\n")
    assert ran(nursery, tmp_path, "plan", str(spec)).wait() == 0
    assert told(tmp_path) == ""
    assert ran(nursery, tmp_path, "check", str(spec), "--sample", str(sample)).wait() == 1
    assert ran(nursery, tmp_path, "plan", str(tmp_path / "nothing.toml")).wait() == 2
    assert "evertally: " in told(tmp_path)
    assert ran(nursery, tmp_path, "plan", str(spec), "--colour").wait() == 2
    assert ran(nursery, tmp_path, "no-such-command").wait() == 2
    assert ran(nursery, tmp_path, "init", str(tmp_path / "new.toml")).wait() == 2  # asks, and nobody answers
    assert "nobody answers" in told(tmp_path)
    assert ran(nursery, tmp_path, "plan", str(spec), call="test_exit_codes:command_without_a_reader").wait() == 2
    assert told(tmp_path) == "evertally: nobody reads what is printed; stopped\n"
    assert ran(nursery, tmp_path, "plan", str(spec), call="test_exit_codes:command_with_a_bug").wait() == 3
    line = told(tmp_path)
    assert line.startswith("evertally: internal error, RuntimeError at ")
    assert CANARY not in line


def test_interrupted(nursery: Nursery, tmp_path: Path) -> None:
    (tmp_path / "visits.toml").write_text(plain())
    os.mkfifo(tmp_path / "visits.csv")
    arguments = ("run", str(tmp_path / "visits.toml"), "--input", str(tmp_path / "visits.csv"), "--until", "2013-01-02")
    child = ran(nursery, tmp_path, *arguments)
    with open(tmp_path / "visits.csv", "wb"):  # it waits for rows
        child.signal(signal.SIGINT)
        assert child.wait() == 130
    assert told(tmp_path) == "evertally: interrupted; the same command continues where it stopped\n"


def test_a_service_with_a_bug(nursery: Nursery, tmp_path: Path) -> None:
    service = Service(nursery, tmp_path, plain())
    child = service.start(call="test_exit_codes:command_with_a_bug")
    service.world.ask("POST", "/v1/ticks", "admin", json.dumps({"until": "2013-01-01T03:00"}).encode())
    assert child.wait() == 3
    until(lambda: "Please report it" in service.stderr())
    assert "internal error, RuntimeError at test_exit_codes.py" in service.stderr()
    assert CANARY not in service.stderr()
