"""The public statistics: options, theorem, and which parts they are put together from. One file a family."""

from evertally.statistics.column_queries import MaxSum, MinSum, MonotoneQuery, SumQuantile, SumSelect, TopK, TopKSelect
from evertally.statistics.counts import Counter, Histogram, VectorCounter
from evertally.statistics.dynamic import DynamicCount, DynamicHistogram, DynamicRange, LinearQueries
from evertally.statistics.means import RunningMean
from evertally.statistics.streaming import StreamingTopK
from evertally.statistics.unknown import UnknownHistogram, UnknownTopK

__all__ = [
    "Counter",
    "DynamicCount",
    "DynamicHistogram",
    "DynamicRange",
    "Histogram",
    "LinearQueries",
    "MaxSum",
    "MinSum",
    "MonotoneQuery",
    "RunningMean",
    "StreamingTopK",
    "SumQuantile",
    "SumSelect",
    "TopK",
    "TopKSelect",
    "UnknownHistogram",
    "UnknownTopK",
    "VectorCounter",
]
