"""Data frames as people have them, in a real application: strange names, and what must be refused before it begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_process import assert_same, in_one_process

import evertally.spark as es
from evertally.errors import ConfigurationError, HorizonExceeded
from streams import write
from waiting import PATIENCE

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


BY_OTHERS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "limit": lambda events: events.limit(2),
    "offset": lambda events: events.offset(2),
    "sample": lambda events: events.sample(0.5, seed=1),
    "randomSplit": lambda events: events.randomSplit([0.5, 0.5], seed=1)[0],
    "dropDuplicates": lambda events: events.dropDuplicates(["time"]),
    "groupBy": lambda events: events.groupBy("time").agg({"page": "max"}).toDF("time", "page"),
    "window": lambda events: events.selectExpr("time", "row_number() over (order by time) page"),
    "below others": lambda events: events.limit(3).filter("page > 1").union(events),
}


@pytest.mark.parametrize("way", BY_OTHERS)
def test_rows_that_follow_from_other_rows(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """One event more would push another out, or deal all of them anew."""
    events = BY_OTHERS[way](frame(spark, "time", "page"))
    with pytest.raises(ConfigurationError, match="follows from other rows"):
        es.release_batch(events, spec_of(tmp_path), batch="one", until=3, snapshot="1")


def test_two_streams_that_are_joined(spark: SparkSession, tmp_path: Path) -> None:
    clock = spark.readStream.format("rate").load()
    one, two = (clock.selectExpr("value time", f"value {name}") for name in ("page", "other"))
    with pytest.raises(ConfigurationError, match="events meet other rows"):
        es.release_stream(one.join(two, "time"), spec_of(tmp_path))


@pytest.mark.parametrize("said", [{"batch": ""}, {"batch": None}, {"batch": ("a", "b")}, {"snapshot": 5}])
def test_ids_that_are_no_texts(spark: SparkSession, tmp_path: Path, said: dict[str, Any]) -> None:
    """What does not come back from the log as it was would leave a batch that nobody can finish."""
    given = {"batch": "one", "snapshot": "1"} | said
    with pytest.raises(ConfigurationError, match=f"{next(iter(said))} must be a text"):
        es.release_batch(frame(spark, "time", "page"), spec_of(tmp_path), until=3, **given)


def test_the_end_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Ticks beyond the end never close: whoever asks for one must not wait for it."""
    (tmp_path / "events").mkdir()
    pq.write_table(TABLE.rename_columns(["time", "a.b"]), tmp_path / "events" / "a.parquet")
    spec = spec_of(tmp_path, "a.b")
    events = (
        spark.readStream.schema("time long, `a.b` long")
        .option("maxFileAge", "100000d")
        .parquet(str(tmp_path / "events"))
    )
    with es.release_stream(events, spec, every="1 second") as live:
        with pytest.raises(HorizonExceeded, match="tick 25 is beyond 24"):
            live.close(25, wait=PATIENCE)
        assert live.close(24, wait=PATIENCE) == 24
    expected = in_one_process(spec, tmp_path / "one", [(TABLE.rename_columns(["time", "a.b"]), 24)])
    assert assert_same(spec, expected) == 24 * 40


def test_a_stream_that_was_stopped_before_its_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    pq.write_table(TABLE, tmp_path / "events" / "a.parquet")
    spec, events = (
        spec_of(tmp_path),
        spark.readStream.schema("time long, page long")
        .option("maxFileAge", "100000d")
        .parquet(str(tmp_path / "events")),
    )
    for _ in range(3):
        es.release_stream(events, spec, every="0 seconds").stop()
    with es.release_stream(events, spec, every="1 second") as live:
        assert live.close(3, wait=PATIENCE) == 3
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 3)])) == 3 * 40
