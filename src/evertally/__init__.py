"""evertally: live statistics over a stream of personal events, under one guarantee for the whole life of the stream.

>>> import numpy as np
>>> import evertally as et
>>> counter = et.Counter(guarantee=et.ApproxDP(epsilon=1.0, delta=1e-9), horizon=365, key=et.Key.generate())
>>> values = counter.run(np.ones(365, dtype=int) * 40)
>>> bool(abs(values[-1] - 365 * 40) < counter.error_bound(beta=1e-6))
True
"""

from importlib import import_module
from typing import Any

from evertally.counting import Counter, Release, RunningMean, VectorCounter, restore
from evertally.errors import (
    BudgetExceeded,
    ConfigurationError,
    EvertallyError,
    HorizonExceeded,
    ReplayRefused,
    StateError,
)
from evertally.histogram import Histogram
from evertally.noise import Key, simulation
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Ledger, Neighbours, PureDP
from evertally.stream import Stream

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "ApproxDP",
    "ApproxZCDP",
    "BudgetExceeded",
    "ConfigurationError",
    "Counter",
    "EvertallyError",
    "Histogram",
    "HorizonExceeded",
    "Key",
    "Ledger",
    "Neighbours",
    "PureDP",
    "Release",
    "ReplayRefused",
    "RunningMean",
    "StateError",
    "Stream",
    "VectorCounter",
    "restore",
    "simulation",
]


def __getattr__(name: str) -> Any:
    """`et.audit`, `et.bounds` and `et.checks` are there when asked for; counting does not wait for them."""
    if name in ("audit", "bounds", "checks"):
        return import_module(f"evertally.{name}")
    raise AttributeError(f"module 'evertally' has no attribute {name!r}")
