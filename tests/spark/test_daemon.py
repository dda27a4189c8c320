"""Workers are forked with what they need, from a process of one thread, and do not look through it for garbage."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from evertally.spark import conf, daemon, job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        parent = Path(f"/proc/{os.getppid()}")
        threads = len(list((parent / "task").iterdir()))
        frozen = gc.get_freeze_count() > 10_000  # by the daemon: no task of ours was here yet
        line = (parent / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        yield pa.RecordBatch.from_pylist([{"line": line, "threads": threads, "frozen": frozen}])


def test_workers_come_from_a_process_that_has_imported_all_and_has_one_thread(spark: SparkSession) -> None:
    asked = spark.range(0, 2, 1, 2).mapInArrow(told, "line string, threads long, frozen boolean")
    for row in asked.toArrow().to_pylist():
        assert "-m evertally.spark.daemon pyspark.worker" in row["line"]
        assert row["threads"] == 1
        assert row["frozen"]


def test_other_threads_are_noticed() -> None:
    """As an Arrow starts one that does not know the setting, or where somebody has taken it out."""
    code = "import pyarrow\nfrom evertally.spark.daemon import alone\nprint(alone())"
    settings = {name.removeprefix("spark.executorEnv."): value for name, value in conf().items() if "Env." in name}
    for more, found in (
        (settings, "True\n"),
        (settings | {"JE_ARROW_MALLOC_CONF": "background_thread:true"}, "False\n"),
    ):
        run = subprocess.run([sys.executable, "-c", code], env=os.environ | more, capture_output=True, text=True)
        assert run.stdout == found, run.stderr


def test_beside_other_threads_the_daemon_is_that_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    class Replaced(Exception):
        pass

    def begun_anew(program: str, words: list[str]) -> None:
        raise Replaced(program, *words)

    monkeypatch.setattr(daemon, "alone", lambda: False)
    monkeypatch.setattr(os, "execv", begun_anew)
    monkeypatch.setattr(sys, "argv", ["daemon.py", "pyspark.worker"])
    with pytest.raises(Replaced) as replaced:
        daemon.main()
    assert replaced.value.args == (sys.executable, sys.executable, "-m", "pyspark.daemon", "pyspark.worker")


def test_the_first_tasks_of_a_worker_freeze_what_they_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other: each brings facts of its job, which would stay for ever. On the driver nothing is frozen."""
    frozen, attempt = [], [0]
    context = SimpleNamespace(get=lambda: SimpleNamespace(taskAttemptId=lambda: attempt[0]) if attempt[0] else None)
    monkeypatch.setitem(sys.modules, "pyspark.taskcontext", SimpleNamespace(TaskContext=context))
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(attempt[0]))
    monkeypatch.setattr(job, "_FROZEN", set())
    for attempt[0] in (0, 1, 1, *range(20)):
        job._freeze()
    assert frozen == list(range(1, 1 + job._TASKS))
