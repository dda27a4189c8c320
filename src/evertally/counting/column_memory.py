"""What a noise process remembers, column by column: it can be cut between any two columns, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from evertally.counting.process import FloatArray, IntArray
from evertally.secret import Secret

GROUP = 4096  # columns that share bounds, counted from the first


@dataclass(frozen=True, repr=False)
class ColumnMemory(Secret):
    """`numbers` (rows, columns): 64 bits each, integers or floats, of every column. `bounds` (rows, groups): numbers
    that hold for all columns of a group, such as bounds on errors of floats; larger ones hold as well. Secret.

    >>> memory = ColumnMemory(np.arange(6).reshape(1, 6), np.array([[0.5]]))
    >>> again = ColumnMemory.joined([memory.cut(0, 2), memory.cut(2, 6)])
    >>> bool((again.numbers == memory.numbers).all()), again.bounds.tolist()
    (True, [[0.5]])
    """

    numbers: IntArray
    bounds: FloatArray

    @classmethod
    def of(cls, numbers: NDArray[np.generic], bounds: FloatArray | None = None) -> ColumnMemory:
        groups = -(-numbers.shape[1] // GROUP)
        return cls(numbers.view(np.int64), np.empty((0, groups)) if bounds is None else bounds)

    @property
    def columns(self) -> int:
        return int(self.numbers.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of numbers, and of bounds: memories of one process at one tick have the same."""
        return len(self.numbers), len(self.bounds)

    def floats(self) -> FloatArray:
        return self.numbers.view(np.float64)

    def cut(self, first: int, stop: int) -> ColumnMemory:
        """The memory of the columns first .. stop - 1."""
        if (first, stop) == (0, self.columns):
            return self
        return ColumnMemory(self.numbers[:, first:stop], grouped(self.bound_of_each()[:, first:stop]))

    @staticmethod
    def joined(parts: Sequence[ColumnMemory | None]) -> ColumnMemory | None:
        """The memory of neighbours, from the left; None where theirs do not go together (floats of one machine, double
        words of another): the noise is found again by its address then, and is the same."""
        known = [part for part in parts if part is not None]
        if len(known) != len(parts) or len({part.shape for part in known}) != 1:
            return None
        if len(known) == 1:
            return known[0]
        numbers = np.concatenate([part.numbers for part in known], axis=1)
        return ColumnMemory(numbers, grouped(np.concatenate([part.bound_of_each() for part in known], axis=1)))

    def bound_of_each(self) -> FloatArray:
        """The bounds of every column."""
        return np.repeat(self.bounds, GROUP, axis=1)[:, : self.columns]


def grouped(bounds: FloatArray) -> FloatArray:
    """Bounds of columns (rows, columns) as bounds of groups: the largest holds for each."""
    return np.maximum.reduceat(bounds, np.arange(0, bounds.shape[1], GROUP), axis=1)


@runtime_checkable
class Divisible(Protocol):
    """A process whose state takes long to compute again, and can be cut between columns."""

    def kept(self) -> ColumnMemory:
        """Its state after its tick, secret like all noise."""

    def take(self, tick: int, kept: ColumnMemory) -> None:
        """Goes to the state after `tick`; the noise is the same as after `seek`. StateError for what is no such state
        of this process."""
