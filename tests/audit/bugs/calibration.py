"""Bugs in how much noise a process adds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, plant, recalibrated, replaced, scaled
from evertally.counting import bank_open, process, sqrt_factor
from evertally.counting.honaker import HonakerProcess
from evertally.counting.process import Budget
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.tree import TreeProcess
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law, round_up
from evertally.privacy import Change, PureDP


@plant("binary tree, each tick of three")
def one_level_forgotten() -> Bug:
    """one tree level forgotten in the calibration (streaming-selection 9.2: the number of levels is L = floor(log_r T)
    + 1)"""
    return recalibrated(TreeProcess, lambda tree: scaled(tree.law, Fraction(max(1, tree.levels - 1), tree.levels)))


@plant("refined tree, 16 ticks")
def one_level_forgotten_in_the_refined_tree() -> Bug:
    """one level forgotten in the refined tree (price-of-continual-release C11: h = bit_length(T))"""
    return recalibrated(HonakerProcess, lambda tree: scaled(tree.law, Fraction(max(1, tree.levels - 1), tree.levels)))


@plant("binary tree, 16 ticks")
def natural_logarithm() -> Bug:
    """natural logarithm for the level count (price-of-continual-release P2: log T + 1 counts levels, base 2)"""

    def law(tree: Any) -> Law:
        return scaled(tree.law, (math.log(tree.radix ** (tree.levels - 1)) + 1) / tree.levels)

    return recalibrated(TreeProcess, law)


@plant("tree of radix 3, 243 ticks")
def float_logarithm() -> Bug:
    """float logarithm for the level count (streaming-selection 10.4: (T, r) = (243, 3) comes out one level short)"""

    def law(tree: Any) -> Law:
        return scaled(tree.law, Fraction(int(math.log(tree.horizon, tree.radix)) + 1, tree.levels))

    return recalibrated(TreeProcess, law)


@plant("epochs without a horizon, three ticks")
def epochs_do_not_grow() -> Bug:
    """epoch trees whose noise does not grow with the epoch (price-of-continual-release 9.1: epoch e has e + 1
    levels)"""

    def law(tree: Any) -> Law:
        return scaled(tree.law, Fraction(1, tree.levels)) if tree._lane.startswith("epoch-") else tree.law

    return recalibrated(TreeProcess, law)


@plant("binary tree, 16 ticks")
def deviation_for_variance() -> Bug:
    """a standard deviation taken for a variance (parameterized-histograms 8, slip 12: reading N(0, v) as standard
    deviation v)"""

    def law(tree: Any) -> Law:
        wide = isinstance(tree.law, DiscreteGaussian) and tree.law.sigma_squared > 1
        return DiscreteGaussian(math.sqrt(tree.law.sigma_squared)) if wide else tree.law

    return recalibrated(TreeProcess, law)


@plant("one event with repeated labels")
def euclidean_laplace() -> Bug:
    """Laplace scale from the Euclidean norm (price-of-continual-release 3.2: Laplace noise needs l1, Gaussian noise
    l2)"""

    def node_law(charge: Budget, change: Change, nodes: int) -> Law:
        if isinstance(charge, PureDP):
            return DiscreteLaplace(round_up(Fraction(math.sqrt(change.l2_squared)) * nodes / charge.exact_epsilon))
        return process.node_law(charge, change, nodes)

    from evertally.counting import tree

    return replaced(tree, node_law=node_law)


@plant("a noise scale that is no short fraction")
def rounded_down() -> Bug:
    """noise scale rounded down (factorization-counting 12.23: rounded to nearest instead of up)"""

    def round_down(value: Fraction) -> Fraction:
        up = round_up(value)
        return up if up == value else up - Fraction(2) ** (math.frexp(float(up))[1] - 40)

    return replaced(process, round_up=round_down)


@plant("square-root counter, 32 ticks")
def paper_psi() -> Bug:
    """square-root noise from the paper's bound Psi(T) (factorization-counting E3: Psi is below the true S_T from T = 11
    on)"""

    def law(counter: Any) -> Law:
        T = counter.horizon
        psi = 1 - (1 - 0.5772156649015329) / math.pi + math.log(T) / math.pi + 2 / T
        true = counter._factor.column_norm_squared / 4.0**sqrt_factor.GRID_BITS
        return scaled(counter.law, min(1.0, psi / true))

    return recalibrated(SqrtProcess, law)


@plant("square-root counter on a coarse grid, 8 ticks")
def norm_of_the_real_factor() -> Bug:
    """square-root noise from the norm of the real factor (factorization-counting 11, step 2: N is the norm of the
    rounded integers)"""

    def law(counter: Any) -> Law:
        k = np.arange(1, counter.horizon)
        f = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
        real = 4.0**sqrt_factor.GRID_BITS * float(np.sum(f * f))
        return scaled(counter.law, real / counter._factor.column_norm_squared)

    return recalibrated(SqrtProcess, law)


@plant("bank without a horizon, 63 ticks")
def another_table() -> Bug:
    """sensitivity of another table than the one that makes the noise (optimal-counting 5: S = 2.336, not 2.2)"""
    return replaced(bank_open, OPEN_SENSITIVITY=Fraction("2.2"))
