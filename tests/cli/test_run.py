"""`evertally run`: rows outside of the run, the progress bar; and what `--help` and `plan` say."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evertally.cli.app import app

SPEC = """\
[stream]
name = "visits"
horizon = 24
[guarantee]
epsilon = 1.0
[clock]
column = "time"
start = 2013-01-01
tick = "1h"
[key]
file = "visits.key"
[state]
file = "visits.state"
[output]
file = "visits.csv"
[[query]]
name = "all"
kind = "counter"
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "visits.toml").write_text(SPEC)
    hours = "".join(f"2013-01-01T{hour:02d}:00\n" for hour in range(24))
    (tmp_path / "events.csv").write_text(f"time\n{hours}")
    return tmp_path / "visits.toml"


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_rows_outside_of_a_run_are_refused_unless_asked_for(spec: Path) -> None:
    events = ("--input", spec.parent / "events.csv")
    refused = call("run", spec, *events, "--until", "2013-01-01T06:00")
    assert refused.exit_code == 2
    assert "18 rows at or after 2013-01-01T06:00:00Z, which this run would not count" in refused.stderr
    assert not (spec.parent / "visits.key").exists()
    assert call("run", spec, *events, "--until", "2013-01-01T06:00", "--leave-later").exit_code == 0
    done = call("run", spec, *events, "--until", "end", "--drop-late")
    assert (done.exit_code, done.stderr) == (0, "")  # nobody watches: exact counts do not go into a log
    assert "ticks 7 to 24 are out" in done.stdout
    assert len((spec.parent / "visits.csv").read_text().splitlines()) == 25


def test_how_far_a_run_goes_has_to_be_said(spec: Path) -> None:
    """A file of the first hours would close all others, empty, for good."""
    refused = call("run", spec, "--input", spec.parent / "events.csv")
    assert refused.exit_code == 2
    assert "--until end for the whole stream (2013-01-02T00:00:00Z)" in refused.stderr
    spec.write_text(SPEC.replace("horizon = 24\n", ""))
    unbounded = call("run", spec, "--input", spec.parent / "events.csv")
    assert unbounded.exit_code == 2
    assert "--until TIME" in unbounded.stderr
    assert "--until end" not in unbounded.stderr
    nowhere = call("run", spec, "--input", spec.parent / "events.csv", "--until", "end")
    assert (nowhere.exit_code, "neither [clock] end nor [stream] horizon" in nowhere.stderr) == (2, True)
    assert not (spec.parent / "visits.key").exists()
    followed = call("run", spec, "--follow", spec.parent, "--until", "2013-01-02")
    assert (followed.exit_code, "are for --input" in followed.stderr) == (2, True)


def test_options_that_contradict_each_other(spec: Path) -> None:
    both = call("run", spec, "--input", spec.parent / "events.csv", "--drop-late", "--count-late")
    assert (both.exit_code, "either dropped or counted" in both.stderr) == (2, True)
    followed = call("run", spec, "--follow", spec.parent, "--leave-later")
    assert (followed.exit_code, "are for --input" in followed.stderr) == (2, True)


def test_a_terminal_sees_a_progress_bar_and_what_is_left_out(spec: Path) -> None:
    """With stderr on a terminal: carriage returns, exact counts before the first tick. stdout is as ever."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "evertally.cli", "run", str(spec), "--input", str(spec.parent / "events.csv")]
    process = subprocess.Popen(
        [*command, "--until", "2013-01-01T06:00", "--leave-later"], stdout=subprocess.PIPE, stderr=slave, text=True
    )
    os.close(slave)
    seen = b""
    try:
        while part := os.read(master, 4096):
            seen += part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(master)
    output, _ = process.communicate()
    assert process.returncode == 0
    shown = seen.decode()
    told = shown.index("visits: 18 rows at or after 2013-01-01T06:00:00Z are left out of this run")
    assert shown.index("reading the input") < told < shown.index("[####")
    assert re.search(r"\rvisits: \[#{30}\] 6 of 6 ticks", shown)
    assert "\x1b" not in shown
    assert output.startswith("visits: ticks 1 to 6 are out")
    assert "\r" not in output


def test_help_shows_what_stands_in_brackets() -> None:
    options = re.sub(r"[│\s]+", " ", call("serve", "--help").output)  # wherever its lines are broken
    assert "[serve] host" in options
    assert options.count("[serve]") == 2  # of the port, whose range may stand in between
    assert "[output]" in call("plan", "--help").output


def test_plan_of_a_stream_without_end_does_not_name_a_last_tick(spec: Path) -> None:
    spec.write_text(SPEC.replace("horizon = 24\n", ""))
    shown = call("plan", spec).output
    assert "Clock: from 2013-01-01T00:00:00Z, without end, time stamps in column 'time'" in shown
    assert "Errors below are those at tick 1,024, an example" in shown
    assert "to tick" not in shown
    spec.write_text(
        SPEC.replace("horizon = 24\n", "").replace('column = "time"\nstart = 2013-01-01', 'start = "first serve"')
    )
    assert "Clock: from the first serve, without end" in call("plan", spec).output
