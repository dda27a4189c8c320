"""The numbers of pairs of vertices (factorization-counting 6.4): for a < b of n, a (2n - a - 1)/2 + (b - a - 1)."""

from __future__ import annotations

import numpy as np

from evertally.contract.parts import IntArray


def pair_count(n: int) -> int:
    """C(n, 2)."""
    return n * (n - 1) // 2


def pair_index(a: int, b: int, n: int) -> int:
    """The number of a pair, in any order.

    >>> [pair_index(a, b, 4) for a in range(4) for b in range(a + 1, 4)], pair_index(3, 1, 4)
    ([0, 1, 2, 3, 4, 5], 4)
    """
    a, b = min(a, b), max(a, b)
    return a * (2 * n - a - 1) // 2 + (b - a - 1)


def pairs_between(some: IntArray, others: IntArray, n: int) -> IntArray:
    """The numbers of all pairs between two disjoint sets of vertices."""
    a, b = np.minimum.outer(some, others), np.maximum.outer(some, others)
    return np.asarray(a * (2 * n - a - 1) // 2 + (b - a - 1), dtype=np.int64).ravel()


def square(row: IntArray, n: int) -> IntArray:
    """A row of pairs as a symmetric matrix with zeros on its diagonal.

    >>> square(np.array([1, 2, 3]), 3).tolist()
    [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    """
    matrix = np.zeros((n, n), dtype=np.int64)
    matrix[np.triu_indices(n, 1)] = row  # row by row, as pairs are numbered
    return matrix + matrix.T
