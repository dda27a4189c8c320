"""The process that Spark forks its Python workers from, with all that tasks need imported beforehand.

    spark.python.daemon.module = evertally.spark.daemon

Imports cost a worker more than a CPU second. Spark ends workers that were idle for a minute, and those whose task has
failed, so a stream with long ticks would pay that in every batch; here an executor pays it once. The daemon holds no
key and sees no record: what it has, every worker would have read from the same files.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path


def alone() -> bool:
    """Whether this process is known to have one thread: where there is another, a fork may copy a lock that nobody will
    ever open."""
    threads = Path("/proc/self/task")
    return threads.is_dir() and len(list(threads.iterdir())) == 1


def main() -> None:
    import pyspark.worker  # noqa: F401

    import evertally.spark.tasks  # noqa: F401

    if not alone():
        # Another Arrow, or another BLAS, than we know of: Spark's own daemon imports after the fork.
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])  # noqa: S606
    gc.freeze()  # all this stays: neither looked through nor copied by workers
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
