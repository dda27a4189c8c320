"""Exact small copies of mechanisms that find labels: every combination of draws over two ticks.

The copy has the options of the mechanism, its own code, and a horizon of two ticks. A label that others have as well,
far above the threshold or right at it, occurs once more: the Renyi divergence of all that is released about it, over
its order, is at most the part of rho that one label has. Where draws have too many values, the copy is made for a
larger rho: what an event is charged is the same for every promise. The row says for which.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from evertally.audit.game import owned
from evertally.audit.laws.enumerated import item_loss
from evertally.audit.laws.own_arithmetic import Unit
from evertally.audit.laws.thresholds import engine_of
from evertally.audit.report import Report
from evertally.noise import NoiseKey, simulation
from evertally.privacy import ApproxZCDP

_ORDERS = (1.25, 1.5, 2.0, 3.0)
_TAIL = 1e-12
_LARGEST_VARIANCE = 9.0  # of a draw: two draws of some hundred values each
_TICKS = 2


def is_small_copy(model: Any) -> bool:
    """Whether labels are found by a tree, and single events are protected."""
    return engine_of(model) is not None and model.unit == "event" and not owned(model)


def label_report(model: Any) -> Report:
    """The true loss of one label more in a copy of two ticks, times the labels of an event, against its rho.

    >>> import evertally as et
    >>> words = et.UnknownHistogram(guarantee=et.ApproxDP(1.0, 1e-6), horizon=365, key=et.simulation(0))
    >>> report = label_report(words)
    >>> report.verdict, report.fraction > 0.95
    ('holds (tight)', True)
    """
    unit, charge = Unit.of(model), model.charge
    copy = _made(model, charge, simulation(0))
    variance = float(engine_of(copy).tree.law.sigma_squared)
    if variance > _LARGEST_VARIANCE:
        louder = Fraction(math.ceil(variance / _LARGEST_VARIANCE))
        charge = ApproxZCDP(charge.exact_rho * louder, charge.exact_delta, force=True)
        copy = _made(model, charge, simulation(0))
    high = int(copy.threshold_at(1)) + 40 * math.ceil(math.sqrt(2 * _LARGEST_VARIANCE))
    at_threshold = max(1, int(copy.threshold_at(1)) // unit.weight)
    found = []
    for times in (-(-high // unit.weight), at_threshold):
        for tick in range(_TICKS):
            base = [times, 0]
            more = [n + (i == tick) for i, n in enumerate(base)]
            loss = item_loss(lambda key: _made(model, charge, key), more, base, weight=unit.weight, tail=_TAIL)
            found += [(loss.renyi(order) / order, f"{times}, change of tick {tick + 1}") for order in _ORDERS]
    rho, adversary = max(found)
    told = f"a label once more among {adversary} of 2, rho {charge.rho:g}"
    audited = rho * unit.sides * unit.labels
    return replace(Report.computed(model, told, "exact law", "rho", charge.rho, audited), aspect="loss")


def _made(model: Any, charge: Any, key: NoiseKey) -> Any:
    options = model._options | {"guarantee": charge, "horizon": _TICKS, "radix": 2, "max_labels": None}
    if "k" in options:
        options["k"] = 2**20  # labels of the enumeration are one and the same: none may crowd another out
    return type(model)(**options, key=key)
