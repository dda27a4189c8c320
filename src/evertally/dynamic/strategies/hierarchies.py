"""Hierarchies of counts along ordered axes, and their product: ranges and boxes from few nodes (dynamic-data 3.3).

Along an axis of U cells, fan-out b: level 0 are the cells, level j the sums of b nodes of level j - 1, up to the first
level of at most b nodes (or one more, the root). An item lies in one node a level, h of them, and over d axes in the
product of these numbers. A range is the sum of at most 2(b-1) nodes a level; better, by half and more, is the estimate
of least squares, which uses all nodes. With G = A'A its weights are A G^-1 q, its variance is q' G^-1 q, and both
factor over the axes (additions 10).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any, Self

import numpy as np

from evertally.dynamic.families import Boxes, Ranges
from evertally.dynamic.strategies.strategy import FloatArray, IntArray, Load, Norms, check_width, histogram
from evertally.integers import whole

_ALL_PAIRS = 2**12  # cells: up to here the worst range is found among all of them
_EVERY = 40  # fan-outs up to here are all tried


class Axis:
    """The nodes over one axis.

    >>> axis = Axis(10, fanout=3)
    >>> axis.levels, axis.nodes, axis.most
    ((10, 4, 2), 16, 8)
    >>> axis.weights(0, 2).round(3).tolist()[:5], round(axis.worst(), 3)
    ([0.192, 0.192, 0.192, -0.058, -0.058], 1.808)
    """

    def __init__(self, size: int, fanout: int, root: bool = False) -> None:
        self.fanout = whole("the fan-out of a hierarchy", fanout, 2)
        sizes = [size]
        while sizes[-1] > (1 if root else fanout):
            sizes.append(-(-sizes[-1] // fanout))
        self.levels: tuple[int, ...] = tuple(sizes)
        self.nodes: int = sum(sizes)
        # Of each node v, s = 1' G_v^-1 1, G_v what the nodes in v and below make of its cells.
        self._s = [np.ones(size)]
        for _ in sizes[1:]:
            below = self._grouped(self._s[-1])
            self._s.append(below / (1 + below))

    @property
    def height(self) -> int:
        """In how many nodes an item lies."""
        return len(self.levels)

    @property
    def most(self) -> int:
        """At most so many nodes make up a range, and least squares are never worse.

        Below the top a range takes at most b - 1 nodes at either end of each level, and an end that took some has a
        top node that is not all covered.
        """
        top, side = self.levels[-1], (self.fanout - 1) * (self.height - 1)
        if top == 1 and self.height > 1:
            return Axis(self.levels[0], self.fanout).most
        return max(top, side + top - 1, 2 * side + max(top - 2, 0)) if side else top

    def weights(self, first: int, last: int) -> FloatArray:
        """How the count of the cells first..last follows from the nodes."""
        query = np.zeros((self.levels[0], 1))
        query[first : last + 1] = 1
        return np.concatenate(self._least_squares(query))[:, 0]

    def worst(self) -> float:
        """The largest sum of squared weights of any range, up to 2^12 cells; above, the bound of `most`."""
        U = self.levels[0]
        if U > _ALL_PAIRS:
            return float(self.most)
        own = np.concatenate([self._prefixes(block).diagonal(block.start + 1) for block in _blocks(U)])
        worst = own.max()
        for block in _blocks(U):  # of the difference of two prefixes
            worst = max(worst, (own[block, None] + own - 2 * self._prefixes(block)[:, 1:]).max())
        return float(worst) * (1 + 1e-9)

    def seems(self) -> float:
        """As `worst`, over some ranges: what a fan-out is chosen by."""
        U = self.levels[0]
        # Pairs spread evenly over the square, in whole numbers: multiples of 1/g and 1/g^2, g^3 = g + 1.
        spread = [[(k * step % 2**32) * (U + 1) >> 32 for step in (0xC13FA9A9, 0x91E10DA5)] for k in range(1, 61)]
        ends = np.sort(np.array(spread), axis=1)
        ends = np.concatenate([ends, [[0, U], [1, U], [1, U - 1], [0, U // 2], [U // 3, U - U // 3]]])
        queries = ((np.arange(U)[:, None] >= ends[:, 0]) & (np.arange(U)[:, None] < ends[:, 1])).astype(np.float64)
        return float((self._least_squares(queries)[0] * queries).sum(axis=0).max())

    def sums(self, data: IntArray, along: int) -> IntArray:
        """All nodes over this axis of an array."""
        levels = [data]
        for _ in self.levels[1:]:
            starts = np.arange(0, levels[-1].shape[along], self.fanout)
            levels.append(np.add.reduceat(levels[-1], starts, axis=along))
        return np.concatenate(levels, axis=along)

    def _least_squares(self, queries: FloatArray) -> list[FloatArray]:
        """A G^-1 q for each column q, level by level; the first level is G^-1 q.

        Up the tree t_v = 1' G_v^-1 q by the formula for a matrix plus ones, and down it the weight of a node,
        w_v = t_v - s_v (sum of the weights above v).
        """
        t = [queries]
        for level in range(1, self.height):
            t.append(self._grouped(t[-1]) / (1 + self._grouped(self._s[level - 1]))[:, None])
        above = np.zeros_like(t[-1])
        weights = [t[-1]]
        for level in range(self.height - 2, -1, -1):
            above = np.repeat(above + weights[0], self.fanout, axis=0)[: self.levels[level]]
            weights.insert(0, t[level] - self._s[level][:, None] * above)
        return weights

    def _grouped(self, children: FloatArray) -> FloatArray:
        return np.add.reduceat(children, np.arange(0, len(children), self.fanout), axis=0)

    def _prefixes(self, block: slice) -> FloatArray:
        """q_a' G^-1 q_b for the prefixes of a + 1 cells, a in the block, and of b = 0, 1, ... cells."""
        U = self.levels[0]
        queries = (np.arange(U)[:, None] <= np.arange(block.start, block.stop)).astype(np.float64)
        sums = np.cumsum(self._least_squares(queries)[0], axis=0).T
        return np.concatenate([np.zeros((len(sums), 1)), sums], axis=1)


