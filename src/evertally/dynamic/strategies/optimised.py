"""A strategy for arbitrary queries over a small universe, found by optimisation; rounded to integers, norms exact.

Of the mean variance under Gaussian noise: minimise tr(V X^-1) over X = A'A with diag X <= 1, V the sum of w_f f f'. At
the optimum X = D^-1/2 (D^1/2 V D^1/2)^1/2 D^-1/2 with diag X = 1: the fixed point of d <- diag (D^1/2 V D^1/2)^1/2.
Queries of above average variance get more weight, a few times over: that is the worst variance. All of it is planning
in floats. What is used is the rounded matrix: a name of it is in the address of noise (`Explicit`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from evertally.dynamic.families import Family
from evertally.dynamic.strategies.strategy import FloatArray, Norms
from evertally.dynamic.strategies.tables import Asked, Explicit, Identity
from evertally.errors import ConfigurationError

LARGEST = 1024  # cells
_GRID = 2**10
_REWEIGHTINGS, _STEPS = 12, 6
_WORK = 2e8  # n^3 times steps: a few seconds


@lru_cache(maxsize=8)
def optimised(family: Family) -> Explicit:
    """A square, invertible strategy for all queries of the family's workload. A few seconds at 1024 cells.

    >>> from evertally.dynamic.families import Queries
    >>> family = Queries({f"up to {i}": [x <= i for x in range(32)] for i in range(32)}, range(32))
    >>> strategy = optimised(family)
    >>> round((strategy.norms.l2_squared * strategy.worst().squares) ** 0.5, 1)  # the cells themselves: 5.7
    2.0
    """
    if family.cells > LARGEST:
        raise ConfigurationError(f"a strategy is optimised over at most {LARGEST} cells, not {family.cells:,}")
    queries = np.array([family.vector(query) for query in family.workload()], dtype=np.float64) / family.unit
    n = family.cells
    rounds = max(1, min(_REWEIGHTINGS, int(_WORK / (n**3 * _STEPS + 1))))
    shares = np.full(len(queries), 1 / len(queries))
    best, lowest = np.eye(n), np.inf
    for _ in range(rounds):
        root = _mean_optimum((queries * shares[:, None]).T @ queries)
        variances = (np.linalg.solve(root.T, queries.T) ** 2).sum(axis=0) * (root**2).sum(axis=0).max()
        if variances.max() < lowest:
            best, lowest = root, variances.max()
        shares *= variances / variances.max()
        shares /= shares.sum()
    matrix = np.rint(best / np.sqrt((best**2).sum(axis=0).max()) * _GRID).astype(np.int64)
    strategy = Explicit(family, matrix)
    return strategy if strategy.tells_all() else Explicit(family, np.eye(n, dtype=np.int64))


def best_matrix(family: Family, pure: bool) -> Identity | Asked | Explicit:
    """The best of three: the cells, the queries themselves, and the optimised strategy. Never worse than either."""
    candidates: list[Identity | Asked | Explicit] = [Identity(family), Asked(family)]
    if family.cells <= LARGEST:
        candidates.append(optimised(family))
    return min(candidates, key=lambda strategy: strategy.worst().squares * _sensitivity(strategy.norms, pure))


def _sensitivity(norms: Norms, pure: bool) -> int:
    return norms.l1**2 if pure else norms.l2_squared


def _mean_optimum(V: FloatArray) -> FloatArray:
    """A symmetric root of the best X for tr(V X^-1), columns of norm about 1."""
    n = len(V)
    V = V + np.eye(n) * (np.trace(V) / n * 1e-6)  # invertible, also where no query asks
    d = np.sqrt(np.diag(V))
    for _ in range(_STEPS if n <= 256 else 3):
        half = np.sqrt(d)
        d = np.diag(_root(V * half[:, None] * half[None, :]))
    half = np.sqrt(d)
    return _root(_root(V * half[:, None] * half[None, :]) / half[:, None] / half[None, :])


def _root(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
