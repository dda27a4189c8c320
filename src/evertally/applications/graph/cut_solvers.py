"""Cuts of a given matrix of weights. Nothing here knows data: what comes in was released."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[Any]
Side = NDArray[np.bool_]


def minimum_cut(weights: Matrix) -> Side:
    """One side of a smallest cut, exactly (Stoer and Wagner 1997). Weights are not negative. O(n^3).

    >>> minimum_cut(np.array([[0, 5, 1], [5, 0, 1], [1, 1, 0]])).tolist()
    [False, False, True]
    """
    w = np.array(weights, dtype=np.int64)
    n = len(w)
    merged: list[list[int]] = [[v] for v in range(n)]
    alive = np.ones(n, dtype=bool)
    best: tuple[int, list[int]] | None = None
    for phase in range(n - 1, 0, -1):
        joined = np.where(alive, w[int(np.argmax(alive))], 0)
        outside = alive.copy()
        outside[np.argmax(alive)] = False
        before = last = int(np.argmax(alive))
        for _ in range(phase):
            before, last = last, int(np.argmax(np.where(outside, joined, -1)))
            outside[last] = False
            phase_cut = int(joined[last])
            joined = joined + w[last]
        if best is None or phase_cut < best[0]:
            best = phase_cut, list(merged[last])
        merged[before] += merged[last]
        w[before] += w[last]
        w[:, before] = w[before]
        w[before, before] = 0
        alive[last] = False
    assert best is not None
    side = np.zeros(n, dtype=np.bool_)
    side[best[1]] = True
    return side


def large_cut(weights: Matrix, starts: int = 8) -> Side:
    """One side of a large cut: vertices change sides, one by one, while that helps. A heuristic: at the end at least
    half of all weight is cut where no weight is negative, and more may be possible.

    >>> large_cut(np.array([[0, 5, 1], [5, 0, 1], [1, 1, 0]])).sum() in (1, 2)
    True
    """
    w = np.asarray(weights, dtype=np.int64)
    # At least one vertex alone: where every weight is negative no cut is better than the empty one, which is none.
    alone = int(np.argmax(w.sum(axis=1)))
    best, best_value = np.arange(len(w)) == alone, int(w[alone].sum())
    for start in range(1, starts + 1):
        # Where to begin, the same for the same graph: bits of multiples of the golden ratio.
        signs = np.where((np.arange(1, len(w) + 1) * (2 * start - 1) * 0x9E3779B1 >> 31) & 1, 1, -1)
        gains = signs * (w @ signs)  # what the cut wins when a vertex changes sides
        while gains.max() > 0:
            v = int(np.argmax(gains))
            signs[v] = -signs[v]
            gains = signs * (w @ signs)
        value = int(np.sum(w[signs > 0][:, signs < 0]))
        if value > best_value and abs(int(signs.sum())) < len(w):
            best, best_value = signs > 0, value
    return np.asarray(best, dtype=np.bool_)


def sparse_cut(weights: Matrix) -> Side:
    """One side of a cut of small weight for each pair that it separates: the best prefix of the vertices in the order
    of the second eigenvector of the Laplacian. Weights are not negative. A heuristic.

    >>> two = np.array([[0, 9, 0, 1], [9, 0, 0, 0], [0, 0, 0, 9], [1, 0, 9, 0]])
    >>> sorted(np.flatnonzero(sparse_cut(two)).tolist()) in ([0, 1], [2, 3])
    True
    """
    w = np.asarray(weights, dtype=np.float64)
    n = len(w)
    _, vectors = np.linalg.eigh(np.diag(w.sum(axis=1)) - w)
    order = np.argsort(vectors[:, 1], kind="stable")
    swept = w[order][:, order]
    # Vertex k joins the first k: its edges to them are no longer cut, its others are.
    inside = np.array([swept[k, :k].sum() for k in range(n)])
    values = np.cumsum(swept.sum(axis=1) - 2 * inside)[:-1]
    sizes = np.arange(1, n)
    side = np.zeros(n, dtype=np.bool_)
    side[order[: 1 + int(np.argmin(values / (sizes * (n - sizes))))]] = True
    return side
