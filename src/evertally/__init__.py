"""evertally: live statistics over a stream of personal events, under one guarantee for the whole life of the stream.

>>> import numpy as np
>>> import evertally as et
>>> counter = et.Counter(guarantee=et.ApproxDP(epsilon=1.0, delta=1e-9), horizon=365, key=et.Key.generate())
>>> values = counter.run(np.ones(365, dtype=int) * 40)
>>> bool(abs(values[-1] - 365 * 40) < counter.error_bound(beta=1e-6))
True

Which statistic for what, and where it is described:

- events: `Counter`, `VectorCounter`, `Histogram`; many counts at once: `Dashboard`, `GroupBy`, `Stacked`
  (docs/stacked.md)
- people: `DistinctUsers`, `UnknownDistinctUsers`, `ActiveUsers`, `PeriodUsers`, `Retention`, `JoinedEvents`
  (docs/users.md)
- numbers: `RunningSum`, `RunningMean`, `RunningVariance`, `AdaptiveSum` (docs/values.md); `ValueQuantile`,
  `ValueHistogram`, `log_edges` (docs/value-quantiles.md)
- more labels than anybody can list: `UnknownHistogram`, `UnknownTopK`, `StreamingTopK` (docs/unknown-items.md);
  `CountSketch`, `HeavyPrefixes` (docs/large-domains.md)
- questions about column sums: `MaxSum`, `MinSum`, `SumQuantile`, `TopK`, `SumSelect`, `TopKSelect`, `MonotoneQuery`
  (docs/column-queries.md)
- what is there now: `DynamicCount`, `DynamicHistogram`, `DynamicRange`, `LinearQueries` (docs/dynamic-data.md);
  `PresentItems`, where items come back (docs/users.md)
- graphs and strings: `graph`, `strings` (docs/graphs.md, docs/strings.md)
- without a curator, and once: `local`, `oneshot`

`release` does a whole table in one call (docs/data-frames.md), `plot` draws what was released. `Stream` puts several
statistics under one guarantee, `plan` says what they cost, `restore` goes on after a restart.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evertally.contract import Release, SparseRows, restore
from evertally.contract.snapshot import look_in
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
from evertally.planner import accuracy, plan, sweep
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
    RunningMean,
    StreamingTopK,
    SumQuantile,
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
    from evertally.agreement import consistent
    from evertally.applications.dashboard import Dashboard, GroupBy
    from evertally.applications.stacked import Stacked
    from evertally.applications.stacking import part
    from evertally.encode.cells import log_edges
    from evertally.kinds import Kind, register_kind
    from evertally.pictures import plot
    from evertally.runtime.table import Released, query, release
    from evertally.sketches.count_sketch import CountSketch
    from evertally.sketches.heavy_prefixes import HeavyPrefixes
    from evertally.users.active import ActiveUsers
    from evertally.users.distinct import DistinctUsers
    from evertally.users.distinct_unknown import UnknownDistinctUsers
    from evertally.users.joins import JoinedEvents
    from evertally.users.periods import PeriodUsers
    from evertally.users.present import PresentItems
    from evertally.users.retention import Retention
    from evertally.values.epochs import AdaptiveSum
    from evertally.values.histograms import ValueHistogram
    from evertally.values.quantiles import ValueQuantile
    from evertally.values.sums import RunningSum
    from evertally.values.variance import RunningVariance

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "ActiveUsers",
    "AdaptiveSum",
    "ApproxDP",
    "ApproxZCDP",
    "BudgetExceeded",
    "ConfigurationError",
    "CountSketch",
    "Counter",
    "Dashboard",
    "DistinctUsers",
    "DynamicCount",
    "DynamicHistogram",
    "DynamicRange",
    "EvertallyError",
    "GroupBy",
    "HeavyPrefixes",
    "Histogram",
    "HorizonExceeded",
    "JoinedEvents",
    "Key",
    "Kind",
    "Ledger",
    "LinearQueries",
    "MaxSum",
    "MinSum",
    "MonotoneQuery",
    "Neighbours",
    "PeriodUsers",
    "PresentItems",
    "PureDP",
    "Release",
    "Released",
    "ReplayRefused",
    "Retention",
    "RunningMean",
    "RunningSum",
    "RunningVariance",
    "SparseRows",
    "Stacked",
    "StateError",
    "Stream",
    "StreamingTopK",
    "SumQuantile",
    "SumSelect",
    "TopK",
    "TopKSelect",
    "UnknownDistinctUsers",
    "UnknownHistogram",
    "UnknownTopK",
    "ValueHistogram",
    "ValueQuantile",
    "VectorCounter",
    "accuracy",
    "consistent",
    "expressions",
    "log_edges",
    "part",
    "plan",
    "plot",
    "query",
    "register_engine",
    "register_kind",
    "register_process",
    "register_static",
    "release",
    "restore",
    "simulation",
    "sweep",
    "workloads",
]


_ROOMS = {room: f"evertally.{room}" for room in ("audit", "bounds", "checks", "kinds", "local", "oneshot", "theory")}
_ROOMS |= {room: f"evertally.applications.{room}" for room in ("graph", "strings")}
_IN_ROOMS = dict.fromkeys(("Kind", "register_kind"), "evertally.kinds")  # needs pydantic, and counting does not
_IN_ROOMS |= dict.fromkeys(("Released", "query", "release"), "evertally.runtime.table")  # needs pyarrow too
_IN_ROOMS["plot"] = "evertally.pictures"
_IN_ROOMS["consistent"] = "evertally.agreement"
_STATISTICS = {
    "Dashboard": "evertally.applications.dashboard",
    "GroupBy": "evertally.applications.dashboard",
    "Stacked": "evertally.applications.stacked",
    "part": "evertally.applications.stacking",
    "CountSketch": "evertally.sketches.count_sketch",
    "HeavyPrefixes": "evertally.sketches.heavy_prefixes",
    "ActiveUsers": "evertally.users.active",
    "DistinctUsers": "evertally.users.distinct",
    "UnknownDistinctUsers": "evertally.users.distinct_unknown",
    "JoinedEvents": "evertally.users.joins",
    "PeriodUsers": "evertally.users.periods",
    "PresentItems": "evertally.users.present",
    "Retention": "evertally.users.retention",
    "log_edges": "evertally.encode.cells",
    "AdaptiveSum": "evertally.values.epochs",
    "ValueHistogram": "evertally.values.histograms",
    "ValueQuantile": "evertally.values.quantiles",
    "RunningSum": "evertally.values.sums",
    "RunningVariance": "evertally.values.variance",
}
_IN_ROOMS |= _STATISTICS
_RENAMED = {"Quantile": "SumQuantile"}  # the old name, and what says better what it is
# A snapshot of theirs comes back in a process that has not used them yet.
look_in("evertally.applications.graph", "evertally.applications.strings", *_STATISTICS.values())


def __getattr__(name: str) -> Any:
    """`et.audit` and the other rooms come when they are asked for; counting does not wait."""
    if name in _IN_ROOMS:
        return getattr(import_module(_IN_ROOMS[name]), name)
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(f"et.{name} is called et.{new} now; streams go on under either name", DeprecationWarning, 2)
        return globals()[new]
    if name in _ROOMS:
        return import_module(_ROOMS[name])
    raise AttributeError(f"module 'evertally' has no attribute {name!r}")
