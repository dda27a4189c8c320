"""Bugs in which noise a process uses when: redrawn, reused, clipped, wrongly rounded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, plant, replaced, scaled
from evertally.counting import sqrt, sqrt_factor
from evertally.counting.process import FloatArray, IntArray
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.tree import TreeProcess


def tick_by_tick(noise: Any) -> Any:
    """An `advance` that asks `noise(process, tick)` for one tick after the other."""

    def advance(self: Any, count: int = 1) -> IntArray:
        ticks = range(self.tick + 1, self.tick + count + 1)
        self.tick += count
        return np.array([noise(self, t) for t in ticks], dtype=np.int64).reshape(count, self.columns)

    return advance


@plant("binary tree, each tick of three")
def tree_redrawn() -> Bug:
    """tree noise redrawn at every release (factorization-counting E1, price-of-continual-release P5: one draw for the
    whole life of the stream)"""

    def noise(tree: Any, t: int) -> IntArray:
        fresh: IntArray = tree._source.draws(f"{tree._lane}@{t}", tree.law, tree._blocks(t), tree.columns).sum(axis=0)
        return fresh

    return replaced(TreeProcess, advance=tick_by_tick(noise))


@plant("square-root counter on a coarse grid, 8 ticks")
def sqrt_redrawn() -> Bug:
    """square-root noise redrawn at every release (factorization-counting E1: a fresh Gaussian vector in every round)"""

    def noise(counter: Any, t: int) -> IntArray:
        z = counter._source.draws(f"{counter._lane}@{t}", counter.law, range(1, t + 1), counter.columns)
        return _estimate(counter, z)

    return replaced(SqrtProcess, advance=tick_by_tick(noise))


def _estimate(counter: Any, z: IntArray) -> IntArray:
    """floor(e_t + 1/2), by plain floats."""
    inverse = counter._factor.inverse[: len(z)][::-1] / 2.0**sqrt_factor.GRID_BITS
    return np.asarray(np.floor(inverse @ z + 0.5), dtype=np.int64)


@plant("binary tree that keeps no noise, three ticks")
def node_redrawn() -> Bug:
    """a node's noise redrawn when it is used again (price-of-continual-release P5: identical noise whenever a node is
    reused)"""

    def noise(tree: Any, t: int) -> IntArray:
        new, *used = tree._blocks(t)
        draws = tree._source.draws(tree._lane, tree.law, [new], tree.columns)
        again: IntArray = tree._source.draws(f"{tree._lane}@{t}", tree.law, used, tree.columns)
        return np.asarray(draws.sum(axis=0) + again.sum(axis=0), dtype=np.int64)

    return replaced(TreeProcess, _noise=noise)


@plant("binary tree, each tick of three")
def incomplete_node() -> Bug:
    """incomplete node released (parameterized-histograms 8, what must never leave: the same noise at two fill
    levels)"""

    def noise(tree: Any, t: int) -> Any:
        complete = -(-t // tree.radix) * tree.radix
        return tree._noise(min(complete, tree.horizon))

    return replaced(TreeProcess, advance=tick_by_tick(noise))


@plant("square-root counter, 32 ticks")
def noise_of_the_prefix() -> Bug:
    """square-root noise that grows with the tick: S_t instead of S_T (factorization-counting E2 and 12.1: privacy needs
    the norm of the T x T matrix)"""

    def noise(counter: Any, t: int) -> IntArray:
        r = counter._factor.r.astype(np.float64)
        shares = np.cumsum(r * r) / float(r @ r)
        rows = [
            counter._source.draws(f"{counter._lane}-{i}", scaled(counter.law, shares[i - 1]), [i], counter.columns)[0]
            for i in range(1, t + 1)
        ]
        return _estimate(counter, np.array(rows, dtype=np.int64))

    return replaced(SqrtProcess, advance=tick_by_tick(noise))


@plant("square-root counter on a coarse grid, one tick, little budget")
def half_to_even() -> Bug:
    """rounded half to even instead of half up (factorization-counting 11, step 5: the fallback must be the correctly
    rounded value, a function of y alone)"""

    def rint(centre: FloatArray, radius: Any) -> tuple[IntArray, Any]:
        return np.rint(centre).astype(np.int64), np.zeros(centre.shape, dtype=bool)

    return replaced(sqrt, round_half_up=rint)


@plant("square-root counter on a coarse grid, three ticks")
def cut_towards_zero() -> Bug:
    """noise path cut towards zero (factorization-counting 11, step 5: some deterministic function of the noise is not
    enough)"""

    def cut(centre: FloatArray, radius: Any) -> tuple[IntArray, Any]:
        return np.trunc(centre).astype(np.int64), np.zeros(centre.shape, dtype=bool)

    return replaced(sqrt, round_half_up=cut)


@plant("binary tree, each tick of three")
def clipped_noise() -> Bug:
    """noise clipped before it is added (streaming-selection 10.4: a cut tail gives some outcomes probability 0)"""
    original = TreeProcess.advance

    def advance(self: Any, count: int = 1) -> IntArray:
        most = math.ceil(3 * self.law.stddev())
        return np.clip(original(self, count), -most, most)

    return replaced(TreeProcess, advance=advance)
