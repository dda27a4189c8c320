"""Bounds: pure formulas. Error of each process, certified floors, tables of optimal factors.

The formulas for queries on column sums have modules of their own, with the letters of their specifications:
`partition_blocks`, `partition`, `partition_levels`, `partition_paper`, `recompute` and `column_floors`.
"""

from evertally.bounds import column_floors, partition, partition_blocks, partition_levels, partition_paper, recompute
from evertally.bounds.counting import (
    EpochHybridFormula,
    EpochTreeFormula,
    Formula,
    HonakerFormula,
    SqrtFormula,
    TreeFormula,
    best_radix,
)
from evertally.bounds.floors import lb, mathias_lower, mathias_upper, matousek_nikolov_talwar, paper_C, paper_psi
from evertally.bounds.frontier import (
    Entry,
    gaussian_frontier,
    optimal_factor,
    optimal_rms_factor,
    pure_frontier,
    unbounded_frontier,
)
from evertally.bounds.square_root import S, S_exact, S_expansion, S_mean, S_upper, coefficients, f, f_exact, g_exact
from evertally.bounds.tails import Spread

__all__ = [
    "Entry",
    "EpochHybridFormula",
    "EpochTreeFormula",
    "Formula",
    "HonakerFormula",
    "S",
    "S_exact",
    "S_expansion",
    "S_mean",
    "S_upper",
    "Spread",
    "SqrtFormula",
    "TreeFormula",
    "best_radix",
    "coefficients",
    "column_floors",
    "f",
    "f_exact",
    "g_exact",
    "gaussian_frontier",
    "lb",
    "mathias_lower",
    "mathias_upper",
    "matousek_nikolov_talwar",
    "optimal_factor",
    "optimal_rms_factor",
    "paper_C",
    "paper_psi",
    "partition",
    "partition_blocks",
    "partition_levels",
    "partition_paper",
    "pure_frontier",
    "recompute",
    "unbounded_frontier",
]
