"""Bounds: the formulas that mechanisms and their error bounds use. Tails, largest values, thresholds, best periods."""

from evertally.bounds.tails import Spread

__all__ = ["Spread"]
