"""The gate for a user's query: certified by its construction, or refused (parameterized-histograms 1.5 and 9.2, E6).

A query that is an expression, or a Python function that can be traced to one, is judged by its certificate. For
anything else a search for a counterexample shows the caller what is wrong. The search refutes and never proves: the
query max(0, 2(v_1 - 5)) is blameless on {0..3}, and one that is bad at a single far point is blameless wherever one
looks. So a function that survives the search is refused all the same.

The probes are a fixed pseudo-random sequence: the same query is always judged alike.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from evertally.contract.inputs import IntArray
from evertally.errors import ConfigurationError
from evertally.histogram.expressions import Columns, Expression, from_json, trace

Kind = Literal["sensitivity", "monotone", "zero", "total"]

_COMBINATORS = (
    "Build it from columns with maximum, minimum, order_statistic, quantile, mean, top_mean, trimmed_mean, h_index, "
    "clamp, floor, ceil, round_half_up, constants, and sums whose weights add up to at most 1 in absolute value"
)
_DIAGONAL = 1_000
_SAMPLES = 300  # around each offset
_WHOLE_AT_ZERO = 4  # columns for which all 12^columns pairs are tried around 0,
_WHOLE_ELSEWHERE = 2  # and around each offset
_OFFSETS = (8, 32, 1_000, 10**6, 2**33, 2**54, 2**61)  # the last is the largest column sum that a stream can reach
_ENTRIES_SHOWN = 8


@dataclass(frozen=True)
class Counterexample:
    """Two column sums v, w that break a condition of parameterized-histograms 1.5, and g there, exactly.

    `kind`: "sensitivity" (|g(v) - g(w)| is too large), "monotone" (v <= w and g(v) > g(w)), "zero" (g(0) is not 0),
    "total" (g raises at v, or returns no number; then there is no value).

    >>> print(refute(lambda v: 2 * v[0], columns=1))
    |g(v) - g(w)| = 2 at v = (0), w = (1)
    """

    kind: Kind
    v: tuple[int, ...]
    w: tuple[int, ...]
    g_v: Fraction | None
    g_w: Fraction | None

    def __str__(self) -> str:
        v, w = _text(self.v), _text(self.w)
        if self.g_v is None or self.g_w is None:
            return f"g raises or returns no number at v = {v}; for a live stream that would be a release"
        if self.kind == "zero":
            return f"g(0) = {_value_text(self.g_v)}, not 0"
        if self.kind == "monotone":
            return f"g falls from {_value_text(self.g_v)} to {_value_text(self.g_w)} from v = {v} to w = {w}"
        return f"|g(v) - g(w)| = {_value_text(abs(self.g_v - self.g_w))} at v = {v}, w = {w}"


def refute(
    g: Expression | Callable[[Any], Any],
    columns: int,
    *,
    sensitivity: Fraction | int = 1,
    monotone: bool = True,
    zero_at_zero: bool = True,
) -> Counterexample | None:
    """Looks for column sums at which g breaks its conditions; None means only that none were found.

    All v in {0..3}^columns and all shifts in {-1, 0, 1}^columns if the columns are few, otherwise a sample of them,
    around 0 and around offsets of every size up to 2^61, negative ones too. Values are compared exactly, a float as
    the binary fraction that it is. What costs privacy (sensitivity, totality) is returned before what costs accuracy.

    >>> refute(lambda v: int(max(v)), columns=3) is None
    True
    >>> print(refute(lambda v: 0.6 * v[0] + 0.3 * v[1] + 0.1 * v[2], columns=3, monotone=False))
    |g(v) - g(w)| = 1 + 1/4503599627370496 at v = (2, 2, 2), w = (3, 3, 3)
    """
    other: Counterexample | None = None
    for found in _violations(g, columns, Fraction(sensitivity), monotone, zero_at_zero):
        if found.kind in ("sensitivity", "total"):
            return found
        other = other or found
    return other


def certified(query: Expression | Callable[[Any], Any], columns: int, *, privacy_only: bool = False) -> Expression:
    """The query as an expression with a certificate for this many columns; ConfigurationError if there is none.

    Privacy needs a unit-scale query; accuracy also needs a monotone one that is 0 at 0 (parameterized-histograms 1.5).
    `privacy_only` asks for the first alone. What is judged and returned is not the object that was given but what comes
    back from its written form: nodes of this room's own classes, which nobody else holds. A subclass that evaluates to
    something else than it writes down, or a list inside it that changes later, has no say.

    >>> certified(lambda v: (v[0] + v[1]) / 2, columns=2)
    (1/2*h[0] + 1/2*h[1])
    """
    columns = len(Columns(columns))
    conditions = {"monotone": not privacy_only, "zero_at_zero": not privacy_only}
    if isinstance(query, Expression):
        expression = _written(query)
    elif not callable(query):
        raise ConfigurationError(f"a query is an expression or a function, not {type(query).__name__}")
    else:
        try:
            expression = _written(trace(query, columns))
        except ConfigurationError as why:
            found = refute(query, columns, **conditions)
            evidence = f"Counterexample: {found}" if found else "No counterexample was found, but a test proves nothing"
            raise ConfigurationError(f"nothing certifies the query: {why}. {evidence}. {_COMBINATORS}.") from why
    expression.require(columns)
    certificate = expression.certificate
    if not certificate.unit_scale or not (privacy_only or (certificate.monotone and certificate.zero_at_zero)):
        found = refute(expression, columns, **conditions)
        evidence = f". Counterexample: {found}" if found else ""
        raise ConfigurationError(f"the query {expression} is refused: {certificate.reason}{evidence}")
    return expression


def _written(query: Expression) -> Expression:
    """The query that the written form says: JSON text in between, so that not even a number is the caller's object."""
    try:
        return from_json(json.loads(json.dumps(query.to_json())))
    except ConfigurationError:
        raise
    except Exception as error:  # an expression of the caller's own making may do anything when it is asked
        raise ConfigurationError(f"the query has no written form that can be read: {type(error).__name__}") from error


