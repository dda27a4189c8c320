"""What was inserted so far, released index by index: a tree (C1), and blocks that double (C2). dynamic-data 5.1, 5.2.

Black boxes around a static mechanism: index u brings one multiset, maybe empty, and one release is made, of the node
that ends at u. What is present after u is the disjoint union of a few released nodes, so their rows add up to the
answer. A node covers (u - lb(u), u], lb(u) the lowest set bit of u (Fenwick); the prefix [1, u] is the union of the
nodes u, u - lb(u), ..., one for each set bit of u.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from evertally.contract.rows import from_bytes, to_bytes
from evertally.dynamic.parts import Budget, IntArray, Place, Releasing
from evertally.errors import HorizonExceeded
from evertally.privacy import PureDP
from evertally.secret import Secret


def level_of(index: int) -> int:
    """The level of the node that ends at an index: it covers 2^level indices.

    >>> [level_of(u) for u in range(1, 9)]
    [0, 1, 0, 2, 0, 1, 0, 3]
    """
    return (index & -index).bit_length() - 1


def chain(index: int) -> list[int]:
    """The nodes whose union is [1, index], the newest first.

    >>> chain(7), chain(8), chain(0)
    ([7, 6, 4], [8], [])
    """
    nodes = []
    while index:
        nodes.append(index)
        index &= index - 1
    return nodes


def most_bits(last: int) -> int:
    """The largest number of set bits among 1..last: how many nodes a prefix takes at most.

    >>> [most_bits(m) for m in range(8)]
    [0, 1, 1, 2, 2, 2, 2, 3]
    """
    return (last + 1).bit_length() - 1


class FiniteTree(Secret):
    """C1: a known number of indices. L = bl(length) levels with 1/L of the budget each (5.1 [R]: log T levels would be
    one too few). An index lies in at most one node of each level, so parallel inside a level, and L levels in sequence.
    All 2^L - 1 indices with those levels are paid for; what comes after them is refused.

    `place(level, index)` is where the release of the node that ends at an index draws its noise.

    >>> from evertally.dynamic.parts import Place
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import PureDP
    >>> class Exact:
    ...     cells = width = 2
    ...     def fit(self, data, budget, place, size_hint=None):
    ...         return data
    >>> source = ZeroNoise().source()
    >>> tree = FiniteTree(Exact(), PureDP(1), 3, lambda level, index: Place(source, f"level-{level}", index))
    >>> for inserted in ([1, 0], [0, 0], [2, 5]):
    ...     tree.feed(np.array(inserted))
    >>> tree.row().tolist(), tree.levels, tree.budgets()
    ([3, 5], 2, [PureDP(epsilon=0.5), PureDP(epsilon=0.5)])
    """

    PARTS = 3  # byte strings in a state

    def __init__(self, static: Releasing, budget: Budget, length: int, place: Callable[[int, int], Place]) -> None:
        assert length >= 1, "a tree has at least one index"
        self.levels = length.bit_length()
        self.share = budget.share(Fraction(1, self.levels))
        assert self.levels * amount(self.share) == amount(budget), "the levels cost what there is, exactly"
        self._static, self._place = static, place
        self.index = 0
        # By level: content and released row of the present node, zero where the index has no such bit.
        self._held = np.zeros((self.levels, static.cells), dtype=np.int64)
        self._rows = np.zeros((self.levels, static.width), dtype=np.int64)

    @property
    def last(self) -> int:
        """The last index that is paid for."""
        return (1 << self.levels) - 1

    def feed(self, data: IntArray, size_hint: int | None = None) -> None:
        """The multiset of the next index; releases its node, also an empty one (10.1.6)."""
        index = self.index + 1
        if index > self.last:
            raise HorizonExceeded(f"this tree was paid for {self.last} indices; a further one would be a new level")
        level = level_of(index)
        content = data + self._held[:level].sum(axis=0)
        # A copy: later nodes are made of this content, whatever a mechanism does with its data.
        row = self._static.fit(content.copy(), self.share, self._place(level, index), size_hint)
        self._held[:level] = 0
        self._rows[:level] = 0
        self._held[level] = content
        self._rows[level] = row
        self.index = index

    def row(self) -> IntArray:
        """The sum of the released rows of the present cover: post-processing."""
        total: IntArray = self._rows.sum(axis=0)
        return total

    @property
    def newest(self) -> IntArray:
        """The row that was released last."""
        newest: IntArray = self._rows[level_of(self.index)]
        return newest

    def content(self) -> IntArray:
        """Everything fed so far. Secret."""
        total: IntArray = self._held.sum(axis=0)
        return total

    def budgets(self, index: int | None = None) -> list[Budget]:
        """The budgets of the releases that the row at an index (None: now) is the sum of."""
        return [self.share] * (self.index if index is None else index).bit_count()

    def widest(self, index: int) -> list[Budget]:
        """The same for the worst index up to this one."""
        return [self.share] * most_bits(min(index, self.last))

    def state(self) -> list[bytes]:
        return [to_bytes(np.array([self.index])), to_bytes(self._held), to_bytes(self._rows)]

    def load(self, parts: list[bytes]) -> None:
        self.index = int(from_bytes(parts[0])[0])
        self._held = from_bytes(parts[1]).reshape(self._held.shape)
        self._rows = from_bytes(parts[2]).reshape(self._rows.shape)


class DoublingBlocks(Secret):
    """C2: no last index. Block i holds the indices 2^i..2^(i+1) - 1. At its end it is released whole, with half of the
    budget; before that, a tree over its first 2^i - 1 indices, exactly i levels, has the other half (5.2 [R]). An index
    lies in one block, and blocks are fixed beforehand.

    `place(lane, node)` is where a release draws its noise; each lane has one law.

    >>> from evertally.dynamic.parts import Place
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import PureDP
    >>> class Exact:
    ...     cells = width = 1
    ...     def fit(self, data, budget, place, size_hint=None):
    ...         return data
    >>> source = ZeroNoise().source()
    >>> blocks = DoublingBlocks(Exact(), PureDP(1), lambda lane, node: Place(source, lane, node))
    >>> rows = []
    >>> for inserted in (4, 0, 1, 7):
    ...     blocks.feed(np.array([inserted]))
    ...     rows.append(int(blocks.row()[0]))
    >>> rows, [len(blocks.budgets(t)) for t in range(1, 9)]
    ([4, 4, 5, 12], [1, 2, 2, 3, 3, 4, 3, 4])
    """

    PARTS = 2 + FiniteTree.PARTS

    def __init__(self, static: Releasing, budget: Budget, place: Callable[[str, int], Place]) -> None:
        self._static, self._place = static, place
        self.half = budget.share(Fraction(1, 2))
        assert 2 * amount(self.half) == amount(budget), "outer and inner releases cost what there is, exactly"
        self.index = 0
        self._closed = np.zeros(static.width, dtype=np.int64)  # the rows of all blocks that are full
        self._inner = self._open(0)

    def _open(self, block: int) -> FiniteTree | None:
        if block == 0:
            return None  # one index, which is the end of its block

        def place(level: int, index: int) -> Place:
            return self._place(f"inner-{block}", index)

        return FiniteTree(self._static, self.half, (1 << block) - 1, place)

    def feed(self, data: IntArray, size_hint: int | None = None) -> None:
        """The multiset of the next index, maybe empty; one release."""
        index = self.index + 1
        block = index.bit_length() - 1
        if not _ends_block(index):
            assert self._inner is not None
            self._inner.feed(data, size_hint)
        else:
            content = data.copy() if self._inner is None else data + self._inner.content()
            row = self._static.fit(content, self.half, self._place("outer", block), size_hint)
            self._closed = self._closed + row
            self._inner = self._open(block + 1)
        self.index = index

    def row(self) -> IntArray:
        """The sum of the released rows of the present cover: post-processing."""
        return self._closed if self._inner is None else self._closed + self._inner.row()

    def budgets(self, index: int | None = None) -> list[Budget]:
        """The budgets of the releases that the row at an index (None: now) is the sum of."""
        index = self.index if index is None else index
        block = (index + 1).bit_length() - 1  # how many blocks are full
        inside = index + 1 - (1 << block)
        return [self.half] * block + [self._inner_share(block)] * inside.bit_count() if inside else [self.half] * block

    def widest(self, index: int) -> list[Budget]:
        """Budgets of releases whose sum is no better than that of any index up to this one."""
        block = (index + 1).bit_length() - 1
        inside = max(most_bits(index + 1 - (1 << block)), block - 1)  # this block so far, or the one before, whole
        return [self.half] * block + ([self._inner_share(block)] * inside if inside else [])

    def _inner_share(self, block: int) -> Budget:
        return self.half.share(Fraction(1, block))

    def state(self) -> list[bytes]:
        inner = [b""] * FiniteTree.PARTS if self._inner is None else self._inner.state()
        return [to_bytes(np.array([self.index])), to_bytes(self._closed), *inner]

    def load(self, parts: list[bytes]) -> None:
        self.index = int(from_bytes(parts[0])[0])
        self._closed = from_bytes(parts[1])
        self._inner = self._open((self.index + 1).bit_length() - 1)
        if self._inner is not None:
            self._inner.load(parts[2:])


def amount(budget: Budget) -> Fraction:
    """Epsilon or rho, exactly: what adds up."""
    return budget.exact_epsilon if isinstance(budget, PureDP) else budget.exact_rho


def _ends_block(index: int) -> bool:
    return index & (index + 1) == 0
