"""Audits of sums with an allowance of each user, and of sums whose bound changes from epoch to epoch.

Allowances: streams of two users through the real door and rule, with one of them and without, restored between ticks as
well; what the two differ by is held against the noise that is read off the program (users-and-domains 3 and 10).
Epochs: what an event moves at the door against the noise of each counter, and what a boundary does: the bound must
follow from what was released, and the noise of what was counted before must stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from evertally.audit.attacks import Finding
from evertally.audit.dynamic import Losses
from evertally.audit.game import Factory, FloatArray
from evertally.audit.gaussian import claim_of, impulse_response
from evertally.audit.report import Aspect, Report
from evertally.audit.whitebox import smaller
from evertally.counting.choose import Choice, model_of
from evertally.counting.processes import Setting
from evertally.noise import simulation
from evertally.privacy import Neighbours, PureDP
from evertally.values.epochs import AdaptiveSum
from evertally.values.epochs_bounds import KNOWN
from evertally.values.epochs_engine import SHOWN
from evertally.values.sums import RunningSum

_TICKS, _PLACES = 16, 4
_MOST_EVENTS = 1000  # of one user at one tick
_SMALL = 100  # amounts of one step, at each tick before and after a boundary


def has_allowance(model: Any) -> bool:
    """Whether it is a sum with an allowance of each user."""
    return isinstance(model, RunningSum) and model.max_total_per_user is not None


def has_epochs(model: Any) -> bool:
    """Whether it is a sum whose bound changes from epoch to epoch."""
    return isinstance(model, AdaptiveSum)


# -- games -------------------------------------------------------------------------------------------------------------


def game_of_amounts(model: Any) -> Factory:
    """The game with the largest amount, or all that a user is allowed, at the first tick against nothing. Few games
    show little of a promise that is kept, and enough of noise that is missing."""
    options = model._options | {"guarantee": model.guarantee}
    return lambda key: _SpentOrNot(type(model)(**options, key=key))


class _SpentOrNot:
    """A mechanism for games: the first row says whether the amounts are there, later ones nothing."""

    columns = 1

    def __init__(self, mechanism: Any) -> None:
        self._mechanism = mechanism
        self.guarantee, self.charge = mechanism.guarantee, mechanism.charge
        self.mechanism, self.horizon = mechanism.mechanism, mechanism.horizon
        self.audited_as = type(mechanism).__name__

    def step(self, row: int) -> FloatArray:
        made = self._mechanism
        many = min(_MOST_EVENTS, -(-made.sensitivity.linf // made._grid.most)) if has_allowance(made) else 1
        amounts = [made.upper] * many if row else []
        made.step_events(amounts, users=["a"] * len(amounts) if made.takes_users else None)
        return np.asarray(made._kept.played.recent[-1][:1], dtype=np.float64)


# -- allowances --------------------------------------------------------------------------------------------------------


def allowance_report(model: RunningSum) -> Report:
    """What the worst of two neighbouring streams of users loses.

    >>> import evertally as et
    >>> model = et.RunningSum(upper=5, unit="user", max_total_per_user=7, mechanism="tree", guarantee=et.ZCDP(0.5),
    ...                       horizon=64, key=et.simulation(0))
    >>> round(allowance_report(model).fraction, 6)
    1.0
    """
    small: Any = smaller(model, min(model.horizon or _TICKS, _TICKS), max_window=0)
    ticks = min(small.horizon, _TICKS)
    roundings = float(small._engine.inner.noise.spread(ticks).roundings)
    losses = Losses(*impulse_response(small, ticks), roundings)
    pairs = list(_allowance_pairs(small, ticks))
    if not losses.known:
        return Report.not_here(small, "allowance", "of refined Laplace estimates there is no formula")
    lost = losses.of(np.stack([moved for moved, _ in pairs])[:, :, None])
    worst = int(np.argmax(lost))
    return Report.computed(small, pairs[worst][1], "closed form", *claim_of(small.charge), float(lost[worst]))


def _allowance_pairs(model: Any, ticks: int) -> Iterator[tuple[FloatArray, str]]:
    """Differences of sums between neighbours, and words for each."""
    grid, allowed, places = model._grid, model.sensitivity.linf, min(_PLACES, ticks)
    many = min(_MOST_EVENTS, -(-allowed // grid.most))
    amounts = [[], [model.upper] * many] + ([[model.lower] * many] if grid.low < 0 else [])
    streams = list(product(amounts, repeat=places))
    make = model._blueprint().engine
    nobody = ((),) * places
    alone = [_rows(model, make, stream, nobody) for stream in streams]
    moved = []
    for number, stream in enumerate(streams):
        other = streams[-1 - number]
        moved.append((alone[number], f"stream {number} against nothing"))
        both, without = _rows(model, make, stream, other), _rows(model, make, nobody, other)
        moved.append((both - without, f"stream {number} beside another user"))
        moved.append((_rows(model, make, stream, nobody, restarts=True), f"stream {number}, restored in between"))
        if model.neighbours is Neighbours.REPLACE:
            moved += [(alone[number] - one, f"stream {number} against {i}") for i, one in enumerate(alone[::5])]
    for at in {tuple(range(places)), tuple(k * ticks // places for k in range(places))}:
        for rows, words in moved:
            path = np.zeros(ticks)
            path[list(at)] = rows
            yield np.cumsum(path), f"{words}, ticks {[tick + 1 for tick in at]}"


def _rows(model: Any, make: Any, mine: Any, theirs: Any, restarts: bool = False) -> FloatArray:
    """What the rule lets through, place by place; the first user's events come first."""
    rule, rows = make(model._source).rule, []
    for place, (own, others) in enumerate(zip(mine, theirs, strict=True)):
        if restarts:
            saved, rule = rule.save(), make(model._source).rule
            rule.load(place, saved)
        rule.begin(place)
        users = ["a"] * len(own) + ["b"] * len(others)
        rows.append(float(rule.admit(model._door.owned([*own, *others], users, place + 1))[0]))
    return np.array(rows)


