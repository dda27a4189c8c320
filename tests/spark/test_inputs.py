"""By what an input is told, and that its events count once: files of batches and of streams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from four_events import TABLE, events_of, folder, spec_of
from one_process import assert_same, in_one_process

import evertally.spark as es
from evertally.errors import ConfigurationError, StateError
from evertally.spark import SparkFailed
from evertally.spark.inputs import input_of
from evertally.spark.plans import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["folder"]


def test_an_input_is_told_by_its_files_and_by_what_it_is_looked_up_in(spark: SparkSession, folder: Path) -> None:
    given = input_of(
        Plan(spark.sql("select * from events where page in (select page from limits)"), [spark.table("limits")]), None
    )
    assert {part: [name for name, *_ in files] for part, files in given.items()} == {
        "files": [str(folder / "events/0.parquet")],
        "beside": [str(folder / "limits/0.parquet")],
    }
    assert input_of(Plan(events_of(spark, folder)), "one")["files"] == given["files"], "also beside a snapshot"


def test_rows_in_memory_beside_files_need_a_snapshot(spark: SparkSession, folder: Path) -> None:
    rows = spark.createDataFrame([(2, 7)] * 3, "time long, page long")
    spec, both = spec_of(folder), events_of(spark, folder).union(rows)
    with pytest.raises(ConfigurationError, match=r"a part of this data frame is read from no files .*snapshot="):
        es.release_batch(both, spec, batch="one", until=3)
    es.release_batch(both, spec, batch="one", until=2, snapshot="three rows")
    with pytest.raises(StateError, match="another input"):
        es.release_batch(both, spec, batch="one", until=2, snapshot="five rows")


def test_a_file_is_counted_once_whatever_snapshots_say(spark: SparkSession, folder: Path) -> None:
    spec, events = spec_of(folder), events_of(spark, folder)
    es.release_batch(events, spec, batch="one", until=2, snapshot="first")
    with pytest.raises(StateError, match=r"0\.parquet was counted already"):
        es.release_batch(events, spec, batch="two", until=3, snapshot="second")


def test_a_table_may_be_looked_up_by_every_batch(spark: SparkSession, folder: Path) -> None:
    spec = spec_of(folder)
    (folder / "later").mkdir()
    later = pa.table({"time": [2], "page": [3]})
    pq.write_table(later, folder / "later/0.parquet")
    limits = spark.read.parquet(str(folder / "limits"))
    for number, (name, until) in enumerate([("events", 2), ("later", 3)]):
        frame = spark.read.parquet(str(folder / name)).join(limits, "page")
        es.release_batch(frame, spec, batch=str(number), until=until, look_up=[limits])
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 2), (later, 3)])) == 3 * 40


def test_a_folder_under_another_name(spark: SparkSession, folder: Path) -> None:
    (folder / "linked").symlink_to(folder / "events")
    spec = spec_of(folder)
    es.release_batch(events_of(spark, folder), spec, batch="one", until=2)
    with pytest.raises(StateError, match="counted already"):
        es.release_batch(spark.read.parquet(str(folder / "linked")), spec, batch="two", until=3)


@pytest.mark.parametrize("again", ["0.parquet", "*.parquet"])
def test_a_file_that_is_named_twice(spark: SparkSession, folder: Path, again: str) -> None:
    events = spark.read.parquet(str(folder / "events/0.parquet"), str(folder / "events" / again))
    with pytest.raises(ConfigurationError, match="named twice"):
        es.release_batch(events, spec_of(folder), batch="one", until=3)


@pytest.mark.parametrize("name", ["_metadata", "_common_metadata"])
def test_files_that_spark_lists_and_does_not_read(spark: SparkSession, folder: Path, name: str) -> None:
    events = pq.read_metadata(folder / "events/0.parquet")
    events.set_file_path("0.parquet")
    events.write_metadata_file(folder / "events" / name)
    spec = spec_of(folder)
    es.release_batch(events_of(spark, folder), spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


def test_releases_in_a_folder_whose_name_is_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "visits [1] {a,b}?*"
    (folder / "events").mkdir(parents=True)
    pq.write_table(TABLE, tmp_path / "0.parquet")
    spec = spec_of(folder)
    es.release_batch(spark.read.parquet(str(tmp_path / "0.parquet")), spec, batch="one", until=3)
    assert es.releases(spark, spec).count() == 3 * 40


# -- events of several batches, and of a stream


@pytest.mark.parametrize("first", ["counted", "looked up"])
def test_events_of_one_batch_that_another_looks_up(spark: SparkSession, folder: Path, first: str) -> None:
    (folder / "later").mkdir()
    pq.write_table(pa.table({"time": [2], "page": [3]}), folder / "later/0.parquet")
    spec, events, later = spec_of(folder), events_of(spark, folder), spark.read.parquet(str(folder / "later"))
    seen = events.select("page")

    def count(alone: bool, batch: str, until: int) -> None:
        if alone:
            es.release_batch(events, spec, batch=batch, until=until)
        else:
            es.release_batch(later.join(seen, "page", "left_anti"), spec, batch=batch, until=until, look_up=[seen])

    count(first == "counted", "one", 2)
    with pytest.raises(StateError, match="holds events, and events are looked up in it"):
        count(first != "counted", "two", 3)


def test_the_version_of_a_table_is_no_event(spark: SparkSession, folder: Path) -> None:
    """The rows of a table are told by a snapshot, and looked up by two batches."""
    spec = spec_of(folder)
    table = spark.createDataFrame([(1,), (2,), (3,), (33,)], "page long")
    (folder / "later").mkdir()
    later = pa.table({"time": [2], "page": [3]})
    pq.write_table(later, folder / "later/0.parquet")
    for number, (name, until) in enumerate([("events", 2), ("later", 3)]):
        frame = spark.read.parquet(str(folder / name)).join(table, "page")
        es.release_batch(frame, spec, batch=str(number), until=until, look_up=[table], snapshot="version 1")
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 2), (later, 3)])) == 3 * 40


def test_a_stream_and_tables(spark: SparkSession, folder: Path) -> None:
    spec = spec_of(folder)
    live = (
        spark.readStream.schema("time long, page long").option("maxFileAge", "100000d").parquet(str(folder / "events"))
    )
    limits = spark.read.parquet(str(folder / "limits"))
    own = events_of(spark, folder).where("page = 33").select("page")
    with pytest.raises(ConfigurationError, match="events meet other rows"):
        es.release_stream(live.join(limits, "page"), spec)
    for table in (own, spark.read.parquet(str(folder / "events/0.parquet")).select("page")):
        with pytest.raises(ConfigurationError, match="a file of look_up is one of theirs"):
            es.release_stream(live.join(table, "page", "left_anti"), spec, look_up=[table])
    with pytest.raises(ConfigurationError, match="look_up takes a list of data frames that stand still"):
        es.release_stream(live, spec, look_up=[live])
    with pytest.raises(ConfigurationError, match="would keep events in the clear"):
        es.release_stream(live.distinct(), spec)
    with es.release_stream(live.join(limits, "page"), spec, every="1 second", look_up=[limits]) as running:
        running.close(3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


def test_files_that_changed_after_spark_has_listed_them(spark: SparkSession, folder: Path) -> None:
    """It would read what was there then, of files that hold more by now."""
    spec, frame = spec_of(folder), events_of(spark, folder)
    pq.write_table(pa.concat_tables([TABLE] * 40), folder / "events/0.parquet")
    with pytest.raises(StateError, match="no longer those that Spark saw"):
        es.release_batch(frame, spec, batch="one", until=3)
    (folder / "events/0.parquet").unlink()
    with pytest.raises(StateError, match="cannot look at"):
        es.release_batch(frame, spec, batch="one", until=3)
    pq.write_table(TABLE, folder / "events/0.parquet")
    es.release_batch(events_of(spark, folder), spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


def test_a_file_that_cannot_be_read(spark: SparkSession, folder: Path) -> None:
    """The batch is taken back, and comes with the file that is mended."""
    spec, file = spec_of(folder), folder / "events/1.parquet"
    schema = "time long, page long"
    file.write_bytes((folder / "events/0.parquet").read_bytes()[:-40])
    with pytest.raises(SparkFailed):
        es.release_batch(spark.read.schema(schema).parquet(str(folder / "events")), spec, batch="one", until=3)
    file.unlink()
    with pytest.raises(StateError, match="evertally spark take-back SPEC"):
        es.release_batch(events_of(spark, folder), spec, batch="one", until=3)
    with pytest.raises(StateError, match=r"was counted already|evertally spark take-back SPEC"):
        es.release_batch(events_of(spark, folder), spec, batch="two", until=3)
    assert es.take_back(spec) == "one"
    es.release_batch(events_of(spark, folder), spec, batch="two", until=3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


def live_of(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema("time long, page long").option("maxFileAge", "100000d")
    return reader.parquet(str(folder / "events"))


def test_a_link_that_a_stream_would_count(spark: SparkSession, folder: Path) -> None:
    spec, link = spec_of(folder), folder / "events/1.parquet"
    with es.release_stream(live_of(spark, folder), spec, every="1 second") as running:
        running.close(1)
        link.symlink_to(folder / "events/0.parquet")
        with pytest.raises(StateError, match="comes once more"):
            running.close(3)
        assert "comes once more" in str(running.failed)
    link.unlink()
    pq.write_table(TABLE.slice(0, 0), link)
    with es.release_stream(live_of(spark, folder), spec, every="1 second") as running:
        running.close(3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


def test_a_log_of_files_that_is_damaged(spark: SparkSession, folder: Path) -> None:
    """Spark takes the files that it has forgotten for new ones."""
    spec = spec_of(folder)
    with es.release_stream(live_of(spark, folder), spec, every="1 second") as running:
        running.close(1)
    sources = folder / "stream/visits.state.root/checkpoint/sources/0"
    (sources / "0").write_text("v1\n")
    (sources / ".0.crc").unlink()
    with (
        es.release_stream(live_of(spark, folder), spec, every="1 second") as running,
        pytest.raises(StateError, match=r"comes once more|comes from another input"),
    ):
        running.close(3)


def test_old_files_of_a_stream(spark: SparkSession, folder: Path) -> None:
    spec = spec_of(folder)
    for option in ({}, {"maxFileAge": "8d"}, {"MAXFILEAGE": "1h"}):
        events = spark.readStream.schema("time long, page long").options(**option).parquet(str(folder / "events"))
        with pytest.raises(ConfigurationError, match="older than a week"):
            es.release_stream(events, spec)
    old = folder / "events/1.parquet"
    pq.write_table(pa.table({"time": [1], "page": [7]}), old)
    os.utime(old, (0, 0))
    with es.release_stream(live_of(spark, folder), spec, every="1 second") as running:
        running.close(3)
    both = pa.concat_tables([TABLE, pq.read_table(old)])
    assert assert_same(spec, in_one_process(spec, folder / "one", [(both, 3)])) == 3 * 40


def test_headers_in_another_order(spark: SparkSession, folder: Path) -> None:
    (folder / "cells").mkdir()
    (folder / "cells/0.csv").write_text("time,page\n0,1\n1,2\n")
    reader = spark.read.schema("time long, page long").option("header", True).option("maxColumns", 10**6)
    with pytest.raises(ConfigurationError, match="enforceSchema"):
        es.release_batch(reader.csv(str(folder / "cells")), spec_of(folder), batch="one", until=3)
    (folder / "cells/1.csv").write_text("page,time\n3,2\n33,2\n")
    checked = reader.option("enforceSchema", False)
    spec = spec_of(folder)
    with pytest.raises(ConfigurationError, match=r"cells/1\.csv has another header"):
        es.release_batch(checked.csv(str(folder / "cells")), spec, batch="one", until=3)
    (folder / "cells/1.csv").write_text("time,page\n2,3\n2,33\n")
    es.release_batch(checked.csv(str(folder / "cells")), spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


# -- tables of a live stream


def test_tables_that_hold_events_of_a_stream(spark: SparkSession, folder: Path) -> None:
    """Events that were counted before, in another folder, or behind a link; and a table that becomes the events."""
    spec = spec_of(folder)
    with es.release_stream(live_of(spark, folder), spec, every="1 second") as running:
        running.close(1)
    (folder / "later").mkdir()
    pq.write_table(pa.table({"time": [1], "page": [3]}), folder / "later/0.parquet")
    reader = spark.readStream.schema("time long, page long").option("maxFileAge", "100000d")
    later, seen = reader.parquet(str(folder / "later")), events_of(spark, folder).select("page")
    with (
        es.release_stream(later.join(seen, "page", "left_anti"), spec, every="1 second", look_up=[seen]) as running,
        pytest.raises(StateError, match="holds events, and events are looked up in it"),
    ):
        running.close(2)


def test_events_behind_a_link_that_are_their_own_table(spark: SparkSession, folder: Path) -> None:
    (folder / "live").mkdir()
    (folder / "live/0.parquet").symlink_to(folder / "events/0.parquet")
    reader = spark.readStream.schema("time long, page long").option("maxFileAge", "100000d")
    seen = events_of(spark, folder).where("page = 33").select("page")
    frame = reader.parquet(str(folder / "live")).join(seen, "page", "left_anti")
    with (
        es.release_stream(frame, spec_of(folder), every="1 second", look_up=[seen]) as running,
        pytest.raises(StateError, match="holds events, and events are looked up in it"),
    ):
        running.close(2)


def test_a_table_that_becomes_the_events(spark: SparkSession, folder: Path) -> None:
    spec, pages = spec_of(folder), spark.read.parquet(str(folder / "limits")).select("page")
    with es.release_stream(
        live_of(spark, folder).join(pages, "page"), spec, every="1 second", look_up=[pages]
    ) as running:
        running.close(1)
    reader = spark.readStream.schema("most long, page long").option("maxFileAge", "100000d")
    frame = reader.parquet(str(folder / "limits")).selectExpr("most - 4 time", "page")
    with (
        es.release_stream(frame, spec, every="1 second") as running,
        pytest.raises(StateError, match=r"holds events, and events are looked up in it|comes from another input"),
    ):
        running.close(2)


def test_a_table_that_changes_under_a_stream(spark: SparkSession, folder: Path) -> None:
    """It is read as it was listed, up to its old length; the stream stops, and goes on with the new one."""
    spec = spec_of(folder)

    def joined() -> tuple[DataFrame, DataFrame]:
        pages = spark.read.parquet(str(folder / "limits")).select("page")
        return live_of(spark, folder).join(pages, "page"), pages

    frame, pages = joined()
    with es.release_stream(frame, spec, every="1 second", look_up=[pages]) as running:
        running.close(1)
        pq.write_table(pa.table({"page": [1, 2, 3, 4], "most": [5, 6, 7, 8]}), folder / "limits/0.parquet")
        pq.write_table(pa.table({"time": [1, 2], "page": [4, 39]}), folder / "events/1.parquet")
        with pytest.raises(StateError, match="no longer those that Spark saw"):
            running.close(3)
    frame, pages = joined()
    with es.release_stream(frame, spec, every="1 second", look_up=[pages]) as running:
        running.close(3)
    later = pa.table({"time": [1], "page": [4]})
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 1), (later, 3)])) == 3 * 40


def test_a_newer_table_beside_a_batch_that_is_over(spark: SparkSession, folder: Path) -> None:
    """Its events are counted: nothing is lost, and the record comes back."""
    spec = spec_of(folder)

    def release() -> object:
        pages = spark.read.parquet(str(folder / "limits")).select("page")
        frame = events_of(spark, folder).join(pages, "page")
        return es.release_batch(frame, spec, batch="one", until=3, look_up=[pages])

    first = release()
    pq.write_table(pa.table({"page": [1], "most": [5]}), folder / "limits/0.parquet")
    assert release() == first


def test_a_stream_of_folders_by_a_pattern(spark: SparkSession, folder: Path) -> None:
    """A table below the fixed part of the pattern is no event."""
    spec, pages = spec_of(folder), spark.read.parquet(str(folder / "limits")).select("page")
    reader = spark.readStream.schema("time long, page long").option("maxFileAge", "100000d")
    frame = reader.parquet(str(folder / "event*")).join(pages, "page")
    with es.release_stream(frame, spec, every="1 second", look_up=[pages]) as running:
        running.close(3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


def test_names_with_a_semicolon(spark: SparkSession, folder: Path) -> None:
    (folder / "odd").mkdir()
    name = folder / "odd" / "path=x; isDirectory=false; length=1; modification_time=5;.parquet"
    pq.write_table(TABLE, name)
    frame = spark.read.parquet(str(folder / "odd"))
    pq.write_table(pa.concat_tables([TABLE] * 2), name)
    with pytest.raises(StateError, match="no longer those that Spark saw"):
        es.release_batch(frame, spec_of(folder), batch="one", until=3)
    pq.write_table(TABLE, name)
    spec = spec_of(folder)
    es.release_batch(spark.read.parquet(str(folder / "odd")), spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


# -- tables of a catalog


@pytest.fixture
def table(spark: SparkSession, folder: Path) -> Iterator[str]:
    """A table over the very files of the events."""
    spark.sql(f"create table own using parquet location '{folder / 'events'}'")
    yield "own"
    spark.sql("drop table own")


def test_tables_of_a_stream_are_files(spark: SparkSession, folder: Path, table: str) -> None:
    rows = spark.createDataFrame([(1,)], "page long")
    for beside in (spark.table(table).select("page"), rows):
        with pytest.raises(ConfigurationError, match=r"must be files, read by their place|looked up in themselves"):
            es.release_stream(live_of(spark, folder).join(beside, "page"), spec_of(folder), look_up=[beside])


def test_a_table_over_files_that_were_counted(spark: SparkSession, folder: Path, table: str) -> None:
    """As what a later batch looks up, and as its events."""
    spec = spec_of(folder)
    es.release_batch(events_of(spark, folder), spec, batch="one", until=2)
    (folder / "later").mkdir()
    pq.write_table(pa.table({"time": [2], "page": [3]}), folder / "later/0.parquet")
    later, own = spark.read.parquet(str(folder / "later")), spark.table(table).select("page")
    frame = later.join(own, "page", "left_semi")
    with pytest.raises(StateError, match="events are looked up in it"):
        es.release_batch(frame, spec, batch="two", until=3, look_up=[own], snapshot="1")
    with pytest.raises(StateError, match="was counted already"):
        es.release_batch(spark.table(table), spec, batch="two", until=3, snapshot="1")


def test_files_of_a_table_that_was_counted(spark: SparkSession, folder: Path, table: str) -> None:
    spec = spec_of(folder)
    es.release_batch(spark.table(table), spec, batch="one", until=2, snapshot="1")
    with pytest.raises(StateError, match="was counted already"):
        es.release_batch(events_of(spark, folder), spec, batch="two", until=3)


def test_one_stream_read_twice(spark: SparkSession, folder: Path) -> None:
    live = live_of(spark, folder)
    for frame in (live.where("page < 3").union(live.where("page >= 3")), live.union(live_of(spark, folder))):
        with pytest.raises(ConfigurationError, match="one stream is read twice"):
            es.release_stream(frame, spec_of(folder))


def test_headers_that_are_written_otherwise(spark: SparkSession, folder: Path) -> None:
    (folder / "cells").mkdir()
    (folder / "cells/0.csv").write_text("time,page\n0,1\n1,2\n")
    (folder / "cells/1.csv").write_text('\n"Time","page"\n2,3\n2,33\n')
    reader = spark.read.options(header=True, maxColumns=10**6, enforceSchema=False).schema("time long, page long")
    spec = spec_of(folder)
    es.release_batch(reader.csv(str(folder / "cells")), spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40
    gone = reader.csv(str(folder / "cells"))
    (folder / "cells/1.csv").unlink()
    with pytest.raises(StateError, match="cannot look at"):
        es.release_batch(gone, spec, batch="two", until=3)
