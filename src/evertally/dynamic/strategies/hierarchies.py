"""Hierarchies of counts along ordered axes, and their product: ranges and boxes from few nodes (dynamic-data 3.3).

Along an axis of U cells, fan-out b: level 0 are the cells, level j the sums of b nodes of level j - 1, up to the first
level of at most b nodes (or one more, the root). An item lies in one node a level, h of them, and over d axes in the
product of these numbers. A range needs at most 2(b-1) nodes a level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, Self

import numpy as np

from evertally.dynamic.families import Boxes, Ranges
from evertally.dynamic.strategies.strategy import FloatArray, IntArray, Load, Norms, check_width, histogram
from evertally.integers import whole


class Axis:
    """The nodes over one axis.

    >>> axis = Axis(10, fanout=3)
    >>> axis.levels, axis.nodes, axis.cover(1, 9).nonzero()[0].tolist(), axis.most
    ((10, 4, 2), 16, [1, 2, 11, 12, 15], 8)
    """

    def __init__(self, size: int, fanout: int, root: bool = False) -> None:
        self.fanout = whole("the fan-out of a hierarchy", fanout, 2)
        sizes = [size]
        while sizes[-1] > (1 if root else fanout):
            sizes.append(-(-sizes[-1] // fanout))
        self.levels: tuple[int, ...] = tuple(sizes)
        self.nodes: int = sum(sizes)

    @property
    def height(self) -> int:
        """In how many nodes an item lies."""
        return len(self.levels)

    @property
    def most(self) -> int:
        """At most so many nodes make up a range.

        Below the top a range takes at most b - 1 nodes at either end of each level, and an end that took some has a
        top node that is not all covered.
        """
        top, side = self.levels[-1], (self.fanout - 1) * (self.height - 1)
        if top == 1 and self.height > 1:
            rest = Axis(self.levels[0], self.fanout)
            return rest.most
        return max(top, side + top - 1, 2 * side + max(top - 2, 0)) if side else top

    def cover(self, first: int, last: int) -> FloatArray:
        """1 at the nodes that make up the cells first..last."""
        weights = np.zeros(self.nodes)
        start, low, high = 0, first, last + 1
        for n in self.levels[:-1]:
            b = self.fanout
            # The last node of a level is whole where the cells end, also if it has fewer than b children.
            inner_low, inner_high = -(-low // b), -(-high // b) if high == n else high // b
            if inner_low >= inner_high:
                break
            weights[start + low : start + inner_low * b] = 1
            weights[start + inner_high * b : start + high] = 1
            start, low, high = start + n, inner_low, inner_high
        weights[start + low : start + high] = 1
        return weights

    def sums(self, data: IntArray, along: int) -> IntArray:
        """All nodes over this axis of an array."""
        levels = [data]
        for _ in self.levels[1:]:
            starts = np.arange(0, levels[-1].shape[along], self.fanout)
            levels.append(np.add.reduceat(levels[-1], starts, axis=along))
        return np.concatenate(levels, axis=along)


class Hierarchies:
    """The product of hierarchies over the axes of ranges or boxes.

    >>> strategy = Hierarchies(Ranges(size=8), fanouts=[2])
    >>> strategy.norms.l1, strategy.apply(np.arange(8)).tolist()
    (3, [0, 1, 2, 3, 4, 5, 6, 7, 1, 5, 9, 13, 6, 22])
    >>> float(strategy.weights((1, 6)) @ strategy.apply(np.arange(8)))
    21.0
    """

    def __init__(self, family: Ranges | Boxes, fanouts: Sequence[int], root: bool = False) -> None:
        self._family = family
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
        covers = [axis.cover(*pair) for axis, pair in zip(self.axes, pairs, strict=True)]
        return np.asarray(reduce(np.multiply.outer, covers).reshape(-1))

    def worst(self) -> Load:
        most = math.prod(axis.most for axis in self.axes)
        return Load(float(most), 1.0, single=most == 1)


def _best_fanout(size: int, pure: bool) -> int:
    def badness(fanout: int) -> int:
        axis = Axis(size, fanout)
        return axis.most * axis.height * (axis.height if pure else 1)

    # From sqrt(U) on a hierarchy has two levels, and from U on one.
    fanouts: list[int] = [*range(2, min(size, math.isqrt(size) + 2)), max(size, 2)]
    return min(fanouts, key=badness)
