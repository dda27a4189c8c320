"""`evertally spark` as people call it: a process of its own, with what they get wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apart import path_of_tests
from one_process import assert_same, in_one_process

from evertally.cli import spark as commands
from evertally.errors import ConfigurationError
from evertally.spark.scanning import scan_of
from streams import write
from waiting import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = pa.table({"time": [0, 1, 1], "page": [1, 2, 3]})


def called(*arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evertally.cli", "spark", *arguments],
        env={
            "PYTHONPATH": path_of_tests(),
            "PATH": "/usr/bin:/bin",
            "JDK_JAVA_OPTIONS": os.environ["JDK_JAVA_OPTIONS"],
        },
        input=lines,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return write(tmp_path / "stream", {"name": "pages", "kind": "vector_counter", "column": "page", "columns": 40})


def test_a_folder_that_is_not_there(spec: Path, tmp_path: Path) -> None:
    done = called("run", str(spec), "--events", str(tmp_path / "nowhere"), "--until", "2")
    assert done.returncode == 2
    assert "no parquet files to be read" in done.stderr
    assert "internal error" not in done.stderr


def test_a_folder_without_events(
    spark: SparkSession, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark says of it is another exception than that of a folder that is not there."""
    monkeypatch.setattr(commands, "_within", lambda _spec, _master, run: run(spark))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigurationError, match="no parquet files to be read"):
        commands.run_batch(spec, str(tmp_path / "empty"), "parquet", None, "2", None)


def test_folders_of_parquet_are_read_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """Any option that is more than a place would leave them to Spark."""
    pq.write_table(TABLE, tmp_path / "0.parquet")
    assert scan_of(commands._loaded(spark, "parquet", str(tmp_path)), ["time", "page"]) is not None


def test_json_is_read_with_the_declared_types(
    spark: SparkSession, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell of another type is null, and changes nobody else's."""
    monkeypatch.setattr(commands, "_within", lambda _spec, _master, run: run(spark))
    spec.write_text(spec.read_text() + '\n[events]\ntime = "integer"\npage = "integer"\n')
    (tmp_path / "events").mkdir()
    records = ['{"time": 0.0, "page": 1}', '{"time": "1", "page": 2}', '{"page": 3, "time": 1e0}']
    records += ["", " ", '{"time": 1, "page": "x"}']
    (tmp_path / "events/a.json").write_text("\n".join([*records, "{"]))
    commands.run_batch(spec, str(tmp_path / "events"), "json", None, "2", None)
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 2)])) == 80


def test_json_without_declared_types(
    spark: SparkSession, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_within", lambda _spec, _master, run: run(spark))
    (tmp_path / "events").mkdir()
    (tmp_path / "events/a.json").write_text('{"time": 0, "page": 1}')
    with pytest.raises(ConfigurationError, match=r"add \[events\] with all columns"):
        commands.run_batch(spec, str(tmp_path / "events"), "json", None, "2", None)


def test_cells_of_csv_are_read_as_they_are_declared(
    spark: SparkSession, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotes are written twice, an index without a name is no column, and a line may have 30,000 cells."""
    monkeypatch.setattr(commands, "_within", lambda _spec, _master, run: run(spark))
    spec.write_text(spec.read_text() + '\n[events]\ntime = "integer"\npage = "integer"\n')
    (tmp_path / "events").mkdir()
    lines = [",time,page,note", '0,0,1,"say ""hi"", then go"', "1,1,2,", "2,1,3,x", "x" + "," * 30_000]
    (tmp_path / "events/a.csv").write_text("\n".join(lines))
    said = commands.run_batch(spec, str(tmp_path / "events"), "csv", "a", "2", None)
    assert "over before" not in said
    assert "It was over before" in commands.run_batch(spec, str(tmp_path / "events"), "csv", "a", "3", None)
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 2)])) == 80


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
