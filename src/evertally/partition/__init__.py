"""Partitions: sparse vector over time, and the one engine that all of parameterized-histograms is made of."""

from evertally.partition.budget import Split
from evertally.partition.calibration import Calibration
from evertally.partition.configuration import Configuration, Terms
from evertally.partition.engine import PartitionedRelease
from evertally.partition.intervals import PartitionEngine
from evertally.partition.ladders import bounded, doubling, noisy_ladders
from evertally.partition.rules import Queries
from evertally.partition.tuning import tuned
from evertally.partition.two_level import TwoLevelPlan, TwoLevelRelease

__all__ = [
    "Calibration",
    "Configuration",
    "PartitionEngine",
    "PartitionedRelease",
    "Queries",
    "Split",
    "Terms",
    "TwoLevelPlan",
    "TwoLevelRelease",
    "bounded",
    "doubling",
    "noisy_ladders",
    "tuned",
]
