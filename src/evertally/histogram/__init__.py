"""Queries on column sums."""

from evertally.histogram.histogram import Histogram

__all__ = ["Histogram"]
