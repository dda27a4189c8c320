"""Sums and variances of values, for the conformance checks."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np

from conformance.dynamic_mechanisms import RUNS_OF_BOUNDS
from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject
from evertally.privacy import ZCDP, PureDP
from evertally.statistics import Histogram
from evertally.values.epochs import AdaptiveSum
from evertally.values.sums import RunningSum
from evertally.values.variance import RunningVariance

PURE, CONCENTRATED = PureDP(1.0), ZCDP(0.5)


def _amounts(n: int) -> list[list[float]]:
    """Multiples of a quarter, some beyond the bounds."""
    return [[((t + 3 * i) % 23) / 4 - 1 for i in range(5)] for t in range(n)]


def _sums(low: float, high: float) -> Any:
    return lambda ticks: list(accumulate(sum(min(high, max(low, x)) for x in tick) for tick in ticks))


def _sum(name: str, low: float, high: float, ticks: int = 20, users: bool = False, **options: Any) -> Subject:
    common: dict[str, Any] = {"lower": low, "upper": high, "resolution": 0.25, "horizon": ticks}
    return Subject(
        name=f"RunningSum({name})",
        make=lambda key: RunningSum(**(common | options), key=key),
        feed=_amounts,
        truth=_sums(low, high),
        garbage=GARBAGE,
        wrong_calls=[7, None],
        ticks=ticks,
        users=users,
        growth=400 if users else 64,  # each event has a user of its own, who is remembered for life
        tolerance=1e-9,
        # The noise is that of a counter, whose variance is compared there, and here for periods.
        independent_numbers=False,
        runs=RUNS_OF_BOUNDS,
    )


def _moments(ticks: list[list[float]]) -> list[dict[str, float]]:
    seen: list[float] = []
    found = []
    for values in ticks:
        seen += values
        variance = float(np.var(seen))
        found.append({"mean": float(np.mean(seen)), "variance": variance, "stddev": math.sqrt(variance)})
    return found


def _cut(bounds: list[float]) -> Any:
    """Totals of amounts that are cut to the bound of each tick."""

    def truth(ticks: list[list[float]]) -> list[dict[str, float]]:
        sums = accumulate(sum(min(b, x) for x in tick) for b, tick in zip(bounds, ticks, strict=False))
        return [{"total": total, "bound": b} for total, b in zip(sums, bounds, strict=False)]

    return truth


def _by_category(n: int) -> list[list[dict[str, float]]]:
    return [[{"ab"[i % 2]: ((t + 3 * i) % 23) / 4 - 1} for i in range(5)] for t in range(n)]


def _sums_by_category(ticks: list[list[dict[str, float]]]) -> list[dict[str, float]]:
    sums = {"a": 0.0, "b": 0.0}
    found = []
    for tick in ticks:
        for event in tick:
            for label, amount in event.items():
                sums[label] += min(4.0, max(0.0, amount))
        found.append(dict(sums))
    return found


VALUE_MECHANISMS: tuple[Subject, ...] = (
    Subject(
        name="Histogram(resolution)",
        make=lambda key: Histogram(
            categories=["a", "b"], max_weight=4, resolution=0.25, guarantee=CONCENTRATED, horizon=12, key=key
        ),
        feed=_by_category,
        truth=_sums_by_category,
        garbage=GARBAGE,
        wrong_calls=[7, None, {"a": 1.5}],
        ticks=12,
        tolerance=1e-9,
        independent_numbers=False,
        runs=RUNS_OF_BOUNDS,
    ),
    _sum("zCDP, both signs", -1, 4, guarantee=CONCENTRATED),
    _sum("pure, replace, windows", 0, 4, ticks=12, guarantee=PURE, neighbours="replace", max_window=3),
    _sum("allowance", -1, 4, ticks=12, users=True, guarantee=CONCENTRATED, unit="user", max_total_per_user=50),
    Subject(
        name="RunningSum(periods)",
        make=lambda key: RunningSum(
            upper=4, resolution=0.25, every=3, guarantee=CONCENTRATED, mechanism="tree", horizon=8, key=key
        ),
        feed=_amounts,
        truth=lambda ticks: [_sums(0, 4)(ticks[t - t % 3 : t + 1])[-1] for t in range(len(ticks))],
        garbage=GARBAGE,
        wrong_calls=[7, None],
        tolerance=1e-9,
        growth=400,  # the noise of a period, where one begins
    ),
    Subject(
        name="RunningVariance",
        make=lambda key: RunningVariance(
            lower=0, upper=10, resolution=0.01, guarantee=CONCENTRATED, horizon=12, neighbours="replace", key=key
        ),
        feed=lambda n: [[float((t + i) % 11) for i in range(200)] for t in range(n)],
        truth=_moments,
        garbage=GARBAGE,
        wrong_calls=[7, None],
        tolerance=0.03,
        independent_numbers=False,
        runs=RUNS_OF_BOUNDS,
    ),
    Subject(
        name="AdaptiveSum",
        make=lambda key: AdaptiveSum(upper=64, epochs=[3, 4], guarantee=ZCDP(8), horizon=12, key=key),
        feed=lambda n: [[float(3 + (t + i) % 6) for i in range(301)] for t in range(n)],
        truth=_cut([64] * 3 + [8] * 9),
        growth=400,  # the noise of an epoch, where one begins
        garbage=GARBAGE,
        wrong_calls=[7, None],
        independent_numbers=False,
        runs=RUNS_OF_BOUNDS,
    ),
)
