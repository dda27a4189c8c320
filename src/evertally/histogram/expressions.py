"""Queries on column sums that prove their own sensitivity (parameterized-histograms 1.5 and 7.1).

The partition mechanisms are private for a query g only if g is *unit-scale*: |g(v) - g(w)| <= 1 for all integer vectors
v, w with |v_i - w_i| <= 1 in every column i. No test shows that; a construction does. An expression is built from
columns by steps that are known to keep a bound on the sensitivity, so it carries a certificate instead of a promise:

    column 1; constant 0; sum of w_i g_i: sum of |w_i| S_i; order statistics and means of ranks: max of S_i;
    floor, ceiling, rounding half up, h-index: the bound rounded up to an integer.

Means of ranks: sorting does not increase the largest difference between two vectors, and a mean is a weighted sum.
Rounding: floor(a) - floor(b) < a - b + 1 is an integer. Rounding halves to *even* is missing on purpose: it takes
1/2 to 0 and 3/2 to 2.

Evaluation is exact, in integers and fractions: a double that is off in its last place breaks the inequality, and can
double the privacy loss of a partition. A mechanism uses `ceiling`, an integer that moves by at most 1 again.

The bounds hold for all integer vectors, negative ones included: a certificate does not rest on a projection to counts.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from evertally.contract.inputs import IntArray, as_integers
from evertally.encode.plain import plain
from evertally.errors import ConfigurationError

_SIMPLE_DENOMINATOR = 10**6
_LONGEST_TEXT = 120  # in messages

Width = int | Literal["all"]


def exact_number(value: object, name: str = "a constant") -> Fraction:
    """The number that the caller means: 0.07 is 7/100 and 5/9 computed as a float is 5/9, not their nearest doubles.

    A float is the fraction with a denominator up to 10^6 whose nearest double it is, otherwise the decimal number that
    it prints as. So weights .6, .3, .1 add up to 1, and ceil(q d) is right for every q = i/d (0.07 * 100 is above 7 in
    doubles). Give a Fraction, or text such as "1/3", where this reading is not wanted.

    >>> exact_number(0.07), exact_number(5 / 9), exact_number("0.25")
    (Fraction(7, 100), Fraction(5, 9), Fraction(1, 4))
    """
    try:
        if isinstance(value, int | float | str | Fraction) and not isinstance(value, bool | np.generic):
            value = plain(value)  # a subclass may say another value whenever it is asked
        if isinstance(value, float | np.floating):
            simple = Fraction(float(value)).limit_denominator(_SIMPLE_DENOMINATOR)
            return simple if float(simple) == float(value) else Fraction(str(value))
        if isinstance(value, Fraction | str):
            return Fraction(value)
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            return Fraction(int(value))
    except (ValueError, OverflowError, ZeroDivisionError):
        pass
    raise ConfigurationError(f"{name} is a finite int, float, Fraction or text such as '1/3', not {value!r}")


@dataclass(frozen=True)
class Certificate:
    """What is proved about a query g from the way it is built (parameterized-histograms 1.5). False: not proved.

    `unit_scale`: |g(v) - g(w)| <= 1 for integer vectors at distance 1; the only condition that privacy needs.
    `lipschitz`: |g(v) - g(w)| <= max_i |v_i - w_i| for real vectors too; without it, error bounds use ceil(err).
    `monotone`: g never falls when columns grow. `linear`: g(v + u) - g(v) depends on u only. `zero_at_zero`: g(0) = 0.

    >>> h = Columns(2)
    >>> (h[0] - h[1]).certificate.reason
    'one row can change it by up to 2, and 1 is allowed: use normalised(); it has a negative weight, so it may fall'
    """

    unit_scale: bool
    lipschitz: bool
    monotone: bool
    linear: bool
    zero_at_zero: bool
    reason: str


@dataclass(frozen=True)
class _Facts:
    """What the rules derive for one expression. `least`: the smallest number of columns for which it is defined."""

    sensitivity: Fraction
    monotone: bool
    linear: bool
    jumps: bool
    columns: Width
    least: int


_ONE_COLUMN = _Facts(Fraction(1), monotone=True, linear=True, jumps=False, columns="all", least=1)


class Expression(ABC):
    """A query on column sums, built from columns, that knows a bound on its sensitivity.

    Theorem: parameterized-histograms 1.5, "certificate, not test". Tier [R]. Expressions are immutable. Two of them are
    never compared with `==`, which would look like a comparison of counts inside a traced query: compare `to_json()`.
    Time of `ceiling`: one pass of numpy over the columns for everything that looks at columns only; Python arithmetic
    with fractions where queries are nested. Memory: the expression.

    >>> h = Columns(3)
    >>> g = (h[0] + h[1]) / 2
    >>> g.evaluate([3, 4, 9]), g.ceiling([3, 4, 9]), g.certificate.unit_scale
    (Fraction(7, 2), 4, True)
    >>> (2 * h[0]).sensitivity, (2 * h[0]).normalised()
    (Fraction(2, 1), h[0])
    """

    # numpy scalars on the left (np.float64(0.5) * h[0]) hand the operation over to this class.
    __array_ufunc__ = None

    @abstractmethod
    def _derive(self) -> _Facts:
        """The rules of parameterized-histograms 1.5 for this node."""

    @abstractmethod
    def _ratio(self, v: IntArray) -> tuple[int, int]:
        """Numerator and positive denominator of the exact value."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The expression in its canonical form, for snapshots and for the digest of public parameters."""

    def evaluate(self, v: IntArray | Sequence[int]) -> Fraction:
        """The exact value at column sums v."""
        return Fraction(*self._ratio(self._read(v)))

    def ceiling(self, v: IntArray | Sequence[int]) -> int:
        """The exact value rounded up: integer noise may be added to it (parameterized-histograms 2.3)."""
        numerator, denominator = self._ratio(self._read(v))
        return -(-numerator // denominator)

    @property
    def columns(self) -> Width:
        """How many leading columns the query looks at, or "all" of them, however many there are."""
        return self._facts.columns

    @property
    def sensitivity(self) -> Fraction:
        """A proved bound on |g(v) - g(w)| for integer vectors v, w at distance 1 in every column."""
        return self._facts.sensitivity

    @cached_property
    def certificate(self) -> Certificate:
        """What is proved about the query, with the reason for what is not."""
        facts = self._facts
        at_zero = self.evaluate(np.zeros(facts.least, dtype=np.int64))  # with more columns it is the same
        unit_scale = facts.sensitivity <= 1
        reasons = []
        if not unit_scale:
            reasons.append(f"one row can change it by up to {facts.sensitivity}, and 1 is allowed: use normalised()")
        if not facts.monotone:
            reasons.append("it has a negative weight, so it may fall")
        if at_zero != 0:
            reasons.append(f"it is {at_zero} at zero: subtract that")
        return Certificate(
            unit_scale=unit_scale,
            lipschitz=unit_scale and not facts.jumps,
            monotone=facts.monotone,
            linear=facts.linear,
            zero_at_zero=at_zero == 0,
            reason="; ".join(reasons) or "every step of the construction keeps the sensitivity at 1",
        )

    def normalised(self) -> Expression:
        """g/S for the proved sensitivity S: unit-scale; answers and error bounds are multiplied by S afterwards."""
        return self / self.sensitivity if self.sensitivity > 0 else self

    def require(self, columns: int) -> None:
        """Refuses a number of columns for which the query is not defined."""
        if columns < self._facts.least:
            raise ConfigurationError(f"the query {self} needs at least {self._facts.least} columns, not {columns}")

    @cached_property
    def _facts(self) -> _Facts:
        return self._derive()

    @cached_property
    def _key(self) -> tuple[int, int, str]:
        """The order of terms in the canonical form: columns first."""
        return (1, 0, json.dumps(self.to_json(), sort_keys=True))

    def _read(self, v: IntArray | Sequence[int]) -> IntArray:
        if not (isinstance(v, np.ndarray) and v.dtype == np.int64):
            v = as_integers(v)
        if v.ndim != 1 or len(v) < self._facts.least:
            raise ConfigurationError(f"a query reads one row of at least {self._facts.least} column sums")
        return v

    def __add__(self, other: object) -> Expression:
        term = _lifted(other)
        return NotImplemented if term is None else _combine(Fraction(0), [(Fraction(1), self), (Fraction(1), term)])

    def __sub__(self, other: object) -> Expression:
        term = _lifted(other)
        return NotImplemented if term is None else _combine(Fraction(0), [(Fraction(1), self), (Fraction(-1), term)])

    def __rsub__(self, other: object) -> Expression:
        return -self + other

    def __mul__(self, other: object) -> Expression:
        factor = _lifted(other)
        if not isinstance(factor, Combination) or factor.terms:
            return NotImplemented  # the sensitivity of a product of two queries grows with the counts
        return _combine(Fraction(0), [(factor.constant, self)])

    def __truediv__(self, other: object) -> Expression:
        divisor = _lifted(other)
        if not isinstance(divisor, Combination) or divisor.terms:
            return NotImplemented
        return _combine(Fraction(0), [(1 / divisor.constant, self)])

    def __floordiv__(self, other: object) -> Expression:
        return floor(self / other)

    def __neg__(self) -> Expression:
        return self * -1

    def __abs__(self) -> Expression:
        return maximum(self, -self)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floor__(self) -> Expression:
        return floor(self)

    def __ceil__(self) -> Expression:
        return ceil(self)

    def __round__(self, digits: int | None = None) -> NoReturn:
        raise ConfigurationError("round() takes halves to even, from 1/2 to 0 and 3/2 to 2; use round_half_up")

    def _refuse(self, *_: object) -> NoReturn:
        raise ConfigurationError(
            "a query cannot look at a count and decide (==, <, if, max, min, sorted): "
            "use maximum, minimum, order_statistic or clamp"
        )

    def __str__(self) -> str:
        text = repr(self)
        return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = object.__hash__


@dataclass(frozen=True, eq=False, repr=False)
class Column(Expression):
    """The sum of one column. Theorem: parameterized-histograms 1.5. Tier [R]. Constant time and memory.

    >>> Column(2).evaluate([5, 6, 7])
    Fraction(7, 1)
    """

    index: int

    def __post_init__(self) -> None:
        if isinstance(self.index, bool) or not isinstance(self.index, int) or self.index < 0:
            raise ConfigurationError(f"a column is an integer from 0 on, not {self.index!r}")

    def _derive(self) -> _Facts:
        width = self.index + 1
        return _Facts(Fraction(1), monotone=True, linear=True, jumps=False, columns=width, least=width)

    def _ratio(self, v: IntArray) -> tuple[int, int]:
        return int(v[self.index]), 1

    @cached_property
    def _key(self) -> tuple[int, int, str]:
        return (0, self.index, "")

    def to_json(self) -> dict[str, Any]:
        return {"column": self.index}

    def __repr__(self) -> str:
        return f"h[{self.index}]"


@dataclass(frozen=True, eq=False, repr=False)
class Combination(Expression):
    """A constant plus a weighted sum of other queries; a bare constant has no terms. Written with + - * /.

    Theorem: parameterized-histograms 1.5, sum of w_i g_i. Tier [R]. Time and memory: one multiplication of Python
    integers per term, so nothing overflows. Like terms are gathered: h[0] - h[1] + h[1] is h[0].

    >>> h = Columns(3)
    >>> g = 0.6 * h[0] + 0.3 * h[1] + 0.1 * h[2]
    >>> g.evaluate([397, 397, 397]), g.evaluate([398, 398, 398]), g.certificate.unit_scale
    (Fraction(397, 1), Fraction(398, 1), True)
    """

    constant: Fraction
    terms: tuple[tuple[Fraction, Expression], ...]

    def _derive(self) -> _Facts:
        parts = [term._facts for _, term in self.terms]
        return _Facts(
            sum((abs(w) * part.sensitivity for (w, _), part in zip(self.terms, parts, strict=True)), Fraction(0)),
            monotone=all(w > 0 and part.monotone for (w, _), part in zip(self.terms, parts, strict=True)),
            linear=all(part.linear for part in parts),
            jumps=any(part.jumps for part in parts),
            columns=_widest(parts),
            least=max((part.least for part in parts), default=0),
        )

    @cached_property
    def _integers(self) -> tuple[IntArray, list[int], int, int]:
        """The columns, their weights and the constant over a common denominator, and that denominator."""
        columns = [(w, term.index) for w, term in self.terms if isinstance(term, Column)]
        denominator = math.lcm(self.constant.denominator, *(w.denominator for w, _ in columns))
        where = np.array([index for _, index in columns], dtype=np.int64)
        return where, [int(w * denominator) for w, _ in columns], int(self.constant * denominator), denominator

    def _ratio(self, v: IntArray) -> tuple[int, int]:
        where, weights, numerator, denominator = self._integers
        numerator += sum(w * x for w, x in zip(weights, v[where].tolist(), strict=True))
        if len(weights) == len(self.terms):
            return numerator, denominator
        rest = (w * Fraction(*term._ratio(v)) for w, term in self.terms if not isinstance(term, Column))
        return sum(rest, Fraction(numerator, denominator)).as_integer_ratio()

    def to_json(self) -> dict[str, Any]:
        return {"constant": str(self.constant), "plus": [[str(w), term.to_json()] for w, term in self.terms]}

    def __repr__(self) -> str:
        parts = [f"{term!r}" if w == 1 else f"{w}*{term!r}" for w, term in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"


@dataclass(frozen=True, eq=False, repr=False)
class _OfValues(Expression):
    """A query of several values at once: of all columns, or of the queries in `of`, whose order does not matter."""

    of: tuple[Expression, ...] | None = None

    @property
    def _parts(self) -> list[_Facts]:
        return [_ONE_COLUMN] if self.of is None else [term._facts for term in self.of]

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
class RankMean(_OfValues):
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
            low, high = _whole(low, "a rank"), _whole(high, "a rank")
            fine = 0 < low <= high or low <= high < 0 or high < 0 < low
        if not fine:
            raise ConfigurationError(f"there is nothing from rank {low} to rank {high}")

    def _derive(self) -> _Facts:
        parts = self._parts
        low, high = math.ceil(self.low), math.ceil(self.high)
        least = max(high, -low, low - high - 1 if high < 0 < low else 0) if self.of is None else 0
        return _Facts(
            max(part.sensitivity for part in parts),
            monotone=all(part.monotone for part in parts),
            linear=self.of is None and (low, high) == (1, -1),
            jumps=any(part.jumps for part in parts),
            columns=_widest(parts),
            least=max(least, *(part.least for part in parts)),
        )

    def _ratio(self, v: IntArray) -> tuple[int, int]:
        values = self._values(v)
        first, last = _position(self.low, len(values)), _position(self.high, len(values))
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
        rank = _whole(rank, "rank")
        super().__init__(low=rank, high=rank)


class Quantile(RankMean):
    """Order statistic number ceil(q * columns), for 0 < q <= 1: 1 is the maximum, 1/2 the lower median.

    Theorem: parameterized-histograms 7.1. Tier [R]. Time and memory O(columns). `exact_number` says how q is read.

    >>> Quantile(0.07).ceiling(range(1, 101))  # 0.07 * 100 is above 7 in floating point
    7
    """

    def __init__(self, q: Fraction | float | str) -> None:
        share = _share(q)
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
        super().__init__(low=-_whole(k, "k", least=1), high=-1)


class TrimmedMean(RankMean):
    """The mean without the `cut` smallest and the `cut` largest columns.

    Theorem: parameterized-histograms 7.1. Tier [R]. Time and memory O(columns).

    >>> TrimmedMean(1).evaluate([1, 8, 5, 1000])
    Fraction(13, 2)
    """

    def __init__(self, cut: int) -> None:
        cut = _whole(cut, "cut", least=0)
        super().__init__(low=cut + 1, high=-cut - 1)


@dataclass(frozen=True, eq=False, repr=False)
class HIndex(_OfValues):
    """The largest k such that k of the values are at least k.

    Theorem: parameterized-histograms 7.1. Tier [R]. Unit-scale: if k values are at least k, then they are at least
    k - 1 after each has moved by at most 1. Not Lipschitz: it jumps by 1 on a small move of real values.
    Time: one sort. Memory: O(columns).

    >>> HIndex().ceiling([9, 3, 3, 0, 3])
    3
    """

    def _derive(self) -> _Facts:
        return _Facts(
            Fraction(math.ceil(max(part.sensitivity for part in self._parts))),
            monotone=all(part.monotone for part in self._parts),
            linear=False,
            jumps=True,
            columns=_widest(self._parts),
            least=max(part.least for part in self._parts),
        )

    def _ratio(self, v: IntArray) -> tuple[int, int]:
        falling = np.sort(self._values(v))[::-1]
        return int(np.count_nonzero(falling >= np.arange(1, len(falling) + 1))), 1

    def to_json(self) -> dict[str, Any]:
        return {"h_index": self._of_json()}

    def __repr__(self) -> str:
        return f"h_index({self._of_text()})"


@dataclass(frozen=True, eq=False, repr=False)
class Rounded(Expression):
    """Another query, rounded after its exact evaluation: "floor", "ceil" or "half_up".

    Theorem: parameterized-histograms 1.5. Tier [R]. Time and memory of the query that is rounded.

    >>> Rounded("half_up", Mean()).evaluate([1, 2])
    Fraction(2, 1)
    """

    mode: Literal["floor", "ceil", "half_up"]
    term: Expression

    def __post_init__(self) -> None:
        if self.mode not in ("floor", "ceil", "half_up"):
            raise ConfigurationError(f"rounding is 'floor', 'ceil' or 'half_up', not {self.mode!r}")

    def _derive(self) -> _Facts:
        part = self.term._facts
        whole = Fraction(math.ceil(part.sensitivity))
        return _Facts(whole, part.monotone, linear=False, jumps=True, columns=part.columns, least=part.least)

    def _ratio(self, v: IntArray) -> tuple[int, int]:
        numerator, denominator = self.term._ratio(v)
        if self.mode == "half_up":
            numerator, denominator = 2 * numerator + denominator, 2 * denominator
        return (-(-numerator // denominator) if self.mode == "ceil" else numerator // denominator), 1

    def to_json(self) -> dict[str, Any]:
        return {"rounded": self.mode, "of": self.term.to_json()}

    def __repr__(self) -> str:
        return f"{self.mode}({self.term!r})"


class Columns(Sequence[Expression]):
    """The column sums as symbols: what a query is written on, and what `trace` gives to a Python function.

    Indices, slices, iteration and len work as on a list; max, min, mean and sum as on a numpy array.
    Theorem: parameterized-histograms 1.5. Tier [R]. Constant time and memory.

    >>> h = Columns(4)
    >>> mean(h[1:3]), h.sum().sensitivity
    ((1/2*h[1] + 1/2*h[2]), Fraction(4, 1))
    """

    def __init__(self, count: int) -> None:
        self._count = _whole(count, "the number of columns", least=1)

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
        """The maximum of all columns."""
        return maximum(self)

    def min(self, axis: object = None, out: object = None) -> Expression:
        """The minimum of all columns."""
        return minimum(self)

    def mean(self, axis: object = None, dtype: object = None, out: object = None) -> Expression:
        """The mean of all columns."""
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
    return _ranked(-1, -1, _arguments(values))


def minimum(*values: Values | Expression | float | Fraction) -> Expression:
    """The smallest of several queries and numbers, or of all columns."""
    return _ranked(1, 1, _arguments(values))


def order_statistic(values: Values, rank: int) -> Expression:
    """The rank-th smallest; a negative rank counts from the largest."""
    rank = _whole(rank, "rank")
    return _ranked(rank, rank, values)


def quantile(values: Values, q: Fraction | float | str) -> Expression:
    """Order statistic number ceil(q n), for 0 < q <= 1; `exact_number` says how q is read."""
    share = _share(q)
    return _ranked(share, share, values)


def mean(values: Values) -> Expression:
    """The mean, exactly."""
    return _ranked(1, -1, values)


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
    return _ranked(-_whole(k, "k", least=1), -1, values)


def trimmed_mean(values: Values, cut: int) -> Expression:
    """The mean without the `cut` smallest and the `cut` largest."""
    cut = _whole(cut, "cut", least=0)
    return _ranked(cut + 1, -cut - 1, values)


def h_index(values: Values) -> Expression:
    """The largest k such that k of the values are at least k."""
    return HIndex() if isinstance(values, Columns) else _folded(HIndex(_sorted(values)))


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
    return _folded(Rounded("floor", _term(value)))


def ceil(value: Expression | float | Fraction) -> Expression:
    """The value rounded up, after its exact evaluation."""
    return _folded(Rounded("ceil", _term(value)))


def round_half_up(value: Expression | float | Fraction) -> Expression:
    """The nearest integer, halves up: floor(value + 1/2). Halves to even would not be unit-scale.

    >>> round_half_up(Column(0) / 2).evaluate([5]), round_half_up(Column(0) / 2).evaluate([-5])
    (Fraction(3, 1), Fraction(-2, 1))
    """
    return _folded(Rounded("half_up", _term(value)))


def trace(query: Callable[[Any], Any], columns: int) -> Expression:
    """The expression that a Python function computes, found by calling it on symbols.

    What runs afterwards is the expression, never the function, so what the function does with numbers cannot cost
    privacy. A function that compares, branches, converts to a number or returns anything else is refused.

    >>> trace(lambda v: (v[0] + v[-1]) / 2, columns=3)
    (1/2*h[0] + 1/2*h[2])
    """
    symbols = Columns(columns)
    try:
        expression = query(symbols)
    except ConfigurationError:
        raise
    except Exception as error:  # whatever a caller's function raises means the same: it is no construction
        raise ConfigurationError(f"the function does not work on symbols: {type(error).__name__}: {error}") from error
    if not isinstance(expression, Expression):
        raise ConfigurationError(f"the function returns {type(expression).__name__}, not a query built from columns")
    expression.require(columns)
    return expression


def from_json(data: Any) -> Expression:
    """The way back from `to_json`.

    >>> from_json(Maximum().to_json()).evaluate([3, 4])
    Fraction(4, 1)
    """
    match data:
        case {"column": int(index)}:
            return Column(index)
        case {"constant": str(constant), "plus": [*terms]}:
            return _combine(exact_number(constant), [(exact_number(w), from_json(term)) for w, term in terms])
        case {"ranks": [low, high], "of": "all"}:
            return RankMean(low=_rank_from_json(low), high=_rank_from_json(high))
        case {"ranks": [low, high], "of": [*terms]}:
            return _ranked(_rank_from_json(low), _rank_from_json(high), map(from_json, terms))
        case {"h_index": "all"}:
            return HIndex()
        case {"h_index": [*terms]}:
            return h_index(map(from_json, terms))
        case {"rounded": mode, "of": term}:
            return _folded(Rounded(mode, from_json(term)))
    raise ConfigurationError("this is not the JSON form of a query")


def _rank_from_json(rank: object) -> int | Fraction:
    return exact_number(rank, "rank") if isinstance(rank, str) else _whole(rank, "rank")


def _lifted(value: object) -> Expression | None:
    """A query as it is, a number as a constant, and nothing else: text is no number here."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Fraction | float | np.floating | int | np.integer) and not isinstance(value, bool):
        return Combination(exact_number(value), ())
    return None


def _term(value: object) -> Expression:
    term = _lifted(value)
    if term is None:
        raise ConfigurationError(f"a query is built from columns and numbers, not from {type(value).__name__}")
    return term


def _combine(constant: Fraction, pairs: Iterable[tuple[Fraction, Expression]]) -> Expression:
    """The canonical form of a weighted sum: flat, like terms gathered, no weight 0, terms in order."""
    gathered: dict[tuple[int, int, str], tuple[Fraction, Expression]] = {}
    for factor, part in pairs:
        if isinstance(part, Combination):
            constant += factor * part.constant
            scaled = part.terms if factor == 1 else tuple((factor * w, term) for w, term in part.terms)
        else:
            scaled = ((factor, part),)
        for w, term in scaled:
            before = gathered.get(term._key)
            gathered[term._key] = (w if before is None else before[0] + w, term)
    kept = tuple(gathered[key] for key in sorted(gathered) if gathered[key][0])
    if constant == 0 and len(kept) == 1 and kept[0][0] == 1:
        return kept[0][1]
    return Combination(constant, kept)


def _ranked(low: int | Fraction, high: int | Fraction, values: Values) -> Expression:
    if isinstance(values, Columns):
        query = RankMean(low=low, high=high)
        query.require(len(values))
        return query
    terms = _sorted(values)
    first, last = _position(low, len(terms)), _position(high, len(terms))
    if not 0 <= first <= last < len(terms):
        raise ConfigurationError(f"ranks {low} to {high} do not exist among {len(terms)} values")
    if (first, last) == (0, len(terms) - 1):
        return _combine(Fraction(0), [(Fraction(1, len(terms)), term) for term in terms])
    return _folded(RankMean(terms, first + 1, last + 1))


def _folded(query: Expression) -> Expression:
    """A query of constants is a constant."""
    return Combination(query.evaluate([]), ()) if query.columns == 0 else query


def _sorted(values: Values) -> tuple[Expression, ...]:
    terms = tuple(sorted((_term(value) for value in values), key=lambda term: term._key))
    if not terms:
        raise ConfigurationError("a query of no values is not defined")
    return terms


def _arguments(values: tuple[Any, ...]) -> Values:
    """maximum(h), maximum(list) and maximum(a, b, c) all mean what they say."""
    alone = len(values) == 1 and not isinstance(values[0], Expression) and isinstance(values[0], Iterable)
    return values[0] if alone else values


def _position(rank: int | Fraction, count: int) -> int:
    """Where in the sorted values a rank is; ceil(q count) in exact arithmetic."""
    if isinstance(rank, Fraction):
        return math.ceil(rank * count) - 1
    return rank - 1 if rank > 0 else count + rank


def _share(q: object) -> int | Fraction:
    share = exact_number(q, "q")
    if not 0 < share <= 1:
        raise ConfigurationError(f"a quantile has 0 < q <= 1, not {q!r}; the minimum is q = 1/columns")
    return share if share < 1 else -1


def _whole(value: object, name: str, least: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or (least is not None and value < least):
        raise ConfigurationError(f"{name} is an integer{'' if least is None else f' from {least} on'}, not {value!r}")
    return int(value)


def _widest(parts: Iterable[_Facts]) -> Width:
    widths = [part.columns for part in parts]
    return "all" if "all" in widths else max((width for width in widths if width != "all"), default=0)


def _exact_sum(values: NDArray[Any]) -> Any:
    """The sum of int64 values or of Fractions; in Python integers where int64 might wrap around."""
    if values.dtype == object:
        return values.sum()
    largest = max(int(values.max()), -int(values.min()))
    return int(values.sum()) if largest * len(values) < 2**63 else sum(values.tolist())


def _as_ratio(value: Any) -> tuple[int, int]:
    return value.as_integer_ratio() if isinstance(value, Fraction) else (int(value), 1)
