"""How large the difference of two encoded streams is, for each kind of factor (factorization-counting 2.4).

A path is one number per tick and coordinate: what the encoder said of one stream minus what it said of its neighbour.
`intervals` and `square_root` are squared norms that real factors reach (a refuter's proof that a claim is too small);
`split` (S3) bounds all factors with a Gram matrix that is nowhere negative.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from evertally.counting.process import FloatArray

Path = Sequence[Mapping[Hashable, int]]  # changes of each tick, by coordinate


def difference(one: Path, other: Path) -> list[dict[Hashable, int]]:
    """Tick by tick, without zeros."""
    ticks = []
    for a, b in zip(one, other, strict=True):
        changes = {c: a.get(c, 0) - b.get(c, 0) for c in {**a, **b}}
        ticks.append({c: amount for c, amount in changes.items() if amount})
    return ticks


def l1(path: Path) -> int:
    """What trees with Laplace noise pay for: the sum of all absolute changes."""
    return sum(abs(amount) for changes in path for amount in changes.values())


def split(path: Path) -> int:
    """S3: sum over coordinates of P^2 + N^2.

    >>> split([{"a": 1}, {"a": -2, "b": 1}, {"a": 1}])
    9
    """
    up: dict[Hashable, int] = {}
    down: dict[Hashable, int] = {}
    for changes in path:
        for c, amount in changes.items():
            side = up if amount > 0 else down
            side[c] = side.get(c, 0) + abs(amount)
    return sum(p * p for p in up.values()) + sum(n * n for n in down.values())


def intervals(path: Path) -> int:
    """The worst factor whose rows are indicators of intervals (trees of any radix, any merging of ticks): the largest
    sum of |sum of D over I|^2 over disjoint intervals I, by recursion over their ends.

    >>> intervals([{"a": 1}, {"a": 1}, {"a": -1}])
    5
    """
    rows = dense(path)
    sums = np.concatenate([np.zeros((1, rows.shape[1]), dtype=np.int64), np.cumsum(rows, axis=0)])
    best = np.zeros(len(sums), dtype=np.int64)
    for stop in range(1, len(sums)):
        steps = np.sum((sums[stop] - sums[:stop]) ** 2, axis=1)
        best[stop] = max(int(best[stop - 1]), int(np.max(best[:stop] + steps)))
    return int(best[-1])


def square_root(path: Path) -> float:
    """The square-root factor of a horizon as long as the path: D^T G D / S_T."""
    gram = square_root_gram(len(path))
    rows = dense(path).astype(np.float64)
    return float(np.einsum("tc,ts,sc->", rows, gram, rows)) / float(gram[0, 0])


def square_root_gram(T: int) -> FloatArray:
    """G = R^T R of the factor with coefficients binom(2k, k)/4^k."""
    k = np.arange(1, T)
    f = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    R = np.array([[f[i - j] if i >= j else 0.0 for j in range(T)] for i in range(T)])
    return np.asarray(R.T @ R, dtype=np.float64)


def dense(path: Path) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """A row for each tick, a column for each coordinate that changes."""
    columns = {c: i for i, c in enumerate(sorted({c for changes in path for c in changes}, key=repr))}
    rows = np.zeros((len(path), max(1, len(columns))), dtype=np.int64)
    for t, changes in enumerate(path):
        for c, amount in changes.items():
            rows[t, columns[c]] = amount
    return rows
