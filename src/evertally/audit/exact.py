"""The exact audit: on tiny instances, the whole law of the releases on both sides, and its true loss.

Every combination of draws in a box is one column of the product's own process, fed by a planted source; so the program
is run once on all of them. The box leaves out a tail of stated mass, which is counted against every ratio: what is
reported never exceeds the truth.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evertally.audit.gaussian import ImpulseSource, fitting, widened
from evertally.balls import precision
from evertally.counting.choose import build
from evertally.counting.process import FloatArray, IntArray
from evertally.errors import ConfigurationError
from evertally.noise import Law
from evertally.noise.reals import KnownReals, RealLaw
from evertally.statistics.linear_options import Linear

Outcome = tuple[int, ...]

_LARGEST_BOX = 4_000_000


@dataclass(frozen=True)
class ExactLoss:
    """The true loss between two streams: everything here is at most the truth, and close to it.

    The probabilities in `left` and `right` lack the mass of the box's outside, at most `tail` in all. So p is at least
    what it says and q at most `tail` more.
    """

    tail: float
    left: dict[Outcome, float]
    right: dict[Outcome, float]

    @cached_property
    def log_ratios(self) -> tuple[float, float]:
        """Largest ln P_left/P_right, and largest ln P_right/P_left, over all outcomes."""
        first, second = (
            max((math.log(p / (b.get(o, 0.0) + self.tail)) for o, p in a.items() if p > 0), default=0.0)
            for a, b in ((self.left, self.right), (self.right, self.left))
        )
        return max(0.0, first), max(0.0, second)

    @property
    def epsilon(self) -> float:
        """Largest |ln P_left/P_right|."""
        return max(self.log_ratios)

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence, the larger of the two directions: less than (1 + e^epsilon) * tail below the truth.
        (Mass missing on one side can feign up to e^epsilon * tail.)"""
        outcomes = self.left.keys() | self.right.keys()
        seen = max(
            math.fsum(max(0.0, a.get(o, 0.0) - math.exp(epsilon) * b.get(o, 0.0)) for o in outcomes)
            for a, b in ((self.left, self.right), (self.right, self.left))
        )
        return max(0.0, seen - math.exp(epsilon) * self.tail)

    def renyi(self, order: float) -> float:
        """Renyi divergence of the given order, the larger of the two directions."""
        return max(self.renyi_of_directions(order))

    def renyi_of_directions(self, order: float) -> tuple[float, float]:
        """Of left from right, and of right from left."""
        # A smaller p and a larger q both lower p^order q^(1-order); outcomes outside of the box are left out.
        found = []
        for a, b in ((self.left, self.right), (self.right, self.left)):
            p = np.array([mass for mass in a.values() if mass > 0])
            q = np.array([b.get(o, 0.0) for o, mass in a.items() if mass > 0]) + self.tail
            moment = float(np.logaddexp.reduce(order * np.log(p) + (1 - order) * np.log(q)))
            found.append(max(0.0, moment / (order - 1)))
        return found[0], found[1]


@dataclass(frozen=True)
class JointLoss:
    """The loss of several independent columns: log-ratios and Renyi divergences of each direction add up."""

    columns: tuple[ExactLoss, ...]

    @property
    def epsilon(self) -> float:
        return max(math.fsum(loss.log_ratios[i] for loss in self.columns) for i in (0, 1))

    def renyi(self, order: float) -> float:
        directions = [loss.renyi_of_directions(order) for loss in self.columns]
        return max(math.fsum(pair[i] for pair in directions) for i in (0, 1))


class PlantedSource:
    """Column k of the process sees the k-th combination of draws."""

    def __init__(self, combinations: IntArray, order: dict[tuple[str, int], int]) -> None:
        self._combinations, self._order = combinations, order

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        rows = [self._combinations[self._order[lane, int(node)], first : first + coordinates] for node in nodes]
        return np.array(rows, dtype=np.int64).reshape(-1, coordinates)

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        raise ConfigurationError("real variates have no list of values to enumerate; the closed form covers them")

    def order(self, message: bytes) -> bytes:
        return message


def exact_loss(mechanism: Linear, left: Sequence[int], right: Sequence[int], tail: float = 1e-9) -> ExactLoss:
    """The exact loss of a scalar linear mechanism between two short streams of totals.

    >>> import evertally as et
    >>> counter = et.Counter(guarantee=et.PureDP(1.0), horizon=2, mechanism="tree", radix=2, key=et.simulation(0))
    >>> loss = exact_loss(counter, [1, 0], [0, 0])
    >>> round(loss.epsilon, 6)
    1.0
    """
    if mechanism._setting.columns != 1:
        raise ConfigurationError("the mechanism has several columns: use exact_columns")
    return exact_columns(mechanism, [[x] for x in left], [[x] for x in right], tail).columns[0]


