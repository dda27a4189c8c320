"""What Spark shows of a run, and what an application must be like so that it does not (docs/theory/distributed.md 7).

The cluster, its operator and whoever may submit code to it are inside the trust boundary. This is about what leaves it
without anybody meaning to: exact counts on pages and in logs, labels in plans and shuffle files, memory on disks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from evertally.errors import ConfigurationError
from evertally.spark.facts import Facts, collected
from evertally.spark.failures import silence_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evertally.runtime import StreamSpec

LOG_FILE = str(files("evertally.spark") / "log4j2.properties")
JAVA_OPTIONS = (
    f"-Dlog4j2.configurationFile=file:{LOG_FILE}",
    "-XX:-HeapDumpOnOutOfMemoryError",
    "-XX:-CreateCoredumpOnCrash",
    "-XX:+SuppressFatalErrorMessage",  # an hs_err file has registers and stacks
)
_QUIET = ("WARN", "ERROR", "FATAL", "OFF")
# They put the text of an exception into their message; LOG_FILE has them off.
QUOTING = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
)
# Those of Spark itself, which stay in the driver's memory. Anything else that hears of tasks may write it down.
_OWN_LISTENERS = {
    "org.apache.spark.HeartbeatReceiver",
    "org.apache.spark.status.AppStatusListener",
    "org.apache.spark.sql.execution.ui.SQLAppStatusListener",
    "org.apache.spark.sql.util.ExecutionListenerBus",
    "org.apache.spark.sql.execution.streaming.StreamingQueryListenerBus",
    "org.apache.spark.sql.execution.streaming.runtime.StreamingQueryListenerBus",
}
_PLAN_LEVELS = (
    "spark.sql.planChangeLog.level",
    "spark.sql.expressionTreeChangeLog.level",
    "spark.sql.codegen.logLevel",
    "spark.sql.dataframeCache.logLevel",
)
_AGENTS = ("jmxremote", "-javaagent", "-agentlib", "-agentpath", "-Xrun", "StartFlightRecording", "HeapDumpPath")
_DUMPS = (
    "+HeapDumpOnOutOfMemoryError",
    "+HeapDumpBeforeFullGC",
    "+HeapDumpAfterFullGC",
    "OnError=",
    "OnOutOfMemoryError=",
)


class OpenApplication(ConfigurationError):
    """An application that would show what must not be shown. `open` names the ways."""

    def __init__(self, message: str, ways: tuple[str, ...]) -> None:
        super().__init__(message)
        self.open = ways


@dataclass(frozen=True)
class Setting:
    """A property and the value that it must have, in versions of Spark that know it."""

    name: str
    value: str
    since: tuple[int, int] = (4, 0)

    def holds(self, facts: Facts) -> bool:
        """Whether it is so, set or by default."""
        found = facts.properties.get(self.name, "").strip()
        if self.value.isdigit():
            return found.isdigit() and int(found) >= int(self.value)
        return found.lower() == self.value.lower()


@dataclass(frozen=True)
class Row:
    """One way in which an application can be open.

    `unset`: properties that nobody may set, by the beginning of their names. `look`: what no property says.
    """

    name: str
    shows: str
    remedy: str
    settings: tuple[Setting, ...] = ()
    unset: tuple[str, ...] = ()
    look: Callable[[Facts], Iterator[str]] = lambda facts: iter(())

    def wrong(self, facts: Facts) -> list[str]:
        """All that is not as it must be."""
        known = [setting for setting in self.settings if facts.release >= setting.since]
        found = [f"{setting.name} is not {setting.value}" for setting in known if not setting.holds(facts)]
        for name, value in sorted(facts.properties.items()):
            if name.startswith(self.unset) and value.strip().lower() not in ("", "false"):
                found.append(f"{name} is set")
        return found + list(self.look(facts))

    def absent(self, facts: Facts) -> bool:
        """Whether this version of Spark has nothing of the kind."""
        return bool(self.settings) and all(facts.release < setting.since for setting in self.settings)


def _ui(facts: Facts) -> Iterator[str]:
    if facts.ui is not None:
        yield "the UI is up"


def _logs(facts: Facts) -> Iterator[str]:
    loud = sorted(name or "the root" for name, level in facts.loggers.items() if level not in _QUIET)
    if loud or "" not in facts.loggers:
        yield f"the driver logs below WARN ({', '.join(loud) or 'nothing is known of its root'})"
    for name in _PLAN_LEVELS:
        if facts.properties.get(name, "trace").upper() in _QUIET:  # whole plans, with their literals, as warnings
            yield f"{name} is {facts.properties[name]}"
    if not facts.local:
        if any(entry.startswith(":") and entry[1:] not in _QUIET for entry in facts.executor_loggers):
            yield "executors log below WARN: a level that is set on the driver does not reach them"
        if "log4j2.configurationFile=" not in facts.properties.get("spark.executor.extraJavaOptions", ""):
            yield "spark.executor.extraJavaOptions names no log4j2.configurationFile"


def _errors(facts: Facts) -> Iterator[str]:
    loud = [name for name in QUOTING if facts.loggers.get(name) != "OFF"]
    if not facts.local:
        quiet = {entry.rpartition(":")[0] for entry in facts.executor_loggers if entry.endswith(":OFF")}
        heard = {entry.rpartition(":")[0] for entry in facts.executor_loggers if not entry.endswith(":OFF")}
        loud += [f"{name} of executors" for name in QUOTING if name in heard or name not in quiet]
    if loud:
        yield f"not OFF: {', '.join(loud)}"


def _listeners(facts: Facts) -> Iterator[str]:
    strange = sorted(set(facts.listeners) - _OWN_LISTENERS)
    if strange:
        yield f"somebody listens: {', '.join(strange)}"


def _all_java_options(facts: Facts) -> Iterator[tuple[str, str]]:
    yield from (("the driver", argument) for argument in facts.java_arguments)
    for whose in ("driver", "executor"):
        for kind in ("extra", "default"):
            name = f"spark.{whose}.{kind}JavaOptions"
            yield from ((name, option) for option in facts.properties.get(name, "").split())
    yield from (("Java's environment of executors", option) for options in facts.executor_environment
                for option in options.split())  # fmt: skip


def _metrics(facts: Facts) -> Iterator[str]:
    if facts.metrics_file is not None:
        yield "there is a metrics.properties on the class path"
    agents = {(where, word) for where, option in _all_java_options(facts) for word in _AGENTS if word in option}
    yield from (f"{where} has {word}" for where, word in sorted(agents))


def _memory(facts: Facts) -> Iterator[str]:
    dumps = {(where, word) for where, option in _all_java_options(facts) for word in _DUMPS if word in option}
    yield from (f"{where} has {word}" for where, word in sorted(dumps))
    wanted = {
        "HeapDumpOnOutOfMemoryError": "false",
        "CreateCoredumpOnCrash": "false",
        "SuppressFatalErrorMessage": "true",
    }
    yield from (
        f"{name} of the driver's Java is not {value}"
        for name, value in wanted.items()
        if facts.vm_options.get(name) != value
    )
    if not facts.local:
        given = facts.properties.get("spark.executor.extraJavaOptions", "").split()
        missing = [option for option in JAVA_OPTIONS[1:] if option not in given]
        yield from (f"spark.executor.extraJavaOptions lacks {option}" for option in missing)
    if not facts.core_limits or any(limit != 0 for limit in facts.core_limits):
        yield "core files of driver or workers are not ruled out (ulimit -c 0)"


def _network(facts: Facts) -> Iterator[str]:
    if facts.secret_on_command_line:
        yield "spark.authenticate.secret stands on a command line, where every user of the machine can read it"


def _checkpoint(facts: Facts) -> Iterator[str]:
    if facts.checkpoint is not None:
        yield "RDDs are checkpointed to a folder"


ROWS = (
    Row(
        "ui",
        "rows and bytes of every operator: exact counts; plans with their literals",
        "spark.ui.enabled=false before the application starts, and no spark.ui.store.path",
        (Setting("spark.ui.enabled", "false"), Setting("spark.ui.showConsoleProgress", "false")),
        ("spark.ui.store.path",),
        _ui,
    ),
    Row(
        "event log",
        "the same for ever, in a file",
        "spark.eventLog.enabled=false",
        (Setting("spark.eventLog.enabled", "false"),),
    ),
    Row(
        "logs",
        "at INFO row counts of batches and sizes of all shuffle blocks",
        f"{JAVA_OPTIONS[0]} in spark.driver.extraJavaOptions and spark.executor.extraJavaOptions",
        (
            Setting("spark.driver.log.persistToDfs.enabled", "false"),
            Setting("spark.sql.streaming.metricsEnabled", "false"),
        ),
        ("spark.driver.log.localDir", "spark.driver.log.dfsDir"),
        _logs,
    ),
    Row(
        "errors",
        "texts of exceptions quote records",
        "the log4j2 file of evertally, and the properties of `evertally spark conf`",
        (
            Setting("spark.sql.execution.pyspark.udf.hideTraceback.enabled", "true"),
            Setting("spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled", "false", (4, 3)),
            Setting("spark.sql.pyspark.worker.logging.enabled", "false", (4, 1)),
        ),
        (),
        _errors,
    ),
    Row(
        "listeners",
        "everything that the UI shows, whether it is on or not; tools for lineage and costs come this way",
        "an application without listeners and plug-ins, for this stream alone",
        (),
        (
            "spark.extraListeners",
            "spark.sql.queryExecutionListeners",
            "spark.sql.streaming.streamingQueryListeners",
            "spark.plugins",
        ),
        _listeners,
    ),
    Row(
        "metrics",
        "the same as numbers; profilers and agents see every record",
        "no spark.metrics.conf*, no metrics.properties, no profiler, and no agent or JMX in Java's options",
        (Setting("spark.executor.processTreeMetrics.enabled", "false"),),
        (
            "spark.metrics.conf",
            "spark.python.profile",
            "spark.sql.pyspark.udf.profiler",
            "spark.sql.pyspark.dataSource.profiler",
        ),
        _metrics,
    ),
    Row(
        "memory on disk",
        "key, sums and labels in heap dumps, hs_err and core files",
        f"{' '.join(JAVA_OPTIONS[1:])} in Java's options of driver and executors, and ulimit -c 0 where they start",
        (),
        (),
        _memory,
    ),
    Row(
        "scheduler",
        "numbers of executors and attempts follow the amount of data",
        "spark.dynamicAllocation.enabled=false and spark.speculation=false",
        (Setting("spark.dynamicAllocation.enabled", "false"), Setting("spark.speculation", "false")),
    ),
    Row(
        "shuffle",
        "cells, users and labels in shuffle, spill and broadcast files",
        "spark.io.encryption.enabled=true",
        (Setting("spark.io.encryption.enabled", "true"),),
    ),
    Row(
        "network",
        "the same on the wire, and anybody may ask for it",
        "spark.authenticate=true with the secret in a properties file of mode 0600, and spark.network.crypto.* as in "
        "`evertally spark conf`",
        (
            Setting("spark.authenticate", "true"),
            Setting("spark.network.crypto.enabled", "true"),
            Setting("spark.network.crypto.saslFallback", "false"),
            Setting("spark.network.crypto.cipher", "AES/GCM/NoPadding"),
        ),
        (),
        _network,
    ),
    Row(
        "checkpoint",
        "exact state in clear: neither RDDs nor state stores are encrypted there",
        "no spark.checkpoint.dir and no setCheckpointDir",
        (),
        ("spark.checkpoint.dir",),
        _checkpoint,
    ),
    Row(
        "adaptive",
        "numbers of tasks and files follow the sizes of the data",
        "spark.sql.adaptive.enabled=false",
        (Setting("spark.sql.adaptive.enabled", "false"),),
    ),
    Row(
        "arrow",
        "rows between tasks, one for each slice and Arrow batch: they tell the events to the nearest batch",
        "spark.sql.execution.arrow.maxRecordsPerBatch=1000000, and useLargeVarTypes=false",
        (
            Setting("spark.sql.execution.arrow.maxRecordsPerBatch", "1000000"),
            Setting("spark.sql.execution.arrow.useLargeVarTypes", "false"),
        ),
    ),
    Row(
        "checksums",
        "after a lost executor a source that was changed meanwhile is counted twice in some slices",
        "spark.sql.shuffle.orderIndependentChecksum.enabled and .enableFullRetryOnMismatch=true",
        (
            Setting("spark.sql.shuffle.orderIndependentChecksum.enabled", "true", (4, 1)),
            Setting("spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "true", (4, 1)),
        ),
    ),
)
NAMES = tuple(row.name for row in ROWS)
# Cores that are busy, moments that mean the same everywhere, cells that are null where they cannot be read, names of
# folders that are texts, Python processes that keep what they compiled and are forked with what they need. And levels
# of logs once more: where an executor has no file at that path, it takes the level of the driver.
_USEFUL = {
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "evertally.spark.daemon",
    # For that neither BLAS nor Arrow's allocator may start a thread at its import (daemon.py); a task has one core.
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.executorEnv.JE_ARROW_MALLOC_CONF": "background_thread:false",
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.log.level": "WARN",
    "spark.driver.extraJavaOptions": " ".join(JAVA_OPTIONS),
    "spark.executor.extraJavaOptions": " ".join(JAVA_OPTIONS),
}


@dataclass(frozen=True)
class Protection:
    """What was found about an application; stands in the certificate.

    `holds` and `accepted` (open, and somebody said so) name rows of the table; `absent` has what this Spark lacks.

    >>> Protection("4.3.0", ("ui", "logs"), ("shuffle",)).as_dict()["accepted"]
    ['shuffle']
    """

    spark: str
    holds: tuple[str, ...]
    accepted: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, str | list[str]]:
        """For JSON."""
        return {
            "spark": self.spark,
            "holds": list(self.holds),
            "accepted": list(self.accepted),
            "absent": list(self.absent),
        }


def conf(spec: StreamSpec | None = None) -> dict[str, str]:
    """The properties of a hardened application.

    >>> conf()["spark.ui.enabled"], conf()["spark.io.encryption.enabled"]
    ('false', 'true')
    """
    properties = {setting.name: setting.value for row in ROWS for setting in row.settings} | _USEFUL
    return ({} if spec is None else {"spark.app.name": f"evertally {spec.name}"}) | properties


def check(spark: SparkSession, accept: Collection[str] = ()) -> Protection:
    """Refuses an application that is open, and names all the ways in which it is. `accept`: those that may be.

    On a cluster it asks executors, with a small job. In this process PySpark's own loggers are silenced.
    """
    names = {name for row in ROWS for name in (*(setting.name for setting in row.settings), *row.unset)}
    names |= {"spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"}
    _known(accept)  # before anything runs
    silence_pyspark()
    return judged(collected(spark, sorted(names), ("", *QUOTING)), accept)


def judged(facts: Facts, accept: Collection[str] = ()) -> Protection:
    """What `check` says of these facts.

    >>> judged(Facts(version="4.3.0", master="local[2]", ui="http://localhost:4040"), accept=["no such row"])
    Traceback (most recent call last):
    evertally.errors.ConfigurationError: nothing is called 'no such row'; accept takes: ui, event log, logs, errors, ...
    """
    _known(accept)
    if facts.file_names.upper() != "UTF-8":
        raise ConfigurationError(
            f"Java reads names of files as {facts.file_names}, and does not find those with other letters: start it "
            "with LC_ALL=C.UTF-8, on all machines"
        )
    wrong = {row: found for row in ROWS if (found := row.wrong(facts))}
    refused = [row for row in wrong if row.name not in accept]
    if refused:
        lines = [f"{row.name}: {'; '.join(wrong[row])}. It shows {row.shows}. Do: {row.remedy}" for row in refused]
        raise OpenApplication(
            "this Spark application would show what must stay private. Start it with evertally.spark.application(spec) "
            "or with the properties of `evertally spark conf SPEC`, or accept single ways by name:\n- "
            + "\n- ".join(lines),
            tuple(row.name for row in refused),
        )
    absent = tuple(row.name for row in ROWS if row.absent(facts))
    holds = tuple(row.name for row in ROWS if row not in wrong and row.name not in absent)
    return Protection(facts.version, holds, tuple(row.name for row in wrong), absent)


def _known(accept: Collection[str]) -> None:
    if isinstance(accept, str):
        raise ConfigurationError(f"accept takes a list of names: accept=[{accept!r}]")
    for name in accept:
        if name not in NAMES:
            raise ConfigurationError(f"nothing is called {name!r}; accept takes: {', '.join(NAMES)}")
