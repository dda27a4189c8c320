"""The list of mechanisms that must pass every check. A new mechanism, or a new noise process, is one line here."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

from conformance.active_mechanisms import ACTIVE_MECHANISMS
from conformance.column_mechanisms import COLUMN_MECHANISMS
from conformance.dynamic_constructions import DYNAMIC_CONSTRUCTIONS
from conformance.dynamic_mechanisms import DYNAMIC_MECHANISMS, RUNS_OF_BOUNDS
from conformance.episode_mechanisms import EPISODE_MECHANISMS
from conformance.hostile import GARBAGE
from conformance.linear_graph_mechanisms import LINEAR_GRAPH_MECHANISMS
from conformance.nonlinear_mechanisms import NONLINEAR_MECHANISMS
from conformance.period_mechanisms import PERIOD_MECHANISMS
from conformance.selection_mechanisms import SELECTION_MECHANISMS
from conformance.sketch_mechanisms import SKETCH_MECHANISMS
from conformance.string_mechanisms import STRING_MECHANISMS
from conformance.user_mechanisms import USER_MECHANISMS
from conformance.value_mechanisms import VALUE_MECHANISMS
from conformance.value_quantile_mechanisms import VALUE_QUANTILE_MECHANISMS
from conformance.workload_mechanisms import WORKLOAD_MECHANISMS
from evertally.checks.subject import Subject
from evertally.noise import NoiseKey
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.statistics import Counter, Histogram, RunningMean, VectorCounter

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)


def counter(guarantee: Guarantee, horizon: int | None, mechanism: str, ticks: int = 20, **options: Any) -> Subject:
    """A scalar counter on one process."""
    label = ", ".join([mechanism, repr(guarantee), f"T={horizon}", *(f"{k}={v}" for k, v in options.items())])
    return Subject(
        name=f"Counter({label})",
        make=lambda key: Counter(guarantee=guarantee, horizon=horizon, mechanism=mechanism, key=key, **options),
        feed=lambda n: [(3 * t * t + t) % 7 for t in range(n)],
        truth=lambda inputs: list(accumulate(inputs)),
        garbage=GARBAGE,
        wrong_calls=["7", 1.5, [1, 2], None, {"a": 1}],
        ticks=ticks,
        users="unit" in options,
        runs=60 if "unit" in options else 1000,  # one object and one column of users for each step of each run
    )


def rows(
    name: str, make: Callable[[NoiseKey], Any], columns: int, ticks: int = 20, labels: tuple[str, ...] = ()
) -> Subject:
    """A mechanism with one integer per column."""

    def truth(inputs: list[Any]) -> list[Any]:
        sums = np.cumsum(np.array(inputs), axis=0)
        return [dict(zip(labels, row, strict=True)) for row in sums.tolist()] if labels else list(sums)

    return Subject(
        name=name,
        make=make,
        feed=lambda n: [[(t * t + 2 * j * t + j) % 5 for j in range(columns)] for t in range(n)],
        truth=truth,
        garbage=GARBAGE,
        wrong_calls=["abc", 7, [1] * (columns + 1), [0.5] * columns, None],
        ticks=ticks,
        runs=1000 // columns + 1,  # independent columns: together as many squares as a counter has
    )


def _mean_truth(inputs: list[list[float]]) -> list[float]:
    seen: list[float] = []
    result = []
    for values in inputs:
        seen.extend(values)
        result.append(sum(seen) / len(seen))
    return result


MECHANISMS: tuple[Subject, ...] = (
    # every process, with every law it takes
    counter(PURE, 20, "tree"),
    counter(CONCENTRATED, 20, "tree"),
    counter(CONCENTRATED, 27, "tree", ticks=27, radix=3),
    counter(PURE, 20, "honaker"),
    counter(CONCENTRATED, 20, "honaker"),
    counter(CONCENTRATED, 20, "sqrt"),
    counter(APPROXIMATE, 20, "auto"),
    counter(PURE, None, "epoch-tree"),
    counter(CONCENTRATED, None, "epoch-tree"),
    counter(CONCENTRATED, 20, "bank"),
    counter(CONCENTRATED, None, "bank-open", ticks=12),
    counter(PURE, 20, "pure-blocks", ticks=12),
    # horizons at their edges
    counter(PURE, 1, "auto"),
    counter(CONCENTRATED, 1, "sqrt"),
    counter(CONCENTRATED, 2, "auto"),
    counter(CONCENTRATED, 200, "auto", ticks=200),
    # options
    counter(CONCENTRATED, 20, "auto", max_weight=10, neighbours="replace"),
    counter(PURE, 20, "tree", max_window=3),
    counter(PURE, 20, "auto", signed=True, max_weight=3, neighbours="replace"),
    # users, replaced or with ticks that are apart
    counter(CONCENTRATED, 12, "tree", ticks=12, neighbours="replace", unit="user", max_events_per_user=2),
    counter(CONCENTRATED, 12, "banded", ticks=12, unit="user", max_ticks_per_user=3, min_separation=2),
    counter(CONCENTRATED, 12, "sqrt", ticks=12, neighbours="replace", unit="user", min_separation=3, calendar=True),
    rows(
        "VectorCounter((epsilon, delta) by the exact curve)",  # a bank alone, which "auto" takes here
        lambda key: VectorCounter(8, max_per_event=8, guarantee=APPROXIMATE, horizon=20, key=key),
        8,
        ticks=12,
    ),
    rows(
        "VectorCounter(tree, memory O(d))",
        lambda key: VectorCounter(3, guarantee=CONCENTRATED, horizon=20, mechanism="tree", memory_limit=60, key=key),
        3,
    ),
    rows(
        "VectorCounter(sqrt, independent)",
        lambda key: VectorCounter(
            3,
            guarantee=ZCDP(0.5, adversary="oblivious"),
            horizon=20,
            mechanism="sqrt",
            neighbours="independent",
            max_per_event=3,
            key=key,
        ),
        3,
    ),
    rows(
        "Histogram(pure, replace, item)",
        lambda key: Histogram(
            categories=["a", "b", "c"],
            max_per_event=2,
            protects="item",
            guarantee=PURE,
            horizon=20,
            neighbours="replace",
            key=key,
        ),
        3,
        labels=("a", "b", "c"),
    ),
    rows(
        "Histogram(zCDP, other)",
        lambda key: Histogram(categories=["a", "b"], other="rest", guarantee=CONCENTRATED, horizon=20, key=key),
        3,
        labels=("a", "b", "rest"),
    ),
    Subject(
        name="RunningMean",
        make=lambda key: RunningMean(lower=0, upper=10, guarantee=CONCENTRATED, horizon=20, key=key),
        feed=lambda n: [[float((t + i) % 11) for i in range(200)] for t in range(n)],
        truth=_mean_truth,
        garbage=GARBAGE,
        wrong_calls=[7, None],
        tolerance=0.005,
        independent_numbers=False,
        runs=RUNS_OF_BOUNDS,
    ),
    *WORKLOAD_MECHANISMS,
    *VALUE_MECHANISMS,
    *COLUMN_MECHANISMS,
    *SELECTION_MECHANISMS,
    *DYNAMIC_MECHANISMS,
    *EPISODE_MECHANISMS,
    *DYNAMIC_CONSTRUCTIONS,
    *LINEAR_GRAPH_MECHANISMS,
    *NONLINEAR_MECHANISMS,
    *STRING_MECHANISMS,
    *USER_MECHANISMS,
    *ACTIVE_MECHANISMS,
    *PERIOD_MECHANISMS,
    *VALUE_QUANTILE_MECHANISMS,
    *SKETCH_MECHANISMS,
)
