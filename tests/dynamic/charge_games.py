"""What all small neighbouring streams lose against the noise that the processes really draw, in exact fractions.

The noisy sums of a process are those of `counting_reference`; laws and addresses are what the process asked its source
for. The loss of a difference D of rows is the sum over its noisy sums of |sum . D|/b, or (sum . D)^2/(2 sigma^2). Banks
and blocks have real noise, and sums by the numbers that they were built with.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from counting.counting_reference import (
    Statistic,
    bank_columns,
    epoch_tree_sums,
    honaker_sums,
    sqrt_sums,
    tree_sums,
)
from counting.planted_ties import unrolled
from evertally.counting.bank import BankProcess
from evertally.counting.block_table import GRID
from evertally.counting.choose import Choice, build
from evertally.counting.processes import Setting
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.dynamic.presence import Multiplicities, Named, Presence
from evertally.encode.updates import Arrivals
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Recording, ZeroNoise
from evertally.privacy import ZCDP, Change, PureDP

T = 7  # an epoch ends there
RHO, EPSILON = ZCDP(Fraction(1, 3)), PureDP(Fraction(7, 10))


# name, process, radix, noisy sums, budgets
PROCESSES: dict[str, tuple[str, Any, Statistic, tuple[Any, ...]]] = {
    "sqrt": ("sqrt", "formula", sqrt_sums(T), (RHO,)),
    "tree, radix 2": ("tree", 2, tree_sums(T, 2), (RHO, EPSILON)),
    "tree, radix 3": ("tree", 3, tree_sums(T, 3), (RHO, EPSILON)),
    "honaker": ("honaker", "formula", honaker_sums(T), (RHO, EPSILON)),
    "epoch tree": ("epoch-tree", "formula", epoch_tree_sums(T), (RHO, EPSILON)),
}


def worst_losses(differences: np.ndarray, change: Change, split: Change | None = None) -> dict[str, Fraction]:
    """Of each process and budget the largest loss, as a part of what is charged: `change`, or `split` where less is
    proved of a process. Differences: (n, T, columns)."""
    found = {}
    for name, worst, budget in (("bank", _of_bank, RHO), ("pure-blocks", _of_blocks, EPSILON)):
        made: Any = build(Choice(name, budget), Setting(change, T, 1, 2**20, split=split), ZeroNoise().source())
        found[f"{name}, {budget!r}"] = worst(differences, made)
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


def _of_bank(differences: np.ndarray, made: BankProcess) -> Fraction:
    columns = bank_columns(*unrolled(made.bank))
    gram = [
        [sum((x * y for x, y in zip(one, other, strict=True)), Fraction(0)) for other in columns] for one in columns
    ]
    # The loss is linear in D D^T. Floats find the largest to a millionth; among those fractions decide.
    crossed = np.unique(differences @ differences.transpose(0, 2, 1), axis=0)
    near = np.einsum("nst,st->n", crossed, np.array(gram, dtype=float))
    largest = crossed[near >= near.max() * (1 - 1e-6)]
    squared = max(sum(int(one[s, t]) * gram[s][t] for s in range(T) for t in range(T)) for one in largest)
    return squared / (2 * Fraction(made.sigma) ** 2) / RHO.exact_rho


def _of_blocks(differences: np.ndarray, made: PureBlocksProcess) -> Fraction:
    (level,) = made._levels
    table = np.concatenate([np.diag(level.table.d), level.table.dense])[:, :T]
    largest = int(np.abs(table @ differences).sum(axis=(1, 2)).max())
    return Fraction(largest, GRID) / Fraction(level.scale) / EPSILON.exact_epsilon


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
