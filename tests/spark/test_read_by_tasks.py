"""Parquet files that tasks read themselves: the rows that Spark reads, the releases of one process; and whatever is not
surely the same is left to Spark."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_process import assert_same, in_one_process

import evertally.spark as es
from evertally.errors import StateError
from evertally.spark import parquet_files, running
from evertally.spark.parquet_files import Scan, cut, row_groups
from evertally.spark.running import numbered
from evertally.spark.scanning import scan_of
from streams import BY_HOUR, events, place, write  # noqa: F401

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAGES = {"time": "bigint", "page": "bigint"}
TABLE = pa.table({"time": [0, 1, 2, 2, None], "page": [1, 2, 3, 33, 4]})
OLD = dt.datetime(1500, 1, 1, 12, tzinfo=dt.UTC)
ODD = pa.table(
    {
        "time": pa.array([2**63 - 1, None, -(2**63), 0]),
        "int": pa.array([2**31 - 1, None, -(2**31), 0], pa.int32()),
        "yes": [True, None, False, True],
        "double": [float("nan"), None, -0.0, 5e-324],
        "float": pa.array([float("inf"), None, -0.0, 1e-45], pa.float32()),
        "text": ["", None, "ünï\0", "\U0001f600"],
        "bytes": pa.array([b"", None, b"\xff\xfe", b"x"]),
        "day": pa.array([OLD.date(), None, dt.date(9999, 12, 31), dt.date(1970, 1, 1)]),
        "moment": pa.array([OLD, None, dt.datetime.max.replace(tzinfo=dt.UTC), OLD], pa.timestamp("us", "UTC")),
        "local": pa.array(
            [dt.datetime(1500, 1, 1), None, dt.datetime.max, dt.datetime(2026, 1, 1)], pa.timestamp("us")
        ),
        "words": [["a", None], None, [], ["b"]],
        "numbers": [[1, None], None, [], [-5]],
        "longer": pa.array(["a", None, "", "b"], pa.large_string()),
    }
)


def saved(folder: Path, *tables: pa.Table, **options: Any) -> Path:
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", **options)
    return folder


def scan(frame: DataFrame) -> Scan | None:
    return scan_of(numbered(frame, frame.columns), frame.columns)


def read(found: Scan | None) -> pa.Table:
    assert found is not None
    return pa.Table.from_batches([one for piece in range(len(found.pieces)) for one in found.batches(piece)])


# Without Spark


def test_pieces_have_every_row_group_once(tmp_path: Path) -> None:
    folder = saved(tmp_path / "in", *(events(50, seed).slice(seed) for seed in range(3)), row_group_size=7)
    sizes = {(str(one), one.stat().st_size): row_groups(str(one), {"number": "bigint"}) for one in folder.iterdir()}
    for count in (1, 2, 5, 100):
        found = cut({file: groups or [] for file, groups in sizes.items()}, count)
        parts = [(path, group) for piece in found for path, _, groups in piece.parts for group in groups]
        assert sorted(parts) == sorted(
            (path, group) for (path, _), of in sizes.items() for group in range(len(of or []))
        )
        assert len(found) <= count
        assert all(piece.parts for piece in found)


def test_batches_do_not_tell_where_row_groups_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "BATCH_ROWS", 20)
    folder = saved(tmp_path / "in", events(30), events(25, 2), row_group_size=7)
    sizes = {
        (str(one), one.stat().st_size): row_groups(str(one), {"number": "bigint"}) or [] for one in folder.iterdir()
    }
    found = Scan(tuple(cut(sizes, 1)), {"number": "bigint"}, ("c",), "UTC")
    assert [len(batch) for batch in found.batches(0)] == [20, 20, 15]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([1], pa.int64()), "int"),
        (pa.array([1], pa.int32()), "bigint"),
        (pa.array([1], pa.uint64()), "bigint"),
        (pa.array([1], pa.int16()), "smallint"),
        (pa.array([1], pa.int16()), "int"),
        (pa.array([1], pa.duration("us")), "bigint"),
        (pa.array([1], pa.time64("us")), "bigint"),
        (pa.array([1], pa.timestamp("ms", "UTC")), "timestamp"),
        (pa.array([1], pa.timestamp("us")), "timestamp"),
        (pa.array([1], pa.timestamp("us", "UTC")), "timestamp_ntz"),
        (pa.array([1], pa.timestamp("us", "UTC")), "bigint"),
        (pa.array([Decimal("1.25")]), "decimal(3,2)"),
        (pa.array([1.0], pa.float32()), "double"),
        (pa.array([b"x"]), "string"),
        (pa.array(["x"]), "binary"),
        (pa.array([b"x"], pa.binary(1)), "binary"),
        (pa.array(["x"]).dictionary_encode(), "string"),
        (pa.array([{"a": 1}]), "struct<a:bigint>"),
        (pa.array([[[1]]]), "array<array<bigint>>"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "map<string,bigint>"),
        (pa.array(["x"]), "array<string>"),
        (pa.array([["x"]]), "string"),
    ],
)
def test_types_that_are_left_to_spark(tmp_path: Path, column: Any, kind: str) -> None:
    pq.write_table(pa.table({"c": column}), tmp_path / "a.parquet")
    assert row_groups(str(tmp_path / "a.parquet"), {"c": kind}) is None


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "lz4"},
        {"compression": "brotli"},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
        {"use_deprecated_int96_timestamps": True},
    ],
)
def test_files_that_are_left_to_spark(tmp_path: Path, options: dict[str, Any]) -> None:
    table, wanted = ODD.select(["text", "moment"]), {"text": "string", "moment": "timestamp"}
    pq.write_table(table, tmp_path / "plain.parquet")
    assert row_groups(str(tmp_path / "plain.parquet"), wanted)
    pq.write_table(table, tmp_path / "a.parquet", **options)
    assert row_groups(str(tmp_path / "a.parquet"), wanted) is None


@pytest.mark.parametrize(
    "said",
    [{"org.apache.spark.legacyDateTime": ""}, {"org.apache.spark.version": "2.4.8"}, {"org.apache.spark.version": "x"}],
)
def test_old_calendars_are_left_to_spark(tmp_path: Path, said: dict[str, str]) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(TABLE.replace_schema_metadata({"org.apache.spark.version": "4.0.0"}), path)
    assert row_groups(path, PAGES)
    pq.write_table(TABLE.replace_schema_metadata(said), path)
    assert row_groups(path, PAGES) is None


def test_names_and_checksums_that_are_left_to_spark(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for names in (["time", "Page"], ["time", "other"]):
        pq.write_table(TABLE.rename_columns(names), path)
        assert row_groups(str(path), PAGES) is None
    pq.write_table(TABLE.append_column("PAGE", TABLE["page"]), path)
    assert row_groups(str(path), PAGES) is None
    pq.write_table(TABLE.rename_columns(["time", "a.b"]), path)
    assert row_groups(str(path), {"a.b": "bigint"}) is None
    pq.write_table(TABLE, path)
    assert row_groups(str(path), PAGES)
    (tmp_path / ".a.parquet.crc").write_bytes(b"crc")
    assert row_groups(str(path), PAGES) is None


@pytest.mark.parametrize("other", [TABLE.slice(2), TABLE.rename_columns(["time", "other"])])
def test_a_task_takes_no_other_file_than_the_driver_saw(tmp_path: Path, other: pa.Table) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(other, path)
    size = path.stat().st_size
    pq.write_table(TABLE, path)
    found = Scan(tuple(cut({(str(path), size): [1]}, 1)), PAGES, ("time", "page"), "UTC")
    if other.num_rows == TABLE.num_rows:
        pq.write_table(other, path)
    with pytest.raises(StateError, match="it was replaced"):
        list(found.batches(0))


# In an application


def test_the_rows_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Every type that tasks read, at its ends: what Spark's reader makes of the same files, to the type."""
    options = {"row_group_size": 3, "store_schema": False}
    frame = spark.read.parquet(str(saved(tmp_path / "in", ODD, ODD.slice(1), **options)))
    found, expected = read(scan(frame)), frame.toArrow()
    rows = [sorted(map(repr, table.to_pylist())) for table in (found, expected)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 7
    for field in expected.schema:
        assert found.schema.field(field.name).type == field.type


NOT_PLAIN: dict[str, Callable[[DataFrame], DataFrame]] = {
    "filter": lambda frame: frame.filter("page > 1"),
    "expression": lambda frame: frame.selectExpr("time", "page * 2 page"),
    "cast": lambda frame: frame.selectExpr("time", "cast(page as int) page"),
    "one column twice": lambda frame: frame.selectExpr("time", "time page"),
    "union": lambda frame: frame.union(frame),
    "distinct": lambda frame: frame.distinct(),
    "repartition": lambda frame: frame.repartition(2),
    "generator": lambda frame: frame.selectExpr("time", "explode(array(page)) page"),
    "metadata": lambda frame: frame.selectExpr("time", "_metadata.file_size page"),
}


def test_frames_that_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    folder = saved(tmp_path / "in", TABLE)
    frame = spark.read.parquet(str(folder))
    for name, change in NOT_PLAIN.items():
        assert scan(change(frame)) is None, name
    swapped = scan(frame.selectExpr("page time", "time page"))  # only names: still nothing but columns
    assert read(swapped).to_pydict() == {"time": TABLE["page"].to_pylist(), "page": TABLE["time"].to_pylist()}
    assert scan(spark.read.json(spark.sparkContext.parallelize(['{"page": 1}']))) is None
    assert scan(spark.read.schema("time long, page int").parquet(str(folder))) is None
    assert scan(spark.read.schema("time long, page long, more long").parquet(str(folder))) is None
    assert scan(spark.read.option("datetimeRebaseMode", "LEGACY").parquet(str(folder))) is None
    for name, value in {"ignoreCorruptFiles": "true", "ignoreMissingFiles": "true"}.items():
        spark.conf.set(f"spark.sql.files.{name}", value)
        assert scan(frame) is None
        spark.conf.unset(f"spark.sql.files.{name}")
    kept = frame.select("time", "page").cache()  # what is cached may be older than the files
    assert scan(kept) is None
    assert scan(frame.select("time", "page")) is None
    kept.unpersist()
    assert scan(spark.read.parquet(str(folder))) is not None
    saved(folder / "by=7", TABLE)
    (folder / "0.parquet").unlink()
    assert scan(spark.read.parquet(str(folder))) is None  # a column that stands in the name of a folder
    frame = spark.read.schema("time long, page long").parquet(str(saved(tmp_path / "bad", TABLE)))
    (tmp_path / "bad" / "0.parquet").write_bytes(b"PARE" + os.urandom(100) + b"PARE")  # how an encrypted one begins
    assert scan(frame) is None


QUERIES = {
    "by part": (
        {},
        {"name": "numbers", "kind": "vector_counter", "column": "number", "columns": 70, "share": 0.5},
        {"name": "words", "kind": "unknown_histogram", "column": "words", "max_per_event": 3, "share": 0.5},
    ),
    "by user": (
        {"unit": "user", "user_column": "user", "max_events_per_user": 4, "order": "content"},
        {"name": "numbers", "kind": "vector_counter", "column": "number", "columns": 70, "share": 0.5},
        {"name": "all", "kind": "counter", "share": 0.5},
    ),
}


@pytest.mark.parametrize("way", QUERIES)
def test_releases_of_one_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Read by tasks, in two batches, with late events, cells that are empty and moments as time stamps; and nothing of
    the files stands in the plan that Spark keeps."""
    more, *queries = QUERIES[way]
    stream = {"name": "visits", "horizon": 24, "max_events_per_tick": 500, **more}
    guarantee = {"epsilon": 30.0, "delta": 1e-3}  # little noise: some words are above the threshold
    spec = write(tmp_path / "stream", *queries, stream=stream, clock=BY_HOUR, guarantee=guarantee)
    table = events(400, hours=True)
    moments = pa.compute.strptime(table["time"], "%Y-%m-%dT%H:%M:%S+00:00", "us", error_is_null=True)
    table = table.set_column(0, "time", moments.cast(pa.timestamp("us", "UTC")))
    plans, play = [], running._run_given

    def watched(given: DataFrame, job: Any) -> list[dict[str, Any]]:
        plans.append(given._jdf.queryExecution().toString())
        return play(given, job)

    monkeypatch.setattr(running, "_run_given", watched)
    batches = [(table.slice(0, 250), 4), (table.slice(250), 10)]
    for number, (part, until) in enumerate(batches):
        halves = part.slice(0, 100), part.slice(100)
        folder = saved(tmp_path / "in" / str(number), *halves, row_group_size=30)
        hour = (dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=until)).isoformat()
        es.release_batch(spark.read.parquet(str(folder)), spec, batch=str(number), until=hour)
    assert len(plans) == 2
    assert all("Range" in plan and str(tmp_path) not in plan for plan in plans)
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", batches)) > 10 * 70


@pytest.mark.parametrize("rows", [TABLE.slice(0, 3), TABLE.take([4, 3, 2, 1, 0])], ids=["other size", "same size"])
def test_a_file_that_is_replaced_while_it_is_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: pa.Table
) -> None:
    query = {"name": "pages", "kind": "vector_counter", "column": "page", "columns": 40}
    spec, folder = write(tmp_path / "stream", query), saved(tmp_path / "in", TABLE)
    before = (folder / "0.parquet").read_bytes()
    seen = (folder / "0.parquet").stat()

    def replaced(*given: Any) -> Scan | None:
        found = scan_of(*given)
        assert found is not None
        pq.write_table(rows, folder / "0.parquet")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(running, "scan_of", replaced)
        with pytest.raises(StateError, match=r"replaced while it was read|in door: StateError"):
            es.release_batch(spark.read.parquet(str(folder)), spec, batch="one", until=3)
    with pytest.raises(StateError, match="another input"):
        es.release_batch(spark.read.parquet(str(folder)), spec, batch="one", until=3)
    (folder / "0.parquet").write_bytes(before)
    os.utime(folder / "0.parquet", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    es.release_batch(spark.read.parquet(str(folder)), spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 3)])) == 3 * 40
