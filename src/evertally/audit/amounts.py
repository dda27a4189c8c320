"""Audits of amounts: the coins that round what one event gives are in nobody else's numbers (additions 12).

Played at the real door, on a grid of one step: there a single coin that is tossed anew moves a column as far as a whole
event may.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np

from evertally.audit.report import Report
from evertally.noise import simulation
from evertally.statistics.in_steps import InSteps
from evertally.values.epochs import AdaptiveSum
from evertally.values.sums import RunningSum

Amounts = InSteps | RunningSum | AdaptiveSum
_KEYS, _EQUAL, _LABELS = 4, 3, 3


def of_amounts(model: Any) -> TypeGuard[InSteps]:
    """Whether its events give amounts to columns, which are counted in steps."""
    return isinstance(model, InSteps) and model.resolution is not None


def tosses_coins(model: Any) -> TypeGuard[Amounts]:
    """Whether amounts of events are rounded by coins, each by itself."""
    if isinstance(model, RunningSum):
        return model.rounding == "random" and model.max_total_per_user is None
    return of_amounts(model) or (isinstance(model, AdaptiveSum) and model.rounding == "random")


def largest_amount(model: InSteps, share: float = 1.0) -> dict[str, float]:
    """An event that gives the largest amount, or a part of it, to as many columns as it may."""
    return dict.fromkeys(model.labels[: model.contribution.max_per_event], float(model.max_weight) * share)


def coins_report(model: Amounts) -> Report:
    """How far a row moves when one of many events is taken away, in steps, against the columns of an event.

    >>> import evertally as et
    >>> common = {"guarantee": et.ZCDP(0.5), "horizon": 4, "key": et.simulation(0)}
    >>> by_label = et.Histogram(categories=["a", "b"], max_weight=20, resolution=0.01, **common)
    >>> [round(coins_report(made).fraction, 6) for made in (by_label, et.RunningSum(upper=5, **common))]
    [1.0, 1.0]
    """
    moved = max(int(np.abs(row).sum()) for row in _taken_away(model))
    claimed = float(model.contribution.max_per_event) if isinstance(model, InSteps) else 1.0
    words = "one of many events, rounded by coins"
    return Report.computed(model, words, "door", "l1 change of coins", claimed, float(moved), "change")


def _taken_away(model: Amounts) -> Iterator[Any]:
    options, events = _by_category(model) if isinstance(model, InSteps) else _in_all(model)
    for key in range(_KEYS):
        door = type(model)(**options, key=simulation(key))._door
        for many in (events * _EQUAL, [event for event in events for _ in range(_EQUAL)]):
            whole = door.events(many, 1)
            for place in range(len(many)):
                moved = whole - door.events(many[:place] + many[place + 1 :], 1)
                yield moved[-1:] if isinstance(model, AdaptiveSum) else moved  # sizes are before the sum


def _by_category(model: InSteps) -> tuple[dict[str, Any], list[Any]]:
    most = float(model.max_weight)
    options = model._options | {"guarantee": model.guarantee, "max_weight": most, "resolution": most}
    labels, longest = list(model.labels[:_LABELS]), model.contribution.max_per_event
    events: list[dict[str, float]] = [{label: most * share} for label in labels for share in (0.5, 0.25, 1)]
    if longest > 1:
        events += [dict.fromkeys(labels[:longest], most * share) for share in (0.5, 0.75)]
        events.append(dict.fromkeys(labels, most / 2))
    return options, events


def _in_all(model: RunningSum | AdaptiveSum) -> tuple[dict[str, Any], list[Any]]:
    most = float(model.upper)
    if isinstance(model, RunningSum):
        most = max(most, -float(model.lower))
    options = model._options | {"guarantee": model.guarantee, "resolution": most}
    return options, [most * share for share in (0.5, 0.25, 0.75, 1, -0.5, -0.25)]
