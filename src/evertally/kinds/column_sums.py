"""Questions about the counts of declared categories: one number, a few, or labels."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from pydantic import model_validator

from evertally import MaxSum, MinSum, MonotoneQuery, SumQuantile, SumSelect, TopK, TopKSelect
from evertally.kinds.fields import Expression, Expressions, OptionError, Whole
from evertally.kinds.fields import Quantile as Share
from evertally.kinds.kind import Arguments, Card, Kind, Result, named, ranks
from evertally.kinds.proofs import CHANGE_OF_COLUMNS, COLUMN_SUMS, Proof
from evertally.kinds.query_table import Labelled, Tuned
from evertally.kinds.reads import LABELS, Parameters
from evertally.kinds.written_expressions import expression


class ColumnQuery(Labelled, Tuned):
    """One number, or one label, about all counts."""


class QuantileQuery(ColumnQuery):
    q: Share


class RankedQuery(ColumnQuery):
    k: Whole


class ExpressionQuery(ColumnQuery):
    expression: Expression | None = None
    expressions: Expressions | None = None

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        if (self.expression is None) == (self.expressions is None):
            raise OptionError(None, "needs either 'expression' (one) or 'expressions' (several, by name)")
        return self


def columns_named(parameters: Parameters) -> Arguments:
    """`categories` of a spec are the `columns` of a class."""
    given = dict(parameters)
    return {"columns": given.pop("categories"), **given}


def _arguments(parameters: Parameters) -> Arguments:
    # As for a histogram: most events have one label.
    return {"max_per_event": 1, **columns_named(parameters)}


def _with_expressions(parameters: Parameters) -> Arguments:
    arguments, labels = _arguments(parameters), named(parameters)
    one, several = arguments.pop("expression", None), arguments.pop("expressions", None)
    query: Any = expression(one, labels) if several is None else {n: expression(f, labels) for n, f in several.items()}
    return arguments | {"query": query}


def _names(parameters: Parameters) -> list[str] | None:
    return list(parameters["expressions"]) if "expressions" in parameters else None


_question = partial(
    Kind,
    options=ColumnQuery,
    reads=LABELS,
    result=Result(),
    proofs=COLUMN_SUMS,
    change_proof=CHANGE_OF_COLUMNS,
    arguments=_arguments,
    rate_with=None,
)
# Names are chosen anew by another theorem than numbers are.
_CHOSEN_ANEW = {"recompute": Proof("price-of-continual-release 3.7", "additions 7")}
_of_names = partial(_question, proofs=COLUMN_SUMS | _CHOSEN_ANEW)

KINDS = (
    _question(statistic=MaxSum, also=("max",), card=Card("figure", "The largest count of any {column}")),
    _question(statistic=MinSum, also=("min",), card=Card("figure", "The smallest count of any {column}")),
    _question(
        statistic=SumQuantile,
        also=("quantile",),
        options=QuantileQuery,
        card=Card(
            "figure",
            "The {q} quantile of the counts by {column}",
            together="Quantiles of the counts by {column}",
            order_by="q",
        ),
    ),
    _question(
        statistic=TopK,
        also=("top",),
        options=RankedQuery,
        result=Result(categories=ranks),
        card=Card("ranking", "The {k} largest counts by {column}, without their names", places=True),
    ),
    _of_names(
        statistic=SumSelect,
        also=("leader",),
        result=Result("label"),
        card=Card("ranking", "The {column} with the largest count"),
    ),
    _of_names(
        statistic=TopKSelect,
        also=("leaders",),
        options=RankedQuery,
        result=Result("label", categories=ranks),
        card=Card("ranking", "The {k} names of {column} with the largest counts"),
    ),
    _question(
        statistic=MonotoneQuery,
        also=("query",),
        options=ExpressionQuery,
        result=Result(categories=_names),
        card=Card("figure", "Computed from the counts by {column}"),
        arguments=_with_expressions,
    ),
)
