"""Metrics over exclusive types: what one event moves, and the multipliers that make all of them accurate.

users-and-domains 1.6 and 7 [R, derived twice]: an event has one type and moves the metrics that contain it. What is
charged for is the largest sum *over one type*, not the sum of what each metric would need. Public numbers, all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.errors import ConfigurationError
from evertally.privacy import Change, Contribution, Neighbours

IntArray = NDArray[np.int64]

_ROUNDS = 2000
_FINEST = 64  # no multiplier that was found is larger
ALL = "all"  # the metric of everything that has a type


@dataclass(frozen=True)
class Metrics:
    """Named sets of types; `contains[i, t]` says whether metric i counts type t.

    >>> metrics = Metrics.of(["click", "order", "refund"], {"total": "all", "money": ["order", "refund"]})
    >>> metrics.contains.astype(int).tolist()
    [[1, 1, 1], [0, 1, 1]]
    """

    names: tuple[str, ...]
    contains: NDArray[np.bool_]

    @classmethod
    def of(cls, types: Sequence[str], metrics: Any) -> Metrics:
        if not isinstance(metrics, Mapping) or not metrics:
            raise ConfigurationError('metrics are lists of types by name: {"total": "all", "money": ["order"]}')
        given, place = dict(metrics.items()), {name: number for number, name in enumerate(types)}
        contains = np.zeros((len(given), len(types)), dtype=bool)
        for row, (name, wanted) in zip(contains, given.items(), strict=True):
            if type(name) is not str or not name:
                raise ConfigurationError("metrics are named by texts")
            if wanted == ALL:
                row[:] = True
                continue
            if isinstance(wanted, str) or not isinstance(wanted, Sequence) or not len(wanted):
                raise ConfigurationError(f'the metric {name!r} is a list of types, or "all"')
            for one in wanted:
                if one not in place:
                    raise ConfigurationError(f"the metric {name!r} counts {one!r}, which is no declared type")
                row[place[one]] = True
        return cls(tuple(given), contains)

    def rows(self, multipliers: Sequence[int]) -> IntArray:
        """What one event of each type adds to each metric."""
        rows: IntArray = (self.contains * np.array(multipliers, dtype=np.int64)[:, None]).T.astype(np.int64)
        return rows


def moved(rows: IntArray, relation: Neighbours, contribution: Contribution) -> Change:
    """How far one protected unit moves rows, of which an event adds one (or nothing): exact for one event; for users by
    users-and-domains 1.2, their w events together, twice that where a user is replaced by another."""
    w = contribution.max_events_per_user
    if w is None and relation is Neighbours.REPLACE:
        rows = np.concatenate([rows, np.zeros((1, rows.shape[1]), dtype=np.int64)])
        # Type by type: all pairs at once would take types^2 * metrics numbers.
        found = [_largest(np.abs(rows - row)) for row in rows]
        return Change(*(max(change[i] for change in found) for i in range(3)))
    one = Change(*_largest(rows))
    if w is None:
        return one
    user = one.group(w)
    if relation is not Neighbours.REPLACE:
        return user
    return Change(2 * user.l1, 2 * user.l2_squared, 2 * user.linf)


def _largest(rows: IntArray) -> tuple[int, int, int]:
    return int(rows.sum(axis=1).max()), int((rows * rows).sum(axis=1).max()), int(rows.max(initial=0))


def best_multipliers(contains: NDArray[np.bool_], weights: Sequence[float], *, pure: bool) -> list[int]:
    """Whole numbers c that make sum_i w_i/c_i^2 small, for what the costliest type may cost: sum of c_i^2 over the
    metrics that contain it (pure: of c_i).

    A convex problem in y_i = c_i^p: minimise sum w_i y_i^(-2/p) under A y <= 1. Prices of types go up where the
    constraint is passed and down where it is not; then numbers are rounded to parts of a common denominator. Whatever
    comes out, what is charged follows from the whole numbers.

    >>> total_and_two = np.array([[True, True], [True, False], [False, True]])
    >>> best_multipliers(total_and_two, [1, 1, 1], pure=False)
    [4, 5, 5]
    """
    return list(_found(contains.shape, contains.tobytes(), tuple(map(float, weights)), 1 if pure else 2))


@lru_cache(maxsize=64)
def _found(shape: tuple[int, ...], contains: bytes, weights: tuple[float, ...], p: int) -> tuple[int, ...]:
    A = np.frombuffer(contains, dtype=bool).reshape(shape).T.astype(float)
    w = np.array(weights)
    A = A[A.any(axis=1)]
    prices = np.full(len(A), 1.0 / len(A))
    y = np.ones(len(w))
    for _ in range(_ROUNDS):
        y = (2 / p * w / np.maximum(A.T @ prices, 1e-300)) ** (p / (p + 2))
        prices = np.maximum(prices * np.sqrt(A @ y), 1e-12)
    c = (y / (A @ y).max()) ** (1 / p)
    tried = [np.maximum(1, np.floor(c / c.max() * finest + 1e-9)) for finest in range(1, _FINEST + 1)]

    def cost(numbers: NDArray[np.float64]) -> float:
        return float((A @ numbers**p).max() ** (2 / p) * (w / numbers**2).sum())

    least = min(map(cost, tried))
    good = next(numbers for numbers in tried if cost(numbers) <= 1.005 * least)
    return tuple(int(number) for number in good)
