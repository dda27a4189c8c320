"""`evertally spark` as people call it: a process of its own, with what they get wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from apart import path_of_tests
from one_process import assert_same, in_one_process

from streams import write

TABLE = pa.table({"time": [0, 1, 1], "page": [1, 2, 3]})


def called(*arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evertally.cli", "spark", *arguments],
        env={"PYTHONPATH": path_of_tests(), "PATH": "/usr/bin:/bin"},
        input=lines,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return write(tmp_path / "stream", {"name": "pages", "kind": "vector_counter", "column": "page", "columns": 40})


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_a_folder_without_events(spec: Path, tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    done = called("run", str(spec), "--events", str(tmp_path / folder), "--until", "2")
    assert done.returncode == 2
    assert "no parquet files to be read" in done.stderr
    assert "internal error" not in done.stderr


def test_a_line_that_is_no_time_does_not_stop_a_stream(spec: Path, tmp_path: Path) -> None:
    """All cells of CSV are texts: numbers in them are columns and times all the same."""
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "a.csv").write_text("time,page\n0,1\n1,2\n1,3\nCANARY\n")
    done = called("stream", str(spec), "--events", str(folder), "--format", "csv", lines="noon\n\n99\n2\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ticks up to 2 are out"
    assert "CANARY" not in done.stdout + done.stderr
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 2)])) == 80
