"""Mechanisms that release labels with counts (`UnknownHistogram`, `StreamingTopK` and the like), as games see them.

A game hands over rows of integers and sees as many numbers in every tick. So a row says how often each of a few labels
occurs, and a release becomes three numbers for each label: whether it is shown, in which place, and its count. Which
labels are shown is decided near a threshold that is made for a small delta, and games resolve little of that:
thresholds and exact laws (labels, switches) are audited by `audit.laws`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evertally.audit.game import Factory, FloatArray, owned, take
from evertally.audit.label_noise import item_table, separation
from evertally.audit.report import Report
from evertally.privacy import ApproxZCDP
from evertally.statistics import StreamingTopK, UnknownHistogram
from evertally.statistics.unknown import ItemFinder
from evertally.users.distinct_unknown import UnknownDistinctUsers

_LABELS = ("left", "right", "third")
_MOST_TICKS = 64


def releases_labels(model: Any) -> bool:
    """Whether these audits are for the mechanism."""
    return isinstance(model, ItemFinder | StreamingTopK)


class Labelled:
    """A mechanism that releases labels, with rows and releases of fixed length."""

    def __init__(self, mechanism: Any) -> None:
        self._mechanism = mechanism
        self._seen = 0  # users
        self._labels = mechanism.labels if isinstance(mechanism, StreamingTopK) else _LABELS
        self.guarantee, self.charge, self.horizon = mechanism.guarantee, mechanism.charge, mechanism.horizon
        self.mechanism, self.columns = mechanism.mechanism, len(self._labels)
        self.audited_as = type(mechanism).__name__
        # Mechanisms of blocks do not say how far an event moves a row; one label more or less is always legal.
        self.sensitivity, self.neighbours = getattr(mechanism, "sensitivity", None), mechanism.neighbours

    def step(self, row: Any) -> FloatArray:
        row = np.atleast_1d(row)  # of one label it is a number
        fed = row if isinstance(self._mechanism, StreamingTopK) else self._events(row)
        if owned(self._mechanism):  # each event of a user of its own, as if all were new
            first, self._seen = self._seen, self._seen + len(fed)
            fed = fed, list(range(first, self._seen))
        return as_numbers(take(self._mechanism, fed).value, self._labels)

    def _events(self, row: Any) -> list[Any]:
        """Events with these totals, each of one label: an event may always name fewer than it is allowed to."""
        events: list[Any] = []
        if owned(self._mechanism):
            return [label for label, n in zip(self._labels, np.asarray(row).tolist(), strict=True) for _ in range(n)]
        w = self._mechanism._options["max_weight"]
        for label, total in zip(self._labels, np.asarray(row).tolist(), strict=True):
            events += [{label: w}] * (total // w) + ([{label: total % w}] if total % w else [])
        return events


def as_numbers(value: Mapping[str, int], labels: Sequence[str]) -> FloatArray:
    """What is released about each of these labels: whether it is shown, its place, its count."""
    places = {label: place for place, label in enumerate(value, start=1)}
    rows = [[label in value, places.get(label, 0), value.get(label, 0)] for label in labels]
    return np.array(rows, dtype=np.float64).ravel()


def labelled(factory: Factory) -> Factory:
    """A factory of the same mechanisms with rows and releases of fixed length."""
    return lambda key: Labelled(factory(key))


def has_counts(model: Any) -> bool:
    """Whether all its labels can be shown, and their noise is a fixed matrix of draws."""
    kinds = UnknownHistogram, UnknownDistinctUsers
    return type(model) in kinds and model.mechanism == "tree" and isinstance(model.charge, ApproxZCDP)


def counts_report(factory: Factory, model: Any) -> Report:
    """The noise of the counts of a label, all shown: the most powerful test against a change in its worst tick."""
    charge = model.charge
    ticks = min(model.horizon or 0, _MOST_TICKS)
    w = int(model._options.get("max_weight", 1))
    responses, laws = item_table(factory, [1] + [0] * (ticks - 1), weight=w)
    changed = [(np.arange(1, ticks + 1) >= t).astype(np.float64) for t in range(1, ticks + 1)]
    mu = max(separation(responses, laws, moved) for moved in changed)
    audited = mu * math.sqrt(model.sensitivity.l2_squared)
    adversary = f"counts of labels, {ticks} ticks"
    # Of a part: which labels are shown tells more.
    return Report.computed(model, adversary, "closed form", "mu of counts", math.sqrt(2 * charge.rho), audited, "noise")
