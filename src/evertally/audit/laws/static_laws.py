"""Static mechanisms inside of constructions over dynamic data: the laws of their releases against the budget of each.

`audit.dynamic_inputs` adds up budget times distance over all releases, and takes for granted that a static mechanism
keeps its budget. Here the releases that a construction makes are noted with their budgets; each kind of release is then
made once more on two data sets that differ by one item, for every cell. By how much the row moves is asked of the
program, the laws are those that it draws (dynamic-data 2.4 and 3.2): scale >= l1/epsilon, sigma^2 >= l2^2/(2 rho).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from evertally.audit.dynamic import _copy, is_counted, lifetimes
from evertally.audit.dynamic_inputs import FixedKey
from evertally.audit.dynamic_streams import Players
from evertally.audit.laws.own_arithmetic import epsilon_of, rho_of
from evertally.audit.laws.tap import Tap
from evertally.audit.report import Report
from evertally.audit.watching import watched
from evertally.dynamic.node import SizeRelease
from evertally.dynamic.parts import Place
from evertally.privacy import PureDP
from evertally.statistics.dynamic_options import Dynamic

_TICKS = 12
_MOST_CELLS = 64

Asked = tuple[Any, Any, int]  # the mechanism, the budget, and how many cells its data have


def has_static(model: Dynamic) -> bool:
    """Whether it releases rows of a static mechanism whose noise looks at no data."""
    return not is_counted(model) and bool(getattr(model._taken.static, "additive", False))


def static_report(model: Dynamic) -> Report:
    """The release that comes closest to its budget, or exceeds it.

    >>> import evertally as et
    >>> count = et.DynamicCount(guarantee=et.PureDP(1.0), horizon=7, mechanism="subtract", key=et.simulation(0))
    >>> report = static_report(count)
    >>> report.verdict, round(report.fraction, 3)
    ('holds (tight)', 1.0)
    """
    small = _copy(model, _TICKS, 3)
    players = Players(small, min(_TICKS, small.horizon or _TICKS))
    asked: dict[tuple[str, str, int], Asked] = {}

    def note(mechanism: Any, data: Any, budget: Any, *_: Any) -> None:
        asked.setdefault((type(mechanism).__name__, str(budget), len(data)), (mechanism, budget, len(data)))

    with watched(type(small._taken.static), "fit", note), watched(SizeRelease, "fit", note):
        for pair in lifetimes(small, _TICKS)[:3]:
            for _ in players.play(pair.left, FixedKey()):
                pass
    found = [(*_losses(*one), str(one[1]), type(one[0]).__name__) for one in asked.values()]
    audited, claimed, budget, kind = max(found, key=lambda one: one[0] / one[1])
    unit = "epsilon" if "PureDP" in budget else "rho"
    adversary = f"one-shot law, one item in {len(found)} kinds of releases; {kind} with {budget}"
    return replace(
        Report.computed(model, adversary, "exact law", f"{unit} of a release", claimed, audited), aspect="noise"
    )


def _losses(mechanism: Any, budget: Any, cells: int) -> tuple[float, float]:
    """What one item loses in a release, and what its budget allows."""
    data = np.full(cells, 5, dtype=np.int64)
    tap = Tap()
    base = mechanism.fit(data, budget, Place(tap, "audit", 1), 5 * cells)
    laws = [drawn.law for drawn in tap.drawn]
    pure = isinstance(budget, PureDP)
    worst = 0.0
    for cell in sorted({*range(min(cells, _MOST_CELLS)), cells // 2, cells - 1}):
        more = data.copy()
        more[cell] += 1
        moved = np.abs(mechanism.fit(more, budget, Place(Tap(), "audit", 1), 5 * cells) - base).astype(np.float64)
        if len(laws) != len(moved):
            return math.inf, 1.0  # a number that carries no noise of its own
        cost = epsilon_of if pure else rho_of
        worst = max(worst, math.fsum(cost(law, float(move)) for law, move in zip(laws, moved, strict=True)))
    return worst, float(budget.epsilon if pure else budget.rho)
