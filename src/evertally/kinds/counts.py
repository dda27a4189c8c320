"""Running counts: of events, of an amount, by declared category."""

from __future__ import annotations

from typing import Any, Self

from pydantic import model_validator

from evertally import Counter, Histogram
from evertally.kinds.fields import Flag, OptionError, Whole
from evertally.kinds.kind import Card, Kind, Result, declared
from evertally.kinds.proofs import BY_AGE, CHANGE_OF_COLUMNS, COUNTS, REPLACED_AND_APART, WORKLOADS
from evertally.kinds.query_table import APART_IN_TICKS, Apart, Labelled, TunedIfSparse, Weighed
from evertally.kinds.reads import AMOUNTS, LABELS

_ONLY_SOME = {**TunedIfSparse.goes_with, **Weighed.goes_with, **Apart.goes_with}


class CounterQuery(TunedIfSparse, Weighed, Apart):
    goes_with = _ONLY_SOME

    max_weight: Whole | None = None

    @model_validator(mode="after")
    def _amounts_need_a_column(self) -> Self:
        if self.max_weight is not None and self.column is None:
            raise OptionError("max_weight", "max_weight needs a column to add up; without one events are counted")
        return self


class HistogramQuery(Labelled, TunedIfSparse, Weighed, Apart):
    goes_with = _ONLY_SOME

    signed: Flag = False

    @model_validator(mode="after")
    def _sparse_counts_only_grow(self) -> Self:
        if self.mechanism == "sparse" and self.signed:
            raise OptionError("signed", "sparse mechanisms need counts that only grow: leave out signed")
        return self


def _of_workload(mechanism: Any) -> str:
    return "" if mechanism.workload is None else WORKLOADS


KINDS = (
    Kind(
        statistic=Counter,
        options=CounterQuery,
        reads=AMOUNTS,
        result=Result(),
        card=Card("figure", "Sum of {column} so far", events="Events so far", weighed="Sum of {column}"),
        proofs=COUNTS | BY_AGE,
        built_on=_of_workload,
        change_proof="factorization-counting 2.4",
        user_proof=REPLACED_AND_APART,
        in_ticks=APART_IN_TICKS,
        rate_with=("sparse",),
        needs_rate=False,
    ),
    Kind(
        statistic=Histogram,
        options=HistogramQuery,
        reads=LABELS,
        result=Result(categories=declared),
        card=Card("bars", "Events so far, by {column}", weighed="Events by {column}"),
        proofs=COUNTS | BY_AGE,
        built_on=_of_workload,
        change_proof=CHANGE_OF_COLUMNS,
        user_proof=REPLACED_AND_APART,
        in_ticks=APART_IN_TICKS,
        rate_with=("sparse",),
        needs_rate=False,
    ),
)
