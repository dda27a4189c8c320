"""One small job with a label, a count and a key that nothing may show; in an open application, in a hardened one, or in
one that lacks a single protection.

usage: hygiene_job.py open|hardened|PROTECTION FOLDER SPEC EVENTS KEY. All that Spark can be told to write goes below
FOLDER. Waits for a line on standard input before it stops the application: shuffle files are gone after that.
"""

from __future__ import annotations

import base64
import os
import sys
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from planted import LABEL

from evertally.noise import Key
from evertally.spark import application
from evertally.spark.failures import guarded, withheld
from evertally.spark.protections import LOG_FILE

_kind, _folder, _spec, _events, _key = sys.argv[1], *map(Path, sys.argv[2:])


def door(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    Key.load(os.environ["PLANTED_KEY_FILE"]).fingerprint()  # in this process: workers read the key
    for batch in batches:
        yield batch.select(["label"])


def counted(table: pa.Table) -> pa.Table:
    return pa.table({"n": pa.array([len(table)], pa.int64())})


def broken_door(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        raise ValueError(f"cannot read {batch['label'][0]}")
    yield from ()


def broken_group(table: pa.Table) -> pa.Table:
    raise KeyError(table["label"][0].as_py())


def logging(**levels: str) -> dict[str, str]:
    """A log with other levels than that of a hardened application."""
    text = Path(LOG_FILE).read_text()
    for before, after in levels.items():
        text = text.replace(f" = {before}", f" = {after}")
    log = _folder.parent / f"{_kind}.log4j2.properties"
    log.write_text(text)
    return {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log.as_uri()}"}


def without(protection: str) -> dict[str, str]:
    """What takes a single one away."""
    ways: dict[str, Callable[[], dict[str, str]]] = {
        "ui": lambda: {"spark.ui.enabled": "true", "spark.ui.port": "0"},
        "event log": lambda: EVENT_LOG,
        "shuffle": lambda: {"spark.io.encryption.enabled": "false"},
        "logs": lambda: logging(warn="info") | {"spark.log.level": "INFO"},
        "errors": lambda: logging(off="warn"),
    }
    return ways[protection]()


def open_application() -> Any:
    """As applications are, with what operators like to turn on. One hands the key over in the environment."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    sink = "spark.metrics.conf.*.sink.csv"
    properties = {
        **EVENT_LOG,
        **logging(warn="info", off="info"),
        "spark.ui.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.VISITS": base64.b64encode(_key.read_bytes()).decode(),
        f"{sink}.class": "org.apache.spark.metrics.sink.CsvSink",
        f"{sink}.directory": str(_folder / "metrics"),
        "spark.sql.streaming.metricsEnabled": "true",
    }
    builder = SparkSession.builder.master("local[1,1]").appName("open")
    for name, value in (properties | SHARED).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


EVENT_LOG = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": (_folder / "events").as_uri(),
    "spark.eventLog.compress": "false",
}
# Uncompressed, so that nothing but encryption hides a label; and kept, whenever Java collects its garbage.
SHARED = {
    "spark.cleaner.referenceTracking": "false",
    "spark.local.dir": str(_folder / "local"),
    "spark.shuffle.compress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.warehouse.dir": str(_folder / "warehouse"),
}


def job(events: Any) -> list[int]:
    cells = events.where(f"label = '{LABEL}'").mapInArrow(guarded(door, "door"), "label string")
    return [row.n for row in cells.groupBy("label").applyInArrow(guarded(counted, "slice 0"), "n long").collect()]


def broken_jobs(events: Any) -> None:
    """Each as the engine runs it, or as anybody would; what is raised goes to stderr with its traceback."""
    door_, group_ = (
        (broken_door, broken_group) if _kind == "open" else (guarded(broken_door, "door"), guarded(broken_group))
    )
    jobs = {
        "a door": lambda: events.mapInArrow(door_, "label string").collect(),
        "a group": lambda: events.groupBy("label").applyInArrow(group_, "n long").collect(),
        "a function of Spark's own": lambda: events.selectExpr("raise_error(label)").collect(),
    }
    for name, run in jobs.items():
        try:
            if _kind == "open":
                run()
            else:
                with withheld(name):
                    run()
        except Exception as error:
            print(name, "raised", type(error).__name__)  # SparkFailed, if nothing else is to be seen
            traceback.print_exc()


def stream(spark: Any) -> None:
    """A micro-batch; in the open application a second query keeps Spark's own state."""
    events = spark.readStream.schema("label string").option("maxFileAge", "100000d").parquet(str(_events))
    queries = [events.writeStream.foreachBatch(lambda batch, number: print(number, len(job(batch)), "groups"))]
    if _kind == "open":
        queries.append(events.groupBy("label").count().writeStream.outputMode("complete").format("noop"))
    for number, query in enumerate(queries):
        place = str(_folder / f"checkpoint/{number}")
        running = query.option("checkpointLocation", place).trigger(availableNow=True).start()
        running.awaitTermination()


def answers(spark: Any) -> None:
    """All that the UI says about the application, as files."""
    base = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    for name in ("sql?details=true&planDescription=true", "stages?details=true", "environment", "jobs"):
        with urllib.request.urlopen(f"{base}/{name}") as answer:
            (_folder / "rest" / f"{name.partition('?')[0]}.json").write_bytes(answer.read())


for name in ("local", "events", "metrics", "checkpoint", "rest", "cwd", "tmp"):
    (_folder / name).mkdir(parents=True)
os.chdir(_folder / "cwd")
os.environ |= {"TMPDIR": str(_folder / "tmp"), "PLANTED_KEY_FILE": str(_key)}
if _kind == "open":
    spark = open_application()
elif _kind == "hardened":
    spark = application(_spec, "local[1,1]", **SHARED)
else:
    # What a page or an event log shows reaches it through a listener, which is a way of its own.
    accepted = [_kind, "listeners"] if _kind in ("ui", "event log") else [_kind]
    spark = application(_spec, "local[1,1]", accept=accepted, **SHARED, **without(_kind))
rows = spark.read.schema("label string").parquet(str(_events))
found = job(rows)
stream(spark)
broken_jobs(rows)
if spark.sparkContext.uiWebUrl is not None:
    answers(spark)
(_folder.parent / f"{_kind}.found").write_text(str(found))
print("ready", flush=True)
input()
spark.stop()
