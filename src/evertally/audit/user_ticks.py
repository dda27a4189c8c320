"""What a user whose events lie in several ticks loses, from the program's own noise matrix.

A game changes one tick. Where users are protected the worst pair may need more: an old user at tick 1 and a new one at
tick 0.8 T (users-and-domains 1.2), or one user in many ticks that are apart (1.3). With C the covariance of the noise
and A the prefix sums, paths D lose mu^2 = D' A' C^-1 A D under Gaussian noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from evertally.applications.dashboard import Dashboard, GroupBy
from evertally.audit.game import FloatArray
from evertally.audit.gaussian import claimed_mu, closed_form
from evertally.audit.report import Report
from evertally.privacy import Contribution, Neighbours, Participation, PureDP
from evertally.statistics import RunningMean
from evertally.statistics.linear_options import Linear
from evertally.values.quantiles import ValueQuantile


def has_user_ticks(model: Linear) -> bool:
    """Whether a user of it may be in several ticks, under Gaussian noise."""
    users = model.contribution.max_events_per_user is not None or model.contribution.separated
    return users and not isinstance(model.charge, PureDP)


def user_ticks_report(model: Linear, ticks: int) -> Report:
    """The worst of the telling paths of a user, or of two users in each other's place."""
    try:
        form = closed_form(model, ticks)
        squares = np.tril(np.ones((ticks, ticks))).T @ form.directions
        found = max(_paths(model, squares))
    except np.linalg.LinAlgError:
        found = math.inf, "a combination of releases that carries no noise"
    audited = math.sqrt(found[0])
    return Report.computed(model, found[1], "closed form", "mu", claimed_mu(model.charge), audited, "noise")


def _paths(model: Linear, G: FloatArray) -> Iterator[tuple[float, str]]:
    """mu^2 of each path, and what it is."""
    rule = model._setting.rule
    # Without a rule all events of a user may be in one tick, which is the most (S2): the first.
    of_ticks = [[0]] if rule is None else list(_apart(rule, len(G)))
    (same, opposite), cells = _rows(model), model._setting.columns
    worst = int(np.argmax(np.diag(G)))
    alone = opposite if model.neighbours is Neighbours.REPLACE else same
    yield alone * float(G[worst, worst]), f"change of tick {worst + 1}"
    for first in of_ticks:
        own = _square(G, first)
        yield same * own, f"a user in the ticks {_shown(first)}"
        if model.neighbours is not Neighbours.REPLACE:
            continue
        # Both at once, in other columns or with other signs as far as there are any; or the new user as late as can be.
        yield opposite * own, f"two users in the ticks {_shown(first)}"
        if cells == 1 and not model.contribution.signed:
            yield max(_one_for_another(G, same, first))


def _one_for_another(G: FloatArray, same: float, first: list[int]) -> Iterator[tuple[float, str]]:
    """In one column without signs: the same ticks, later."""
    own = _square(G, first)
    for late in range(len(G) - first[0]):
        other = [tick + late for tick in first if tick + late < len(G)]
        apart = own + _square(G, other) - 2 * float(G[np.ix_(first, other)].sum())
        yield same * apart, f"a user in the ticks {_shown(first)} for one in {_shown(other)}"


def _rows(model: Linear) -> tuple[float, float]:
    """The squared row of a user in one tick, and the squared difference of two users' rows, at most."""
    bounds: Contribution = model.contribution
    events = bounds.max_events_per_user or bounds.max_events_per_user_tick
    columns, height = model._setting.columns, float(bounds.max_weight * events) ** 2
    if isinstance(model, ValueQuantile):  # rows of cells, whose columns are not alike
        times = 1 if bounds.max_events_per_user else events**2
        left, right = model.worst_rows()
        apart = float(((left - right) ** 2).sum()) * times
        return float(max((left**2).sum(), (right**2).sum())) * times, apart
    if isinstance(model, RunningMean):
        return 2 * height, 4 * height
    if isinstance(model, Dashboard | GroupBy):  # an event moves all metrics of its type; at worst two types share none
        door: Any = model._door
        most = float((door._matrix.astype(np.float64) ** 2).sum(axis=1).max())
        return most * height, 2 * most * height
    b = min(bounds.max_per_event, columns)
    return b * height, (4 * b if bounds.signed else min(2 * b, columns)) * height


def _apart(rule: Participation, ticks: int) -> Iterator[list[int]]:
    """Ticks (from 0) that the rule keeps of one user: the earliest, and of the calendar neighbours in two blocks."""
    k = rule.most(ticks)
    starts = [start - 1 for start in rule.starts(k) if start <= ticks]
    yield starts
    if rule.calendar:
        for i, j in itertools.pairwise(range(1, len(starts))):
            # at the end of one block, and from then on at the beginning of each
            yield [*starts[: i - 1], starts[i] - 1, *starts[i:]][:k]
            yield [starts[i] - 1, starts[i], *starts[j:]][:k]
        if len(starts) > 1:
            yield [starts[1] - 1, *starts[1:]]


def _square(G: FloatArray, ticks: list[int]) -> float:
    return float(G[np.ix_(ticks, ticks)].sum())


def _shown(ticks: list[int]) -> str:
    few = ", ".join(str(tick + 1) for tick in ticks[:3])
    return f"{few}, ... ({len(ticks)})" if len(ticks) > 3 else few
