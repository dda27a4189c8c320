"""Prints what is found about an application, as JSON.

usage: collected_facts.py SPEC OUTPUT hardened|open. Open is open in every way that can be had without a cluster.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from evertally.spark import OpenApplication, application, check

_spec, _output, _kind = sys.argv[1], Path(sys.argv[2]), sys.argv[3]

if _kind == "hardened":
    spark = application(_spec, "local[1,4]")
    result = check(spark).as_dict()
else:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQueryListener

    class Listening(StreamingQueryListener):
        """Hears of every batch."""

        def onQueryStarted(self, event: object) -> None: ...

        def onQueryProgress(self, event: object) -> None: ...

        def onQueryTerminated(self, event: object) -> None: ...

    conf = _output.parent / "conf"
    conf.mkdir()
    (conf / "metrics.properties").write_text("*.sink.jmx.class=org.apache.spark.metrics.sink.JmxSink\n")
    os.environ |= {"SPARK_CONF_DIR": str(conf), "JAVA_TOOL_OPTIONS": "-XX:+HeapDumpOnOutOfMemoryError"}
    builder = SparkSession.builder.master("local[1,4]")
    properties = {
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": _output.parent.as_uri(),
        "spark.authenticate": "true",
        "spark.authenticate.secret": "on a command line",
        "spark.driver.extraJavaOptions": "-Dcom.sun.management.jmxremote",
        "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
        "spark.speculation": "true",
    }
    for name, value in properties.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.streams.addListener(Listening())
    spark.sparkContext.setCheckpointDir(str(_output.parent / "checkpoints"))
    try:
        check(spark)
        result = {}
    except OpenApplication as error:
        result = {"open": list(error.open), "text": str(error)}
_output.write_text(json.dumps(result))
spark.stop()
