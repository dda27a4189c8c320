"""Bugs in what is said about errors: bounds that are too small. No privacy is lost by them, and whoever relies on them
is misled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, plant, replaced
from evertally.bounds import joint, staleness
from evertally.counting import epochs, honaker, process, tree
from evertally.partition import noise_bounds

_COUNTERS, _PARTITIONS = "error bounds of counters", "error bounds of partitions"


@plant(_COUNTERS)
def columns_forgotten() -> Bug:
    """all columns at the failure probability of one (additions 8: columns are independent, and many)"""
    return replaced(process, of_column=lambda beta, columns: beta)


@plant(_COUNTERS)
def one_side() -> Bug:
    """both sides at the failure probability of one (additions 8: the law of a maximum is one-sided)"""

    def joint_radius(self: Any, beta: float, tick: int | None = None) -> float:
        return float(self.maximum().radius(beta))

    return replaced(tree.TreeProcess, joint_radius=joint_radius)


@plant(_COUNTERS)
def last_subtree_alone() -> Bug:
    """the largest noise of a tree taken from its last subtree (additions 8: every subtree has its own)"""
    return replaced(joint.GridMaximum, and_also=lambda self, other: other)


@plant(_COUNTERS)
def children_alone() -> Bug:
    """estimates of a refined tree mixed without their own noise (additions 8: N = a Z + b (N + N))"""
    original = joint.refined_maximum

    def refined(kind: Any, scale: float, horizon: int, reach: float) -> Any:
        return original(kind, scale / 2, horizon, reach)

    return replaced(honaker, refined_maximum=refined)


@plant(_COUNTERS)
def one_tick_of_all() -> Bug:
    """neighbouring ticks of a Gaussian path counted as one (additions 8: pairs are taken off, not all)"""

    def tail(self: joint.GaussianPath, x: float) -> float:
        return float(np.max(joint.normal_above(x / np.sqrt(self.largest))))

    return replaced(joint.GaussianPath, tail=tail)


@plant(_COUNTERS)
def epochs_share_nothing() -> Bug:
    """every epoch with the whole failure probability (additions 8: epochs share beta)"""

    def joint_radius(self: Any, beta: float, tick: int | None = None) -> float:
        assert tick is not None
        return float(self._in_epoch(beta, tick.bit_length() - 1))

    return replaced(epochs.EpochProcess, joint_radius=joint_radius)


def _behind(change: Callable[..., Any]) -> Bug:
    original = staleness.behind_radius
    return replaced(noise_bounds, behind_radius=lambda *arguments: original(*change(*arguments)))


@plant(_PARTITIONS)
def undeclared_growth() -> Bug:
    """growth that nobody declared taken for one event a tick (additions 9: what was not declared may jump)"""
    return _behind(lambda tau, mu, kappa, growth, *rest: (tau, mu, kappa, growth or 1, *rest))


@plant(_PARTITIONS)
def threshold_without_noise() -> Bug:
    """the noise of the test left out of the bound (additions 9: one tau and one mu decide a close)"""
    return _behind(lambda tau, mu, kappa, *rest: (0.1, 0.1, kappa, *rest))


@plant(_PARTITIONS)
def intervals_share_nothing() -> Bug:
    """every interval with the whole failure probability (additions 9: intervals share beta)"""

    def one_of(tau: float, mu: float, kappa: int, growth: Any, places: Any, columns: int, beta: float) -> Any:
        return tau, mu, kappa, growth, places[:1], columns, beta

    return _behind(one_of)
