"""Probes by closed form: the most powerful test against Gaussian noise, read off the program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audit.probes.probing import (
    KEY,
    ROUNDING,
    Verdict,
    coarse_grid,
    counter,
    histogram,
    length,
    probe,
    separation,
    shift,
)
from evertally.audit.gaussian import closed_form
from evertally.noise import NoiseKey
from evertally.privacy import ZCDP
from evertally.statistics import RunningMean


@probe("closed form", "binary tree, 16 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.5), 16, radix=2), 0.5)


@probe("closed form", "tree of radix 3, 243 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.5), 243, radix=3), 0.5)


@probe("closed form", "binary tree that keeps no noise, 8 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.5), 8, radix=2, memory_limit=8), 0.5)


@probe("closed form", "refined tree, 16 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.005), 16, "honaker"), 0.005)


@probe("closed form", "square-root counter, 32 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.005), 32, "sqrt"), 0.005)


@probe("closed form", "square-root counter on a coarse grid, 8 ticks")
def _() -> Verdict:
    with coarse_grid(1):
        return separation(counter(ZCDP(0.005), 8, "sqrt"), 0.005)


@probe("closed form", "bank without a horizon, 63 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.005), None, "bank-open"), 0.005, ticks=63)


@probe("closed form", "epoch tree, 31 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.5), None, "epoch-tree"), 0.5, ticks=31)


@probe("closed form", "one event replaced")
def _() -> Verdict:
    make = histogram(ZCDP(0.5), 8, neighbours="replace", mechanism="tree", radix=2)
    return separation(make, 0.5, length(shift(make, ["a"], ["b"])))


@probe("closed form", "one item taken out of an event that was cut")
def _() -> Verdict:
    make = histogram(ZCDP(0.5), 8, protects="item", mechanism="tree", radix=2)
    events = [["a", "b", "c"], ["a", "b"], ["a", "c"], ["b", "c"]]
    moved = max(length(shift(make, [long], [short])) for long in events[:1] for short in events[1:])
    return separation(make, 0.5, moved)


@probe("closed form", "one event taken out of a batch of long ones")
def _() -> Verdict:
    make = histogram(ZCDP(0.5), 8, mechanism="tree", radix=2)
    batch: list[Any] = [["a", "b", "c"], ["c", "b"], ["a", "b"], ["c", "a"], ["b", "a"], ["c", "b", "a"]] * 3
    moved = max(length(shift(make, batch, batch[:i] + batch[i + 1 :])) for i in range(6))
    return separation(make, 0.5, moved)


@probe("closed form", "one user with four events")
def _() -> Verdict:
    make = counter(ZCDP(0.5), 8, radix=2, unit="user", max_events_per_user=4)
    return separation(make, 0.5, length(shift(make, [1] * 4, [], (["ann"] * 4, []))))


@probe("closed form", "one user's event moved to another tick")
def _() -> Verdict:
    make = counter(ZCDP(0.5), 3, radix=2, unit="user", max_events_per_user=1, neighbours="replace")
    directions = closed_form(make(KEY)).directions
    moved = np.array([1.0, 0.0, -1.0])
    mu = math.sqrt(np.cumsum(moved) @ directions @ moved)
    return mu > 1 + ROUNDING, f"the most powerful test separates by mu {mu:.6g}, claimed 1"


@probe("closed form", "every column changed by independent events")
def _() -> Verdict:
    promise = ZCDP(0.5, adversary="oblivious")
    make = histogram(promise, 8, neighbours="independent", max_per_event=3, mechanism="tree", radix=2)
    return separation(make, 0.5, length(shift(make, [["a", "b", "c"]], [])))


@probe("closed form", "one value of a mean")
def _() -> Verdict:
    def make(key: NoiseKey) -> RunningMean:
        return RunningMean(lower=0, upper=1, resolution=0.1, guarantee=ZCDP(0.5), horizon=8, mechanism="tree", key=key)

    return separation(make, 0.5, max(length(shift(make, [x], [])) for x in (0.0, 1.0, 1e9, float("inf"))))
