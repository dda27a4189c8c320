"""What a strategy is: a fixed integer matrix A, and how every query of a family follows from A times the data.

Noise goes on the rows of A; a query is a weighted sum of noisy rows. What one item can change is a column of A, so the
norms of the largest column, exact integers, are all that privacy needs. What the weights are is accuracy alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evertally.errors import ConfigurationError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

LARGEST_WIDTH = 2**24  # rows: that many draws for each release


@dataclass(frozen=True)
class Norms:
    """Of the largest column of A: the sum of absolute values, the sum of squares, the largest entry.

    `nonnegative`: no entry is below 0 (charges of replaced items are lower then, dynamic-data 13.1).
    """

    l1: int
    l2_squared: int
    linf: int
    nonnegative: bool = True


@dataclass(frozen=True)
class Load:
    """What the weights of every query of the family keep to: the sum of their squares, and the largest of them.

    `single`: each query is one row, times a number. `plain`: all weights are -1, 0 or 1.

    >>> Load.of(np.array([0.0, 1.0, -1.0]))
    Load(squares=2.0, peak=1.0, single=False, plain=True)
    """

    squares: float
    peak: float
    single: bool = False
    plain: bool = True

    @classmethod
    def of(cls, weights: FloatArray) -> Load:
        """The load of one query."""
        used = np.abs(weights[weights != 0])
        if not used.size:
            return cls(0.0, 0.0)
        return cls(float(used @ used), float(used.max()), used.size == 1, bool((used == 1).all()))

    def __or__(self, other: Load) -> Load:
        """What covers both."""
        return Load(
            max(self.squares, other.squares),
            max(self.peak, other.peak),
            self.single and other.single,
            self.plain and other.plain,
        )


class Strategy(Protocol):
    """A matrix A with `width` rows and `cells` columns, never written down where it has a structure."""

    cells: int
    width: int
    norms: Norms
    address: str  # names A in the address of noise: another matrix never meets the same noise

    def apply(self, data: IntArray) -> IntArray:
        """A times the data, modulo 2^64: still a function of the exact product, whatever the data are."""

    def encode(self, cells: IntArray, signs: IntArray) -> IntArray:
        """The sum of signs[i] times the column of cells[i]."""

    def weights(self, query: Any) -> FloatArray:
        """The answer of a query is weights . row; refuses what is no query of the family."""

    def worst(self) -> Load:
        """What covers the weights of all queries."""


def histogram(count: int, cells: IntArray, signs: IntArray) -> IntArray:
    """Signed updates as a vector of counts.

    >>> histogram(3, np.array([0, 2, 2]), np.array([1, 1, -1])).tolist()
    [1, 0, 0]
    """
    data = np.zeros(count, dtype=np.int64)
    np.add.at(data, cells, signs)
    return data


def check_width(width: int) -> None:
    """Refuses rows that nobody wants to draw noise for."""
    if width > LARGEST_WIDTH:
        raise ConfigurationError(
            f"a release would have {width:,} numbers, and at most 2^24 are possible; take coarser cells, fewer "
            "attributes, or a larger fan-out"
        )
