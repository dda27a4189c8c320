"""What can be asked of column sums: integer-valued queries, and the public parameters around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evertally.counting.process import IntArray
from evertally.histogram.expressions import Expression
from evertally.partition import Queries, Split
from evertally.privacy import Change, Guarantee, Neighbours

# Without a horizon errors are compared at this tick.
SOMEWHERE = 2**16


@dataclass(frozen=True)
class AllColumns:
    """Every column is a query of its own: the histogram."""

    count: int

    def values(self, v: IntArray) -> IntArray:
        return v


@dataclass(frozen=True)
class Largest:
    """The k largest columns, in falling order: order statistics, each of sensitivity 1 (parameterized-histograms 7.1).

    >>> Largest(2).values(np.array([3, 1, 9, 4])).tolist()
    [9, 4]
    """

    count: int

    def values(self, v: IntArray) -> IntArray:
        if self.count == 1:
            return np.array([v.max()])
        top: IntArray = np.sort(np.partition(v, v.size - self.count)[v.size - self.count :])[::-1]
        return top


class Expressions:
    """Certified expressions, rounded up to integers: the ceiling is as insensitive as the query (1.5 and 2.3 there)."""

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self.expressions = tuple(expressions)
        self.count = len(self.expressions)

    def values(self, v: IntArray) -> IntArray:
        return np.array([expression.ceiling(v) for expression in self.expressions], dtype=np.int64)


def monotone(queries: Queries) -> bool:
    """Whether no query can fall when columns grow, as proved: of an unknown kind of queries nothing is."""
    if isinstance(queries, Expressions):
        return all(expression.certificate.monotone for expression in queries.expressions)
    return isinstance(queries, AllColumns | Largest)


@dataclass(frozen=True)
class Task:
    """A question about column sums; everything here is public.

    `change` is what one protected unit moves a row by, `event` what one event does, and `group` in how many events two
    units differ. `one_way`: neighbours differ in one direction (`privacy.moves_one_way`), and so do the answers.
    `selects`: the answer is a column, not a number. `linear`: every query is a weighted sum of columns. `largest`
    guesses the largest answer. `growth` is what an answer is thought to grow by in a tick, `most` the same as somebody
    declared it: a guess may choose and calibrate, but only what was declared carries a bound. All for accuracy only.
    """

    guarantee: Guarantee
    neighbours: Neighbours
    change: Change
    event: Change
    group: int
    horizon: int | None
    columns: int
    queries: Queries
    one_way: bool = False
    linear: bool = False
    selects: bool = False
    largest: int | None = None
    growth: int = 1
    most: int | None = None
    beta: float = 0.05
    split: Split | None = None
    memory_limit: int = 2**30
    # Numbers of an earlier choice (ColumnWay.numbers), to be kept and not found again.
    settled: Mapping[str, Any] | None = field(default=None, compare=False)
    # `change` for a counter of which nothing is proved
    loose: Change | None = None

    @property
    def ticks(self) -> int:
        """The ticks that errors are judged over."""
        return self.horizon or SOMEWHERE

    @property
    def shift(self) -> Change:
        """How far one unit moves the vector of all answers."""
        k, linf = self.queries.count, self.change.linf
        if isinstance(self.queries, AllColumns):
            return self.change
        return Change(k * linf, k * linf * linf, linf)

    @property
    def reachable(self) -> float:
        """The largest answer that is possible, if what was declared is true: what the constant 0 may be off by."""
        return float("inf") if self.horizon is None or self.most is None else float(self.horizon * self.most)

    @property
    def ceiling(self) -> float:
        """The largest answer that is expected, by guesses and declarations."""
        reachable = float("inf") if self.horizon is None else float(self.horizon * self.growth)
        return min(reachable, float("inf") if self.largest is None else float(self.largest))
