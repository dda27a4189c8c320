"""The hard streams behind the lower bounds: batch problems dressed as streams, and how to read the answers back.

price-of-continual-release 5.1 to 5.3. A batch y becomes a stream whose continual answers give away the answers to y, so
a mechanism with a small error on the stream solves the batch problem; neighbouring batches become neighbouring streams.
Ticks count from 1, columns and blocks from 0. Random batches take the caller's `numpy.random.Generator`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.streams import Integers, Rows, Runs
from numpy.typing import ArrayLike, NDArray

from evertally.errors import ConfigurationError
from evertally.theory.column_floors import best_blocks

if TYPE_CHECKING:
    from numpy.random import Generator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MarginalsToMaxSum:
    """The means of `attributes` columns over `rows` people, hidden in a stream for MaxSum.

    After the batch, attribute j is lifted above all others, read at tick 2 j n, and the others are lifted level again.
    Needs horizon >= 2 attributes rows; the rest of the stream is zero.

    >>> hard = MarginalsToMaxSum(rows=2, attributes=3, horizon=13, width=4)
    >>> stream = hard.stream([[1, 0, 1], [1, 0, 0]])
    >>> hard.decode(stream.sums(hard.ticks).max(axis=1)).tolist()
    [1.0, 0.0, 0.5]
    """

    rows: int
    attributes: int
    horizon: int
    width: int

    def __post_init__(self) -> None:
        if min(self.rows, self.attributes) < 1 or self.attributes > self.width:
            raise ConfigurationError("a batch has at least one row and from one attribute to as many as columns")
        if 2 * self.attributes * self.rows > self.horizon:
            raise ConfigurationError(f"the stream needs {2 * self.attributes * self.rows} ticks")

    @classmethod
    def sized(cls, horizon: int, width: int, epsilon: float, *, pure: bool) -> MarginalsToMaxSum:
        """The hardest sizes for (epsilon, 0)-DP or for (epsilon, delta)-DP.

        >>> MarginalsToMaxSum.sized(10**4, 1000, 1.0, pure=True)
        MarginalsToMaxSum(rows=50, attributes=100, horizon=10000, width=1000)
        """
        scale = epsilon * horizon
        best = math.sqrt(scale) if pure else max(0.0, scale * math.log(scale)) ** (2 / 3)
        attributes = max(1, min(width, math.floor(best), horizon // 2))
        return cls(horizon // (2 * attributes), attributes, horizon, width)

    @property
    def ticks(self) -> Integers:
        """When to read: 2n, 4n, ..., 2 d' n."""
        return 2 * self.rows * np.arange(1, self.attributes + 1)

    def stream(self, batch: ArrayLike) -> Runs:
        """The stream for this batch of shape (rows, attributes)."""
        y = _batch(batch, self.rows, self.attributes)
        unit = np.eye(self.attributes, dtype=np.uint8)
        lifts = np.stack([unit, 1 - unit], axis=1).reshape(-1, self.attributes)[:-1]
        return _padded(y, lifts, self.rows, self.horizon, self.width)

    def decode(self, answers: ArrayLike) -> Floats:
        """Marginals from the MaxSum answers at `ticks`; off by at most (error of MaxSum)/rows."""
        return np.asarray(answers, dtype=np.float64) / self.rows - np.arange(1, self.attributes + 1)


