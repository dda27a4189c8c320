"""Audits of counters with a workload: the separation of the best test, from the program's own noise and sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evertally.audit.game import Factory
from evertally.audit.gaussian import AnyLaw, ImpulseSource, claimed_mu, fitting, form_of, impulse_response, widened
from evertally.audit.laplace import is_real_laplace, largest
from evertally.audit.report import Report
from evertally.counting import age_ways
from evertally.counting.process import FloatArray
from evertally.counting.weighing import AgeEngine, WeightedEngine
from evertally.counting.workloads import ByAge
from evertally.noise import DiscreteLaplace, ZeroNoise
from evertally.privacy import PureDP
from evertally.statistics import Counter

_LOUD = 2**24  # an input so large that rounding its sums does not matter, and small enough not to be clipped


def is_weighed(model: Any) -> bool:
    """Whether it is a counter with a workload."""
    return isinstance(model, Counter) and isinstance(model._engine, AgeEngine | WeightedEngine)


def sums_of(factory: Factory, model: Any, ticks: int) -> FloatArray:
    """What an input of 1 at each tick adds to each release, in columns: played without noise, and without users, whose
    cap would cut the input."""
    nobody = model._options | {"guarantee": model.guarantee, "unit": "event", "max_events_per_user": None}

    def played(tick: int) -> Any:
        made = type(model)(**nobody, key=ZeroNoise()) if model.takes_users else factory(ZeroNoise())
        return made.run([_LOUD * (t == tick) for t in range(ticks)])

    return np.array([played(tick) for tick in range(ticks)], dtype=np.float64).T / _LOUD


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
    A, (W, laws) = sums_of(factory, model, ticks), noise_of(model, ticks)
    one = model.contribution.max_weight * (model.contribution.max_events_per_user or 1)
    if not isinstance(model.charge, PureDP):
        step = float(model.workload.series().step) if isinstance(model.workload, ByAge) else 1.0
        form = form_of(W, laws, model.noise.spread(ticks).roundings * step**2, A)
        audited = float(form.mu.max()) * one
        worst = f"change of tick {form.worst_tick}"
        return Report.computed(model, worst, "closed form", "mu", claimed_mu(model.charge), audited, "noise")
    if is_real_laplace(laws):
        loss = largest(W, A.T[:, :, None], model.noise.spread(ticks).roundings) * one
    else:
        loss = _determined(W, laws, A) * one
    worst = f"change of tick {int(np.argmax(loss)) + 1}"
    return Report.computed(model, worst, "closed form", "epsilon", model.charge.epsilon, float(loss.max()), "noise")


def _determined(W: FloatArray, laws: list[AnyLaw], A: FloatArray) -> FloatArray:
    """What each tick loses where the releases determine the draws."""
    scales = np.array([float(law.scale) if isinstance(law, DiscreteLaplace) else math.nan for law in laws])
    moved = np.abs(np.linalg.lstsq(W, A, rcond=None)[0]) / scales[:, None]
    return np.asarray(moved.sum(axis=0))
