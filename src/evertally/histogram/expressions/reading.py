"""Queries from elsewhere: a Python function that is traced, and the JSON form that is stored."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from evertally.errors import ConfigurationError
from evertally.histogram.expressions.building import Columns, folded, h_index, ranked
from evertally.histogram.expressions.exact_numbers import exact_number, whole
from evertally.histogram.expressions.expression import Column, Expression, combine
from evertally.histogram.expressions.ranks import HIndex, RankMean
from evertally.histogram.expressions.rounding import Rounded


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

    >>> from evertally.histogram.expressions import Maximum
    >>> from_json(Maximum().to_json()).evaluate([3, 4])
    Fraction(4, 1)
    """
    match data:
        case {"column": int(index)}:
            return Column(index)
        case {"constant": str(constant), "plus": [*terms]}:
            return combine(exact_number(constant), [(exact_number(w), from_json(term)) for w, term in terms])
        case {"ranks": [low, high], "of": "all"}:
            return RankMean(low=_rank_from_json(low), high=_rank_from_json(high))
        case {"ranks": [low, high], "of": [*terms]}:
            return ranked(_rank_from_json(low), _rank_from_json(high), map(from_json, terms))
        case {"h_index": "all"}:
            return HIndex()
        case {"h_index": [*terms]}:
            return h_index(map(from_json, terms))
        case {"rounded": mode, "of": term}:
            return folded(Rounded(mode, from_json(term)))
    raise ConfigurationError("this is not the JSON form of a query")


def _rank_from_json(rank: object) -> int | Fraction:
    return exact_number(rank, "rank") if isinstance(rank, str) else whole(rank, "rank")
