"""What queries are written with: columns as symbols, and functions of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, overload

from evertally.errors import ConfigurationError
from evertally.histogram.expressions.exact_numbers import exact_number, share_of, whole
from evertally.histogram.expressions.expression import Column, Combination, Expression, combine, term_of
from evertally.histogram.expressions.ranks import HIndex, RankMean, position
from evertally.histogram.expressions.rounding import Rounded


class Columns(Sequence[Expression]):
    """The column sums as symbols: what a query is written on, and what `trace` gives to a Python function.

    Indices, slices, iteration and len work as on a list; max, min, mean and sum as on a numpy array.
    Theorem: parameterized-histograms 1.5. Tier [R]. Constant time and memory.

    >>> h = Columns(4)
    >>> mean(h[1:3]), h.sum().sensitivity
    ((1/2*h[1] + 1/2*h[2]), Fraction(4, 1))
    """

    def __init__(self, count: int) -> None:
        self._count = whole(count, "the number of columns", least=1)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Expression: ...
    @overload
    def __getitem__(self, index: slice) -> list[Expression]: ...
    def __getitem__(self, index: int | slice) -> Expression | list[Expression]:
        chosen = range(self._count)[index]
        return Column(chosen) if isinstance(chosen, int) else [Column(i) for i in chosen]

    # `axis`, `dtype` and `out` are there because numpy.max(h) and its like pass them on.
    def max(self, axis: object = None, out: object = None) -> Expression:
        return maximum(self)

    def min(self, axis: object = None, out: object = None) -> Expression:
        return minimum(self)

    def mean(self, axis: object = None, dtype: object = None, out: object = None) -> Expression:
        return mean(self)

    def sum(self, axis: object = None, dtype: object = None, out: object = None) -> Expression:
        """The sum of all columns, of sensitivity len(h)."""
        return total(self)


Values = Columns | Iterable[Expression | float | Fraction]


def maximum(*values: Values | Expression | float | Fraction) -> Expression:
    """The largest of several queries and numbers, or of all columns.

    >>> maximum(0, Column(0) - 5).evaluate([3])
    Fraction(0, 1)
    """
    return ranked(-1, -1, _arguments(values))


def minimum(*values: Values | Expression | float | Fraction) -> Expression:
    """The smallest of several queries and numbers, or of all columns."""
    return ranked(1, 1, _arguments(values))


def order_statistic(values: Values, rank: int) -> Expression:
    """The rank-th smallest; a negative rank counts from the largest."""
    rank = whole(rank, "rank")
    return ranked(rank, rank, values)


def quantile(values: Values, q: Fraction | float | str) -> Expression:
    """Order statistic number ceil(q n), for 0 < q <= 1; `exact_number` says how q is read."""
    share = share_of(q)
    return ranked(share, share, values)


def mean(values: Values) -> Expression:
    """The mean, exactly."""
    return ranked(1, -1, values)


def total(values: Values) -> Expression:
    """The sum; its sensitivity is the number of columns, so it is used as `total(h).normalised()`.

    >>> total(Columns(4)).normalised()
    mean(h)
    """
    if not isinstance(values, Columns):
        values = list(values)
    return mean(values) * len(values)


def top_mean(values: Values, k: int) -> Expression:
    """The mean of the k largest."""
    return ranked(-whole(k, "k", least=1), -1, values)


def trimmed_mean(values: Values, cut: int) -> Expression:
    """The mean without the `cut` smallest and the `cut` largest."""
    cut = whole(cut, "cut", least=0)
    return ranked(cut + 1, -cut - 1, values)


def h_index(values: Values) -> Expression:
    """The largest k such that k of the values are at least k."""
    return HIndex() if isinstance(values, Columns) else folded(HIndex(_in_order(values)))


def clamp(value: Expression | float | Fraction, low: float | Fraction, high: float | Fraction) -> Expression:
    """The value, but at least `low` and at most `high`.

    >>> clamp(Column(0), 0, 10).evaluate([12])
    Fraction(10, 1)
    """
    low, high = exact_number(low, "low"), exact_number(high, "high")
    if low > high:
        raise ConfigurationError(f"clamp needs low <= high, not {low} and {high}")
    return maximum(low, minimum(high, value))


def floor(value: Expression | float | Fraction) -> Expression:
    """The value rounded down, after its exact evaluation.

    >>> floor(Column(0) / 2).evaluate([5])
    Fraction(2, 1)
    """
    return folded(Rounded("floor", term_of(value)))


def ceil(value: Expression | float | Fraction) -> Expression:
    """The value rounded up, after its exact evaluation."""
    return folded(Rounded("ceil", term_of(value)))


def round_half_up(value: Expression | float | Fraction) -> Expression:
    """The nearest integer, halves up: floor(value + 1/2). Halves to even would not be unit-scale.

    >>> round_half_up(Column(0) / 2).evaluate([5]), round_half_up(Column(0) / 2).evaluate([-5])
    (Fraction(3, 1), Fraction(-2, 1))
    """
    return folded(Rounded("half_up", term_of(value)))


def ranked(low: int | Fraction, high: int | Fraction, values: Values) -> Expression:
    if isinstance(values, Columns):
        query = RankMean(low=low, high=high)
        query.require(len(values))
        return query
    terms = _in_order(values)
    first, last = position(low, len(terms)), position(high, len(terms))
    if not 0 <= first <= last < len(terms):
        raise ConfigurationError(f"ranks {low} to {high} do not exist among {len(terms)} values")
    if (first, last) == (0, len(terms) - 1):
        return combine(Fraction(0), [(Fraction(1, len(terms)), term) for term in terms])
    return folded(RankMean(terms, first + 1, last + 1))


def folded(query: Expression) -> Expression:
    """A query of constants is a constant."""
    return Combination(query.evaluate([]), ()) if query.columns == 0 else query


def _in_order(values: Values) -> tuple[Expression, ...]:
    terms = tuple(sorted((term_of(value) for value in values), key=lambda term: term._key))
    if not terms:
        raise ConfigurationError("a query of no values is not defined")
    return terms


def _arguments(values: tuple[Any, ...]) -> Values:
    """maximum(h), maximum(list) and maximum(a, b, c) all mean what they say."""
    alone = len(values) == 1 and not isinstance(values[0], Expression) and isinstance(values[0], Iterable)
    return values[0] if alone else values
