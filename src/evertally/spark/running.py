"""A job as Spark runs it: one action over the events, by part or by user and part.

Where the data frame is nothing but columns of Parquet files that tasks can open, Spark hands out numbers of pieces, and
tasks read them (`scanning.py`): rows that go through Java were most of what a job cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evertally.spark.job import Job
from evertally.spark.scanning import scan_of
from evertally.spark.tasks import DONE, GIVEN, bucket_task, door_task, part_task, scan_task, user_door_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run(events: DataFrame, job: Job) -> list[dict[str, Any]]:
    """What the parts report of a data frame of events."""
    names = job.stand.spec.columns()
    rows = numbered(events, names)
    scan = scan_of(rows, names)
    if scan is None:
        return run_rows(rows, names, job)
    count = len(scan.pieces)
    return _run_given(events.sparkSession.range(0, count, 1, count).mapInArrow(scan_task(job, scan), GIVEN), job)


def run_rows(rows: DataFrame, names: list[str], job: Job) -> list[dict[str, Any]]:
    """The same of rows whose columns are these, whatever Spark calls them. One action: two would read the input twice,
    and may see two realisations of it."""
    spark = rows.sparkSession
    if not job.stand.by_user:
        given = rows.mapInArrow(door_task(job, names), GIVEN).unionByName(_beats(spark, len(job.parts)))
    else:
        given = rows.mapInArrow(user_door_task(job, names), GIVEN).unionByName(_beats(spark, job.stand.buckets))
    return _run_given(given, job)


def _run_given(given: DataFrame, job: Job) -> list[dict[str, Any]]:
    if job.stand.by_user:
        given = given.groupBy("part").applyInArrow(bucket_task(job), GIVEN)
    return [row.asDict() for row in given.groupBy("part").applyInArrow(part_task(job), DONE).collect()]


def numbered(events: DataFrame, names: list[str]) -> DataFrame:
    """The columns that are read, and no others, under numbers: Spark takes a dot for a field, a backtick for a quote,
    and names that differ in case for one."""
    places, known = events.columns, [f"c{place}" for place in range(len(events.columns))]
    return events.toDF(*known).select(*(known[places.index(name)] for name in names))


def _beats(spark: SparkSession, count: int) -> DataFrame:
    """A row for each group, so that idle ones move on: which of them are idle would show otherwise."""
    nothing = (f"cast(null as binary) {name}" for name in ("payload", "seen", "source"))
    return spark.range(count).selectExpr("cast(id as int) part", *nothing)
