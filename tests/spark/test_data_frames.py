"""Data frames as people have them, in a real application: strange names, and what must be refused before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from one_process import assert_same, in_one_process

import evertally.spark as es
from evertally.errors import ConfigurationError
from streams import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = pa.table({"time": [0, 1, 2, 2], "page": [1, 2, 3, 33]})


def spec_of(folder: Path, column: str = "page") -> Path:
    return write(folder / "stream", {"name": "pages", "kind": "vector_counter", "column": column, "columns": 40})


def frame(spark: SparkSession, *names: str) -> DataFrame:
    """The events of TABLE, with other columns behind them."""
    rows = [
        (time, page, *[page + 1] * (len(names) - 2)) for time, page in zip(*TABLE.to_pydict().values(), strict=True)
    ]
    return spark.createDataFrame(rows, ", ".join(f"c{i} long" for i in range(len(names)))).toDF(*names)


@pytest.mark.parametrize("name", ["a.b", "back`tick", "a b, c;{}='\"", "ünï"])
def test_names_that_spark_reads_otherwise(spark: SparkSession, tmp_path: Path, name: str) -> None:
    spec = spec_of(tmp_path, name)
    es.release_batch(frame(spark, "time", name), spec, batch="one", until=3, snapshot="1")
    expected = in_one_process(spec, tmp_path / "one", [(TABLE.rename_columns(["time", name]), 3)])
    assert assert_same(spec, expected) == 3 * 40


def test_names_that_differ_in_case(spark: SparkSession, tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    es.release_batch(frame(spark, "time", "page", "PAGE"), spec, batch="one", until=3, snapshot="1")
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 3)])) == 3 * 40


def test_a_column_that_is_called_like_the_rows_of_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    events = frame(spark, "time", "page", "other").selectExpr("time", "page", "other > 0 evertally_beat")
    es.release_batch(events, spec, batch="one", until=3, snapshot="1")
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 3)])) == 3 * 40


@pytest.mark.parametrize(
    ("column", "names", "words"),
    [
        ("page", ("time", "page", "page"), "two columns 'page'"),
        ("page", ("time", "Page"), "no column 'page'"),
        ("evertally_beat", ("time", "evertally_beat"), "begin with evertally_"),
    ],
)
def test_names_that_are_refused(
    spark: SparkSession, tmp_path: Path, column: str, names: tuple[str, ...], words: str
) -> None:
    spec = spec_of(tmp_path, column)
    with pytest.raises(ConfigurationError, match=words):
        es.release_batch(frame(spark, *names), spec, batch="one", until=3, snapshot="1")
    assert not list(spec.parent.glob("*.key"))  # nothing has begun
