"""Counting: noise processes for prefix sums, and the counters on them. It never knows what is counted."""

from evertally.counting.choose import KINDS
from evertally.counting.counter import Counter, VectorCounter
from evertally.counting.linear import LinearMechanism
from evertally.counting.mean import RunningMean
from evertally.counting.release import Release
from evertally.counting.rows import SparseRows
from evertally.counting.snapshot import restore

__all__ = ["KINDS", "Counter", "LinearMechanism", "Release", "RunningMean", "SparseRows", "VectorCounter", "restore"]
