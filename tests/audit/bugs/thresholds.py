"""Bugs in the threshold of an unknown domain: its height, for whom it is made, and what is remembered about labels."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, once_made, plant, replaced
from evertally.bounds.selection import L, Threshold
from evertally.encode import ItemDoor
from evertally.encode.plain import pairs
from evertally.selection.unknown import UnknownHistogram, UnknownTopK
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

    def change(self: Any) -> None:
        self._threshold = replace(self._threshold, move=1)

    return once_made(UnknownHistogram, change)


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

    def change(self: Any) -> None:
        self._threshold = replace(self._threshold, T=1)

    return once_made(UnknownHistogram, change)


@plant(_FRESH)
def delta_for_one_label() -> Bug:
    """delta for one label, whatever an event has (streaming-selection 7.2: Delta0 labels are at risk)"""

    def change(self: Any) -> None:
        self._threshold = replace(self._threshold, delta=self.charge.exact_delta)

    return once_made(UnknownHistogram, change)


@plant(_FRESH)
def threshold_by_age() -> Bug:
    """threshold by the age of a label (streaming-selection 7.2: per_tick thresholds are data-independent)"""
    original = UnknownHistogram._publish

    def publish(self: Any) -> dict[str, int]:
        first = self.__dict__.setdefault("_first", [])
        first += [self._tree.tick] * (len(self._table) - len(first))
        public = self._threshold
        self._threshold = SimpleNamespace(at=lambda t: np.array([public.at(t - f + 1) for f in first], dtype=np.int64))
        shown = original(self)
        self._threshold = public
        return shown

    return replaced(UnknownHistogram, _publish=publish)


@plant(_FRESH)
def sticky_too_early() -> Bug:
    """labels remembered as released before they are (streaming-selection 7.1: sticky mode needs the released set, which
    is public)"""
    original = UnknownHistogram._publish

    def publish(self: Any) -> dict[str, int]:
        shown = original(self)
        if self._sticky:
            self._released[:] = True
        return shown

    return replaced(UnknownHistogram, _publish=publish)


@plant(_FRESH)
def weightless_labels() -> Bug:
    """labels of weight 0 remembered (streaming-selection 1.3: dropped before the truncation, else an event brings any
    number of labels)"""

    def row(self: ItemDoor, event: object, tick: int) -> dict[str, int]:
        weightless = [(self._item(value), weight) for value, weight in pairs(event) if weight == 0]
        counted = {} if weightless else self._cut(self._items(event), tick)
        return counted | {item: 0 for item, _ in weightless if item is not None}

    return replaced(ItemDoor, row=row)


@plant("the best label of an unknown domain")
def ranked_by_exact_counts() -> Bug:
    """labels ranked by their exact counts (streaming-selection 5.2: the cut to k is post-processing of released
    counts)"""

    def best(self: Any, pairs: list[tuple[int, str]]) -> list[tuple[int, str]]:
        exact = dict(zip(self._table.labels.list(), self._table.counts.tolist(), strict=True))
        return sorted(pairs, key=lambda pair: (-exact[pair[1]], pair[1]))[: self.k]

    return replaced(UnknownTopK, _best=best)
