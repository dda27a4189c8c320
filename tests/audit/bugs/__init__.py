"""Planted bugs, for tests only: what the auditor must be able to catch.

Each is a small, named departure from the product that the trap lists of the specifications warn of. They are patched
in from outside, for the time of a `with` block; product code has no switch for any of them. To add one, write a
function in the file of its room that returns the patch, and name the probe that must find it.

>>> mutant = next(m for m in MUTANTS if m.name == "one tree level forgotten in the calibration")
>>> mutant.detect().caught
False
>>> with mutant.patch():
...     mutant.detect().evidence
'the exact law loses epsilon 5.99995, claimed 3'
"""

from audit.bugs import (
    accuracy,
    applications,
    calibration,
    committing,
    door,
    dynamic,
    engine,
    hands,
    label_noise,
    noise,
    one_shot,
    partitions,
    privacy,
    processes,
    sketches,
    statements,
    switches,
    thresholds,
    unknown_items,
    value_quantiles,
    values,
)
from audit.bugs.planting import MUTANTS, Mutant

__all__ = [
    "MUTANTS",
    "Mutant",
    "accuracy",
    "applications",
    "calibration",
    "committing",
    "door",
    "dynamic",
    "engine",
    "hands",
    "label_noise",
    "noise",
    "one_shot",
    "partitions",
    "privacy",
    "processes",
    "sketches",
    "statements",
    "switches",
    "thresholds",
    "unknown_items",
    "value_quantiles",
    "values",
]
