"""Queries of several values at once: order statistics, means of ranks, the h-index."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.inputs import IntArray
from evertally.errors import ConfigurationError
from evertally.histogram.expressions.certificates import ONE_COLUMN, Facts, widest
from evertally.histogram.expressions.exact_numbers import share_of, whole
from evertally.histogram.expressions.expression import Column, Expression


@dataclass(frozen=True, eq=False, repr=False)
class OfValues(Expression):
    """A query of several values at once: of all columns, or of the queries in `of`, whose order does not matter."""

    of: tuple[Expression, ...] | None = None

    @property
    def _parts(self) -> list[Facts]:
        return [ONE_COLUMN] if self.of is None else [term._facts for term in self.of]

    @cached_property
    def _where(self) -> IntArray | None:
        """The indices, if every value is a column."""
        columns = [term.index for term in self.of or () if isinstance(term, Column)]
        return np.array(columns, dtype=np.int64) if self.of and len(columns) == len(self.of) else None

    def _values(self, v: IntArray) -> NDArray[Any]:
        """The values as int64, or as Fractions in an object array, on which numpy sorts and adds exactly."""
        if self.of is None:
            return v
        if self._where is not None:
            return v[self._where]
        return np.array([Fraction(*term._ratio(v)) for term in self.of], dtype=object)

    def _of_json(self) -> Any:
        return "all" if self.of is None else [term.to_json() for term in self.of]

    def _of_text(self) -> str:
        return "h" if self.of is None else ", ".join(map(repr, self.of))


@dataclass(frozen=True, eq=False, repr=False)
class RankMean(OfValues):
    """The mean of the sorted values from rank `low` to rank `high`.

    A rank r >= 1 is the r-th smallest, r <= -1 the (-r)-th largest, a Fraction q the quantile number ceil(q n).
    Theorem: parameterized-histograms 7.1 (Lemma 1 of the paper) and 1.5. Tier [R]. Time and memory: one selection in
    O(columns), by numpy for columns, in Fractions for other queries.

    >>> RankMean(low=2, high=-2).evaluate([1, 5, 4, 100])  # without the smallest and the largest
    Fraction(9, 2)
    """

    low: int | Fraction = 1
    high: int | Fraction = -1

    def __post_init__(self) -> None:
        low, high = self.low, self.high
        if isinstance(low, Fraction) or isinstance(high, Fraction):
            fine = low == high and 0 < low < 1
        else:
            low, high = whole(low, "a rank"), whole(high, "a rank")
            fine = 0 < low <= high or low <= high < 0 or high < 0 < low
        if not fine:
            raise ConfigurationError(f"there is nothing from rank {low} to rank {high}")

    def _derive(self) -> Facts:
        parts = self._parts
        low, high = math.ceil(self.low), math.ceil(self.high)
        least = max(high, -low, low - high - 1 if high < 0 < low else 0) if self.of is None else 0
        return Facts(
            max(part.sensitivity for part in parts),
            monotone=all(part.monotone for part in parts),
            linear=self.of is None and (low, high) == (1, -1),
            jumps=any(part.jumps for part in parts),
            columns=widest(parts),
            least=max(least, *(part.least for part in parts)),
        )

    def _ratio(self, v: IntArray) -> tuple[int, int]:
        values = self._values(v)
        first, last = position(self.low, len(values)), position(self.high, len(values))
        if first == last == len(values) - 1:
            return _as_ratio(values.max())
        if first == last:
            return _as_ratio(values.min() if first == 0 else np.partition(values, first)[first])
        if (first, last) != (0, len(values) - 1):
            values = np.partition(values, (first, last))[first : last + 1]
        numerator, denominator = _as_ratio(_exact_sum(values))
        return numerator, denominator * len(values)

    def to_json(self) -> dict[str, Any]:
        ranks = [str(r) if isinstance(r, Fraction) else r for r in (self.low, self.high)]
        return {"ranks": ranks, "of": self._of_json()}

    def __repr__(self) -> str:
        last = -1 if self.of is None else len(self.of)
        names: dict[Any, str] = {(last, last): "maximum", (1, 1): "minimum", (1, last): "mean"}
        name = names.get((self.low, self.high), f"ranks[{self.low} to {self.high}]")
        return f"{name}({self._of_text()})"


class Maximum(RankMean):
    """The largest column sum. Theorem: parameterized-histograms 7.1. Tier [R]. Time O(columns).

    >>> Maximum().ceiling([3, 9, 4])
    9
    """

    def __init__(self) -> None:
        super().__init__(low=-1, high=-1)


class Minimum(RankMean):
    """The smallest column sum. Theorem: parameterized-histograms 7.1. Tier [R]. Time O(columns).

    >>> Minimum().ceiling([3, 9, 4])
    3
    """

    def __init__(self) -> None:
        super().__init__(low=1, high=1)


class OrderStatistic(RankMean):
    """The rank-th smallest column sum; a negative rank counts from the largest, so -l is number l of a top-k list.

    Theorem: parameterized-histograms 7.1. Tier [R]. Time and memory O(columns).

    >>> OrderStatistic(2).ceiling([3, 9, 4, 7]), OrderStatistic(-2).ceiling([3, 9, 4, 7])
    (4, 7)
    """

    def __init__(self, rank: int) -> None:
        rank = whole(rank, "rank")
        super().__init__(low=rank, high=rank)


class Quantile(RankMean):
    """Order statistic number ceil(q * columns), for 0 < q <= 1: 1 is the maximum, 1/2 the lower median.

    Theorem: parameterized-histograms 7.1. Tier [R]. Time and memory O(columns). `exact_number` says how q is read.

    >>> Quantile(0.07).ceiling(range(1, 101))  # 0.07 * 100 is above 7 in floating point
    7
    """

    def __init__(self, q: Fraction | float | str) -> None:
        share = share_of(q)
        super().__init__(low=share, high=share)


class Mean(RankMean):
    """The mean of all columns. Theorem: parameterized-histograms 1.5 and 7.1. Tier [R]. Time O(columns).

    >>> Mean().evaluate([1, 2, 4]), Mean().certificate.linear
    (Fraction(7, 3), True)
    """

    def __init__(self) -> None:
        super().__init__(low=1, high=-1)


class TopMean(RankMean):
    """The mean of the k largest columns. Theorem: parameterized-histograms 7.1. Tier [R]. Time and memory O(columns).

    >>> TopMean(2).evaluate([1, 8, 5])
    Fraction(13, 2)
    """

    def __init__(self, k: int) -> None:
        super().__init__(low=-whole(k, "k", least=1), high=-1)


class TrimmedMean(RankMean):
    """The mean without the `cut` smallest and the `cut` largest columns.

    Theorem: parameterized-histograms 7.1. Tier [R]. Time and memory O(columns).

    >>> TrimmedMean(1).evaluate([1, 8, 5, 1000])
    Fraction(13, 2)
    """

    def __init__(self, cut: int) -> None:
        cut = whole(cut, "cut", least=0)
        super().__init__(low=cut + 1, high=-cut - 1)


@dataclass(frozen=True, eq=False, repr=False)
class HIndex(OfValues):
    """The largest k such that k of the values are at least k.

    Theorem: parameterized-histograms 7.1. Tier [R]. Unit-scale: if k values are at least k, then they are at least
    k - 1 after each has moved by at most 1. Not Lipschitz: it jumps by 1 on a small move of real values.
    Time: one sort. Memory: O(columns).

    >>> HIndex().ceiling([9, 3, 3, 0, 3])
    3
    """

    def _derive(self) -> Facts:
        return Facts(
            Fraction(math.ceil(max(part.sensitivity for part in self._parts))),
            monotone=all(part.monotone for part in self._parts),
            linear=False,
            jumps=True,
            columns=widest(self._parts),
            least=max(part.least for part in self._parts),
        )

    def _ratio(self, v: IntArray) -> tuple[int, int]:
        falling = np.sort(self._values(v))[::-1]
        return int(np.count_nonzero(falling >= np.arange(1, len(falling) + 1))), 1

    def to_json(self) -> dict[str, Any]:
        return {"h_index": self._of_json()}

    def __repr__(self) -> str:
        return f"h_index({self._of_text()})"


def position(rank: int | Fraction, count: int) -> int:
    """Where in the sorted values a rank is; ceil(q count) in exact arithmetic."""
    if isinstance(rank, Fraction):
        return math.ceil(rank * count) - 1
    return rank - 1 if rank > 0 else count + rank


def _exact_sum(values: NDArray[Any]) -> Any:
    """The sum of int64 values or of Fractions; in Python integers where int64 might wrap around."""
    if values.dtype == object:
        return values.sum()
    largest = max(int(values.max()), -int(values.min()))
    return int(values.sum()) if largest * len(values) < 2**63 else sum(values.tolist())


def _as_ratio(value: Any) -> tuple[int, int]:
    return value.as_integer_ratio() if isinstance(value, Fraction) else (int(value), 1)
