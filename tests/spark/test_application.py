"""Applications for one stream: what they can do. A cluster is looked at in test_cluster.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from planted import LABEL

import evertally
from evertally import ConfigurationError
from evertally.spark import SparkFailed, TaskFailed
from evertally.spark.failures import _ADVICE, failure_of, guarded, withheld
from evertally.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return spark.range(1000).selectExpr("id", "cast(id % 5 as string) label")


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        yield batch


def counted(table: pa.Table) -> pa.Table:
    return pa.table({"label": table["label"][:1], "n": pa.array([len(table)], pa.int64())})


def counted_by_key(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
    return pa.table({"label": [key[0].as_py()], "n": pa.array([len(table)], pa.int64())})


def counted_in_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    pieces = list(batches)
    total = pa.array([sum(map(len, pieces))], pa.int64())
    yield pa.RecordBatch.from_arrays([pieces[0]["label"][:1], total], ["label", "n"])


@pytest.mark.parametrize("task", [counted, counted_by_key, counted_in_pieces])
def test_guarded_tasks_are_called_as_they_are(events: DataFrame, task: Any) -> None:
    """With the pandas of this environment too, whichever it is: nothing here goes through it."""
    grouped = events.mapInArrow(guarded(doubled), events.schema).groupBy("label")
    done = grouped.applyInArrow(guarded(task), "label string, n long")
    assert sorted(map(tuple, done.collect())) == [(str(label), 400) for label in range(5)]
    assert done.toArrow().num_rows == 5


def test_what_a_task_raises_comes_without_its_words(events: DataFrame, capfd: pytest.CaptureFixture[str]) -> None:
    def broken(table: pa.Table) -> pa.Table:
        raise ValueError(f"cannot count {table['label'][0]} {LABEL}")

    with pytest.raises(SparkFailed) as failed, withheld("batch 3"):
        events.groupBy("label").applyInArrow(guarded(broken, "slice 4"), "n long").collect()
    assert str(failed.value).startswith(
        "batch 3: Spark stopped with PythonException, PYTHON_EXCEPTION, in slice 4: ValueError"
    )
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    printed = capfd.readouterr()
    assert LABEL not in str(failed.value) + printed.out + printed.err


def test_words_of_spark_are_withheld_where_no_task_of_ours_failed(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SparkFailed) as failed, withheld():
        spark.sql(f"select raise_error('{LABEL}') from range(3)").collect()
    assert "USER_RAISED_EXCEPTION" in failed.value.kinds
    printed = capfd.readouterr()
    assert LABEL not in str(failed.value) + printed.out + printed.err


def test_a_record_that_looks_like_a_failure_is_not_quoted() -> None:
    text = f"x\nevertally.spark.failures.TaskFailed: slice 3: {LABEL.replace('-', '_')} at a.py:3\n"
    with pytest.raises(SparkFailed) as failed, withheld("batch 1"):
        raise RuntimeError(text)
    assert "in slice 3: an exception of a library" in str(failed.value)
    assert "canary" not in str(failed.value)


@pytest.mark.parametrize("file", _ADVICE)
def test_a_state_error_of_a_task_comes_with_what_to_do(file: str) -> None:
    """In words of the driver, by the file that raised it; of a file that is not ours nothing is said."""
    assert any("raise StateError(" in path.read_text() for path in Path(evertally.__file__).parent.rglob(file))

    def said(kind: str) -> str:
        return str(failure_of(RuntimeError(f"x\nevertally.spark.failures.TaskFailed: part 2: {kind}\n"), "batch 1"))

    assert f"in part 2: StateError at {file}:7 ({_ADVICE[file]}). Texts" in said(f"StateError at {file}:7")
    assert f"in part 2: ValueError at {file}:7. Texts" in said(f"ValueError at {file}:7")
    assert "in part 2: StateError at other.py:7. Texts" in said("StateError at other.py:7")


def test_our_own_refusals_pass_as_they_are() -> None:
    with pytest.raises(ConfigurationError, match="say how far"), withheld("batch 1"):
        raise ConfigurationError("say how far to go")
    with pytest.raises(TaskFailed) as failed:
        guarded(lambda table: int(LABEL), lambda table: f"slice {table}")(7)
    assert failed.value.place == "slice 7"
    assert failed.value.kind.startswith("ValueError at test_application.py:")
    assert failed.value.__context__ is None


def test_nobody_imports_pyspark_before_it_is_needed() -> None:
    code = "import sys, evertally, evertally.spark; print({'pyspark', 'py4j'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="openjdk-17-jre-headless"):
        find_java()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").write_text("")
    (tmp_path / "bin/java").chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="1.8.0_392"\n')
    with pytest.raises(ConfigurationError, match="version 8"):
        find_java()
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.2"\n')
    assert find_java() == tmp_path
