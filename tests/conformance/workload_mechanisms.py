"""Counters with a workload: every factor, every way, grids that are no integers, weights by tick."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject
from evertally.counting.workloads import Average, Decay, Toeplitz, Weights, Window, Workload
from evertally.privacy import ZCDP, Guarantee, PureDP
from evertally.statistics import Counter, Histogram, VectorCounter

_CONCENTRATED, _PURE = ZCDP(Fraction(1, 2)), PureDP(1)


def weighed(workload: Workload, inputs: Sequence[int]) -> list[float]:
    """What is released, without noise and before it is rounded; decays by their powers, not by the integers used."""
    if isinstance(workload, Weights):
        alpha = workload.alpha or (1,) * len(workload.beta)
        sums = [sum(b * x for b, x in zip(workload.beta, inputs[:t], strict=False)) for t in range(1, len(inputs) + 1)]
        return [float(a * s) for a, s in zip(alpha, sums, strict=False)]

    if isinstance(workload, Average):
        return [float(Fraction(sum(inputs[:t]), t)) for t in range(1, len(inputs) + 1)]

    def weight(age: int) -> Fraction:
        if isinstance(workload, Decay):
            return workload.factor**age
        if isinstance(workload, Window):
            return Fraction(int(age < workload.ticks))
        return workload.coefficients[age] if age < len(workload.coefficients) else Fraction(0)

    return [float(sum(weight(t - j) * x for j, x in enumerate(inputs[: t + 1]))) for t in range(len(inputs))]


def _counter(
    workload: Workload, guarantee: Guarantee, horizon: int | None, mechanism: str, tolerance: float
) -> Subject:
    return Subject(
        name=f"Counter({workload}, {mechanism}, {guarantee!r}, T={horizon})",
        make=lambda key: Counter(workload=workload, guarantee=guarantee, horizon=horizon, mechanism=mechanism, key=key),
        feed=lambda n: [(3 * t * t + t) % 7 for t in range(n)],
        truth=lambda inputs: weighed(workload, inputs),
        garbage=GARBAGE,
        wrong_calls=["7", 1.5, [1, 2], None],
        tolerance=tolerance,
        runs=400,
    )


def _columns(name: str, make: Any, workload: Workload, tolerance: float, labels: tuple[str, ...] = ()) -> Subject:
    def truth(inputs: list[Any]) -> list[Any]:
        rows = list(zip(*(weighed(workload, column) for column in zip(*inputs, strict=True)), strict=True))
        return [dict(zip(labels, row, strict=True)) for row in rows] if labels else [list(row) for row in rows]

    return Subject(
        name=name,
        make=make,
        feed=lambda n: [[(t * t + 2 * j * t + j) % 5 for j in range(3)] for t in range(n)],
        truth=truth,
        garbage=GARBAGE,
        wrong_calls=["abc", 7, [1] * 4, None],
        tolerance=tolerance,
        users=bool(labels),
        runs=300,
    )


_DECAY, _WINDOW, _WEIGHTS = Decay("0.9"), Window(4), Weights(tuple(t % 4 for t in range(20)), (2, 1) * 10)
_HALF = 0.5 + 1e-5  # rounded to integers, by weights that are rounded themselves

WORKLOAD_MECHANISMS: tuple[Subject, ...] = (
    _counter(_DECAY, _CONCENTRATED, 20, "root", _HALF),
    _counter(Decay("2/3", resolution="1/16"), _CONCENTRATED, None, "root", _HALF / 16),
    _counter(_DECAY, _CONCENTRATED, 20, "bank", _HALF),
    _counter(Decay("0.99", resolution="1/16"), _CONCENTRATED, 20, "bank", _HALF / 16),
    _counter(_WINDOW, _CONCENTRATED, 20, "root", 0.0),
    _counter(_WINDOW, _PURE, 20, "tree", 0.0),
    _counter(_WINDOW, _CONCENTRATED, 20, "bank", 0.0),
    _counter(Average("1/100"), _CONCENTRATED, 20, "sqrt", 0.005),
    _counter(Toeplitz(["1", "-2/3", "1/3"]), _PURE, None, "input", _HALF),
    _columns(
        "VectorCounter(weights)",
        lambda key: VectorCounter(3, workload=_WEIGHTS, guarantee=_PURE, horizon=20, key=key),
        _WEIGHTS,
        0.0,
    ),
    _columns(
        "Histogram(window, sqrt, users)",
        lambda key: Histogram(
            categories=["a", "b", "c"],
            workload=_WINDOW,
            mechanism="sqrt",
            guarantee=_CONCENTRATED,
            horizon=20,
            unit="user",
            max_events_per_user=1,
            key=key,
        ),
        _WINDOW,
        0.0,
        labels=("a", "b", "c"),
    ),
)
