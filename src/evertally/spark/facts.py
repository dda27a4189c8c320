"""What an application really is like: read from the running JVM, not from what somebody meant to configure."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evertally.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VM_OPTIONS = (
    "HeapDumpOnOutOfMemoryError",
    "HeapDumpBeforeFullGC",
    "HeapDumpAfterFullGC",
    "CreateCoredumpOnCrash",
    "SuppressFatalErrorMessage",
    "StartFlightRecording",
    "OnError",
    "OnOutOfMemoryError",
)


@dataclass(frozen=True)
class Facts:
    """What there is to judge about an application. Whatever is not known is as if it were open.

    >>> Facts(version="4.3.0", master="local[2,4]", properties={"spark.ui.enabled": "false"}).local
    True
    """

    version: str
    master: str
    properties: Mapping[str, str] = field(default_factory=dict)  # in effect: set ones, and defaults of those asked for
    ui: str | None = None
    loggers: Mapping[str, str] = field(default_factory=dict)  # of the driver; "" is the root
    executor_loggers: frozenset[str] = frozenset()  # "name:LEVEL", of executors that answered
    listeners: tuple[str, ...] = ()  # classes
    java_arguments: tuple[str, ...] = ()  # of the driver, those of its environment included
    executor_environment: frozenset[str] = frozenset()  # JAVA_TOOL_OPTIONS and the like
    vm_options: Mapping[str, str] = field(default_factory=dict)
    metrics_file: str | None = None
    checkpoint: str | None = None
    secret_on_command_line: bool = False
    file_names: str = "UTF-8"  # how Java reads and writes them
    core_limits: tuple[int, ...] = ()  # bytes; -1 is unlimited

    @property
    def local(self) -> bool:
        """Whether driver and executors are one process."""
        return self.master.partition("[")[0] == "local"

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor version of Spark."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)


def collected(spark: SparkSession, names: Iterable[str], loggers: Iterable[str]) -> Facts:
    """Looks at a running application; `names`: the properties that matter, `loggers`: whose levels do."""
    session: Any = spark
    try:
        context, jvm, java_session = session.sparkContext, session._jvm, session._jsparkSession
    except AttributeError:  # as PySpark's own error is one
        raise ConfigurationError(
            "this is a Spark Connect session: others run code in the same application, and what it shows cannot be "
            "looked at. Use a classic session: evertally.spark.application(spec)"
        ) from None
    java_context = context._jsc.sc()
    log4j = jvm.org.apache.logging.log4j.LogManager
    configured = log4j.getContext(False).getConfiguration().getLoggers()
    management = jvm.java.lang.management.ManagementFactory
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    metrics = loader.getResource("metrics.properties")
    command = jvm.java.lang.System.getProperty("sun.java.command") or ""
    local = context.master.partition("[")[0] == "local"
    seen = (frozenset[str](), frozenset[str]()) if local else _executors(session, list(loggers))
    levels = {name: configured[name].getLevel().toString() for name in configured}
    return Facts(
        version=session.version,
        master=context.master,
        properties=_properties(session, names),
        ui=context.uiWebUrl,
        loggers=levels | {name: log4j.getLogger(name).getLevel().toString() for name in loggers if name},
        executor_loggers=seen[0],
        listeners=tuple(_listeners(java_context, java_session)),
        java_arguments=tuple(management.getRuntimeMXBean().getInputArguments()),
        executor_environment=seen[1],
        vm_options=_vm_options(jvm),
        metrics_file=None if metrics is None else metrics.toString(),
        checkpoint=_optional(java_context.getCheckpointDir()),
        secret_on_command_line="spark.authenticate.secret=" in command,
        file_names=str(jvm.java.lang.System.getProperty("sun.jnu.encoding")),
        core_limits=(resource.getrlimit(resource.RLIMIT_CORE)[0], *_core_limit(jvm)),
    )


def _properties(session: Any, names: Iterable[str]) -> dict[str, str]:
    """Set ones, of the application and of the session, and the defaults of this version."""
    found: dict[str, str] = {}
    entries = session._jvm.org.apache.spark.internal.config.ConfigEntry
    for name in names:
        entry = entries.findEntry(name)
        if entry is not None and entry.defaultValueString() != "<undefined>":
            found[name] = entry.defaultValueString()
    found.update(session.sparkContext.getConf().getAll())
    found.update(session.conf.getAll)
    return {name: value for name, value in found.items() if "secret" not in name.lower()}  # not ours to carry about


def _listeners(context: Any, session: Any) -> Iterable[str]:
    on_bus = context.listenerBus().listeners()
    yield from (on_bus.get(index).getClass().getName() for index in range(on_bus.size()))
    for listener in session.listenerManager().listListeners():
        yield listener.getClass().getName()
    for listener in session.streams().listListeners():
        yield listener.getClass().getName()


def _vm_options(jvm: Any) -> dict[str, str]:
    bean = jvm.java.lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
    known = jvm.java.lang.management.ManagementFactory.getPlatformMXBean(bean)
    found = {}
    for name in _VM_OPTIONS:
        try:
            found[name] = str(known.getVMOption(name).getValue())
        except Exception:  # noqa: S112  one that this Java does not have
            continue
    return found


def _core_limit(jvm: Any) -> list[int]:
    """Of the JVM, and with it of the Python workers that it starts."""
    limits = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/limits")
    if not os.access(limits, os.R_OK):
        return []
    line = next(line for line in limits.read_text().splitlines() if line.startswith("Max core file size"))
    soft = line.removeprefix("Max core file size").split()[0]
    return [-1 if soft == "unlimited" else int(soft)]


def _executors(session: Any, loggers: list[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Levels of loggers and Java's environment, from executors themselves: a level set on the driver stays there."""
    manager, system = "'org.apache.logging.log4j.LogManager'", "'java.lang.System'"
    asked = [f"java_method({manager}, 'getLogger', '{name}')" if name else f"java_method({manager}, 'getRootLogger')"
             for name in loggers]  # fmt: skip
    variables = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
    asked += [f"java_method({system}, 'getenv', '{name}')" for name in variables]
    tasks = 2 * session.sparkContext.defaultParallelism
    rows = session.range(0, tasks, 1, tasks).selectExpr(*(f"{one} as c{n}" for n, one in enumerate(asked))).collect()
    levels = {(row[n] or "").partition(" in ")[0] for row in rows for n in range(len(loggers))}
    return frozenset(levels), frozenset(row[n] for row in rows for n in range(len(loggers), len(asked)) if row[n])


def _optional(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None
