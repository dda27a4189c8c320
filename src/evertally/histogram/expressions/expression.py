"""A query that knows its own sensitivity: columns, and weighted sums of other queries."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from evertally.contract.inputs import IntArray, as_integers
from evertally.errors import ConfigurationError
from evertally.histogram.expressions.certificates import Certificate, Facts, Width, widest
from evertally.histogram.expressions.exact_numbers import exact_number

_LONGEST_TEXT = 120  # in messages


class Expression(ABC):
    """A query on column sums, built from columns, that knows a bound on its sensitivity.

    Theorem: parameterized-histograms 1.5, "certificate, not test". Tier [R]. Expressions are immutable. Two of them are
    never compared with `==`, which would look like a comparison of counts inside a traced query: compare `to_json()`.
    Time of `ceiling`: one pass of numpy over the columns for everything that looks at columns only; Python arithmetic
    with fractions where queries are nested. Memory: the expression.

    >>> from evertally.histogram.expressions import Columns
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
    def _derive(self) -> Facts:
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
    def _facts(self) -> Facts:
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
        term = lifted(other)
        return NotImplemented if term is None else combine(Fraction(0), [(Fraction(1), self), (Fraction(1), term)])

    def __sub__(self, other: object) -> Expression:
        term = lifted(other)
        return NotImplemented if term is None else combine(Fraction(0), [(Fraction(1), self), (Fraction(-1), term)])

    def __rsub__(self, other: object) -> Expression:
        return -self + other

    def __mul__(self, other: object) -> Expression:
        factor = lifted(other)
        if not isinstance(factor, Combination) or factor.terms:
            return NotImplemented  # the sensitivity of a product of two queries grows with the counts
        return combine(Fraction(0), [(factor.constant, self)])

    def __truediv__(self, other: object) -> Expression:
        divisor = lifted(other)
        if not isinstance(divisor, Combination) or divisor.terms:
            return NotImplemented
        return combine(Fraction(0), [(1 / divisor.constant, self)])

    def __floordiv__(self, other: object) -> Expression:
        from evertally.histogram.expressions.building import floor  # made of this module

        return floor(self / other)

    def __neg__(self) -> Expression:
        return self * -1

    def __abs__(self) -> Expression:
        from evertally.histogram.expressions.building import maximum  # made of this module

        return maximum(self, -self)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floor__(self) -> Expression:
        from evertally.histogram.expressions.building import floor  # made of this module

        return floor(self)

    def __ceil__(self) -> Expression:
        from evertally.histogram.expressions.building import ceil  # made of this module

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

    def _derive(self) -> Facts:
        width = self.index + 1
        return Facts(Fraction(1), monotone=True, linear=True, jumps=False, columns=width, least=width)

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

    >>> from evertally.histogram.expressions import Columns
    >>> h = Columns(3)
    >>> g = 0.6 * h[0] + 0.3 * h[1] + 0.1 * h[2]
    >>> g.evaluate([397, 397, 397]), g.evaluate([398, 398, 398]), g.certificate.unit_scale
    (Fraction(397, 1), Fraction(398, 1), True)
    """

    constant: Fraction
    terms: tuple[tuple[Fraction, Expression], ...]

    def _derive(self) -> Facts:
        parts = [term._facts for _, term in self.terms]
        return Facts(
            sum((abs(w) * part.sensitivity for (w, _), part in zip(self.terms, parts, strict=True)), Fraction(0)),
            monotone=all(w > 0 and part.monotone for (w, _), part in zip(self.terms, parts, strict=True)),
            linear=all(part.linear for part in parts),
            jumps=any(part.jumps for part in parts),
            columns=widest(parts),
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


def lifted(value: object) -> Expression | None:
    """A query as it is, a number as a constant, and nothing else: text is no number here."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Fraction | float | np.floating | int | np.integer) and not isinstance(value, bool):
        return Combination(exact_number(value), ())
    return None


def term_of(value: object) -> Expression:
    term = lifted(value)
    if term is None:
        raise ConfigurationError(f"a query is built from columns and numbers, not from {type(value).__name__}")
    return term


def combine(constant: Fraction, pairs: Iterable[tuple[Fraction, Expression]]) -> Expression:
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
