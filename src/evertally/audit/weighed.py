"""Audits of counts with a workload: the separation of the best test, from the program's own noise and sums."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import numpy as np

from evertally.audit.game import Factory
from evertally.audit.gaussian import AnyLaw, ImpulseSource, claimed_mu, fitting, form_of, impulse_response, widened
from evertally.audit.laplace import is_real_laplace, largest
from evertally.audit.report import Report
from evertally.counting import age_ways
from evertally.counting.process import FloatArray
from evertally.counting.weighing import AgeEngine, WeightedEngine
from evertally.counting.workloads import ByAge, Weights
from evertally.noise import DiscreteLaplace, ZeroNoise
from evertally.privacy import PureDP
from evertally.statistics import Counter
from evertally.statistics.workload_options import Weighing

_FEW_COLUMNS = 16  # whose sums are read, where there are many
_LOUD = 2**24  # an input so large that rounding its sums does not matter, and small enough not to be clipped


def is_weighed(model: Any) -> TypeGuard[Weighing]:
    """Whether it counts with a workload."""
    return isinstance(model, Weighing) and isinstance(model._engine, AgeEngine | WeightedEngine)


def sums_of(factory: Factory, model: Any, ticks: int) -> FloatArray:
    """What an input of 1 at each tick adds to each release, for some columns: (columns, releases, inputs). Played
    without noise, and without users, whose cap would cut the input."""
    nobody = model._options | {"guarantee": model.guarantee, "unit": "event", "max_events_per_user": None}
    width = model._setting.columns
    kept = np.unique(np.linspace(0, width - 1, min(width, _FEW_COLUMNS)).astype(int))

    def played(tick: int) -> FloatArray:
        made = type(model)(**nobody, key=ZeroNoise()) if model.takes_users else factory(ZeroNoise())
        rows = np.zeros((ticks, width), dtype=np.int64)
        rows[tick] = _LOUD
        shown = made.run(rows[:, 0] if isinstance(model, Counter) else rows)
        return np.asarray(shown, dtype=np.float64).reshape(ticks, width)[:, kept]

    return np.array([played(tick) for tick in range(ticks)]).transpose(2, 1, 0) / _LOUD


@fitting
def noise_of(model: Any, ticks: int) -> tuple[FloatArray, list[AnyLaw]]:
    """What a draw of 1 adds to each release, in columns, and the law of each draw."""
    if isinstance(model.workload, ByAge):
        source, setting = ImpulseSource(), widened(model._setting, 6 * ticks + 64)
        W, laws = source.response(age_ways.build(model._choice, setting, model.workload, source), ticks)
        return W * float(model.workload.series().step), laws
    W, laws = impulse_response(model, ticks)
    return W * np.array(model.workload.alpha or [1] * ticks, dtype=np.float64)[:ticks, None], laws


def weighed_report(factory: Factory, model: Any, ticks: int) -> Report:
    """The loss of the worst tick, in which a user has all events that count: mu for Gaussian noise, epsilon for Laplace
    noise that the releases determine."""
    W, laws = noise_of(model, ticks)
    lost = [_lost(model, ticks, A, W, laws) for A in np.unique(sums_of(factory, model, ticks), axis=0)]
    loss = max(lost, key=lambda of_column: float(of_column.max()))
    claim = model.charge.epsilon if isinstance(model.charge, PureDP) else claimed_mu(model.charge)
    unit, words = "epsilon" if isinstance(model.charge, PureDP) else "mu", f"change of tick {int(np.argmax(loss)) + 1}"
    audited = float(loss.max()) * _one(model)
    return Report.computed(model, words, "closed form", unit, claim, audited, "noise")


def _lost(model: Any, ticks: int, A: FloatArray, W: FloatArray, laws: list[AnyLaw]) -> FloatArray:
    """What a change by 1 of each tick loses, in one column."""
    roundings = model.noise.spread(ticks).roundings
    if not isinstance(model.charge, PureDP):
        step = float(model.workload.series().step) if isinstance(model.workload, ByAge) else 1.0
        return np.asarray(form_of(W, laws, roundings * step**2, A).mu)
    if is_real_laplace(laws):
        return np.asarray(largest(W, A.T[:, :, None], roundings))
    return _determined(W, laws, A)


def _one(model: Any) -> float:
    """How far a neighbour moves the rows of one tick: of several columns that is taken as it is declared, in the norm
    that the noise hides. Weights of ticks are in the sums."""
    if isinstance(model, Counter):
        return float(model.contribution.max_weight * (model.contribution.max_events_per_user or 1))
    declared = model.sensitivity
    moved = float(declared.l1) if isinstance(model.charge, PureDP) else math.sqrt(declared.l2_squared)
    weights = model.workload.beta[: model.horizon] if isinstance(model.workload, Weights) else ()
    return moved / max((1, *weights))


def _determined(W: FloatArray, laws: list[AnyLaw], A: FloatArray) -> FloatArray:
    """What each tick loses where the releases determine the draws."""
    scales = np.array([float(law.scale) if isinstance(law, DiscreteLaplace) else math.nan for law in laws])
    moved = np.abs(np.linalg.lstsq(W, A, rcond=None)[0]) / scales[:, None]
    return np.asarray(moved.sum(axis=0))