# -- epochs ------------------------------------------------------------------------------------------------------------


def epochs_report(model: Any) -> Report:
    """What one event, or all of a user, loses: in the counts of sizes, and in the counter of its epoch, under the bound
    where that is most."""
    plan, pure = model._engine._plan, isinstance(model.charge, PureDP)
    moved = _moved_at_the_door(model)
    columns = len(plan.bounds.steps)
    norm = 1 if pure else 2
    sizes = _largest_loss(plan.sizes, plan.sizes_setting) * max(
        float(np.linalg.norm(row[:columns], norm)) for row in moved
    )
    sums = max(
        _largest_loss(plan.sums, plan.setting(epoch, place)) * max(abs(row[columns + place]) for row in moved)
        for epoch in {plan.epochs.lengths.index(length) for length in plan.epochs.lengths}
        for place in {0, plan.bounds.first, columns - 1}
    )
    lost = sizes + sums if pure else math.hypot(sizes, sums)
    words = "an event, its size and its amount"
    # The cap of users is not played: so many events of one are taken for granted.
    aspect: Aspect = "loss" if model._options["max_events_per_user"] is None else "noise"
    return Report.computed(model, words, "closed form", *claim_of(model.charge), lost, aspect)


def _largest_loss(choice: Choice, setting: Setting) -> float:
    """Of a change by one, at the worst tick."""
    ticks = min(setting.horizon or _TICKS, 4 * _TICKS)
    if setting.horizon is not None and setting.horizon > ticks:
        setting = Setting(setting.change, ticks, setting.columns, setting.memory_limit)
    counter: Any = SimpleNamespace(_choice=choice, _setting=setting)
    losses = Losses(*impulse_response(counter, ticks), float(model_of(choice, setting).spread(ticks).roundings))
    if not losses.known:
        return 0.0
    return float(losses.of(np.tril(np.ones((ticks, ticks))).T[:, :, None]).max())


def _moved_at_the_door(model: Any) -> list[FloatArray]:
    """Differences between rows of neighbours at the real door, for one event or as many as a user has."""
    count = model._options["max_events_per_user"] or 1
    tried = [None, 0, 1, model.upper, model.upper / 2, 1e300, float("inf"), "7"]
    rows = [np.asarray(model._door.events([event] * count, 1), dtype=np.float64) for event in tried]
    if model.neighbours is Neighbours.ADD_REMOVE:
        return rows
    return [one - other for one in rows for other in rows]


def boundary_attack(model: Any, runs: int = 12) -> Finding:
    """Plays streams over a boundary in which so few amounts are large that noise decides about the bound. Leaks are
    bounds that do not follow from what was released before, and totals that come without the noise of the epoch that is
    closed: both show what was counted exactly."""
    options = model._options | {"guarantee": model.guarantee, "epochs": [2, 2], "horizon": 4}
    options |= {"unit": "event", "max_events_per_user": None}
    for seed in range(runs):
        made = type(model)(**options, key=simulation(seed))
        plan, totals = made._engine._plan, []
        # So many small ones that a bound is decided at all, and so few large ones that noise decides which.
        bounds, counts = plan.bounds, len(plan.bounds.steps)
        small = max(_SMALL, KNOWN * bounds.noise(counts))
        few = max(bounds.noise(counts - 1), math.floor((1 - bounds.quantile) * 2 * small))
        place, released = bounds.first, None
        for tick in range(1, 5):
            made.step([made.resolution] * small + ([made.upper] * few if tick == 1 else []))
            row = made._kept.played.recent[-1]
            if tick in (1, 3):
                place = plan.bounds.decide(released, place)
            if row[1] != plan.bounds.steps[place]:
                return Finding("boundary", True, f"the bound of tick {tick} does not follow from what was released")
            released = row[SHOWN:]
            totals.append(int(row[0]))
        allowed = model_of(plan.sums, plan.setting(1, place)).spread(1).radius(1e-9)
        if abs(totals[2] - totals[1] - small) > allowed:
            return Finding("boundary", True, "the noise of a closed epoch is gone from the totals after it")
    return Finding("boundary", False, "bounds follow from releases, and the noise of closed epochs stays")
