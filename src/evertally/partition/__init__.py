"""Partitions: sparse vector over time, and the one engine that all of parameterized-histograms is made of."""

from evertally.partition.budget import Noise, Split, noise_of
from evertally.partition.calibration import Calibration
from evertally.partition.configuration import Configuration, Terms
from evertally.partition.engine import PartitionedRelease
from evertally.partition.intervals import PartitionEngine
from evertally.partition.ladders import bounded, doubling, noisy_ladders
from evertally.partition.rebased import intervals, rebased
from evertally.partition.rules import Intervals, Ladder, NoisyLadders, Queries, Rebased, Rule
from evertally.partition.tuning import tuned
from evertally.partition.two_level import TwoLevelPlan, TwoLevelRelease

__all__ = [
    "Calibration",
    "Configuration",
    "Intervals",
    "Ladder",
    "Noise",
    "NoisyLadders",
    "PartitionEngine",
    "PartitionedRelease",
    "Queries",
    "Rebased",
    "Rule",
    "Split",
    "Terms",
    "TwoLevelPlan",
    "TwoLevelRelease",
    "bounded",
    "doubling",
    "intervals",
    "noise_of",
    "noisy_ladders",
    "rebased",
    "tuned",
]
