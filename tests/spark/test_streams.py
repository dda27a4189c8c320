"""Batches and live streams in a real application, held against one process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_process import assert_same, in_one_process

import evertally.spark as es
from evertally.errors import ConfigurationError, StateError
from evertally.runtime import load_spec
from evertally.runtime.clock import written
from evertally.spark.public import verified
from long import LONG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS, WIDTH, EVENTS = (200_000, 65_536, 30_000) if LONG else (13_000, 4_096, 6_000)  # four slices

SPEC = """
[stream]
name = "visits"
horizon = 8
{stream}
[guarantee]
epsilon = 2.0
delta = 1e-6
[clock]
column = "time"
start = {start}
tick = {tick}
close = "{close}"
[key]
file = "visits.key"
[state]
file = "visits.state"
[engine]
slice_width = {width}
label_shards = 3
user_buckets = 3
grace = {grace}
"""
QUERIES = f"""
[[query]]
name = "all"
kind = "counter"
[[query]]
name = "pages"
kind = "vector_counter"
column = "page"
columns = {COLUMNS}
[[query]]
name = "words"
kind = "unknown_histogram"
column = "word"
"""
OF_USERS = """
[[query]]
name = "people"
kind = "distinct_users"
"""


def spec_file(folder: Path, stream: str = "", more: str = "", **clock: Any) -> Path:
    given = {"start": 0, "tick": 1000, "close": "request", "grace": 10.0, "width": WIDTH} | clock
    path = folder / "visits.toml"
    path.write_text(SPEC.format(stream=stream, **given) + QUERIES + more)
    return path


def events(seed: int, count: int = EVENTS, first: int = -1, stop: int = 9) -> pa.Table:
    """Late, early, before the start and after the end; columns that there are not."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "time": rng.integers(first * 1000, stop * 1000, count),
            "page": rng.integers(-5, COLUMNS + 5, count),
            "word": pa.array([f"w{rank}" for rank in np.minimum(rng.zipf(1.5, count), 500)]),
            "user": rng.integers(0, 5_000, count),
        }
    )


def put(folder: Path, name: str, table: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    pq.write_table(table, hidden)
    hidden.rename(folder / f"{name}.parquet")  # files of a stream appear whole


@pytest.mark.parametrize(
    ("stream", "more"),
    [("", ""), ('unit = "user"\nuser_column = "user"\nmax_events_per_user = 3\norder = "content"', OF_USERS)],
    ids=["events", "users"],
)
def test_a_batch_is_what_one_process_releases(spark: SparkSession, tmp_path: Path, stream: str, more: str) -> None:
    spec = spec_file(tmp_path, stream, more)
    tables = [events(1), events(2)]
    for number, (table, partitions) in enumerate(zip(tables, (3, 7), strict=True)):
        pieces = np.array_split(np.arange(table.num_rows), partitions)
        for i, rows in enumerate(pieces):
            put(tmp_path / f"in{number}", str(i), table.take(rows))
    first = spark.read.parquet(str(tmp_path / "in0"))
    done = es.release_batch(first, spec, batch="one", until=3000)
    assert done == es.release_batch(first, spec, batch="one", until=3000)  # done already
    with pytest.raises(StateError, match="another input"):
        es.release_batch(spark.read.parquet(str(tmp_path / "in1")), spec, batch="one", until=3000)
    es.release_batch(spark.read.parquet(str(tmp_path / "in1")), spec, batch="two", until=6000)
    with pytest.raises(StateError, match="was counted already, in batch 'one'"):
        es.release_batch(first, spec, batch="three", until=8000)
    nothing = spark.createDataFrame([], first.schema)
    with pytest.raises(ConfigurationError, match="snapshot"):
        es.release_batch(nothing, spec, batch="rest", until=8000)
    es.release_batch(nothing, spec, batch="rest", until=8000, snapshot="empty")
    expected = in_one_process(spec, tmp_path / "one", [(tables[0], 3), (tables[1], 6), (tables[0].slice(0, 0), 8)])
    assert assert_same(spec, expected) > 8 * COLUMNS
    frame = es.releases(spark, spec)
    assert frame.where("query = 'pages'").count() == 8 * COLUMNS
    [row] = frame.where("query = 'pages' and tick = 8 and category = '12345'").collect()
    asked = es.ask(spec, "pages", tick=8, categories=[12345, 7])
    assert (row.value, row.lower) == (asked["value"][0], asked["lower"][0])
    assert row.time == "8000"
    assert verified(load_spec(spec), es.certificate(spec)["release_log"]["public_key"]) == (3, 8)
    with pytest.raises(StateError, match="another key"):
        verified(load_spec(spec), "00" * 32)


def test_a_live_stream_is_what_one_process_releases(spark: SparkSession, tmp_path: Path) -> None:
    spec, folder = spec_file(tmp_path), tmp_path / "in"
    first, second = events(3), events(4)
    put(folder, "0", first.slice(0, 10))
    schema = spark.read.parquet(str(folder)).schema
    source = spark.readStream.schema(schema).option("maxFileAge", "100000d").parquet(str(folder))
    with es.release_stream(source, spec, every="100 milliseconds") as live:
        put(folder, "1", first.slice(10))
        assert live.close(2000) == 2
        with pytest.raises(StateError, match="another process"):
            es.release_stream(source, spec)
    with es.release_stream(source, spec, every="100 milliseconds") as live:  # goes on where it stopped
        assert live.released == 2
        put(folder, "2", second)
        assert live.close(6000) == 6
        assert live.close(8000) == 8
    expected = in_one_process(spec, tmp_path / "one", [(first, 2), (second, 6), (second.slice(0, 0), 8)])
    assert assert_same(spec, expected) > 8 * COLUMNS


def test_ticks_close_by_the_clock_and_idle_ones_too(spark: SparkSession, tmp_path: Path) -> None:
    length = 1  # second
    begin = int(time.time()) // length * length + 2 * length
    settings = {"start": f'"{written(begin * 1_000_000)}"', "tick": f'"{length}s"', "close": "wall", "grace": 1.0}
    spec, folder = spec_file(tmp_path, **settings), tmp_path / "in"
    stamped = events(5, count=2_000)
    # Of ticks to come, so that none is late, however slow this machine is.
    ticks = np.random.default_rng(6).integers(5, 8, stamped.num_rows)
    moments = (begin + ticks * length) * 1_000_000 + 5
    stamped = stamped.set_column(0, "time", pa.array(moments, pa.timestamp("us", tz="UTC")))
    put(folder, "0", stamped)
    schema = spark.read.parquet(str(folder)).schema
    source = spark.readStream.schema(schema).option("maxFileAge", "100000d").parquet(str(folder))
    with es.release_stream(source, spec, every="500 milliseconds") as live:
        with pytest.raises(ConfigurationError, match="close by the clock"):
            live.close(written(begin * 1_000_000))
        while live.released < 8 and live.active:
            time.sleep(0.1)
        assert live.released == 8
        assert live.failed is None
    on_request = spec.with_name("visits.toml")
    on_request.write_text(spec.read_text().replace('close = "wall"', 'close = "request"'))
    expected = in_one_process(on_request, tmp_path / "one", [(stamped, 8)])
    spec.write_text(spec.read_text().replace('close = "request"', 'close = "wall"'))
    assert assert_same(spec, expected) > 8 * COLUMNS
    assert load_spec(spec).clock.close == "wall"
