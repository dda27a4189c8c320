"""The way of a task by its older name; `histogram.ways` has the ranking."""

from evertally.histogram.ways import choose as choose_approach

__all__ = ["choose_approach"]