def exact_columns(
    mechanism: Linear, left: Sequence[Sequence[int]], right: Sequence[Sequence[int]], tail: float = 1e-9
) -> JointLoss:
    """The exact loss between two short streams of rows. Columns have independent noise of the same law, so each is
    enumerated on its own; columns that do not differ lose nothing."""
    streams = np.array([left, right], dtype=np.int64)
    if streams.ndim != 3 or streams.shape[2] != mechanism._setting.columns:
        raise ConfigurationError("the exact audit plays two streams of rows of the same length")
    ticks = streams.shape[1]
    noise, weights = _all_paths(mechanism, ticks, tail)
    known: dict[bytes, ExactLoss] = {}
    losses = []
    for column in range(streams.shape[2]):
        pair = streams[:, :, column]
        if streams.shape[2] > 1 and (pair[0] == pair[1]).all():
            continue
        if pair.tobytes() not in known:
            sides = [_law(noise + np.cumsum(stream)[:, None], weights) for stream in pair]
            known[pair.tobytes()] = ExactLoss(tail, *sides)
        losses.append(known[pair.tobytes()])
    return JointLoss(tuple(losses))


def combinations_of(mechanism: Linear, ticks: int, tail: float = 1e-9) -> int:
    """How many combinations of draws an exact audit would enumerate; a cheap question."""
    draws = _draws(mechanism, ticks)
    return math.prod(2 * _extent(law, tail / len(draws)) + 1 for _, law in draws)


@fitting
def _draws(mechanism: Linear, ticks: int) -> list[tuple[tuple[str, int], Law]]:
    """Addresses and laws of all draws of one column."""
    probe = ImpulseSource()
    build(mechanism._choice, widened(mechanism._setting, 6 * ticks + 64), probe).advance(ticks)
    return [((lane, node), probe.laws[lane]) for lane, node in probe.columns]


def _all_paths(mechanism: Linear, ticks: int, tail: float) -> tuple[IntArray, FloatArray]:
    """The noise path of every combination of draws in the box, shape (ticks, combinations), and its probability."""
    draws = _draws(mechanism, ticks)
    size = combinations_of(mechanism, ticks, tail)
    if size > _LARGEST_BOX:
        raise ConfigurationError(f"{size} combinations are too many to enumerate; use fewer ticks or a larger tail")
    boxes = [_box(law, tail / len(draws)) for _, law in draws]
    grid = np.meshgrid(*(values for values, _ in boxes), indexing="ij")
    combinations = np.array(grid, dtype=np.int64).reshape(len(boxes), size)
    weights = np.array([1.0])
    for _, probabilities in boxes:
        weights = np.outer(weights, probabilities).ravel()
    source = PlantedSource(combinations, {address: i for i, (address, _) in enumerate(draws)})
    return build(mechanism._choice, widened(mechanism._setting, size), source).advance(ticks), weights


def _extent(law: Law, tail: float) -> int:
    """The smallest k with less than `tail` of the mass beyond -k..k."""
    with precision(128):
        high = 1
        while not law.tail(high + 1) < tail:
            high *= 2
        return bisect_left(range(high), True, key=lambda k: bool(law.tail(k + 1) < tail))


def _box(law: Law, tail: float) -> tuple[IntArray, FloatArray]:
    """Values -k..k with all but `tail` of the mass, and their probabilities."""
    k = _extent(law, tail)
    with precision(128):
        tails = [law.tail(j) for j in range(k + 2)]
        mass = [float(tails[0] - tails[1])] + [float((tails[j] - tails[j + 1]) / 2) for j in range(1, k + 1)]
    return np.arange(-k, k + 1), np.array(mass[:0:-1] + mass)


def _law(releases: IntArray, weights: FloatArray) -> dict[Outcome, float]:
    order = np.lexsort(releases[::-1])
    sorted_releases, sorted_weights = releases[:, order], weights[order]
    new = np.any(np.diff(sorted_releases, axis=1) != 0, axis=0)
    starts = np.concatenate([[0], np.flatnonzero(new) + 1])
    sums = np.add.reduceat(sorted_weights, starts)
    return dict(zip(map(tuple, sorted_releases[:, starts].T.tolist()), sums.tolist(), strict=True))
