"""The answer anew every r ticks, by noise or by a private selection: price-of-continual-release 3.5-3.7, M4-M6."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from evertally.bounds.recompute import Period, best_period, period_from, releases
from evertally.contract.in_place import InPlace
from evertally.counting.choose import budgets
from evertally.counting.process import Budget, IntArray, node_law
from evertally.errors import ConfigurationError
from evertally.histogram.in_place import Recomputation, noise_radius, noisy_answers, unseen
from evertally.histogram.tasks import Task
from evertally.histogram.ways import predict
from evertally.histogram.ways.column_way import NOBODY_SAID, ColumnWay
from evertally.histogram.ways.partitions import pure_within
from evertally.noise import ItemSource
from evertally.partition import Calibration
from evertally.privacy import ZCDP, PureDP
from evertally.selection import ExponentialMechanism, PermuteAndFlip

_ALL_PERIODS = 2**12  # ticks up to which every period is tried


def recompute(task: Task) -> Iterator[ColumnWay]:
    if task.horizon is None:
        raise ConfigurationError("recomputation divides its budget by the number of releases, so it needs a horizon")
    if task.selects and task.queries.count > 1:
        raise ConfigurationError("recomputation selects one column")
    charges: list[Budget] = budgets(task.guarantee)
    if isinstance(task.guarantee, ZCDP):
        charges.append(pure_within(task.guarantee))
    for charge in charges:
        yield _selection(task, charge) if task.selects else _answers(task, charge)


def _answers(task: Task, charge: Budget) -> ColumnWay:
    """M4, M5: Laplace scale D1 m/eps or Gaussian variance D2^2 m/(2 rho) (price-of-continual-release 3.5, 3.6 [R])."""
    T, k = task.ticks, task.queries.count

    def noise(r: int, beta: float = task.beta) -> float:
        m = releases(T, r)
        return noise_radius(node_law(charge, task.shift, m), m * k, beta)

    calibration = Calibration(task.settled)
    period = _period(T, lambda r: task.growth * (r - 1) + noise(r), calibration)
    law = node_law(charge, task.shift, period.m)

    def made(source: ItemSource) -> Recomputation:
        answer = noisy_answers(task.queries, law, source)
        return Recomputation(task.columns, k, T, period.r, answer, lambda beta: noise(period.r, beta), task.most)

    typical = predict.recompute_error(task, law, period.r, period.m)
    return _recomputed(task, charge, typical, period, made, k, calibration, noise)


def _recomputed(
    task: Task,
    charge: Budget,
    typical: float,
    period: Period,
    made: Callable[[ItemSource], Recomputation],
    width: int,
    calibration: Calibration,
    noise: Callable[[int], float],
) -> ColumnWay:
    return ColumnWay(
        name="recompute",
        charge=charge,
        score=typical,
        promise=lambda: noise(period.r) + unseen(task.most, period.r - 1),
        memory=16 * task.columns,
        open=NOBODY_SAID if task.most is None and period.r > 1 else "",
        build=partial(InPlace, made),
        width=width,
        answers=True,
        calibration=calibration,
    )


def _selection(task: Task, charge: Budget) -> ColumnWay:
    """M6: permute-and-flip under a pure budget, the exponential mechanism with its /8 under zCDP (3.7 there [R])."""
    T, d = task.ticks, task.columns
    kind = PermuteAndFlip if isinstance(charge, PureDP) else ExponentialMechanism

    def noise(r: int, beta: float = task.beta) -> float:
        m = releases(T, r)
        select = kind.within(charge.share(f"1/{m}"), task.change.linf, one_way=task.one_way)
        return float(select.scale) * math.log(d * m / beta) if d > 1 else 0.0

    calibration = Calibration(task.settled)
    period = _period(T, lambda r: task.growth * (r - 1) + noise(r), calibration)
    select = kind.within(charge.share(f"1/{period.m}"), task.change.linf, one_way=task.one_way)

    def made(source: ItemSource) -> Recomputation:
        def answer(sums: IntArray, number: int) -> IntArray:
            return np.array([select.select(sums, source, "select", number)], dtype=np.int64)

        return Recomputation(d, 1, T, period.r, answer, lambda beta: noise(period.r, beta), task.most)

    typical = predict.selection_error(task, float(select.scale), period.r, period.m)
    return _recomputed(task, charge, typical, period, made, 1, calibration, noise)


def _period(T: int, alpha: Callable[[int], float], calibration: Calibration) -> Period:
    r = calibration.settle("period", lambda: _best_period(T, alpha).r)
    return Period(r, releases(T, r), alpha(r))


def _best_period(T: int, alpha: Callable[[int], float]) -> Period:
    """The period with the least bound; for long horizons the best of about a hundred, first far apart and then near.
    Periods whose noise would be out of range are left out."""
    alpha = _infinite_where_refused(alpha)
    if T <= _ALL_PERIODS:
        return best_period(T, alpha)

    def best(wished: Iterable[float]) -> Period:
        tried = {period_from(T, math.ceil(m)) for m in wished}
        return min((Period(r, m, alpha(r)) for r, m in tried), key=lambda period: (period.alpha, period.m))

    coarse = best(1.25**i for i in range(math.ceil(math.log(T, 1.25)) + 1))
    return best(coarse.m * 1.25 ** (i / 24) for i in range(-24, 25))


def _infinite_where_refused(alpha: Callable[[int], float]) -> Callable[[int], float]:
    def at(r: int) -> float:
        try:
            return alpha(r)
        except ConfigurationError:
            return math.inf

    return at
