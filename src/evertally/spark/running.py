"""A job as Spark runs it: one action over the events, by part or by user and part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evertally.spark.job import Job
from evertally.spark.reading import BEAT
from evertally.spark.tasks import DONE, GIVEN, bucket_task, door_task, part_task, user_door_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run(events: DataFrame, job: Job) -> list[dict[str, Any]]:
    """What the parts report. One action: two would read the input twice, and may see two realisations of it."""
    spark, rows = events.sparkSession, wanted(events, job.stand.spec.columns())
    if not job.stand.by_user:
        given = rows.mapInArrow(door_task(job), GIVEN).unionByName(_beats(spark, len(job.parts)))
    else:
        given = rows.mapInArrow(user_door_task(job), GIVEN).unionByName(_beats(spark, job.stand.buckets))
        given = given.groupBy("part").applyInArrow(bucket_task(job), GIVEN)
    return [row.asDict() for row in given.groupBy("part").applyInArrow(part_task(job), DONE).collect()]


def wanted(events: DataFrame, names: list[str]) -> DataFrame:
    """The columns that are read, and no others."""
    chosen = [*names, *([BEAT] if BEAT in events.columns else [])]
    return events.select(*(f"`{name}`" for name in chosen)) if chosen else events.selectExpr("1 as evertally_row")


def _beats(spark: SparkSession, count: int) -> DataFrame:
    """A row for each group, so that idle ones move on: which of them are idle would show otherwise."""
    nothing = (f"cast(null as binary) {name}" for name in ("payload", "seen", "source"))
    return spark.range(count).selectExpr("cast(id as int) part", *nothing)
