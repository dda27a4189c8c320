"""Encoders of a line of cells: what one value adds to the columns of a counter, and how prefix counts come back.

users-and-domains 4 [R]. Along the domain as along time: a factor R that is released with noise, and L with L R = prefix
sums, which is post-processing. Gaussian noise has the square root on this axis too; Laplace noise, which pays for l1,
has trees.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.square_root import coefficients
from evertally.counting.fourier import convolve
from evertally.counting.sqrt_factor import approximate_inverse
from evertally.privacy import Change

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# q of the encoder, and beyond so many cells, where the last coefficients would be rounded away: the norms are those of
# the integers used
GRID_BITS, FINE_BITS, _MOST_COARSE = 8, 12, 2**12
MOST_PAIRS = 2**13  # cells up to which the charge of a replaced value is the exact maximum over all pairs
_DIRECT = 2**11  # cells up to which the convolution is done in integers, term by term
_LIMB = 2**12  # counts are convolved in parts below this
_FANOUTS = 65


class Domain(Protocol):
    """A line of cells, encoded. Prefix counts are `weights(u)` times the row, for each cell u."""

    cells: int
    columns: int
    added: Change  # one value that is there or not
    replaced: Change  # one value in place of another, or of none
    energy: FloatArray  # sum of the squared weights of each prefix
    heaviest: float  # the largest weight; none is negative
    reach: float  # the largest sum of the weights of a prefix
    with_total: FloatArray  # sum of the weights of each prefix times those of the last one, the total

    def encode(self, counts: IntArray) -> IntArray:
        """The row that the values of a tick add, exactly."""

    def prefixes(self, row: NDArray[np.number]) -> FloatArray:
        """How many values are in the cells 0 .. u, for each u, from a released row."""

    def weights(self, cell: int) -> FloatArray:
        """The weights of one prefix; of cell -1 there is none."""


class SquareRootDomain:
    """A value in cell u adds (0, .., 0, r_0, r_1, .., r_(U-1-u)), r_k = floor(2^8 f(k) + 1/2), or 2^12.

    l2_squared = N_U = sum r_k^2; prefix counts carry the noise of a column times sqrt(S_U) at most, so their factor is
    S_U. Replaced: the exact maximum over pairs of cells. It is attained by the first cell and another one: with both
    cells moved up the line, the squared difference loses terms (r_m - r_(m+d))^2.

    >>> domain = SquareRootDomain(4)
    >>> domain.encode(np.array([0, 1, 0, 0])).tolist(), domain.added
    ([0, 256, 128, 96], Change(l1=560, l2_squared=97536, linf=256))
    >>> domain.prefixes(domain.encode(np.array([2, 1, 0, 4]))).round(9).tolist()
    [2.0, 3.0, 3.0, 7.0]
    """

    def __init__(self, cells: int) -> None:
        self.cells = self.columns = cells
        bits = GRID_BITS if cells <= _MOST_COARSE else FINE_BITS
        self.r: IntArray = np.floor(coefficients(cells) * 2.0**bits + 0.5).astype(np.int64)
        r = [int(x) for x in self.r]
        self.added = Change(sum(r), sum(x * x for x in r), r[0])
        self.replaced = _farthest(self.r, self.added)
        self._inverse = np.cumsum(approximate_inverse(self.r.astype(np.float64)))
        self._size = 1 << (2 * cells - 1).bit_length()
        self._spectrum = np.fft.rfft(self._inverse, self._size)
        self.energy = np.cumsum(self._inverse**2)
        both = np.fft.irfft(np.abs(self._spectrum) ** 2, self._size)[:cells]
        self.with_total = both[::-1].copy()
        self.heaviest, self.reach = float(self._inverse.max()), float(self._inverse.sum())

    def encode(self, counts: IntArray) -> IntArray:
        if self.cells <= _DIRECT:
            return np.convolve(counts, self.r)[: self.cells]
        row = np.zeros(self.cells, dtype=np.int64)
        rest, unit = counts, 1
        while rest.any():
            rest, limb = np.divmod(rest, _LIMB)
            part, error = convolve(self.r.astype(np.float64), limb.astype(np.float64), 0, self.cells)
            assert error < 0.5, "the nearest integer is the sum"
            row += unit * np.rint(part).astype(np.int64)
            unit *= _LIMB
        return row

    def prefixes(self, row: NDArray[np.number]) -> FloatArray:
        found: FloatArray = np.fft.irfft(np.fft.rfft(row, self._size) * self._spectrum, self._size)[: self.cells]
        return found

    def weights(self, cell: int) -> FloatArray:
        found = np.zeros(self.columns)
        found[: cell + 1] = self._inverse[: cell + 1][::-1]
        return found


def _farthest(r: IntArray, added: Change) -> Change:
    """The largest difference of the rows of two cells, or of a cell and no value."""
    if r.size > MOST_PAIRS:
        return Change(2 * added.l1, 2 * added.l2_squared, added.linf)
    # Cells 0 and d: sum over k < d of r_k^2, and of (r_(k+d) - r_k)^2 over the rest. In integers throughout.
    sums, squares = np.cumsum(r), np.cumsum(r * r)
    l1, l2_squared = added.l1, added.l2_squared
    for d in range(1, r.size):
        shared = int(np.dot(r[d:], r[: r.size - d]))
        l2_squared = max(l2_squared, added.l2_squared + int(squares[r.size - d - 1]) - 2 * shared)
        l1 = max(l1, 2 * int(sums[d - 1]) + int(sums[r.size - d - 1]) - added.l1)
    return Change(l1, l2_squared, added.linf)


class TreeDomain:
    """A value adds 1 to each node above its cell: h levels of fan-out b, l1 = l2_squared = h.

    A prefix of m cells is as many nodes as the digits of m in base b add up to.

    >>> tree = TreeDomain(9, fanout=3)
    >>> tree.encode(np.array([1, 0, 0, 0, 2, 0, 0, 0, 1])).tolist()
    [1, 2, 1, 1, 0, 0, 0, 2, 0, 0, 0, 1]
    >>> tree.prefixes(tree.encode(np.arange(9))).tolist(), tree.added
    ([0.0, 1.0, 3.0, 6.0, 10.0, 15.0, 21.0, 28.0, 36.0], Change(l1=2, l2_squared=2, linf=1))
    """

    def __init__(self, cells: int, fanout: int) -> None:
        self.cells, self.fanout = cells, fanout
        widths = [1]
        while widths[0] * fanout < cells:
            widths.insert(0, widths[0] * fanout)
        self._widths = widths  # cells below a node of each level, from the top
        self._nodes = [-(-cells // width) for width in widths]
        self._starts = np.cumsum([0, *self._nodes]).tolist()
        self.columns = self._starts[-1]
        h = len(widths)
        self.added, self.replaced = Change(h, h, 1), Change(2 * h, 2 * h, 1)
        m = np.arange(1, cells + 1)
        self.energy = sum((last - first for last, first in self._digits(m)), np.zeros(cells)).astype(np.float64)
        self.with_total = (m // widths[0]).astype(np.float64)
        # The total is all nodes at the top.
        self.energy[-1] = self.with_total[-1] = self._nodes[0]
        self.heaviest, self.reach = 1.0, float(self.energy.max())

    def encode(self, counts: IntArray) -> IntArray:
        padded = [np.append(counts, np.zeros(n * w - self.cells, dtype=np.int64)) for n, w in self._levels()]
        return np.concatenate([p.reshape(n, -1).sum(axis=1) for p, n in zip(padded, self._nodes, strict=True)])

    def prefixes(self, row: NDArray[np.number]) -> FloatArray:
        m, found = np.arange(1, self.cells + 1), np.zeros(self.cells)
        for level, (last, first) in enumerate(self._digits(m)):
            part = row[self._starts[level] : self._starts[level + 1]]
            sums = np.concatenate([[0.0], np.cumsum(part, dtype=np.float64)])
            found += sums[last] - sums[first]
            if level == 0:
                found[-1] = sums[-1]
            else:
                found[-1] -= sums[last[-1]] - sums[first[-1]]
        return found

    def weights(self, cell: int) -> FloatArray:
        found = np.zeros(self.columns)
        if cell == self.cells - 1:
            found[: self._nodes[0]] = 1
        elif cell >= 0:
            for level, (last, first) in enumerate(self._digits(np.array([cell + 1]))):
                found[self._starts[level] + int(first[0]) : self._starts[level] + int(last[0])] = 1
        return found

    def _levels(self) -> list[tuple[int, int]]:
        return list(zip(self._nodes, self._widths, strict=True))

    def _digits(self, m: IntArray) -> list[tuple[IntArray, IntArray]]:
        """For each level: the nodes of prefixes of m cells, up to the first number and from the second on."""
        above = [np.zeros_like(m), *((m // width) * self.fanout for width in self._widths[:-1])]
        return [(m // width, first) for width, first in zip(self._widths, above, strict=True)]


@lru_cache(maxsize=32)
def square_root_domain(cells: int) -> SquareRootDomain:
    """The same for all who have so many cells: built once, O(U^2) integers."""
    return SquareRootDomain(cells)


@lru_cache(maxsize=32)
def tree_domain(cells: int) -> TreeDomain:
    """The fan-out with the smallest worst error under a pure budget: h^2 times the nodes of the worst prefix."""
    trees = [TreeDomain(cells, fanout) for fanout in {*range(2, min(_FANOUTS, cells)), max(2, cells)}]
    return min(trees, key=lambda tree: (tree.added.l1**2 * tree.energy.max(), tree.fanout))