def _violations(
    g: Any, columns: int, sensitivity: Fraction, monotone: bool, zero_at_zero: bool
) -> Iterator[Counterexample]:
    zero = np.zeros(columns, dtype=np.int64)
    at_zero = _value(g, zero)
    if at_zero is None or (zero_at_zero and at_zero != 0):
        yield _found("total" if at_zero is None else "zero", zero, zero, at_zero, at_zero)
    for v, w in _pairs(columns):
        g_v, g_w = _value(g, v), _value(g, w)
        if g_v is None or g_w is None:
            yield _found("total", *((v, w) if g_v is None else (w, v)), None, None)
        elif abs(g_v - g_w) > sensitivity:
            yield _found("sensitivity", v, w, g_v, g_w)
        elif monotone and g_v > g_w and np.all(v <= w):
            yield _found("monotone", v, w, g_v, g_w)
        elif monotone and g_v < g_w and np.all(v >= w):
            yield _found("monotone", w, v, g_w, g_v)


def _found(kind: Kind, v: IntArray, w: IntArray, g_v: Fraction | None, g_w: Fraction | None) -> Counterexample:
    return Counterexample(kind, tuple(v.tolist()), tuple(w.tolist()), g_v, g_w)


def _value(g: Any, v: IntArray) -> Fraction | None:
    """The exact value; None if there is none."""
    try:
        with np.errstate(all="ignore"):
            value = g.evaluate(v) if isinstance(g, Expression) else g(v.copy())
        if isinstance(value, Expression):  # the combinators turn numbers into constant queries
            return value.evaluate([])
        if isinstance(value, Fraction | Decimal | int | float):
            return Fraction(value)
        return Fraction(value.item()) if isinstance(value, np.generic) else None
    except Exception:  # whatever a caller's function raises, it is not total
        return None


def _pairs(columns: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Vectors at distance at most 1 in every column: along the diagonal, then around 0, then around offsets."""
    ones = np.ones(columns, dtype=np.int64)
    # All columns moving together is where weights in floating point show.
    for level in (*range(_DIAGONAL), *range(-1, -_DIAGONAL // 10, -1)):
        yield level * ones, (level + 1) * ones
    yield from _around(0 * ones, columns <= _WHOLE_AT_ZERO, 0)
    for number, (below, kind) in enumerate(itertools.product(_OFFSETS, ("counts", "negative", "equal")), start=1):
        offset = _draw("offset", number, columns, below)
        if kind == "negative":
            offset = -offset
        if kind == "equal":  # ties are where order statistics change hands
            offset = offset[0] * ones
        yield from _around(offset, columns <= _WHOLE_ELSEWHERE, number)


def _around(offset: IntArray, whole: bool, number: int) -> Iterator[tuple[IntArray, IntArray]]:
    """All v in offset + {0..3}^d with all shifts in {-1, 0, 1}^d, or a sample of them."""
    columns = len(offset)
    if whole:
        for point in itertools.product(range(4), repeat=columns):
            for step in itertools.product((-1, 0, 1), repeat=columns):
                yield offset + np.array(point), offset + np.array(point) + np.array(step)
        return
    for name in range(number * _SAMPLES, (number + 1) * _SAMPLES):
        v = offset + _draw("point", name, columns, 4)
        match name % 3:
            case 0:  # one column alone
                shift = (np.arange(columns) == _draw("column", name, 1, columns)).astype(np.int64)
            case 1:  # a growing histogram: what monotone is about
                shift = _draw("growth", name, columns, 2)
            case _:
                shift = _draw("shift", name, columns, 3) - 1
        yield v, v + shift


def _draw(purpose: str, number: int, columns: int, below: int) -> IntArray:
    """Fixed pseudo-random integers in [0, below)."""
    digest = hashlib.shake_256(f"evertally refuter, {purpose} {number}".encode()).digest(8 * columns)
    return (np.frombuffer(digest, dtype="<u8") % np.uint64(below)).astype(np.int64)


def _text(v: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, v[:_ENTRIES_SHOWN]))
    return f"({shown}{', ...' if len(v) > _ENTRIES_SHOWN else ''})"


def _value_text(value: Fraction) -> str:
    """A value just above an integer shows what is above."""
    whole, rest = divmod(value, 1)
    return str(value) if rest == 0 or value.denominator < 10**6 else f"{whole} + {rest}"
