"""What a data frame is made of, in real plans of Spark: whose rows follow from others, and what it must not be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from four_events import TABLE, events_of, folder, spec_of
from one_process import assert_same, in_one_process

import evertally.spark as es
from evertally.errors import ConfigurationError
from evertally.spark.plans import Plan, check_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["folder"]


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


def tables(spark: SparkSession, query: object) -> list[DataFrame]:
    """What the queries here look events up in."""
    return [spark.table("limits")] if "limits" in str(query) else []


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
    query, spec = spark.sql(_THEMSELVES[way]), spec_of(folder)
    with pytest.raises(ConfigurationError, match="events meet other rows"):
        es.release_batch(query, spec, batch="one", until=3)
    with pytest.raises(ConfigurationError, match="cannot be looked up in themselves"):
        es.release_batch(query, spec, batch="one", until=3, look_up=[spark.table("events")])


def test_events_that_are_looked_up_in_their_files_read_otherwise(spark: SparkSession, folder: Path) -> None:
    """Links lead to the same file."""
    (folder / "linked").symlink_to(folder / "events")
    for name in ("events/0.parquet", "linked"):
        file = spark.read.parquet(str(folder / name)).selectExpr("page + 1 page")
        with pytest.raises(ConfigurationError, match="a file of look_up is one of theirs"):
            es.release_batch(
                events_of(spark, folder).join(file, "page"), spec_of(folder), batch="one", until=3, look_up=[file]
            )


_KEEPS_TABLES = {
    "full": "select coalesce(a.time, b.most) time, b.page from events a full join limits b on a.page = b.page",
    "left": "select coalesce(e.time, 2L) time, l.page from limits l left join events e on e.page = l.page",
    "right": "select coalesce(e.time, 2L) time, l.page from events e right join limits l on e.page = l.page",
    "semi": "select most time, page from limits l left semi join events e on e.page = l.page",
    "anti": "select most time, page from limits l left anti join events e on e.page = l.page",
    "except": "select most, page from limits except select time, page from events",
}


@pytest.mark.parametrize("way", _KEEPS_TABLES)
def test_rows_of_a_table_that_an_event_takes_away(spark: SparkSession, folder: Path, way: str) -> None:
    query = spark.sql(_KEEPS_TABLES[way]).toDF("time", "page")
    with pytest.raises(ConfigurationError, match="keeps rows of a table"):
        es.release_batch(query, spec_of(folder), batch="one", until=3, look_up=[spark.table("limits")])


_IN_ALL = {
    "a subquery": "select 1L time, page from limits where exists (select 1 from events where page = 33)",
    "a time of nothing": "select 1L time, a.page from events a join events b on a.page < b.page",
    "a time of a table": """select l.most - 5 time, a.page from events a join events b on a.page < b.page
        join limits l on l.page = a.page""",
    "a time of a subquery": """select (select max(most) from limits) time, page from events a
        where not exists (select 1 from events b where b.page > 35)""",
    "a union with a table": "select * from events union all select * from limits",
}


@pytest.mark.parametrize("way", _IN_ALL)
def test_the_time_does_not_say_what_events_are(spark: SparkSession, folder: Path, way: str) -> None:
    with pytest.raises(ConfigurationError, match=r"events meet other rows|counted as events"):
        es.release_batch(
            spark.sql(_IN_ALL[way]), spec_of(folder), batch="one", until=3, look_up=[spark.table("limits")]
        )


_ALONE = {
    "a table of something else, twice": """select a.time, a.page from events a join limits b on a.page = b.page
        join limits c on a.page + 0 = c.page""",
    "a subquery": "select * from events where page in (select page from limits)",
    "exists": "select * from events a where exists (select 1 from limits b where b.page = a.page)",
    "names": """with e as (select * from events), l as (select * from limits)
        select e.* from e join l on e.page = l.page""",
    "sorted, in parts": "select /*+ repartition(3) */ * from (select distinct * from events) order by page",
    "a table that is added up": """with best as (select page, max(most) most from limits group by page)
        select e.* from events e left join best on e.page = best.page where e.page <= (select max(page) from limits)""",
    "all columns": "select distinct time, page from events",
    "two halves": "select * from events where page < 3 union all select * from events where page >= 3",
}


@pytest.mark.parametrize("way", _ALONE)
def test_what_each_event_holds_and_a_table(spark: SparkSession, folder: Path, way: str) -> None:
    spec = spec_of(folder)
    query = _ALONE[way]
    es.release_batch(spark.sql(query), spec, batch="one", until=3, look_up=tables(spark, query))
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
        check_plan(Plan(events_of(spark, folder).filter(clock)))


# -- what no plan shows, or shows otherwise


def _checkpointed(events: DataFrame) -> DataFrame:
    most = events.groupBy("time").agg({"page": "max"}).toDF("time", "most")
    return most.join(events, "time").where("most < 35").select("time", "page").localCheckpoint()


def _by_rdd(events: DataFrame) -> DataFrame:
    rows = events.rdd.sortBy(lambda row: row["page"]).zipWithIndex().filter(lambda pair: pair[1] < 2)
    return rows.map(lambda pair: (pair[0]["time"], pair[0]["page"])).toDF(["time", "page"])


@pytest.mark.parametrize("made", [_checkpointed, _by_rdd])
def test_rows_that_do_not_say_how_they_were_made(
    spark: SparkSession, folder: Path, made: Callable[[DataFrame], DataFrame]
) -> None:
    with pytest.raises(ConfigurationError, match="do not say how they were made"):
        es.release_batch(made(events_of(spark, folder)), spec_of(folder), batch="one", until=3, snapshot="1")


def test_rows_that_python_hands_over(spark: SparkSession, folder: Path) -> None:
    spec = spec_of(folder)
    rows = spark.createDataFrame([tuple(row.values()) for row in TABLE.to_pylist()], "time long, page long")
    es.release_batch(rows, spec, batch="one", until=3, snapshot="four rows")
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


def test_rows_that_spark_has_kept(spark: SparkSession, folder: Path) -> None:
    """A frame that is read afresh takes the kept rows as well, and not those that its files hold by now."""
    spec, kept = spec_of(folder), events_of(spark, folder).cache()
    kept.count()
    try:
        for frame in (kept, events_of(spark, folder), events_of(spark, folder).where("page < 20")):
            with pytest.raises(ConfigurationError, match="are cached"):
                es.release_batch(frame, spec, batch="one", until=3)
    finally:
        kept.unpersist(blocking=True)
    es.release_batch(events_of(spark, folder), spec, batch="one", until=3)


def _wide(spark: SparkSession, folder: Path) -> DataFrame:
    (folder / "wide").mkdir()
    table = TABLE
    for number in range(60):  # texts of plans end after 25 columns
        table = table.append_column(f"other{number:02d}", TABLE["page"])
    pq.write_table(table, folder / "wide/0.parquet")
    return spark.read.parquet(str(folder / "wide"))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["_metadata.row_index % 2 chosen"], "follows from other rows"),
        (["second(current_timestamp()) % 2 chosen"], r"computed again \(current_timestamp\)"),
        (["time", "second(localtimestamp()) chosen"], r"computed again \(localtimestamp\)"),
        (["unix_timestamp() chosen"], r"computed again \(current_timestamp\)"),
        (["base64(aes_encrypt(cast(page as string), '0123456789abcdef')) chosen"], r"computed again \(aes_encrypt\)"),
    ],
)
def test_plans_whose_texts_are_cut(spark: SparkSession, folder: Path, columns: list[str], words: str) -> None:
    frame = _wide(spark, folder).selectExpr("*", *columns[-1:]).where("chosen is not null").select("time", "page")
    with pytest.raises(ConfigurationError, match=words):
        es.release_batch(frame, spec_of(folder), batch="one", until=3)


def test_words_that_are_no_functions(spark: SparkSession, folder: Path) -> None:
    (folder / "odd").mkdir()
    table = TABLE.append_column("now()", pa.array(["rand()"] * 4)).append_column("_metadata", pa.array([1] * 4))
    pq.write_table(table, folder / "odd/0.parquet")
    spec = spec_of(folder)
    frame = spark.read.parquet(str(folder / "odd")).where("`now()` != 'uuid() shuffle(' and _metadata = 1")
    frame = frame.where(
        "unix_timestamp('2026-01-01 00:00:00') > 0 and from_utc_timestamp('2026-01-01', 'UTC') is not null"
    )
    es.release_batch(frame, spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


def test_a_variable_of_the_session(spark: SparkSession, folder: Path) -> None:
    spark.sql("declare or replace variable most bigint")
    spark.sql("set var most = (select max(page) from events)")
    try:
        frame = spark.sql("select * from events where most < 35")
        with pytest.raises(ConfigurationError, match="a variable of the session"):
            es.release_batch(frame, spec_of(folder), batch="one", until=3)
    finally:
        spark.sql("drop temporary variable most")


def test_functions_of_many_rows(spark: SparkSession, folder: Path) -> None:
    from pyspark.sql.functions import pandas_udf, udf

    @pandas_udf("long")  # type: ignore[call-overload,untyped-decorator]
    def most(pages: pd.Series) -> pd.Series:
        return pages * 0 + pages.max()

    events = events_of(spark, folder)
    with pytest.raises(ConfigurationError, match="a Python function of many rows"):
        es.release_batch(events.select("time", most("page").alias("page")), spec_of(folder), batch="one", until=3)
    spec = spec_of(folder)
    own = udf(lambda page: page, "long")
    es.release_batch(events.select("time", own("page").alias("page")), spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


@pytest.mark.parametrize(
    "step", ["select distinct {} from events", "select {} from events intersect select * from events"]
)
def test_texts_that_are_equal_and_differ(spark: SparkSession, folder: Path, step: str) -> None:
    """Which of them is kept follows from the order of rows."""
    frame = spark.sql(step.format("time, cast(page as string) collate utf8_lcase page"))
    with pytest.raises(ConfigurationError, match="follows from other rows"):
        es.release_batch(frame, spec_of(folder), batch="one", until=3)


def test_all_columns_and_some(spark: SparkSession, folder: Path) -> None:
    events, spec = events_of(spark, folder), spec_of(folder)
    with pytest.raises(ConfigurationError, match="Deduplicate"):
        es.release_batch(events.dropDuplicates(["time"]), spec, batch="one", until=3)
    es.release_batch(events.union(events).dropDuplicates(), spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, folder / "one", [(TABLE, 3)])) == 3 * 40


def test_names_that_use_each_other(spark: SparkSession, folder: Path) -> None:
    """Each of 40 names is a part of the next one twice: 2^40 ways down, 40 steps."""
    names = [f"a{n + 1} as (select a.* from a{n} a where exists (select 1 from limits))" for n in range(40)]
    query = spark.sql(f"with a0 as (select * from events), {', '.join(names)} select * from a40")
    assert len(Plan(query, [spark.table("limits")]).steps) < 1000


def test_keys_that_are_one_column_twice(spark: SparkSession, folder: Path) -> None:
    frame = events_of(spark, folder).dropDuplicates(["page", "PAGE"])
    with pytest.raises(ConfigurationError, match="Deduplicate"):
        es.release_batch(frame, spec_of(folder), batch="one", until=3)


def test_places_in_files_under_another_name(spark: SparkSession, folder: Path) -> None:
    (folder / "odd").mkdir()
    pq.write_table(TABLE.append_column("_metadata", TABLE["page"]), folder / "odd/0.parquet")
    frame = spark.read.parquet(str(folder / "odd"))
    frame = frame.where(frame.metadataColumn("_metadata").getField("row_index") % 2 == 0)
    with pytest.raises(ConfigurationError, match=r"^_metadata: "):
        es.release_batch(frame, spec_of(folder), batch="one", until=3)


@pytest.mark.parametrize(
    "now",
    [
        "cast('now' as timestamp)",
        "to_timestamp(' NOW ')",
        "to_date('today')",
        "cast(concat('n', 'ow') as timestamp)",
        r"cast('\u0001now' as timestamp)",
    ],
)
def test_names_of_now(spark: SparkSession, folder: Path, now: str) -> None:
    frame = events_of(spark, folder).where(f"second({now}) < 30")
    with pytest.raises(ConfigurationError, match="not the same when it is computed again"):
        es.release_batch(frame, spec_of(folder), batch="one", until=3)


@pytest.mark.parametrize(
    "sum_of", ["first(most)", "collect_list(most)[0]", "sum(cast(most as double))", "max_by(most, page)"]
)
def test_sums_of_tables_that_follow_from_an_order(spark: SparkSession, folder: Path, sum_of: str) -> None:
    best = spark.table("limits").groupBy("page").agg({"most": "max"}).selectExpr("page")
    spark.sql(f"select page, {sum_of} made from limits group by page").createOrReplaceTempView("best")
    frame = spark.sql("select e.* from events e join best b on e.page = b.page where made > 0")
    with pytest.raises(ConfigurationError, match="not the same when it is computed again"):
        es.release_batch(frame, spec_of(folder), batch="one", until=3, look_up=[spark.table("limits")])
    assert best.columns == ["page"]


def test_a_table_that_has_several_rows_for_an_event(spark: SparkSession, folder: Path) -> None:
    tables = [spark.table("limits")]
    one = "select time, (select most from limits l where l.page = e.page) page from events e"
    with pytest.raises(ConfigurationError, match=r"raise for some values \(scalarsubquery"):
        es.release_batch(spark.sql(one), spec_of(folder), batch="one", until=3, look_up=tables)
    most = "select time, page from events e where (select max(most) from limits l where l.page = e.page) > 0"
    es.release_batch(spark.sql(most), spec_of(folder), batch="one", until=3, look_up=tables)
    assert assert_same(spec_of(folder), in_one_process(spec_of(folder), folder / "one", [(TABLE, 3)])) == 3 * 40


@pytest.mark.parametrize("name", ["_tmp_metadata_row_index", "_TMP_METADATA_ROW_INDEX"])
def test_places_in_files_that_the_reader_fills_in(spark: SparkSession, folder: Path, name: str) -> None:
    frame = spark.read.schema(f"time long, page long, {name} long").parquet(str(folder / "events"))
    with pytest.raises(ConfigurationError, match="follows from other rows"):
        es.release_batch(frame.where(f"{name} % 2 = 0"), spec_of(folder), batch="one", until=3)


def test_groups_of_texts_that_differ(spark: SparkSession, folder: Path) -> None:
    names = (
        "select name collate utf8_lcase name, count(*) n from limits lateral view explode(array('a', 'A')) x as name"
    )
    spark.sql(f"{names} group by 1").createOrReplaceTempView("grouped")
    frame = spark.sql("select e.* from events e join grouped g on g.n = e.page")
    with pytest.raises(ConfigurationError, match="Aggregate"):
        es.release_batch(frame, spec_of(folder), batch="one", until=3, look_up=[spark.table("limits")])


def test_what_is_no_data_frame(spark: SparkSession, folder: Path) -> None:
    given: Any = "events"
    with pytest.raises(ConfigurationError, match="must be a data frame of Spark"):
        es.release_batch(given, spec_of(folder), batch="one", until=3)
    with pytest.raises(ConfigurationError, match="must be a data frame of Spark"):
        es.release_stream(given, spec_of(folder))
    spans = events_of(spark, folder).selectExpr("time", "make_interval(1) page")
    with pytest.raises(ConfigurationError, match="a type that no query reads"):
        es.release_batch(spans, spec_of(folder), batch="one", until=3)


@pytest.mark.parametrize("table", ["limits", None])
def test_what_is_no_list_of_data_frames(spark: SparkSession, folder: Path, table: str | None) -> None:
    given: Any = [table] if table else spark.table("limits")
    with pytest.raises(ConfigurationError, match="look_up takes a list"):
        es.release_batch(events_of(spark, folder), spec_of(folder), batch="one", until=3, look_up=given)
