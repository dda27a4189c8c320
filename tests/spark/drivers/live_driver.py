"""A live stream over a folder of Parquet files. Each line of standard input names a time up to which ticks are over; an
empty line, or the end of the input, ends it.

usage: live_driver.py SPEC INPUT MASTER
"""

from __future__ import annotations

import sys

from campaign import SCHEMA

from evertally.spark import application, release_stream

_spec, _input, _master = sys.argv[1:]

spark = application(_spec, _master)
events = spark.readStream.schema(SCHEMA).option("maxFileAge", "100000d").parquet(_input)
with release_stream(events, _spec, every="100 milliseconds") as stream:
    print("running", flush=True)
    for line in sys.stdin:
        if not line.strip():
            break
        print("closed", stream.close(int(line)), flush=True)
spark.stop()
