"""Queries on column sums."""

from evertally.histogram import expressions
from evertally.histogram.histogram import Histogram
from evertally.histogram.queries import MaxSum, MinSum, MonotoneQuery, Quantile, SumSelect, TopK, TopKSelect
from evertally.histogram.sparse import SparseCounter, SparseHistogram

__all__ = [
    "Histogram",
    "MaxSum",
    "MinSum",
    "MonotoneQuery",
    "Quantile",
    "SparseCounter",
    "SparseHistogram",
    "SumSelect",
    "TopK",
    "TopKSelect",
    "expressions",
]
