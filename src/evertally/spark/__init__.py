"""Streams of many categories on a cluster: Spark moves rows, slices hold sums and draw noise.

Needs: pip install 'evertally[spark]', and Java 17 or newer. docs/theory/distributed.md has the theory.

>>> import evertally.spark as es
>>> es.conf()["spark.ui.enabled"]
'false'
"""

# Every Python worker imports this room: nothing here may import specs or PySpark, which take a second.
from evertally.spark.application import application
from evertally.spark.failures import SparkFailed, TaskFailed
from evertally.spark.protections import OpenApplication, Protection, check, conf

__all__ = ["OpenApplication", "Protection", "SparkFailed", "TaskFailed", "application", "check", "conf"]
