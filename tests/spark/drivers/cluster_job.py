"""Counts on a cluster, and fails on it; then a second application whose executors log as they like.

usage: cluster_job.py SPEC MASTER OUTPUT
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from planted import COUNT, LABEL
from pyspark.sql import SparkSession

from evertally.spark import OpenApplication, SparkFailed, application, check, conf
from evertally.spark.facts import collected
from evertally.spark.failures import guarded, withheld
from evertally.spark.protections import NAMES, QUOTING

_output = Path(sys.argv[3])


def counted(table: pa.Table) -> pa.Table:
    return pa.table({"n": pa.array([len(table)], pa.int64())})


def broken(table: pa.Table) -> pa.Table:
    raise ValueError(table["label"][0].as_py())


shared = {"spark.shuffle.compress": "false", "spark.sql.shuffle.partitions": "2", "spark.executor.memory": "512m"}
spark = application(sys.argv[1], sys.argv[2], **shared)
events = spark.range(COUNT).selectExpr(f"concat('{LABEL}', cast(id * 0 as string)) label").repartition(2)


def count() -> int:
    return events.groupBy("label").applyInArrow(guarded(counted), "n long").collect()[0].n


found = count()
for failing in (
    lambda: events.groupBy("label").applyInArrow(guarded(broken), "n long").collect(),
    lambda: events.selectExpr("raise_error(label)").collect(),
):
    try:
        with withheld("a job"):
            failing()
        raise AssertionError("it must not go through")
    except SparkFailed as error:
        print(error)
seen = collected(spark, [], ("", *QUOTING)).executor_loggers
assert seen == {":WARN", *(f"{name}:OFF" for name in QUOTING)}, seen
assert check(spark).holds == NAMES
assert count() == found  # Python workers of failed tasks are gone; now there is one
print("ready", flush=True)
input()
spark.stop()

# The same driver, its log as quiet as before; but nobody told the executors.
theirs = ("spark.executor.extraJavaOptions", "spark.executor.syncLogLevel.enabled")
builder = SparkSession.builder.master(sys.argv[2])
for name, value in (conf() | shared | {"spark.cores.max": "1"}).items():  # one executor is enough to be too loud
    builder = builder.config(name, "" if name == theirs[0] else "false" if name == theirs[1] else value)
spark = builder.getOrCreate()
try:
    check(spark)
except OpenApplication as error:
    ways, text = error.open, str(error)
assert "executors log below WARN" in text
assert "Executor of executors" in text
spark.stop()
_output.write_text(f"{found} {','.join(ways)}")
