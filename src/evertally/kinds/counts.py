"""Running counts: of events, of an amount, by declared category."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from evertally import Counter, Histogram
from evertally.kinds.fields import Flag, OptionError, Whole
from evertally.kinds.kind import Card, Kind, Result, declared
from evertally.kinds.proofs import CHANGE_OF_COLUMNS, COUNTS
from evertally.kinds.query_table import Labelled, TunedIfSparse
from evertally.kinds.reads import AMOUNTS, LABELS


class CounterQuery(TunedIfSparse):
    max_weight: Whole | None = None

    @model_validator(mode="after")
    def _amounts_need_a_column(self) -> Self:
        if self.max_weight is not None and self.column is None:
            raise OptionError("max_weight", "max_weight needs a column to add up; without one events are counted")
        return self


class HistogramQuery(Labelled, TunedIfSparse):
    signed: Flag = False

    @model_validator(mode="after")
    def _sparse_counts_only_grow(self) -> Self:
        if self.mechanism == "sparse" and self.signed:
            raise OptionError("signed", "sparse mechanisms need counts that only grow: leave out signed")
        return self


KINDS = (
    Kind(
        statistic=Counter,
        options=CounterQuery,
        reads=AMOUNTS,
        result=Result(),
        card=Card("figure", "Sum of {column} so far", events="Events so far"),
        proofs=COUNTS,
        change_proof="factorization-counting 2.4",
        rate_with=("sparse",),
        needs_rate=False,
    ),
    Kind(
        statistic=Histogram,
        options=HistogramQuery,
        reads=LABELS,
        result=Result(categories=declared),
        card=Card("bars", "Events so far, by {column}"),
        proofs=COUNTS,
        change_proof=CHANGE_OF_COLUMNS,
        rate_with=("sparse",),
        needs_rate=False,
    ),
)