@dataclass(frozen=True)
class KSelectToSumSelect:
    """The largest column of each of several blocks, hidden in a stream for SumSelect.

    Before it is read at tick 4 r n, block r is lifted n above all others, so an answer with an error below n lies in
    it. Needs horizon >= 4 blocks rows.

    >>> hard = KSelectToSumSelect(rows=2, blocks=2, block_size=3, horizon=16, width=6)
    >>> stream = hard.stream([[0, 1, 0, 0, 0, 1], [0, 1, 0, 1, 0, 1]])
    >>> hard.decode(stream.sums(hard.ticks).argmax(axis=1)).tolist()
    [1, 2]
    """

    rows: int
    blocks: int
    block_size: int
    horizon: int
    width: int

    def __post_init__(self) -> None:
        if min(self.rows, self.blocks) < 1 or self.block_size < 2 or self.blocks * self.block_size > self.width:
            raise ConfigurationError("blocks have two columns or more, and fit into the columns of the stream")
        if 4 * self.blocks * self.rows > self.horizon:
            raise ConfigurationError(f"the stream needs {4 * self.blocks * self.rows} ticks")

    @classmethod
    def sized(cls, horizon: int, width: int, epsilon: float, *, pure: bool) -> KSelectToSumSelect:
        """The sizes with the largest shape of the floor; needs two columns and four ticks.

        >>> KSelectToSumSelect.sized(65536, 1024, 1.0, pure=True)
        KSelectToSumSelect(rows=91, blocks=179, block_size=5, horizon=65536, width=1024)
        """
        blocks, _ = best_blocks(horizon, width, epsilon, 0.0 if pure else 1e-9)  # any delta > 0 has the same shape
        return cls(horizon // (4 * blocks), blocks, width // blocks, horizon, width)

    @property
    def ticks(self) -> Integers:
        """When to read: 4n, 8n, ..., 4 k n."""
        return 4 * self.rows * np.arange(1, self.blocks + 1)

    def stream(self, batch: ArrayLike) -> Runs:
        """The stream for this batch of shape (rows, blocks * block_size)."""
        y = _batch(batch, self.rows, self.blocks * self.block_size)
        block = np.repeat(np.eye(self.blocks, dtype=np.uint8), self.block_size, axis=1)
        lifts = np.stack([block, 1 - block], axis=1).reshape(-1, block.shape[1])[:-1]
        quiet = np.zeros((self.rows, block.shape[1]), dtype=np.uint8)
        return _padded(np.concatenate([y, quiet]), lifts, 2 * self.rows, self.horizon, self.width)

    def decode(self, answers: ArrayLike) -> Integers:
        """The column inside each block, from the SumSelect answers at `ticks`; 0 where the answer lies elsewhere."""
        inside = np.asarray(answers, dtype=np.int64) - self.block_size * np.arange(self.blocks)
        return np.where((inside >= 0) & (inside < self.block_size), inside, 0)


def two_point_max_sum(horizon: int, distance: int) -> tuple[Runs, Runs]:
    """Two streams of one column that differ at the end: the last answer tells 0 from `distance`.

    >>> [stream.sums([8]).item() for stream in two_point_max_sum(8, 2)]
    [0, 2]
    """
    rows, lengths = np.array([[0], [1]], dtype=np.uint8), np.array([horizon - distance, distance])
    return Runs(rows * np.uint8(0), lengths), Runs(rows, lengths)


def two_point_sum_select(horizon: int, width: int, distance: int) -> tuple[Runs, Runs]:
    """Two streams that start with `distance` ticks of column 0 or of column 1: the last answer tells them apart.

    >>> [stream.sums([8]).tolist() for stream in two_point_sum_select(8, 3, 2)]
    [[[2, 0, 0]], [[0, 2, 0]]]
    """
    rows, lengths = np.eye(3, width, dtype=np.uint8), np.array([distance, horizon - distance])
    rows[2] = 0
    return Runs(rows[[0, 2]], lengths), Runs(rows[[1, 2]], lengths)


def packing_for_marginals(rows: int, attributes: int, copies: int, rng: Generator) -> tuple[Rows, Rows]:
    """A random word u of bits and the batch of `copies` rows u, the others zero (hard for pure DP).

    copies = floor(2 alpha) + 1 makes thresholding at copies/2 return u from any answer with error alpha.

    >>> u, y = packing_for_marginals(5, 8, 3, np.random.default_rng(1))
    >>> (y.sum(axis=0) == 3 * u).all()
    np.True_
    """
    u = rng.integers(0, 1, size=attributes, endpoint=True, dtype=np.uint8)
    return u, _copied(u, rows, copies)


def packing_for_selection(
    rows: int, blocks: int, block_size: int, copies: int, rng: Generator
) -> tuple[Integers, Rows]:
    """A random column u_r in each block and the batch of `copies` rows with ones exactly there, the others zero.

    >>> u, y = packing_for_selection(5, 2, 4, 3, np.random.default_rng(1))
    >>> (y.sum(axis=0).reshape(2, 4).argmax(axis=1) == u).all()
    np.True_
    """
    u = rng.integers(0, block_size, size=blocks)
    return u, _copied((u[:, None] == np.arange(block_size)).astype(np.uint8).ravel(), rows, copies)


def fingerprinting(rows: int, attributes: int, rng: Generator, eta: float | None = None) -> tuple[Floats, Rows]:
    """Attribute means p from the arcsine law, cut off at eta (1/rows unless told), and a batch drawn from them.

    A fingerprinting code for approximate DP, taken from other work (price-of-continual-release 5.1): a workload, no
    claim of hardness.

    >>> p, y = fingerprinting(50, 8, np.random.default_rng(1))
    >>> p.shape, y.shape, bool(p.min() >= 0.02)
    ((8,), (50, 8), True)
    """
    edge = math.asin(math.sqrt(1 / rows if eta is None else eta))
    p = np.sin(rng.uniform(edge, math.pi / 2 - edge, size=attributes)) ** 2
    return p, (rng.random((rows, attributes)) < p).astype(np.uint8)


def membership_scores(marginals: ArrayLike, p: ArrayLike, rows: ArrayLike) -> Floats:
    """How well each row fits the released marginals: large for members of the batch, centred at 0 for fresh rows.

    >>> membership_scores([0.9, 0.1], [0.5, 0.5], [[1, 0], [0, 1]]).tolist()
    [2.0, -2.0]
    """
    b, bias, y = np.asarray(marginals), np.asarray(p, dtype=np.float64), np.asarray(rows)
    weight = np.where(y == 1, np.sqrt((1 - bias) / bias), -np.sqrt(bias / (1 - bias)))
    return np.asarray(weight @ np.sign(b - 0.5), dtype=np.float64)


def biased_columns(rows: int, blocks: int, block_size: int, rng: Generator) -> Rows:
    """A batch of independent columns whose biases are Beta(a, a) with a = max(1, ln block_size).

    A heuristic workload for approximate DP (price-of-continual-release 5.2).

    >>> biased_columns(5, 2, 4, np.random.default_rng(1)).shape
    (5, 8)
    """
    a = max(1.0, math.log(block_size))
    p = rng.beta(a, a, size=blocks * block_size)
    return (rng.random((rows, p.size)) < p).astype(np.uint8)


def _copied(row: Rows, rows: int, copies: int) -> Rows:
    if not 0 <= copies <= rows:
        raise ConfigurationError(f"a batch of {rows} rows holds from 0 to {rows} copies; got {copies}")
    batch = np.zeros((rows, row.size), dtype=np.uint8)
    batch[:copies] = row
    return batch


def _batch(batch: ArrayLike, rows: int, attributes: int) -> Rows:
    y = np.asarray(batch)
    if y.shape != (rows, attributes) or not np.isin(y, (0, 1)).all():
        raise ConfigurationError(f"the batch must be {rows} rows of {attributes} zeros and ones")
    return y.astype(np.uint8)


def _padded(batch: Rows, lifts: Rows, length: int, horizon: int, width: int) -> Runs:
    """The batch row by row, then each lift for `length` ticks, then zeros; columns that are not used stay 0."""
    rows = np.concatenate([batch, lifts, np.zeros((1, batch.shape[1]), dtype=np.uint8)])
    lengths = np.concatenate([np.ones(len(batch), dtype=np.int64), np.full(len(lifts), length), [0]])
    lengths[-1] = horizon - lengths.sum()
    return Runs(np.pad(rows, ((0, 0), (0, width - batch.shape[1]))), lengths)
