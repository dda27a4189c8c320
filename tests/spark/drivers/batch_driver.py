"""Batch jobs, as lines of standard input ask for them: an id, a time up to which ticks are over, whether Spark's own
checksums are on, and files. An empty line, or the end of the input, ends it.

usage: batch_driver.py SPEC MASTER PROPERTY=VALUE...
"""

from __future__ import annotations

import sys

from campaign import SCHEMA

from evertally.errors import EvertallyError
from evertally.spark import application, release_batch

_spec, _master, *_more = sys.argv[1:]
_CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum"
_ACCEPT = ["scheduler", "checksums"]

spark = application(_spec, _master, accept=_ACCEPT, **dict(one.split("=") for one in _more))
print("running", flush=True)
for line in sys.stdin:
    if not line.strip():
        break
    name, until, checksums, *files = line.split()
    for option in ("enabled", "enableFullRetryOnMismatch"):
        spark.conf.set(f"{_CHECKSUMS}.{option}", checksums)
    try:
        events = spark.read.schema(SCHEMA).parquet(*files)
        found = release_batch(events, _spec, batch=name, until=int(until), accept=_ACCEPT)
        print("released", name, "through", found["through"], flush=True)
    except EvertallyError as error:
        print("stopped", name, "by", error, flush=True)
spark.stop()
