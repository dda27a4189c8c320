"""Streams of many categories on a cluster: Spark moves rows, slices hold sums and draw noise.

Needs: pip install 'evertally[spark]', and Java 17 or newer. docs/spark.md says how, docs/theory/distributed.md why.

>>> import evertally.spark as es
>>> es.conf()["spark.ui.enabled"]
'false'
"""

from evertally.spark.application import application
from evertally.spark.asking import ask
from evertally.spark.batch import release_batch
from evertally.spark.beginning import certificate
from evertally.spark.engine import take_back
from evertally.spark.failures import SparkFailed, TaskFailed
from evertally.spark.frames import releases
from evertally.spark.protections import OpenApplication, Protection, check, conf
from evertally.spark.public import shown
from evertally.spark.stream import LiveStream, release_stream

__all__ = [
    "LiveStream",
    "OpenApplication",
    "Protection",
    "SparkFailed",
    "TaskFailed",
    "application",
    "ask",
    "certificate",
    "check",
    "conf",
    "release_batch",
    "release_stream",
    "releases",
    "shown",
    "take_back",
]
