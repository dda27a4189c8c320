"""Bugs in the threshold of an unknown domain: its height, for whom it is made, and what is remembered about labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, once_made, plant, replaced
from evertally.bounds.selection import L, Threshold
from evertally.encode import ItemDoor
from evertally.encode.plain import pairs
from evertally.selection.found import Found
from evertally.selection.item_engine import ItemEngine
from evertally.statistics import UnknownHistogram
from evertally.theory import selection as theory

_FRESH = "a label of a single event"


@plant(_FRESH)
def not_strict() -> Bug:
    """a count at the threshold is released (streaming-selection 10.4: strict > with integer noise)"""
    original = Threshold.at
    return replaced(Threshold, at=lambda self, t: original(self, t) - 1)


@plant(_FRESH)
def no_plus_one() -> Bug:
    """threshold without the + 1 (streaming-selection 7.1 (11): a label of one event has a count of 1)"""
    original = Threshold.at
    return replaced(Threshold, at=lambda self, t: original(self, t) - self.move)


@plant(_FRESH)
def plus_one_for_all() -> Bug:
    """threshold + 1 for events of any weight (streaming-selection 1.3: + DeltaInf for weights, + g for g events of a
    user)"""
    return _other_threshold(lambda histogram, threshold: replace(threshold, move=1))


def _other_threshold(change: Callable[[UnknownHistogram, Threshold], Threshold]) -> Bug:
    """Histograms whose tree has another threshold than it was made with."""

    def changed(histogram: UnknownHistogram) -> None:
        worker = histogram._worker()
        if isinstance(worker, ItemEngine):
            worker.threshold = change(histogram, worker.threshold)

    return once_made(UnknownHistogram, changed)


@plant(_FRESH)
def gaussian_quantile() -> Bug:
    """Gaussian quantile as a threshold for integer noise (streaming-selection 10.4: never the Gaussian quantile
    forms)"""

    def at(self: Threshold, t: int) -> int:
        tau = math.sqrt(self.variance / L(self.T, self.r))
        height = theory.m(self.T, self.r, tau=tau, delta=float(self.delta), kind=self.kind, t=t)
        return self.move - 1 + math.floor(height)

    return replaced(Threshold, at=at)


@plant(_FRESH)
def one_tick() -> Bug:
    """threshold for a single tick (streaming-selection 7.2: the bad mass is a union over all ticks)"""
    return _other_threshold(lambda histogram, threshold: replace(threshold, T=1))


@plant(_FRESH)
def delta_for_one_label() -> Bug:
    """delta for one label, whatever an event has (streaming-selection 7.2: Delta0 labels are at risk)"""

    def change(histogram: Any, threshold: Threshold) -> Threshold:
        return replace(threshold, delta=histogram.charge.exact_delta)

    return _other_threshold(change)


@plant(_FRESH)
def threshold_by_age() -> Bug:
    """threshold by the age of a label (streaming-selection 7.2: per_tick thresholds are data-independent)"""
    original = ItemEngine.released

    def released(self: Any, tick: int) -> Found:
        first = self.__dict__.setdefault("_first", [])
        first += [tick] * (len(self.table) - len(first))
        public = self.threshold
        self.threshold = SimpleNamespace(at=lambda t: np.array([public.at(t - f + 1) for f in first], dtype=np.int64))
        found = original(self, tick)
        self.threshold = public
        return found

    return replaced(ItemEngine, released=released)


@plant(_FRESH)
def sticky_too_early() -> Bug:
    """labels remembered as released before they are (streaming-selection 7.1: sticky mode needs the released set, which
    is public)"""
    original = ItemEngine.released

    def released(self: Any, tick: int) -> Found:
        found = original(self, tick)
        if self.sticky:
            self._shown_before[:] = True
        return found

    return replaced(ItemEngine, released=released)


@plant(_FRESH)
def weightless_labels() -> Bug:
    """labels of weight 0 remembered (streaming-selection 1.3: dropped before the truncation, else an event brings any
    number of labels)"""

    def row(self: ItemDoor, event: object, tick: int) -> dict[str, int]:
        weightless = [(self._item(value), weight) for value, weight in pairs(event) if weight == 0]
        counted = {} if weightless else self._cut(self._items(event), tick)
        return counted | {item: 0 for item, _ in weightless if item is not None}

    return replaced(ItemDoor, row=row, _bags=lambda self, events: None)  # event by event


@plant("the best label of an unknown domain")
def ranked_by_exact_counts() -> Bug:
    """labels ranked by their exact counts (streaming-selection 5.2: the cut to k is post-processing of released
    counts)"""
    original = ItemEngine.released

    def released(self: Any, tick: int) -> Found:
        most, self.most = self.most, None
        found, self.most = original(self, tick), most
        exact = dict(zip(self.table.labels.list(), self.table.counts.tolist(), strict=True))
        best = sorted(found.counts.items(), key=lambda pair: (-exact[pair[0]], pair[0]))
        return Found(dict(best[:most]), found.lost)

    return replaced(ItemEngine, released=released)
