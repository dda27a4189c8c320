"""Bounds: pure formulas. Error of each process, certified floors, tables of optimal factors."""

from evertally.bounds.tails import Spread

__all__ = ["Spread"]