def _blocks(size: int) -> list[slice]:
    return [slice(start, min(start + 256, size)) for start in range(0, size, 256)]


class Hierarchies:
    """The product of hierarchies over the axes of ranges or boxes.

    >>> strategy = Hierarchies(Ranges(size=8), fanouts=[2])
    >>> strategy.norms.l1, strategy.apply(np.arange(8)).tolist()
    (3, [0, 1, 2, 3, 4, 5, 6, 7, 1, 5, 9, 13, 6, 22])
    >>> round(float(strategy.weights((1, 6)) @ strategy.apply(np.arange(8))), 9)
    21.0
    """

    def __init__(self, family: Ranges | Boxes, fanouts: Sequence[int], root: bool = False) -> None:
        self._family, self.fanouts, self.root = family, list(fanouts), root
        self._shape = family.shape if isinstance(family, Boxes) else (family.size,)
        self.axes = [Axis(size, fanout, root) for size, fanout in zip(self._shape, fanouts, strict=True)]
        self.cells = family.cells
        self.width = math.prod(axis.nodes for axis in self.axes)
        check_width(self.width)
        copies = math.prod(axis.height for axis in self.axes)
        self.norms = Norms(copies, copies, 1)
        self.address = f"hierarchy-{'x'.join(map(str, fanouts))}{'-root' if root else ''}"

    @classmethod
    def best(cls, family: Ranges | Boxes, pure: bool) -> Self:
        """The fan-outs of the smallest worst deviation: Laplace noise grows with h, Gaussian with its root."""
        shape = family.shape if isinstance(family, Boxes) else (family.size,)
        return cls(family, [_best_fanout(size, pure) for size in shape])

    def apply(self, data: IntArray) -> IntArray:
        nodes = data.reshape(self._shape)
        for along, axis in enumerate(self.axes):
            nodes = axis.sums(nodes, along)
        return nodes.reshape(-1)

    def encode(self, cells: IntArray, signs: IntArray) -> IntArray:
        return self.apply(histogram(self.cells, cells, signs))

    def weights(self, query: Any) -> FloatArray:
        family = self._family
        pairs = family.bounds(query) if isinstance(family, Boxes) else (family.bounds(query),)
        along = [axis.weights(*pair) for axis, pair in zip(self.axes, pairs, strict=True)]
        return np.asarray(reduce(np.multiply.outer, along).reshape(-1))

    def worst(self) -> Load:
        flat = all(axis.height == 1 for axis in self.axes)
        # No weight passes 1 (additions 10).
        return Load(math.prod(axis.worst() for axis in self.axes), 1.0, single=self.cells == 1, plain=flat)


@lru_cache(maxsize=64)
def _best_fanout(size: int, pure: bool) -> int:
    def badness(fanout: int) -> float:
        axis = Axis(size, fanout)
        return axis.seems() * axis.height * (axis.height if pure else 1)

    # From sqrt(U) on a hierarchy has two levels, and from U on one.
    # Over many cells a look at one takes long, and neighbours hardly differ.
    near = range(2, min(size, _EVERY + 1)) if size <= 2**13 else (2, 3, 4, 6, 8, 12, 16, 24, 32)
    fanouts = {*near, *(math.isqrt(size) + i for i in (range(-2, 3) if size <= 2**13 else (0,))), size}
    return min((fanout for fanout in sorted(fanouts) if 2 <= fanout <= max(size, 2)), key=badness, default=2)
