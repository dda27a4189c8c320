"""An application that is open in one of the known ways is refused, and told what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from apart import Driver

from evertally import ConfigurationError
from evertally.spark import OpenApplication, application, check, conf
from evertally.spark.application import properties_of
from evertally.spark.facts import Facts
from evertally.spark.protections import NAMES, QUOTING, ROWS, judged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCRIPT = Path(__file__).with_name("drivers") / "collected_facts.py"

CLOSED = Facts(
    version="4.3.0",
    master="local[2,4]",
    properties=conf(),
    loggers={"": "WARN", **dict.fromkeys(QUOTING, "OFF")},
    listeners=("org.apache.spark.status.AppStatusListener", "org.apache.spark.HeartbeatReceiver"),
    java_arguments=("-Xmx1g",),
    vm_options={
        "HeapDumpOnOutOfMemoryError": "false",
        "CreateCoredumpOnCrash": "false",
        "SuppressFatalErrorMessage": "true",
    },
    core_limits=(0, 0),
)
ON_CLUSTER = replace(
    CLOSED,
    master="spark://127.0.0.1:7077",
    executor_loggers=frozenset([":WARN", *(f"{name}:OFF" for name in QUOTING)]),
)


def having(facts: Facts = CLOSED, **properties: str) -> Facts:
    return replace(facts, properties={**facts.properties, **properties})


def test_closed_ones_pass() -> None:
    assert judged(CLOSED).holds == NAMES
    assert judged(ON_CLUSTER).holds == NAMES
    assert judged(CLOSED).accepted == ()


# Every setting of the table, turned round; then what only a look can tell.
_TURNED = [
    (row.name, {setting.name: "false" if setting.value == "true" else "true" if setting.value == "false" else "1"})
    for row in ROWS
    for setting in row.settings
]
_SET = [(row.name, {name: "some.Thing"}) for row in ROWS for name in row.unset]
_METRICS_SINK = [("metrics", {"spark.metrics.conf.*.sink.csv.class": "org.apache.spark.metrics.sink.CsvSink"})]
_PLANS = [
    ("logs", {"spark.sql.planChangeLog.level": "WARN"}),
    ("logs", {"spark.sql.codegen.logLevel": "error"}),
]
_JAVA = [
    (row, {f"spark.{whose}.extraJavaOptions": f"{conf()[f'spark.{whose}.extraJavaOptions']} {option}"})
    for whose in ("driver", "executor")
    for row, option in (
        ("memory on disk", "-XX:+HeapDumpOnOutOfMemoryError"),
        ("metrics", "-Dcom.sun.management.jmxremote"),
        ("metrics", "-javaagent:some.jar"),
        ("metrics", "-agentlib:jdwp"),
        ("metrics", "-XX:StartFlightRecording"),
    )
]


@pytest.mark.parametrize(("row", "properties"), [*_TURNED, *_SET, *_METRICS_SINK, *_PLANS, *_JAVA])
def test_every_property_that_opens_is_refused_by_name(row: str, properties: dict[str, str]) -> None:
    with pytest.raises(OpenApplication) as refused:
        judged(having(CLOSED, **properties))
    assert refused.value.open == (row,)
    remedy = next(each.remedy for each in ROWS if each.name == row)
    assert f"\n- {row}: " in str(refused.value)
    assert remedy in str(refused.value)


@pytest.mark.parametrize("row", [row for row in ROWS if row.settings and row.name != "checksums"])
def test_what_nothing_is_known_of_is_open(row: Any) -> None:
    without = {name: value for name, value in conf().items() if name not in {each.name for each in row.settings}}
    with pytest.raises(OpenApplication) as refused:
        judged(replace(CLOSED, properties=without))
    assert refused.value.open == (row.name,)


_LOOKS: dict[str, tuple[str, Facts]] = {
    "a page is up": ("ui", replace(CLOSED, ui="http://127.0.0.1:4040")),
    "the driver is loud": ("logs", replace(CLOSED, loggers={**CLOSED.loggers, "": "INFO"})),
    "one logger is loud": ("logs", replace(CLOSED, loggers={**CLOSED.loggers, "org.apache.spark.sql": "DEBUG"})),
    "nothing is known of the logs": ("logs", replace(CLOSED, loggers=dict.fromkeys(QUOTING, "OFF"))),
    "the driver quotes": ("errors", replace(CLOSED, loggers={**CLOSED.loggers, QUOTING[0]: "ERROR"})),
    "executors are loud": ("logs", replace(ON_CLUSTER, executor_loggers=ON_CLUSTER.executor_loggers | {":INFO"})),
    "one executor quotes": (
        "errors",
        replace(ON_CLUSTER, executor_loggers=ON_CLUSTER.executor_loggers | {f"{QUOTING[1]}:WARN"}),
    ),
    "no executor answered": ("errors", replace(ON_CLUSTER, executor_loggers=frozenset([":WARN"]))),
    "somebody listens": ("listeners", replace(CLOSED, listeners=(*CLOSED.listeners, "io.lineage.Listener"))),
    "the event logger listens": (
        "listeners",
        replace(CLOSED, listeners=("org.apache.spark.scheduler.EventLoggingListener",)),
    ),
    "a file of metrics": ("metrics", replace(CLOSED, metrics_file="file:/etc/spark/metrics.properties")),
    "an agent": ("metrics", replace(CLOSED, java_arguments=("-agentpath:/opt/profiler.so",))),
    "an agent in the environment of workers": (
        "metrics",
        replace(ON_CLUSTER, executor_environment=frozenset(["-javaagent:/opt/agent.jar"])),
    ),
    "dumps of the driver": ("memory on disk", replace(CLOSED, vm_options={"SuppressFatalErrorMessage": "true"})),
    "dumps by the environment": ("memory on disk", replace(CLOSED, java_arguments=("-XX:+HeapDumpBeforeFullGC",))),
    "core files": ("memory on disk", replace(CLOSED, core_limits=(0, -1))),
    "a secret for all to see": ("network", replace(CLOSED, secret_on_command_line=True)),
    "checkpoints": ("checkpoint", replace(CLOSED, checkpoint="file:/tmp/checkpoints")),
}  # fmt: skip


@pytest.mark.parametrize(("row", "facts"), _LOOKS.values(), ids=_LOOKS.keys())
def test_what_only_a_look_can_tell_is_refused_by_name(row: str, facts: Facts) -> None:
    with pytest.raises(OpenApplication) as refused:
        judged(facts)
    assert refused.value.open == (row,)


def test_executors_need_options_of_their_own() -> None:
    bare = having(ON_CLUSTER, **{"spark.executor.extraJavaOptions": ""})
    with pytest.raises(OpenApplication) as refused:
        judged(bare)
    assert refused.value.open == ("logs", "memory on disk")
    assert judged(having(CLOSED, **{"spark.executor.extraJavaOptions": ""})).accepted == ()


def test_all_ways_are_named_at_once_and_may_be_accepted_one_by_one() -> None:
    facts = replace(having(CLOSED, **{"spark.io.encryption.enabled": "false"}), ui="http://127.0.0.1:4040")
    with pytest.raises(OpenApplication) as refused:
        judged(facts)
    assert refused.value.open == ("ui", "shuffle")
    with pytest.raises(OpenApplication) as refused:
        judged(facts, accept=["ui"])
    assert refused.value.open == ("shuffle",)
    found = judged(facts, accept=["ui", "shuffle", "logs"])
    assert found.accepted == ("ui", "shuffle")  # what is accepted and closed all the same is closed
    assert set(found.holds) == set(NAMES) - {"ui", "shuffle"}
    assert json.loads(json.dumps(found.as_dict()))["accepted"] == ["ui", "shuffle"]


def test_versions_without_checksums_say_so() -> None:
    lacking = {name: value for name, value in conf().items() if "Checksum" not in name}
    found = judged(replace(CLOSED, version="4.0.1", properties=lacking))
    assert found.absent == ("checksums",)
    assert "checksums" not in found.holds
    with pytest.raises(OpenApplication) as refused:
        judged(replace(CLOSED, version="4.1.0", properties=lacking))
    assert refused.value.open == ("checksums",)


@pytest.mark.parametrize("accept", [["shufle"], "ui"])
def test_misspelt_rows_are_refused(accept: Any) -> None:
    with pytest.raises(ConfigurationError, match="accept takes"):
        judged(CLOSED, accept)


def test_the_shared_application_is_closed(spark: SparkSession) -> None:
    found = check(spark)
    assert found.holds == NAMES
    assert found.spark == spark.version


def test_a_running_application_is_not_hardened_afterwards(spark: SparkSession, visits: Path) -> None:
    with pytest.raises(ConfigurationError, match="already"):
        application(visits)


def test_it_is_looked_at_as_it_is_now(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        with pytest.raises(OpenApplication) as refused:
            check(spark)
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
    assert refused.value.open == ("adaptive",)
    spark.sparkContext.setLogLevel("INFO")
    try:
        with pytest.raises(OpenApplication) as refused:
            check(spark)
    finally:
        spark.sparkContext.setLogLevel("WARN")
    assert refused.value.open == ("logs",)
    assert check(spark).holds == NAMES


def test_sessions_of_spark_connect_are_refused() -> None:
    class Remote:
        """As Connect's session, which has neither."""

        version = "4.3.0"

    with pytest.raises(ConfigurationError, match="Spark Connect"):
        check(Remote())


@pytest.mark.parametrize("name", ["spark.authenticate.secret", "spark.ssl.keyPassword", "driver.memory"])
def test_no_secret_becomes_a_property(name: str) -> None:
    with pytest.raises(ConfigurationError):
        properties_of({name: "x"})


def test_an_open_application_is_seen_as_open(tmp_path: Path, visits: Path, apart: Callable[..., Driver]) -> None:
    apart(_SCRIPT, visits, tmp_path / "found.json", "open").finished()
    found = json.loads((tmp_path / "found.json").read_text())
    assert set(found["open"]) == set(NAMES)
    for words in (
        "the UI is up",
        "EventLoggingListener",
        "the driver logs below WARN",
        "metrics.properties",
        "the driver has jmxremote",
        "+HeapDumpOnOutOfMemoryError",
        "stands on a command line",
        "RDDs are checkpointed",
        "orderIndependentChecksum.enabled is not true",
        "spark.sql.execution.arrow.maxRecordsPerBatch is not 1000000",
    ):
        assert words in found["text"]
    assert "on a command line" not in found["text"].replace("stands on a command line", "")  # the secret itself
