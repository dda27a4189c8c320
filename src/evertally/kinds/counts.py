"""Running counts: of events, of an amount, by declared category; sums of an amount by category."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from evertally import Counter, Histogram
from evertally.kinds.amounts import AMOUNTS_BY_LABEL, check_amounts, proof_of_steps, proof_of_workload, without_weight
from evertally.kinds.fields import Edges, Flag, Label, Labels, Number, OptionError, Outside, Text, Whole
from evertally.kinds.kind import Card, Kind, Result, bins, declared
from evertally.kinds.proofs import APART, BY_AGE, CHANGE_OF_COLUMNS, COUNTS, REPLACED_AND_APART
from evertally.kinds.query_table import APART_IN_TICKS, Apart, TunedIfSparse, Weighed
from evertally.kinds.reads import AMOUNTS, LABELS, NAMES, Parameters, Reads

_ONLY_SOME = {**TunedIfSparse.goes_with, **Weighed.goes_with, **Apart.goes_with}


class CounterQuery(TunedIfSparse, Weighed, Apart):
    goes_with = _ONLY_SOME

    max_weight: Whole | None = None

    @model_validator(mode="after")
    def _amounts_need_a_column(self) -> Self:
        if self.max_weight is not None and self.column is None:
            raise OptionError("max_weight", "max_weight needs a column to add up; without one events are counted")
        return self


class HistogramQuery(TunedIfSparse, Weighed, Apart):
    """Counts by declared label, or by bin between declared numbers; or, by label, sums of a second column."""

    goes_with = _ONLY_SOME

    column: Text
    categories: Labels | None = None
    other: Label | None = None
    max_per_event: Whole | None = None
    max_weight: Number | None = None
    signed: Flag = False
    weight: Text | None = None
    resolution: Number | None = None
    edges: Edges | None = None
    outside: Outside | None = None

    @model_validator(mode="after")
    def _categories_or_edges(self) -> Self:
        if self.categories is None and self.edges is None:
            raise OptionError(None, "needs 'categories' (labels), or 'edges' (numbers that bound the bins of values)")
        if self.categories is not None and self.edges is not None:
            raise OptionError("edges", "has categories or edges, not both")
        if self.outside is not None and self.edges is None:
            raise OptionError("outside", "outside goes with edges: it says where values beyond them are counted")
        for option in ("other", "max_per_event", "max_weight", "signed", "weight", "resolution"):
            if option in self.model_fields_set and self.edges is not None:
                raise OptionError(option, f"{option} goes with categories: a value lies in one bin, and counts once")
        return self

    @model_validator(mode="after")
    def _amounts_are_declared(self) -> Self:
        check_amounts(self)
        return self

    @model_validator(mode="after")
    def _sparse_counts_only_grow(self) -> Self:
        if self.mechanism == "sparse" and self.signed:
            raise OptionError("signed", "sparse mechanisms need counts that only grow: leave out signed")
        return self


def _labels_or_bins(parameters: Parameters) -> list[str]:
    return bins(parameters) if "edges" in parameters else declared(parameters)


def _reads(parameters: Parameters) -> Reads:
    if "edges" in parameters:
        return AMOUNTS
    return NAMES if "weight" in parameters else LABELS


def _result(parameters: Parameters) -> Result:
    return _SUMS if "weight" in parameters else _COUNTS


def _fractions(column: str | None, declared_type: str | None) -> str:
    if column is None or declared_type == "integer":
        return ""
    return (
        f'a counter counts: fractions of {column!r} are cut towards zero. If it has any, take kind = "sum" with a '
        'resolution, such as 0.01; if not, say so in [events], "integer"'
    )


_COUNTS, _SUMS = Result(categories=_labels_or_bins), Result(value="real", categories=_labels_or_bins)

KINDS = (
    Kind(
        statistic=Counter,
        options=CounterQuery,
        reads=AMOUNTS,
        result=Result(),
        card=Card(
            "figure",
            "Sum of {column} so far",
            events="Events so far",
            weighed="Sum of {column}",
            made="Each {noun} adds its {column}, and nothing else.",
            made_of_events="Each {noun} adds 1, and nothing else.",
        ),
        proofs=COUNTS | BY_AGE | APART,
        built_on=proof_of_workload,
        advice=_fractions,
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
        reads_as=_reads,
        records=AMOUNTS_BY_LABEL,
        result=_COUNTS,
        gives_as=_result,
        card=Card(
            "bars",
            "Events so far, by {column}",
            weighed="Events by {column}",
            summed="Sum of {weight} by {column}",
            made="Each {noun} adds 1 to its {column}, and nothing else.",
            made_of_sums="Each {noun} adds its {weight} to its {column}, and nothing else.",
        ),
        proofs=COUNTS | BY_AGE | APART,
        arguments=without_weight,
        built_on=proof_of_steps,
        change_proof=CHANGE_OF_COLUMNS,
        user_proof=REPLACED_AND_APART,
        in_ticks=APART_IN_TICKS,
        rate_with=("sparse",),
        needs_rate=False,
    ),
)
