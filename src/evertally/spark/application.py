"""A hardened application for one stream."""

from __future__ import annotations

import locale
import os
import resource
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

from evertally.errors import ConfigurationError
from evertally.spark.java import find_java
from evertally.spark.protections import JAVA_OPTIONS, check, conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS = 4


def without_core_files() -> None:
    """For driver and Python workers, once a process: a core file would hold records and the key."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def application(
    spec_path: str | os.PathLike[str],
    master: str | None = None,
    *,
    accept: Collection[str] = (),
    **more: str,
) -> SparkSession:
    """Starts Spark for one stream, as private as it can be, and looks whether it is.

    `master`: on this machine by default, on all its cores. `more`: further properties, `spark_driver_memory="4g"` or
    `**{"spark.driver.memory": "4g"}`. `accept`: ways of being open that are meant (`check`).
    """
    from evertally.runtime import load_spec

    properties = conf(load_spec(spec_path)) | properties_of(more)
    for name in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"):
        given = properties[name].split()
        properties[name] = " ".join([*(option for option in JAVA_OPTIONS if option not in given), *given])
    java = find_java()
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None or _context_is_up():
        raise ConfigurationError(
            "there is a Spark application in this process already, and its properties are settled: look at it with "
            "evertally.spark.check(spark), or spark.stop() first"
        )
    cores = len(os.sched_getaffinity(0))
    master = f"local[{cores},{_ATTEMPTS}]" if master is None else master  # plain local[n] retries no task
    if master.startswith("local"):
        properties.setdefault("spark.sql.shuffle.partitions", str(max(2, 2 * cores)))
        properties.setdefault("spark.driver.host", "127.0.0.1")
        properties.setdefault("spark.driver.bindAddress", "127.0.0.1")
    without_core_files()  # the JVM inherits it, and the Python workers from the JVM
    if "UTF-8" not in locale.getencoding().upper():  # Java would not find files whose names have other letters
        os.environ["LC_ALL"] = "C.UTF-8"
    os.environ["JAVA_HOME"] = str(java)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master)
    for name, value in properties.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        check(spark, accept)
    except BaseException:
        spark.stop()
        raise
    return spark


def properties_of(more: dict[str, str]) -> dict[str, str]:
    """Properties from keywords. None of them may be a secret: PySpark hands all to Java on its command line.

    >>> properties_of({"spark_driver_memory": "4g", "spark.local.dir": "/fast"})
    {'spark.driver.memory': '4g', 'spark.local.dir': '/fast'}
    """
    found = {name if "." in name else name.replace("_", "."): str(value) for name, value in more.items()}
    for name in found:
        if not name.startswith("spark."):
            raise ConfigurationError(f"{name} is no property of Spark: those begin with spark.")
        if "secret" in name.lower() or "password" in name.lower():
            raise ConfigurationError(
                f"{name} would stand on a command line. Write it into spark-defaults.conf, mode 0600, and name its "
                "folder in SPARK_CONF_DIR"
            )
    return found


def _context_is_up() -> bool:
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None
