"""The exact audit: on tiny instances, the whole law of the releases on both sides, and its true loss.

Every combination of draws in a box is one column of the product's own process, fed by a planted source; so the program
is run once on all of them. The box leaves out a tail of stated mass: outcomes that the tail could touch are left out
of the maximum, which therefore never exceeds the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from evertally.audit.gaussian import ImpulseSource
from evertally.counting.choose import Setting, build
from evertally.counting.linear import LinearMechanism
from evertally.errors import ConfigurationError
from evertally.noise import Law

FloatArray = NDArray[np.float64]
Outcome = tuple[int, ...]

_LARGEST_BOX = 4_000_000


@dataclass(frozen=True)
class ExactLoss:
    """The true loss between two streams, up to the tail that was left out."""

    epsilon: float  # largest |ln P_left/P_right| over the outcomes that the tail cannot touch
    tail: float  # mass outside of the box
    left: dict[Outcome, float]
    right: dict[Outcome, float]

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence, the larger of the two directions: never above the truth, and less than
        (1 + e^epsilon) * tail below it. (Mass missing on one side can feign up to e^epsilon * tail.)"""
        outcomes = self.left.keys() | self.right.keys()
        seen = max(
            math.fsum(max(0.0, a.get(o, 0.0) - math.exp(epsilon) * b.get(o, 0.0)) for o in outcomes)
            for a, b in ((self.left, self.right), (self.right, self.left))
        )
        return max(0.0, seen - math.exp(epsilon) * self.tail)

    def renyi(self, order: float) -> float:
        """Renyi divergence of the given order, the larger of the two directions, over the outcomes of both boxes."""
        both = self.left.keys() & self.right.keys()
        return max(
            math.log(math.fsum(a[o] ** order * b[o] ** (1 - order) for o in both)) / (order - 1)
            for a, b in ((self.left, self.right), (self.right, self.left))
        )


class PlantedSource:
    """Column k of the process sees the k-th combination of draws."""

    def __init__(self, combinations: NDArray[np.int64], order: dict[tuple[str, int], int]) -> None:
        self._combinations, self._order = combinations, order

    def draws(
        self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0
    ) -> NDArray[np.int64]:
        rows = [self._combinations[self._order[lane, int(node)], first : first + coordinates] for node in nodes]
        return np.array(rows, dtype=np.int64).reshape(-1, coordinates)

    def order(self, message: bytes) -> bytes:
        return message


def exact_loss(mechanism: LinearMechanism, left: Sequence[int], right: Sequence[int], tail: float = 1e-9) -> ExactLoss:
    """The exact loss of a scalar linear mechanism between two short streams of totals.

    >>> import evertally as et
    >>> counter = et.Counter(guarantee=et.PureDP(1.0), horizon=2, mechanism="tree", radix=2, key=et.simulation(0))
    >>> loss = exact_loss(counter, [1, 0], [0, 0])
    >>> round(loss.epsilon, 6)
    1.0
    """
    if mechanism._setting.columns != 1 or len(left) != len(right):
        raise ConfigurationError("the exact audit plays scalar mechanisms on two streams of the same length")
    ticks = len(left)
    setting = mechanism._setting
    probe = ImpulseSource()
    wide = Setting(setting.change, setting.horizon, 6 * ticks + 64, 2**62, setting.radix)
    build(mechanism._choice, wide, probe).advance(ticks)
    used = list(probe.columns)
    laws = [probe.laws[lane] for lane, _ in used]
    boxes = [_box(law, tail / len(laws)) for law in laws]
    size = math.prod(len(values) for values, _ in boxes)
    if size > _LARGEST_BOX:
        raise ConfigurationError(f"{size} combinations are too many to enumerate; use fewer ticks or a larger tail")
    combinations = np.array(list(product(*(values for values, _ in boxes))), dtype=np.int64).T
    weights = np.array([1.0])
    for _, probabilities in boxes:
        weights = np.outer(weights, probabilities).ravel()
    source = PlantedSource(combinations, probe.columns)
    columns = Setting(setting.change, setting.horizon, size, 2**62, setting.radix)
    noise = build(mechanism._choice, columns, source).advance(ticks)
    laws_of_sides = [_law(noise + np.cumsum(stream)[:, None], weights) for stream in (left, right)]
    return _compare(laws_of_sides[0], laws_of_sides[1], tail)


def _box(law: Law, tail: float) -> tuple[list[int], FloatArray]:
    """Values -k..k with all but `tail` of the mass, and their probabilities."""
    with ctx.workprec(128):
        k = 0
        while not law.tail(k + 1) < tail:
            k = 2 * k + 1
        while k > 0 and law.tail(k) < tail:
            k -= 1
        tails = [law.tail(j) for j in range(k + 2)]
        mass = [float(tails[0] - tails[1])] + [float((tails[j] - tails[j + 1]) / 2) for j in range(1, k + 1)]
    return list(range(-k, k + 1)), np.array(mass[:0:-1] + mass)


def _law(releases: NDArray[np.int64], weights: FloatArray) -> dict[Outcome, float]:
    order = np.lexsort(releases[::-1])
    sorted_releases, sorted_weights = releases[:, order], weights[order]
    new = np.any(np.diff(sorted_releases, axis=1) != 0, axis=0)
    starts = np.concatenate([[0], np.flatnonzero(new) + 1])
    sums = np.add.reduceat(sorted_weights, starts)
    return {tuple(int(x) for x in sorted_releases[:, i]): float(p) for i, p in zip(starts, sums, strict=True)}


def _compare(left: dict[Outcome, float], right: dict[Outcome, float], tail: float) -> ExactLoss:
    # An outcome's probability may lack up to `tail`: where that matters by more than a part in 10^4, leave it out.
    clear = [o for o in left.keys() & right.keys() if min(left[o], right[o]) > 1e4 * tail]
    epsilon = max((abs(math.log(left[o] / right[o])) for o in clear), default=0.0)
    return ExactLoss(epsilon, tail, left, right)


def gaussian_renyi(sigma_squared: Any, shift: int, order: int) -> float:
    """Renyi divergence between a discrete Gaussian and its shift, summed in ball arithmetic (an upper value).

    >>> gaussian_renyi(1, 1, 2) <= 2 * 1 / 2
    True
    """
    with ctx.workprec(160):
        s2 = 2 * arb(str(sigma_squared))
        reach = int(12 * math.sqrt(float(sigma_squared)) * math.sqrt(order + 1)) + abs(shift) * (order + 2) + 12
        weight = {z: (-arb(z * z) / s2).exp() for z in range(-reach - abs(shift), reach + abs(shift) + 1)}
        total = sum(weight.values(), arb(0))
        moment = sum((weight[z] ** order * weight[z - shift] ** (1 - order) for z in range(-reach, reach + 1)), arb(0))
        return float(((moment / total).log() / (order - 1)).upper())
