"""Audits of amounts by category: the coins that round what one event gives are in nobody else's numbers (additions 12).

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

_KEYS, _EQUAL, _LABELS = 4, 3, 3


def of_amounts(model: Any) -> TypeGuard[InSteps]:
    """Whether its events give amounts to columns, which are counted in steps."""
    return isinstance(model, InSteps) and model.resolution is not None


def largest_amount(model: InSteps, share: float = 1.0) -> dict[str, float]:
    """An event that gives the largest amount, or a part of it, to as many columns as it may."""
    return dict.fromkeys(model.labels[: model.contribution.max_per_event], float(model.max_weight) * share)


def coins_report(model: InSteps) -> Report:
    """How far a row moves when one of many events is taken away, in steps, against the columns of an event.

    >>> import evertally as et
    >>> model = et.Histogram(categories=["a", "b"], max_weight=20, resolution=0.01, guarantee=et.ZCDP(0.5), horizon=4,
    ...                      key=et.simulation(0))
    >>> round(coins_report(model).fraction, 6)
    1.0
    """
    moved = max(int(np.abs(row).sum()) for row in _taken_away(model))
    claimed = float(model.contribution.max_per_event)
    words = "one of many events, rounded by coins"
    return Report.computed(model, words, "door", "l1 change of coins", claimed, float(moved), "change")


def _taken_away(model: InSteps) -> Iterator[Any]:
    most = float(model.max_weight)
    options = model._options | {"guarantee": model.guarantee, "max_weight": most, "resolution": most}
    labels, longest = list(model.labels[:_LABELS]), model.contribution.max_per_event
    events: list[dict[str, float]] = [{label: most * share} for label in labels for share in (0.5, 0.25, 1)]
    if longest > 1:
        events += [dict.fromkeys(labels[:longest], most * share) for share in (0.5, 0.75)]
        events.append(dict.fromkeys(labels, most / 2))
    for key in range(_KEYS):
        door = type(model)(**options, key=simulation(key))._door
        for many in (events * _EQUAL, [event for event in events for _ in range(_EQUAL)]):
            whole = door.events(many, 1)
            for place in range(len(many)):
                yield whole - door.events(many[:place] + many[place + 1 :], 1)
