"""Workloads: streams of 0/1 rows that stress mechanisms on column sums, with their exact answers.

price-of-continual-release 5.4 and parameterized-histograms 9.5; the hard streams of the lower bounds are in
`reductions`. A stream is kept as runs of equal rows or as (tick, column) pairs, whichever is small, so that a million
ticks and a thousand columns fit in memory. Ticks count from 1, columns from 0.

This is test data, not privacy noise: where a workload is random, the caller brings the `numpy.random.Generator`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evertally.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.random import Generator  # the product itself never draws from it

Rows = NDArray[np.uint8]
Integers = NDArray[np.int64]


class Workload(ABC):
    """A finite stream of rows in {0,1}^width, as `Runs` or `Pairs`.

    >>> stream = late_spike(horizon=6, width=2, length=2)
    >>> [block.shape for block in stream.blocks(4)], stream.pairs().ticks.tolist()
    ([(4, 2), (2, 2)], [5, 5, 6, 6])
    """

    horizon: int
    width: int

    @abstractmethod
    def block(self, first: int, last: int) -> Rows:
        """The rows of the ticks first..last."""

    @abstractmethod
    def sums(self, ticks: ArrayLike) -> Integers:
        """Exact column sums after each of these ticks, one row for each."""

    def dense(self) -> Rows:
        """All rows: horizon x width bytes."""
        return self.block(1, self.horizon)

    def blocks(self, size: int) -> Iterator[Rows]:
        """All rows in pieces of at most `size` ticks."""
        for first in range(1, self.horizon + 1, size):
            yield self.block(first, min(first + size - 1, self.horizon))

    def pairs(self) -> Pairs:
        """The same stream as (tick, column) pairs."""
        ticks, columns = np.nonzero(self.dense())
        return Pairs(ticks + 1, columns.astype(np.int64), self.horizon, self.width)


@dataclass(frozen=True, eq=False)
class Runs(Workload):
    """Row rows[i] for lengths[i] ticks, i = 0, 1, ...

    >>> stream = Runs(np.array([[1, 0], [1, 1]], dtype=np.uint8), np.array([3, 2]))
    >>> stream.horizon, stream.sums([3, 5]).tolist(), stream.block(3, 4).tolist()
    (5, [[3, 0], [5, 2]], [[1, 0], [1, 1]])
    """

    rows: Rows
    lengths: Integers

    @property
    def horizon(self) -> int:  # type: ignore[override]
        return int(self.lengths.sum())

    @property
    def width(self) -> int:  # type: ignore[override]
        return int(self.rows.shape[1])

    def block(self, first: int, last: int) -> Rows:
        return self.rows[self._run_of(np.arange(first, last + 1))]

    def sums(self, ticks: ArrayLike) -> Integers:
        t = _ticks(ticks, self.horizon)
        done = np.cumsum(self.rows * self.lengths[:, None], axis=0, dtype=np.int64)
        run = self._run_of(t)
        left = np.cumsum(self.lengths)[run] - t  # ticks of the run that are still to come
        return done[run] - self.rows[run] * left[:, None]

    def _run_of(self, ticks: Integers) -> Integers:
        return np.searchsorted(np.cumsum(self.lengths), ticks)


@dataclass(frozen=True, eq=False)
class Pairs(Workload):
    """A one at (ticks[i], columns[i]), ticks ascending; zero elsewhere.

    >>> stream = Pairs(np.array([1, 1, 4]), np.array([0, 2, 2]), horizon=5, width=3)
    >>> stream.sums([1, 5]).tolist(), stream.dense().sum()
    ([[1, 0, 1], [1, 0, 2]], np.uint64(3))
    """

    ticks: Integers
    columns: Integers
    horizon: int
    width: int

    def block(self, first: int, last: int) -> Rows:
        rows = np.zeros((last - first + 1, self.width), dtype=np.uint8)
        part = slice(*np.searchsorted(self.ticks, [first, last + 1]))
        rows[self.ticks[part] - first, self.columns[part]] = 1
        return rows

    def sums(self, ticks: ArrayLike) -> Integers:
        t = _ticks(ticks, self.horizon)
        order = np.argsort(t)
        ends = np.searchsorted(self.ticks, t[order], side="right")
        pieces = np.split(self.columns, ends)[:-1]
        counts = np.array([np.bincount(piece, minlength=self.width) for piece in pieces], dtype=np.int64)
        out = np.empty_like(counts)
        out[order] = np.cumsum(counts, axis=0)
        return out

    def pairs(self) -> Pairs:
        return self


def zeros(horizon: int, width: int) -> Runs:
    """Nothing ever happens.

    >>> zeros(10, 3).sums([10]).tolist()
    [[0, 0, 0]]
    """
    return Runs(np.zeros((1, width), dtype=np.uint8), np.array([horizon]))


def all_ones(horizon: int, width: int) -> Runs:
    """Every row is full: the answer grows at every tick, so what is stale is as wrong as it can be.

    >>> all_ones(10, 3).sums([10]).tolist()
    [[10, 10, 10]]
    """
    return Runs(np.ones((1, width), dtype=np.uint8), np.array([horizon]))


def one_heavy_column(horizon: int, width: int) -> Runs:
    """Column 0 grows at every tick, the others stay empty: a minimum or median of 0 beside a large maximum.

    >>> one_heavy_column(10, 3).sums([10]).tolist()
    [[10, 0, 0]]
    """
    return Runs(np.eye(1, width, dtype=np.uint8), np.array([horizon]))


def late_spike(horizon: int, width: int, length: int) -> Runs:
    """Nothing until the last `length` ticks, then full rows.

    >>> late_spike(10, 2, 3).sums([7, 10]).tolist()
    [[0, 0], [3, 3]]
    """
    rows = np.repeat(np.array([[0], [1]], dtype=np.uint8), width, axis=1)
    return Runs(rows, np.array([horizon - length, length]))


def leader_rotation(horizon: int, width: int, period: int) -> Runs:
    """Columns take turns: each grows for more than `period` ticks and until it is the strict leader.

    A selection that is `period` ticks old then points at the last leader.

    >>> leader_rotation(12, 3, 2).sums([3, 7, 12]).tolist()
    [[3, 0, 0], [3, 4, 0], [3, 4, 5]]
    """
    if width < 2:
        raise ConfigurationError("leaders rotate among at least two columns")
    sums, left = [0] * width, horizon
    turns: list[int] = []
    lengths: list[int] = []
    while left > 0:
        column = len(turns) % width
        length = min(left, max(period + 1, max(sums) - sums[column] + 1))
        sums[column] += length
        turns.append(column)
        lengths.append(length)
        left -= length
    return Runs(np.eye(width, dtype=np.uint8)[turns], np.array(lengths))


def dead_heat(horizon: int, width: int) -> Pairs:
    """One column after the other: all sums are equal up to 1 throughout, so no selection can err by more than 1.

    >>> dead_heat(7, 3).sums([3, 7]).tolist()
    [[1, 1, 1], [3, 2, 2]]
    """
    ticks = np.arange(1, horizon + 1)
    return Pairs(ticks, (ticks - 1) % width, horizon, width)


def block_stream(blocks: Sequence[int], horizon: int, length: int) -> Pairs:
    """x(v) of the independent-neighbour floor: column i has its ones exactly in block blocks[i] of `length` ticks.

    >>> block_stream([1, 0], horizon=6, length=2).dense().T.tolist()
    [[0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]]
    """
    v = np.asarray(blocks, dtype=np.int64)
    if v.min() < 0 or v.max() >= horizon // length:
        raise ConfigurationError(f"blocks are numbered from 0 to {horizon // length - 1}")
    ticks = v[:, None] * length + np.arange(1, length + 1)
    return _sorted_pairs(ticks.ravel(), np.repeat(np.arange(v.size), length), horizon, v.size)


def uniform_rows(horizon: int, width: int, rng: Generator) -> Runs:
    """Fair coins everywhere.

    >>> uniform_rows(10, 3, np.random.default_rng(1)).dense().shape
    (10, 3)
    """
    return bernoulli_columns(horizon, np.full(width, 0.5), rng)


def bernoulli_columns(horizon: int, rates: ArrayLike, rng: Generator) -> Runs:
    """Column i is 1 with probability rates[i], independently at every tick; horizon x width bytes.

    >>> bernoulli_columns(1000, [0.9, 0.6, 0.3], np.random.default_rng(1)).width
    3
    """
    p = np.asarray(rates, dtype=np.float64)
    rows = (rng.random((horizon, p.size), dtype=np.float32) < p).astype(np.uint8)
    return Runs(rows, np.ones(horizon, dtype=np.int64))


def zipf_columns(horizon: int, width: int, rng: Generator, *, top: float = 0.5, exponent: float = 1.0) -> Pairs:
    """Rates top, top/2^exponent, top/3^exponent, ...: a few busy columns and a long tail. Memory 16 bytes per one.

    >>> sums = zipf_columns(10_000, 100, np.random.default_rng(1)).sums([10_000])[0]
    >>> bool(sums[0] > 10 * sums[50])
    True
    """
    rates = top / np.arange(1, width + 1) ** exponent
    return _scattered(rng.binomial(horizon, rates), horizon, rng)


def very_sparse(horizon: int, width: int, c_max: int, rng: Generator) -> Pairs:
    """Column sums of at most c_max over a long horizon, spread at random; column 0 reaches c_max.

    The case that partitions are made for: their error should not grow with the horizon but for its logarithm.

    >>> very_sparse(10**6, 5, 20, np.random.default_rng(1)).sums([10**6]).max()
    np.int64(20)
    """
    counts = rng.integers(0, c_max, size=width, endpoint=True)
    counts[0] = c_max
    return _scattered(counts, horizon, rng)


def _scattered(counts: Integers, horizon: int, rng: Generator) -> Pairs:
    ticks = [rng.choice(horizon, size=int(count), replace=False) + 1 for count in counts]
    return _sorted_pairs(np.concatenate(ticks), np.repeat(np.arange(counts.size), counts), horizon, counts.size)


def _sorted_pairs(ticks: Integers, columns: Integers, horizon: int, width: int) -> Pairs:
    order = np.lexsort((columns, ticks))
    return Pairs(ticks[order], columns[order], horizon, width)


def _ticks(ticks: ArrayLike, horizon: int) -> Integers:
    t = np.asarray(ticks, dtype=np.int64)
    if t.ndim != 1 or t.size == 0 or t.min() < 1 or t.max() > horizon:
        raise ConfigurationError(f"give a list of ticks between 1 and {horizon}")
    return t
