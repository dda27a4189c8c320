"""Linear mechanisms with real Laplace noise: what it costs to hide a change, read off the program.

Releases are sums plus W Z, Z independent Laplace numbers of scale 1 (scales are in W), rounded. A change that moves the
sums by c is hidden by any shift u of the draws with W u = c, so the loss is at most the least |u|_1. It is no less:

    least |u|_1 with W u = c  =  largest <y, c> with |W' y| <= 1  (duality),

and for such a y the score <y, releases> has tails that fall like e^-s, up to powers of s and a bounded error of
rounding; the change moves it by exactly <y, c>. So ln P(score > s)/P(score > s + <y, c>) is <y, c> on the average over
all s, hence no less for some s. With y of |W' y| <= 1 for every W that rounds to what was read, <y, c> is a bound from
below that needs no solver to be right.

The solver: u = D W' y, (W D W') y = c, then D halfway to |u|. Its steps bound the least from both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evertally.audit.gaussian import BLOCK_HEIGHT, AnyLaw, read_at
from evertally.counting.process import FloatArray, IntArray
from evertally.noise.reals import RealLaw
from evertally.statistics.linear_options import Linear

READING = 0.5 / BLOCK_HEIGHT  # how far an entry of W may be off, for each rounding of a release
_STEPS, _FEW_STEPS = 80, 4
_CLOSER = 3  # changes that are looked at with all steps
_MOST_TICKS = 24  # of changes that are tried, where there are many
_ENOUGH = 1e-4  # between the two bounds
_SMALL = 1 << 22  # products
_FEW = 100
_NOTHING = 1e-6  # of the largest part of a shift


@dataclass(frozen=True)
class Hiding:
    """For each of some changes: bounds on what hiding it costs, a shift of the draws that does, and a score."""

    lower: FloatArray  # (changes,)
    upper: FloatArray
    shifts: FloatArray  # (changes, draws)
    scores: FloatArray  # (changes, ticks)


def hiding(W: FloatArray, changes: FloatArray, roundings: float = 1.0, steps: int = _STEPS) -> Hiding:
    """What hiding changes (changes, ticks) costs. LinAlgError: a combination of releases carries no noise.

    >>> W = np.array([[2.0, 0, 0], [0, 2.0, 2.0]])
    >>> cost = hiding(W, np.array([[1.0, 1.0], [0.0, 3.0]]))
    >>> cost.lower.round(3).tolist(), cost.upper.round(3).tolist()
    ([1.0, 1.5], [1.0, 1.5])
    """
    solve = _solver(W)
    found = [_hidden(W, solve, change, roundings, steps) for change in changes]
    return Hiding(*(np.array(part) for part in zip(*found, strict=True)))


def _hidden(W: FloatArray, solve: _Solve, change: FloatArray, roundings: float, steps: int) -> tuple[Any, ...]:
    weights = np.ones(W.shape[1])
    lower, score, upper, shift = 0.0, np.zeros(len(W)), math.inf, weights * 0
    for _ in range(steps):
        y, u = solve(weights, change)
        reach = float(np.abs(y @ W).max() + READING * roundings * np.abs(y).sum())
        shown, cost = float(y @ change) / (reach or 1.0), float(np.abs(u).sum())
        if shown > lower:
            lower, score = shown, y
        if cost < upper:
            upper, shift = cost, u
        if upper - lower <= _ENOUGH * upper:
            break
        weights = (weights + np.abs(u)) / 2
        weights = np.maximum(weights, 1e-14 * weights.max())
    return lower, upper, shift, score


_Solve = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


def _solver(W: FloatArray) -> _Solve:
    """y and u of a step. Where there are hardly more draws than ticks u is looked for among the few shifts that nobody
    sees: small matrices, which no library hands to threads."""
    ticks, m = W.shape
    unseen = m - ticks
    if not 0 < unseen <= min(ticks, _FEW):

        def direct(weights: FloatArray, change: FloatArray) -> tuple[FloatArray, FloatArray]:
            scaled = W * weights
            gram = np.einsum("tm,um->tu", scaled, W) if len(W) * W.size <= _SMALL else scaled @ W.T
            y = np.linalg.solve(gram, change)
            return y, weights * (y @ W)

        return direct
    left, sizes, right = np.linalg.svd(W)
    if sizes[-1] <= 1e-12 * sizes[0]:
        raise np.linalg.LinAlgError("a combination of releases carries no noise")
    inverse, silent = right[:ticks].T @ (left / sizes).T, right[ticks:].T

    def reduced(weights: FloatArray, change: FloatArray) -> tuple[FloatArray, FloatArray]:
        start, roots = inverse @ change, np.sqrt(weights)
        h = np.linalg.lstsq(silent / roots[:, None], -start / roots, rcond=None)[0]
        u = start + silent @ h
        return (u / weights) @ inverse, u

    return reduced


def largest(W: FloatArray, changes: FloatArray, roundings: float = 1.0) -> FloatArray:
    """A bound from below on the loss of each change (changes, ticks, columns), close to it for those that may be the
    worst. Columns have draws of their own, so their losses add up."""
    n, ticks, _ = changes.shape
    paths, which = np.unique(np.moveaxis(changes, 1, 2).reshape(-1, ticks), axis=0, return_inverse=True)
    which = which.reshape(n, -1)
    first = hiding(W, paths, roundings, _FEW_STEPS)
    found, totals = first.lower.copy(), [bound[which].sum(axis=1) for bound in (first.upper, first.lower)]
    closer = np.unique(which[np.concatenate([np.argsort(-total)[:_CLOSER] for total in totals])])
    found[closer] = np.maximum(found[closer], hiding(W, paths[closer], roundings).lower)
    return np.asarray(found[which].sum(axis=1))


def is_real_laplace(laws: list[AnyLaw]) -> bool:
    """Whether the draws are Laplace numbers that are never rounded."""
    return bool(laws) and all(isinstance(law, RealLaw) and law.kind == "laplace" for law in laws)


@dataclass(frozen=True)
class ShiftForm:
    """The releases of some ticks of a mechanism with real Laplace noise."""

    W: FloatArray
    ticks: IntArray
    roundings: float

    def changes(self, ticks: list[int]) -> FloatArray:
        """What a unit change of each of these ticks does to the releases."""
        return (self.ticks[None, :] >= np.array(ticks)[:, None]).astype(np.float64)

    def worst(self, tried: list[int] | None = None) -> tuple[float, int]:
        """The largest loss of a unit change, and its tick."""
        ticks = tried or thinned(int(self.ticks[-1]))
        found = largest(self.W, self.changes(ticks)[:, :, None], self.roundings)
        return float(found.max()), ticks[int(np.argmax(found))]

    def log_ratio(self, paths: FloatArray, tick: int, shift: IntArray) -> FloatArray:
        """About ln P(changed)/P(not changed) for each of the paths (trials, ticks, columns): that of the least draws
        that explain it, against the same with the shift that hides the change."""
        hidden = hiding(self.W, self.changes([tick]), self.roundings, _FEW_STEPS).shifts[0]
        # Of hundreds of draws few hide anything: the others add nothing to the score but time.
        telling = np.flatnonzero(np.abs(hidden) > _NOTHING * np.abs(hidden).max())
        draws = np.einsum("mt,ntc->nmc", self._explained[telling], paths, optimize=True)
        moved = hidden[telling, None] * shift[:, None, :]
        return np.asarray((np.abs(draws) - np.abs(draws - moved)).sum(axis=(1, 2)))

    @cached_property
    def _explained(self) -> FloatArray:
        return np.asarray(np.linalg.pinv(self.W))


def thinned(ticks: int) -> list[int]:
    """Ticks to change: all of them, or some and both ends."""
    if ticks <= 2 * _MOST_TICKS:
        return list(range(1, ticks + 1))
    spread = np.linspace(1, ticks, _MOST_TICKS).round().astype(int).tolist()
    return sorted({2, ticks - 1, *spread})


def shift_form(mechanism: Linear, ticks: int) -> ShiftForm | None:
    """The first ticks of a mechanism; None if its noise is not real Laplace noise.

    >>> import evertally as et
    >>> model = et.Counter(guarantee=et.PureDP(1), horizon=16, mechanism="pure-blocks", key=et.simulation(0))
    >>> form = shift_form(model, 16)
    >>> form.W.shape, round(form.worst()[0], 3)
    ((16, 19), 1.0)
    """
    return form_at(mechanism, range(1, ticks + 1))


def form_at(mechanism: Linear, ticks: range | list[int]) -> ShiftForm | None:
    W, laws = read_at(mechanism, ticks)
    if not is_real_laplace(laws):
        return None
    return ShiftForm(W, np.array(ticks), float(mechanism.noise.spread(ticks[-1]).roundings))


def telling_ticks(process: Any) -> list[int]:
    """Of a process in levels, the ticks that show all of an event in its first block: the rows of the first block of
    every level. Nothing for other processes."""
    sizes = [int(level.table.n) for level in getattr(process, "_levels", ())]
    if len(sizes) < 2:
        return []
    found, step = set(), 1
    for n in sizes:
        found |= {step * row for row in range(1, n + 1)}
        step *= n
    return sorted(tick for tick in found if tick <= process.horizon)
