"""The square root along the domain: prefix counts over ordered cells with Gaussian noise (users-and-domains 4).

An item in cell u adds the integers r_0, r_1, ... to the rows u, u+1, ..., r_k = floor(2^q f(k) + 1/2),
f(k) = binom(2k, k)/4^k. The matrix is Toeplitz, and its inverse times prefix sums is the series of 1/((1-z) r(z)), in
floats: a release is the noisy rows, so weights decide accuracy alone. Factor 3.27 at 1024 cells, where the best
hierarchy has 8.66. Over several axes it is the product of these matrices: norms and sums of squares multiply.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from evertally.dynamic.families import Boxes, Ranges
from evertally.dynamic.strategies.strategy import FloatArray, IntArray, Load, Norms, histogram
from evertally.errors import ConfigurationError

GRID_BITS = 8
MOST_AXES = 3  # an entry has 8 bits for each
LARGEST_WORK = 2**28  # cells times the cells of the longest axis: multiplying by A takes so many steps
_ALL_PAIRS = 2**12  # up to here the worst range is found among all of them
_FEW = 32


class SquareRoot:
    """The integer square root of the prefix sums along every axis of ranges or boxes.

    >>> strategy = SquareRoot(Ranges(size=4))
    >>> strategy.apply(np.array([1, 0, 0, 1])).tolist(), strategy.norms.l2_squared
    ([256, 128, 96, 336], 97536)
    >>> [round(float(strategy.weights(q) @ strategy.apply(np.array([5, 0, 2, 1]))), 9) for q in [(0, 1), (2, 3)]]
    [5.0, 3.0]
    """

    address = f"square-root-{GRID_BITS}"

    def __init__(self, family: Ranges | Boxes) -> None:
        self._family = family
        self._shape = family.shape if isinstance(family, Boxes) else (family.size,)
        self.cells = self.width = family.cells
        if len(self._shape) > MOST_AXES or self.cells * max(self._shape) > LARGEST_WORK:
            raise ConfigurationError(
                f"the square root along the domain takes up to {MOST_AXES} axes, and up to 2^28 for the number of "
                f"cells times the longest axis; these are {'x'.join(map(str, self._shape))}"
            )
        self.axes = [RootAxis(size) for size in self._shape]
        columns = [axis.r.tolist() for axis in self.axes]  # of the first cell: every later one is shorter
        self.norms = Norms(
            math.prod(sum(column) for column in columns),
            math.prod(sum(r * r for r in column) for column in columns),
            math.prod(column[0] for column in columns),
        )

    def apply(self, data: IntArray) -> IntArray:
        if len(self.axes) == 1:
            return np.convolve(data, self.axes[0].r)[: self.cells]
        rows = data.reshape(self._shape)
        for along, axis in enumerate(self.axes):
            rows = axis.times(rows, along)
        return rows.reshape(-1)

    def encode(self, cells: IntArray, signs: IntArray) -> IntArray:
        if len(cells) > _FEW:
            return self.apply(histogram(self.cells, cells, signs))
        rows = np.zeros(self._shape, dtype=np.int64)
        for cell, sign in zip(cells.tolist(), signs.tolist(), strict=True):
            place = np.unravel_index(cell, self._shape)
            ends = [axis.r[: axis.r.size - int(u)] for axis, u in zip(self.axes, place, strict=True)]
            rows[tuple(slice(int(u), None) for u in place)] += sign * reduce(np.multiply.outer, ends)
        return rows.reshape(-1)

    def weights(self, query: Any) -> FloatArray:
        family = self._family
        pairs = family.bounds(query) if isinstance(family, Boxes) else (family.bounds(query),)
        along = [axis.weights(*pair) for axis, pair in zip(self.axes, pairs, strict=True)]
        return np.asarray(reduce(np.multiply.outer, along).reshape(-1))

    def worst(self) -> Load:
        loads = [axis.worst() for axis in self.axes]
        return Load(math.prod(s for s, _ in loads), math.prod(p for _, p in loads), plain=False)


class RootAxis:
    """r, and the series that turns noisy rows into prefix counts, of one axis.

    >>> RootAxis(4).r.tolist()
    [256, 128, 96, 80]
    """

    def __init__(self, size: int) -> None:
        k = np.arange(1, size, dtype=np.float64)
        f = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
        self.r: IntArray = np.floor(f * 2**GRID_BITS + 0.5).astype(np.int64)
        self.inverse = _prefix_inverse(self.r)

    def times(self, data: IntArray, along: int) -> IntArray:
        """The Toeplitz matrix of r, applied along an axis."""
        lines = np.moveaxis(data, along, 0)
        out = np.zeros_like(lines)
        for k, r in enumerate(self.r.tolist()):
            out[k:] += r * lines[: len(lines) - k]
        return np.moveaxis(out, 0, along)

    def weights(self, first: int, last: int) -> FloatArray:
        """The prefix up to `last`, less the one before `first`."""
        weights = np.zeros(self.r.size)
        weights[: last + 1] = self.inverse[last::-1]
        if first:
            weights[:first] -= self.inverse[first - 1 :: -1]
        return weights

    def worst(self) -> tuple[float, float]:
        """The largest sum of squared weights of any range, and a bound on a weight."""
        l, U = self.inverse, self.r.size  # noqa: E741
        prefixes = np.cumsum(l * l)
        worst = float(prefixes[-1])
        if U > _ALL_PAIRS:  # |a - b|^2 <= (|a| + |b|)^2, and without the product if no entry is negative
            worst *= 2 if (l >= 0).all() else 4
        else:
            for m in range(1, U):  # ranges of m cells that do not start at the first one
                worst = max(worst, float((prefixes[m:] + prefixes[:-m] - 2 * np.cumsum(l[m:] * l[:-m])).max()))
        return worst * (1 + 1e-9), 2 * float(np.abs(l).max())


def _prefix_inverse(r: IntArray) -> FloatArray:
    """The series of 1/((1 - z) r(z))."""
    g = np.zeros(r.size)
    reversed_r = r[::-1].astype(np.float64)
    g[0] = 1 / float(r[0])
    for k in range(1, r.size):
        g[k] = -float(g[:k] @ reversed_r[r.size - 1 - k : r.size - 1]) / float(r[0])
    return np.cumsum(g)
