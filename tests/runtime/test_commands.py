"""`evertally run` on a pipe and on a folder that is being written, as real processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from visit_stream import WriteSpec, save, visits

from waiting import PATIENCE, until

RUN = [sys.executable, "-m", "evertally.cli", "run"]


def test_a_pipe_is_an_input(write_spec: WriteSpec, tmp_path: Path) -> None:
    text = save(visits(0, 48), tmp_path / "v.csv").read_bytes()
    command = [*RUN, str(write_spec()), "--input", "-", "--format", "csv", "--until", "end"]
    done = subprocess.run(command, input=text, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "visits.jsonl").read_bytes().splitlines()) == 48 * 4
    again = subprocess.run(command, input=text, capture_output=True, text=False)
    assert again.returncode == 2
    assert b"nothing to release" in again.stderr


@pytest.mark.parametrize(
    "wrong", [("--input", "-"), ("--input", "v.csv", "--format", "csv"), (), ("--input", "v.csv", "--follow", ".")]
)
def test_inputs_that_make_no_sense(write_spec: WriteSpec, wrong: tuple[str, ...]) -> None:
    refused = subprocess.run([*RUN, str(write_spec()), *wrong], capture_output=True, text=True)
    assert refused.returncode == 2
    assert "--format goes with" in refused.stderr or "give either --input" in refused.stderr


def test_a_folder_is_followed_until_the_command_is_stopped(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec(
        ('column = "time"\nstart = 2013-01-01T00:00:00Z\ntick = "1h"', 'start = "first serve"\ntick = "1s"'),
        ("horizon = 48", "horizon = 100000"),
        ("rho = 0.5", "rho = 100000"),  # hardly any noise: what was counted can be seen
    )
    incoming, output = tmp_path / "incoming", tmp_path / "visits.jsonl"
    incoming.mkdir()

    def counted() -> int:
        rows = (
            [json.loads(line) for line in output.read_bytes().rpartition(b"\n")[0].splitlines()]
            if output.exists()
            else []
        )
        return max((row["value"] for row in rows if row["query"] == "all"), default=0)

    (incoming / "a-note.txt").write_text("not events")
    for first, last in ((0, 20), (20, 30)):
        save(visits(first, last), incoming / ".unfinished.csv").rename(incoming / f"until-{last}.csv")
        with subprocess.Popen(
            [*RUN, str(path), "--follow", str(incoming)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            until(lambda last=last: process.poll() is not None or counted() >= len(visits(0, last)) - 1, pause=0.05)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            said, complaints = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert "the same command goes on" in said
        assert complaints.count("a-note.txt: unknown kind of input") == 1
    assert abs(counted() - len(visits(0, 30))) <= 1
