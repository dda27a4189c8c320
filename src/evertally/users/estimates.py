"""Estimates from less than all users: what a count of set bits, or of a sample of users, says about their number.

The estimate is off by noise, and by its own chance: which users share a bit, which are in the sample. Both counts are
sums of independent 0/1 variables with known mean and variance: a sample is one by definition, the number of empty cells
is distributed as one (Vatutin and Mikhailov 1982). So Bernstein's inequality holds with the true variance, and
intervals hold, not only nearly. The chance is that of the keyed hash, taken for random. Post-processing, all of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.forms import RowForm
from evertally.contract.parts import Accuracy, IntArray

NO_LIMIT = 2**61  # the upper end of an interval that has none


class EstimateForm(RowForm, ABC):
    """A noisy count as an estimate of the number of users, a whole number. Not used directly; see its subclasses."""

    differences = False

    def __init__(self) -> None:
        super().__init__(1)

    @abstractmethod
    def estimate(self, count: float) -> float:
        """How many users there seem to be."""

    @abstractmethod
    def mean(self, users: float) -> float:
        """What is counted of so many users, on average."""

    @abstractmethod
    def variance(self, users: float) -> float:
        """And its variance."""

    def show(self, row: IntArray) -> int:
        return round(self.estimate(float(row[0])))

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return np.array([self.show(row) for row in rows], dtype=np.int64)

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[int, int]:
        # Half of beta for the noise, a quarter for each side of the estimate's own chance.
        radius, count = math.floor(accuracy.radius(beta / 2)), int(row[0])
        low, high = self.consistent(count - radius, count + radius, beta / 2)
        # Noise may bring the estimate below 0, or to more than a full map: the interval goes as far.
        return min(low, self.show(row)), max(high, self.show(row))

    def deviation(self, accuracy: Accuracy) -> None:
        return None  # it depends on how many users there are

    def own_deviation(self, users: float) -> float:
        """The standard deviation that the estimate has without any noise, nearly (linearised)."""
        step = max(1.0, users * 1e-6)
        slope = (self.mean(users + step) - self.mean(max(0.0, users - step))) / (users + step - max(0.0, users - step))
        return math.sqrt(self.variance(users)) / slope

    def consistent(self, lowest: int, highest: int, beta: float) -> tuple[int, int]:
        """The numbers of users of which `lowest` .. `highest` may be counted, up to probability beta."""
        low = _first(lambda n: self.mean(n) + self.reach(n, beta) >= lowest)
        high = _first(lambda n: self.mean(n) - self.reach(n, beta) > highest)
        return math.floor(low), math.ceil(high)

    def off(self, radius: float, users: int, beta: float) -> float:
        """How far the estimate of so many users may be off, with noise up to `radius`, up to probability beta."""
        middle, reach = self.mean(users), self.reach(users, beta) + radius
        return max(self.estimate(middle + reach) - users, users - self.estimate(middle - reach)) + 0.5

    def reach(self, users: float, beta: float) -> float:
        """How far the count is from its mean, up to probability beta: Bernstein."""
        b, v = math.log(2 / beta), self.variance(users)
        return b / 3 + math.sqrt(b * b / 9 + 2 * v * b)


def _first(reached: Any) -> float:
    """The least number of users, nearly, for which something is so; what is so of one is so of all larger ones."""
    high = 1.0
    if reached(0.0):
        return 0.0
    while not reached(high):
        high *= 2
        if high >= NO_LIMIT:
            return float(NO_LIMIT)
    low = high / 2 if high > 1 else 0.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


class BitsForm(EstimateForm):
    """Linear counting: -M ln(1 - X/M) users behind X of M bits (users-and-domains 2.6).

    >>> form = BitsForm(2**20)
    >>> form.show(np.array([397679])), round(form.own_deviation(500_000))
    (500000, 375)
    """

    def __init__(self, bits: int) -> None:
        super().__init__()
        self._bits = bits

    def estimate(self, count: float) -> float:
        M = self._bits
        # Of a full map nothing is known but that it is full: as if one bit were missing.
        return -M * math.log1p(-min(count, M - 1) / M)

    def mean(self, users: float) -> float:
        return -self._bits * math.expm1(users * math.log1p(-1 / self._bits))

    def variance(self, users: float) -> float:
        M = self._bits
        one, two = math.log1p(-1 / M), math.log1p(-2 / M) if M > 2 else -math.inf
        empty = math.exp(users * one)
        both = math.expm1(users * (two - 2 * one)) if users else 0.0  # nearly cancels: as a difference of exponents
        return max(0.0, M * empty * (1 - empty) + M * (M - 1) * empty * empty * both)


class SampleForm(EstimateForm):
    """A count of a sample of users, divided by the probability `p` to be in it (users-and-domains 2.6).

    >>> SampleForm(0.25).show(np.array([250])), round(SampleForm(0.25).own_deviation(1000), 1)
    (1000, 54.8)
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self._p = p

    def estimate(self, count: float) -> float:
        return count / self._p

    def mean(self, users: float) -> float:
        return users * self._p

    def variance(self, users: float) -> float:
        return users * self._p * (1 - self._p)
