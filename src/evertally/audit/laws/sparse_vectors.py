"""sparseGumb (`StreamingTopK`): the exact loss of its parts with the noise of the configuration, put together.

The engine is a copy with twelve columns, one of them named, and the budget of the mechanism, hence its scales:

    sparse vectors   ln P_left/P_right of the ticks of all s switches, by planted draws (`audit.laws.switching`)
    selections       s + 1 times k, by the scale of their variates, looked for in the program
    counters         s + 1 times k, by the separation of the noise that is read off

Against adaptive streams Gaussian and selection factors are exchanged first, in rho, and then sparse vectors at every
point, in epsilon (streaming-selection 1.4 and 6.2); the conversion of rho is written down here once more.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from evertally.audit.game import IntArray
from evertally.audit.label_noise import separation
from evertally.audit.laws.own_arithmetic import Unit, rho_of_selections
from evertally.audit.laws.switching import Engine, counter_table, sparse_vector_loss
from evertally.audit.laws.tap import APART, Drawn, Tap
from evertally.audit.report import Report
from evertally.privacy import ApproxDP
from evertally.selection.sparse_gumbel import SparseGumbel
from evertally.selection.top_k_engines import Switching

_COLUMNS = 12
_TICKS = 32  # of the copy, at most
_MOST_SWITCHES = 4
_FAR = 2.0**30
_BETWEEN = 2**20


def is_switching(model: Any) -> bool:
    """Whether it is sparseGumb, with a switch to audit."""
    worker = getattr(model._engine, "worker", None)
    return isinstance(worker, Switching) and worker.engine._budget.switches > 0


def switching_report(model: Any) -> Report:
    """What one unit loses in switches, selections and counts together, against the promise.

    >>> import evertally as et
    >>> from evertally.statistics import StreamingTopK
    >>> top = StreamingTopK(2, switches=2, columns=["a", "b", "c"], guarantee=et.ApproxDP(2.0, 1e-6), horizon=100,
    ...                     key=et.simulation(1))
    >>> report = switching_report(top)
    >>> report.verdict, report.fraction > 0.95
    ('holds (tight)', True)
    """
    engine, unit = model._engine.worker.engine, Unit.of(model)
    budget, s = engine._budget, engine._budget.switches
    one = replace(budget, k=1)
    eta = 50 * unit.alone
    horizon = max(8, min(_TICKS, 5 * s + 2))

    def make(source: Any, horizon: int = horizon) -> SparseGumbel:
        return SparseGumbel(one, columns=_COLUMNS, horizon=horizon, eta=eta, source=source, radix=2)

    runs = min(s, _MOST_SWITCHES)
    low, high, named = _waits(runs, eta, unit, float(budget.query.scale))
    switched = sparse_vector_loss(lambda source: make(source, len(low)), low, high, named) * s / runs
    selected = rho_of_selections((s + 1) * model.k, unit.sides * unit.alone, _selection_scale(make))
    counted = (s + 1) * model.k * _counter_rho(make, horizon, unit.alone)
    rho = selected + counted
    told = f"exact law, {s} switches, {runs} of them played"
    if isinstance(model.charge, ApproxDP):
        found = switched + epsilon_of_rho(rho, float(model.charge.delta))
        report = Report.computed(model, told, "exact law", "epsilon", model.charge.epsilon, found)
    else:
        # What lies in an interval of this length costs at most an eighth of its square.
        report = Report.computed(model, told, "exact law", "rho", float(model.charge.rho), rho + switched**2 / 8 / s)
    return replace(report, aspect="noise")


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The least epsilon at delta over all orders a: a rho + ln(1 - 1/a) - ln(delta a)/(a - 1).

    >>> round(epsilon_of_rho(0.024356, 1e-6), 4)
    1.0
    """

    def bound(b: float) -> float:
        return (1 + b) * rho - math.log1p(1 / b) - (math.log(delta) + math.log1p(b)) / b

    low, high = 1e-6, 1e12
    for _ in range(300):  # the derivative has one zero; thirds of the logarithm
        left, right = low * (high / low) ** (1 / 3), low * (high / low) ** (2 / 3)
        low, high = (low, right) if bound(left) < bound(right) else (left, high)
    return max(0.0, bound(low))


def _waits(runs: int, eta: int, unit: Unit, scale: float) -> tuple[IntArray, IntArray, dict[int, int]]:
    """Ten columns wait at the bar for four ticks, higher on the right by what a unit moves, and then another column
    exceeds it; and all of that again. Under replacement that column is the higher one on the left."""
    far = 40 * (eta + math.ceil(scale))
    low, named, h = [np.zeros(_COLUMNS, dtype=np.int64)], {1: 0}, np.zeros(_COLUMNS, dtype=np.int64)
    over = max(2, round(scale / 2))
    for run in range(1, runs + 1):
        waiting = np.array([2 * far * run, *[2 * far * run + eta] * 10, h[-1]])
        ending = waiting.copy()
        ending[0], ending[-1] = waiting[0] + far, waiting[0] + far + eta + over
        low += [waiting - h, 0 * h, 0 * h, 0 * h, ending - waiting]
        h = ending
        named[len(low)] = 0
    high = [row.copy() for row in low]
    high[0][1:11] += unit.alone
    if unit.replaced:
        low[0][11] += unit.alone
    return np.array(low), np.array(high), named


def _selection_scale(make: Engine) -> float:
    """Two columns race in the first selection, one ahead by a known count."""
    rows = np.zeros((1, _COLUMNS), dtype=np.int64)
    rows[0, 0] = _BETWEEN

    def first_wins(variate: float) -> bool:
        def plant(drawn: Drawn) -> float:
            if not isinstance(drawn.law, str):
                return 0.0
            return {0: variate, 1: 1 / 3}.get(drawn.place, -_FAR)  # type: ignore[arg-type]

        return int(make(Tap(plant)).advance(rows)[0][0, 0]) == 0

    low, high = -_FAR / 2, _FAR / 2
    for _ in range(75):
        middle = (low + high) / 2
        low, high = (low, middle) if first_wins(middle) else (middle, high)
    return _BETWEEN / (1 / 3 - APART - high)


def _counter_rho(make: Engine, horizon: int, moved: int) -> float:
    """Of the counter of one named column, in all ticks."""
    rows = np.zeros((horizon, _COLUMNS), dtype=np.int64)
    responses, laws = counter_table(lambda source: make(source), rows, {1: 0})
    mu = separation(responses, laws, np.ones(horizon))
    return mu**2 * moved**2 / 2
