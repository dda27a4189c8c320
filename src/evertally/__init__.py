"""evertally: live statistics over a stream of personal events, under one guarantee for the whole life of the stream.

>>> import numpy as np
>>> import evertally as et
>>> counter = et.Counter(guarantee=et.ApproxDP(epsilon=1.0, delta=1e-9), horizon=365, key=et.Key.generate())
>>> values = counter.run(np.ones(365, dtype=int) * 40)
>>> bool(abs(values[-1] - 365 * 40) < counter.error_bound(beta=1e-6))
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evertally.contract import Release, SparseRows, restore
from evertally.counting import workloads
from evertally.dynamic.static import register_static
from evertally.errors import (
    BudgetExceeded,
    ConfigurationError,
    EvertallyError,
    HorizonExceeded,
    ReplayRefused,
    StateError,
)
from evertally.histogram import expressions
from evertally.noise import Key, simulation
from evertally.planner import plan
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Ledger, Neighbours, PureDP
from evertally.statistics import (
    Counter,
    DynamicCount,
    DynamicHistogram,
    DynamicRange,
    Histogram,
    LinearQueries,
    MaxSum,
    MinSum,
    MonotoneQuery,
    Quantile,
    RunningMean,
    StreamingTopK,
    SumSelect,
    TopK,
    TopKSelect,
    UnknownHistogram,
    UnknownTopK,
    VectorCounter,
)
from evertally.statistics.own_engines import register_engine, register_process
from evertally.stream import Stream

if TYPE_CHECKING:
    from evertally.kinds import Kind, register_kind

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "ApproxDP",
    "ApproxZCDP",
    "BudgetExceeded",
    "ConfigurationError",
    "Counter",
    "DynamicCount",
    "DynamicHistogram",
    "DynamicRange",
    "EvertallyError",
    "Histogram",
    "HorizonExceeded",
    "Key",
    "Kind",
    "Ledger",
    "LinearQueries",
    "MaxSum",
    "MinSum",
    "MonotoneQuery",
    "Neighbours",
    "PureDP",
    "Quantile",
    "Release",
    "ReplayRefused",
    "RunningMean",
    "SparseRows",
    "StateError",
    "Stream",
    "StreamingTopK",
    "SumSelect",
    "TopK",
    "TopKSelect",
    "UnknownHistogram",
    "UnknownTopK",
    "VectorCounter",
    "expressions",
    "plan",
    "register_engine",
    "register_kind",
    "register_process",
    "register_static",
    "restore",
    "simulation",
    "workloads",
]


_ROOMS = ("audit", "bounds", "checks", "kinds", "oneshot", "theory")
_IN_KINDS = ("Kind", "register_kind")  # that room needs pydantic, and counting does not


def __getattr__(name: str) -> Any:
    """`et.audit` and the other rooms come when they are asked for; counting does not wait."""
    if name in _IN_KINDS:
        return getattr(import_module("evertally.kinds"), name)
    if name in _ROOMS:
        return import_module(f"evertally.{name}")
    raise AttributeError(f"module 'evertally' has no attribute {name!r}")
