"""Releases as a data frame of Spark: for readers; it needs no key."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from evertally.runtime import load_spec
from evertally.runtime.releases import entries
from evertally.runtime.spec import StreamSpec
from evertally.spark.failures import withheld
from evertally.spark.public import batches, shown
from evertally.spark.root import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHAPE = (
    "tick int, time string, query string, category string, value double, label string, stddev double, lower double, "
    "upper double"
)


def releases(spark: SparkSession, spec: str | os.PathLike[str]) -> DataFrame:
    """All that was shown: tick, time, query, category, value, label, stddev, lower, upper. Wide rows are read where
    they lie, by Spark. Numbers are given as double, as in CSV; where labels are chosen, they stand in `label`."""
    settled = load_spec(spec)
    with withheld("the releases"):
        found = spark.createDataFrame(_small(settled), SHAPE)
        for about in batches(settled):
            for query in about["errors"]:
                found = found.unionByName(_wide(spark, settled, about, query))
        return found


def _small(spec: StreamSpec) -> list[tuple[Any, ...]]:
    """What fits into memory: queries that are no wide rows."""
    known = batches(spec)
    wide = {name for about in known for name in about["errors"]}
    times = {tick: time for about in known for tick, time in zip(_ticks(about), about["times"], strict=True)}
    return [
        (tick, str(times[tick]), query.name, category, *_either(value), *map(_number, (of["stddev"], low, high)))
        for query in spec.queries
        if query.name not in wide
        for tick, of in shown(spec, query.name)
        for category, value, low, high in entries(of)
    ]


def _wide(spark: SparkSession, spec: StreamSpec, about: Record, query: str) -> DataFrame:
    errors, times = about["errors"][query], dict(zip(_ticks(about), about["times"], strict=True))
    head = [
        (tick, str(times[tick]), _number(stddev), float(radius))
        for tick, stddev, radius in zip(errors["tick"], errors["stddev"], errors["radius"], strict=True)
    ]
    of_ticks = spark.createDataFrame(head, "tick int, time string, stddev double, radius double")
    files = [f"{spec.engine.public}/{name}" for name in about["files"][query]]
    shape = "tick int, category string, value long"
    rows = spark.read.parquet(*map(_as_written, files)) if files else spark.createDataFrame([], shape)
    return rows.join(of_ticks.hint("broadcast"), "tick").selectExpr(
        "tick",
        "time",
        f"'{query}' query",
        "cast(category as string) category",
        "cast(value as double) value",
        "cast(null as string) label",
        "stddev",
        "value - radius lower",
        "value + radius upper",
    )


def _as_written(path: str) -> str:
    """A path for Spark, which takes brackets for a pattern, and would find other files.

    >>> _as_written("/readers/visits [1]")
    '/readers/visits \\\\[1\\\\]'
    """
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


def _ticks(about: Record) -> range:
    return range(about["opened"], about["through"] + 1)


def _either(value: Any) -> tuple[float | None, str | None]:
    return (None, value) if isinstance(value, str) else (_number(value), None)


def _number(cell: Any) -> float | None:
    return None if cell is None else float(cell)
