"""Bounds of amounts that are decided epoch by epoch, from released numbers alone (users-and-domains 3 and 1.7)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from evertally.contract.doors import RowDoor
from evertally.contract.inputs import IntArray
from evertally.contract.rounding import Rounder
from evertally.contract.rows import Rows
from evertally.encode.values import AmountGrid
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.values.sum_doors import exact_sum, ticks_of

MOST_EPOCHS = 64
KNOWN = 8  # so many times what noise may make of nothing must have been seen before a bound moves


@dataclass(frozen=True)
class Bounds:
    """The bounds that there are, in steps: powers of two, the last one reaching the largest amount. And the rule."""

    most: int
    quantile: Fraction
    first: int  # place of the bound of the first epoch
    slack: int  # the noise of one released count

    @property
    def steps(self) -> list[int]:
        """All bounds, smallest first.

        >>> Bounds(10, Fraction(99, 100), 0, 1).steps
        [1, 2, 4, 8, 10]
        """
        return [min(self.most, 1 << k) for k in range((self.most - 1).bit_length() + 1)]

    def decide(self, released: IntArray | None, before: int) -> int:
        """The place of the next bound: the smallest above which no more than the wanted part of all amounts lies, by
        the counts that were released last. What twice the noise could make of nothing counts as nothing; where all that
        was seen is not many times that, the bound stays."""
        if released is None:
            return self.first
        tails = [int(released[place + 1 :].sum()) for place in range(len(released))]
        everything = int(released.sum())
        if everything <= KNOWN * self.noise(len(tails)):
            return before  # hardly anything is known: noise alone would decide
        for place, tail in enumerate(tails):
            noise = self.noise(len(tails) - 1 - place)
            if tail <= max(Fraction(noise), (1 - self.quantile) * everything):
                return place
        return len(tails) - 1

    def noise(self, counts: int) -> int:
        """Twice the noise in the sum of so many counts."""
        return self.slack * math.isqrt(4 * counts)


def sizes_of(steps: IntArray, count: int) -> IntArray:
    """How many amounts have each bound as the smallest that does not cut them: k for 2^(k-1) < amount <= 2^k.

    >>> sizes_of(np.array([0, 1, 2, 3, 4, 9]), 5).tolist()
    [2, 1, 2, 0, 1]
    """
    places = np.searchsorted(np.left_shift(1, np.arange(count - 1, dtype=np.int64)), steps)
    counts: IntArray = np.bincount(places, minlength=count).astype(np.int64)
    return counts


class SizesAndSums(RowDoor):
    """A tick's amounts become how many there are of each size, and their sum under each bound: which of these sums
    counts is decided by what was released. A fixed function of each event."""

    def __init__(self, grid: AmountGrid, rounder: Rounder, bounds: Sequence[int], limit: int) -> None:
        super().__init__(2 * len(bounds), limit)
        self._grid, self._rounder, self._bounds = grid, rounder, list(bounds)

    def row(self, x: Any, tick: int) -> IntArray:
        places = self._grid.places(x)
        steps = self._rounder.steps(places[~np.isnan(places)], tick)
        sums = [min(self._limit, exact_sum(np.minimum(steps, bound))) for bound in self._bounds]
        return np.concatenate([sizes_of(steps, len(sums)), np.array(sums, dtype=np.int64)])

    def event_row(self, events: Any, tick: int) -> IntArray:
        return self.row(events, tick)

    def many(self, x: Any, first: int) -> Rows:
        rows = [self.row(amounts, first + i) for i, amounts in enumerate(ticks_of(x))]
        return np.stack(rows) if rows else np.empty((0, self.columns), dtype=np.int64)


@dataclass(frozen=True)
class Epochs:
    """Public epochs of ticks, one after the other.

    >>> epochs = Epochs((3, 5))
    >>> [epochs.of(tick) for tick in (1, 3, 4, 8)], epochs.before(1)
    ([0, 0, 1, 1], 3)
    """

    lengths: tuple[int, ...]

    def of(self, tick: int) -> int:
        """The epoch that a tick is in."""
        return bisect_left(list(accumulate(self.lengths)), tick)

    def before(self, epoch: int) -> int:
        """The ticks before an epoch."""
        return sum(self.lengths[:epoch])


def read_epochs(epochs: Any, pilot: Any, horizon: int | None) -> Epochs:
    """The epochs of a stream: as declared, or a pilot and one long one.

    >>> read_epochs(None, None, 365).lengths, read_epochs([30, 60], None, 365).lengths
    ((23, 342), (30, 60, 275))
    """
    if horizon is None:
        raise ConfigurationError("epochs with bounds of their own need a horizon")
    if epochs is not None and pilot is not None:
        raise ConfigurationError("give epochs, or the length of a pilot, not both")
    if epochs is None:
        first = -(-horizon // 16) if pilot is None else whole("pilot", pilot, 1, horizon)
        lengths = [first]
    elif isinstance(epochs, list | tuple) and epochs:
        lengths = [whole("the length of an epoch", length, 1, horizon) for length in epochs]
    else:
        raise ConfigurationError("epochs are a list of lengths, in ticks")
    left = horizon - sum(lengths)
    if left < 0:
        raise ConfigurationError(f"epochs of {sum(lengths)} ticks do not fit into a horizon of {horizon}")
    lengths += [left] if left else []
    if len(lengths) > MOST_EPOCHS:
        raise ConfigurationError(
            f"there are at most {MOST_EPOCHS} epochs: every one adds its noise to all later totals"
        )
    return Epochs(tuple(lengths))
