"""What a data frame is made of, in real plans of Spark: whose rows follow from others, where events come from, and by
what an input is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_process import assert_same, in_one_process

import evertally.spark as es
from evertally.errors import ConfigurationError, StateError
from evertally.spark.inputs import input_of
from evertally.spark.plans import check_plan
from streams import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = pa.table({"time": [0, 1, 2, 2], "page": [1, 2, 3, 33]})
LIMITS = pa.table({"page": [1, 2, 3, 33], "most": [5, 6, 7, 8]})


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Events and a table of something else, as files and as views."""
    for name, table in (("events", TABLE), ("limits", LIMITS)):
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "0.parquet")
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    yield tmp_path
    for name in ("events", "limits"):
        spark.catalog.dropTempView(name)


def events_of(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(str(folder / "events"))


def spec_of(folder: Path) -> Path:
    return write(folder / "stream", {"name": "pages", "kind": "vector_counter", "column": "page", "columns": 40})


def _below_its_largest(group: pd.DataFrame) -> pd.DataFrame:
    return group[group["page"] < group["page"].max()]


def _by_group(events: DataFrame) -> DataFrame:
    return events.groupBy("time").applyInPandas(_below_its_largest, "time long, page long")


def _by_batch(events: DataFrame) -> DataFrame:
    return events.mapInPandas(lambda groups: map(_below_its_largest, groups), "time long, page long")


_FROM_OTHERS: dict[str, str | Callable[[DataFrame], DataFrame]] = {
    "a subquery of one number": "select * from events where (select max(page) from events) < 39",
    "exists": "select * from events where exists (select 1 from events having max(page) < 39)",
    "lateral": "select events.time, x.page from events, lateral (select max(e.page) page from events e) x",
    "some of them": "select * from events where page in (select page from events order by page limit 2)",
    "in a column": "select time, (select max(page) from events) page from events",
    "place in a file": lambda events: events.select("time", "page", "_metadata.row_index").where("row_index < 3"),
    "under a name": "with e as (select max(page) m from events) select time, page from events, e where page < m",
    "groups": _by_group,
    "batches of rows": _by_batch,
    "observed": lambda events: events.observe("all", _count()),
}


def _count() -> Any:
    from pyspark.sql.functions import count, lit

    return count(lit(1))


@pytest.mark.parametrize("way", _FROM_OTHERS)
def test_rows_that_follow_from_others_wherever_that_stands(spark: SparkSession, folder: Path, way: str) -> None:
    made = _FROM_OTHERS[way]
    frame = spark.sql(made) if isinstance(made, str) else made(events_of(spark, folder))
    with pytest.raises(ConfigurationError, match="follows from other rows"):
        es.release_batch(frame, spec_of(folder), batch="one", until=3, snapshot="1")


_THEMSELVES = {
    "join": "select a.* from events a join events b on a.page = b.page + 1",
    "by a name": "with e as (select * from events) select a.* from e a join e b on a.page = b.page + 1",
    "anti": "select * from events a left anti join (select page + 1 page from events) b on a.page = b.page",
    "exists": "select * from events a where exists (select 1 from events b where b.page = a.page + 1)",
    "in": "select * from events where page in (select page + 1 from events)",
    "except": "select * from events except all select time, page + 1 from events",
    "one of two": "select * from events union all select a.* from events a join events b on a.page = b.page",
}


@pytest.mark.parametrize("way", _THEMSELVES)
def test_events_that_are_looked_up_in_themselves(spark: SparkSession, folder: Path, way: str) -> None:
    with pytest.raises(ConfigurationError, match="looked up in themselves"):
        es.release_batch(spark.sql(_THEMSELVES[way]), spec_of(folder), batch="one", until=3)


def test_events_that_are_looked_up_in_their_files_read_otherwise(spark: SparkSession, folder: Path) -> None:
    file = spark.read.parquet(str(folder / "events/0.parquet")).selectExpr("page + 1 page")
    with pytest.raises(ConfigurationError, match="looked up in themselves"):
        es.release_batch(events_of(spark, folder).join(file, "page"), spec_of(folder), batch="one", until=3)


def test_a_time_from_both_sides(spark: SparkSession, folder: Path) -> None:
    query = "select coalesce(a.time, b.most) time, b.page from events a full join limits b on a.page = b.page"
    with pytest.raises(ConfigurationError, match="both sides of a join"):
        es.release_batch(spark.sql(query), spec_of(folder), batch="one", until=3)


_ALONE = {
    "a table of something else, twice": """select a.time, a.page from events a join limits b on a.page = b.page
        join limits c on a.page + 0 = c.page""",
    "a subquery": "select * from events where page in (select page from limits)",
    "exists": "select * from events a where exists (select 1 from limits b where b.page = a.page)",
    "names": """with e as (select * from events), l as (select * from limits)
        select e.* from e join l on e.page = l.page""",
    "sorted, in parts": "select /*+ repartition(3) */ * from (select distinct * from events) order by page",
    "two halves": "select * from events where page < 3 union all select * from events where page >= 3",
}


@pytest.mark.parametrize("way", _ALONE)
def test_what_each_event_holds_and_a_table(spark: SparkSession, folder: Path, way: str) -> None:
    spec = spec_of(folder)
    es.release_batch(spark.sql(_ALONE[way]), spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


def test_an_event_more_moves_what_it_may(spark: SparkSession, folder: Path) -> None:
    """The plans that are accepted, with one event more: the rows of the others are the same."""
    before = {way: sorted(map(tuple, spark.sql(query).collect())) for way, query in _ALONE.items()}
    pq.write_table(pa.table({"time": [1], "page": [33]}), folder / "events/1.parquet")
    spark.read.parquet(str(folder / "events")).createOrReplaceTempView("events")
    for way, query in _ALONE.items():
        after = sorted(map(tuple, spark.sql(query).collect()))
        after.remove((1, 33))
        assert after == before[way], way


@pytest.mark.parametrize("clock", ["current_time() > time'00:00:01'", "now() > '2000-01-01'", "rand() < 0.5"])
def test_clocks_and_coins(spark: SparkSession, folder: Path, clock: str) -> None:
    with pytest.raises(ConfigurationError, match="not the same when it is computed again"):
        check_plan(events_of(spark, folder).filter(clock), "time")


# -- what an input is told by


def test_an_input_is_told_by_its_files_and_by_what_it_is_looked_up_in(spark: SparkSession, folder: Path) -> None:
    given = input_of(spark.sql(_ALONE["a subquery"]), "time", None)
    assert {part: [name for name, *_ in files] for part, files in given.items()} == {
        "files": [str(folder / "events/0.parquet")],
        "beside": [str(folder / "limits/0.parquet")],
    }
    assert input_of(events_of(spark, folder), "time", "one")["files"] == given["files"], "also beside a snapshot"


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
        es.release_batch(frame, spec, batch=str(number), until=until)
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
