"""What all small neighbouring streams lose against the noise that the processes really draw, in exact fractions.

The noisy sums of a process are those of `counting_reference`; laws and addresses are what the process asked its source
for. The loss of a difference D of rows is the sum over its noisy sums of |sum . D|/b, or (sum . D)^2/(2 sigma^2).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from counting.counting_reference import (
    EPOCHS,
    Statistic,
    epoch_hybrid_sums,
    epoch_tree_sums,
    honaker_sums,
    integer_factor,
    sqrt_sums,
    tree_sums,
)
from evertally.counting.choose import Choice, build
from evertally.counting.processes import Setting
from evertally.dynamic.presence import Multiplicities, Named, Presence
from evertally.encode.updates import Arrivals
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Recording, ZeroNoise
from evertally.privacy import ZCDP, Change, PureDP

T = 7  # an epoch ends there
RHO, EPSILON = ZCDP(Fraction(1, 3)), PureDP(Fraction(7, 10))


def _hybrid() -> Statistic:
    sums = epoch_hybrid_sums(T)
    r = integer_factor(EPOCHS)
    for e in range(T.bit_length() + 1, EPOCHS + 1):
        sums["outer", e] = [r[e - t.bit_length()] for t in range(1, T + 1)]
    return sums


# name, process, radix, noisy sums, budgets
PROCESSES: dict[str, tuple[str, Any, Statistic, tuple[Any, ...]]] = {
    "sqrt": ("sqrt", "formula", sqrt_sums(T), (RHO,)),
    "tree, radix 2": ("tree", 2, tree_sums(T, 2), (RHO, EPSILON)),
    "tree, radix 3": ("tree", 3, tree_sums(T, 3), (RHO, EPSILON)),
    "honaker": ("honaker", "formula", honaker_sums(T), (RHO, EPSILON)),
    "epoch tree": ("epoch-tree", "formula", epoch_tree_sums(T), (RHO, EPSILON)),
    "epoch hybrid": ("epoch-hybrid", "formula", _hybrid(), (RHO,)),
}


def worst_losses(differences: np.ndarray, change: Change) -> dict[str, Fraction]:
    """Of each process and budget the largest loss, as a part of what is charged. Differences: (n, T, columns)."""
    found = {}
    for name, (process, radix, sums, budgets) in PROCESSES.items():
        horizon = None if process.startswith("epoch") else T
        for budget in budgets:
            recording = Recording(ZeroNoise())
            setting = Setting(change, horizon, 1, 2**20, radix)
            build(Choice(process, budget), setting, recording.source("test")).advance(T)
            amount = budget.exact_epsilon if isinstance(budget, PureDP) else budget.exact_rho
            found[f"{name}, {budget!r}"] = _worst(differences, recording, sums) / amount
    return found


def _worst(differences: np.ndarray, recording: Recording, sums: Statistic) -> Fraction:
    lanes: dict[str, tuple[Any, set[int]]] = {}
    for entry in recording.draws:
        lanes.setdefault(entry.lane, (entry.law, set()))[1].update(entry.nodes)
    units, sizes = [], []
    for lane, (law, nodes) in lanes.items():
        moved = np.array([sums[lane, node] for node in nodes]) @ differences  # (n, nodes, columns)
        if isinstance(law, DiscreteLaplace):
            units.append(1 / law.scale)
            sizes.append(np.abs(moved).sum(axis=(1, 2)))
        else:
            assert isinstance(law, DiscreteGaussian)
            units.append(1 / (2 * law.sigma_squared))
            sizes.append((moved**2).sum(axis=(1, 2)))
    return max(sum(int(q) * unit for q, unit in zip(row, units, strict=True)) for row in np.unique(sizes, axis=1).T)


def rows(presence: Presence[Any], ticks: Iterable[Iterable[tuple[int, int, Any]]], cells: int) -> np.ndarray:
    """What a rule makes of ticks of (cell, sign, name)."""
    table = np.zeros((T, cells), dtype=np.int64)
    played = [list(records) for records in ticks]
    for t, listed in enumerate(played + [[] for _ in range(T - len(played))]):
        columns = [np.array([record[i] for record in listed], dtype=np.int64) for i in (0, 1)]
        updates = presence.admit(Arrivals(columns[0], columns[1], [record[2] for record in listed]))
        np.add.at(table[t], updates.cells, updates.signs)
    return table


def by_name(ticks: Any, lifetimes: int = 1, longest: int | None = None, cells: int = 2) -> np.ndarray:
    return rows(Named(lifetimes=lifetimes, counts_all=False, longest=longest), ticks, cells)


def by_value(ticks: Any, cells: int = 1) -> np.ndarray:
    return rows(Multiplicities(counts_all=False), ticks, cells)
