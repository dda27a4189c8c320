"""What a [[query]] may say: one model for each kind."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from evertally.runtime.spec.values import (
    Expression,
    Expressions,
    Flag,
    Label,
    Labels,
    Name,
    Natural,
    Number,
    OptionError,
    Probability,
    Quantile,
    Section,
    Share,
    Split,
    Text,
    Whole,
)

Kind = Literal[
    "counter",
    "histogram",
    "mean",
    "max",
    "min",
    "quantile",
    "top",
    "leader",
    "leaders",
    "query",
    "streaming-top",
    "unknown-histogram",
    "unknown-top",
]


class Query(Section):
    """The options of every kind."""

    name: Name
    kind: Kind
    share: Share | None = None
    column: Text | None = None
    mechanism: Text | None = None


class Tuned(Query):
    """Guesses and splits for mechanisms whose error follows the answer: accuracy only, never privacy."""

    largest: Whole | None = None
    beta: Probability | None = None
    split: Split | None = None


class Linear(Tuned):
    @model_validator(mode="after")
    def _tuned_only_if_sparse(self) -> Self:
        for option in self.given():
            if option in ("largest", "beta", "split") and self.mechanism != "sparse":
                raise OptionError(option, f'{option} of a {self.kind} goes with mechanism = "sparse"')
        return self


class CounterQuery(Linear):
    max_weight: Whole | None = None

    @model_validator(mode="after")
    def _amounts_need_a_column(self) -> Self:
        if self.max_weight is not None and self.column is None:
            raise OptionError("max_weight", "max_weight needs a column to add up; without one events are counted")
        return self


class Columns(Query):
    """One column of the input becomes counts of declared labels."""

    column: Text
    categories: Labels
    other: Label | None = None
    max_per_event: Whole | None = None
    max_weight: Whole | None = None


class HistogramQuery(Columns, Linear):
    signed: Flag = False

    @model_validator(mode="after")
    def _sparse_counts_only_grow(self) -> Self:
        if self.mechanism == "sparse" and self.signed:
            raise OptionError("signed", "sparse mechanisms need counts that only grow: leave out signed")
        return self


class MeanQuery(Query):
    column: Text
    lower: Number
    upper: Number
    resolution: Number | None = None


class ColumnQuery(Columns, Tuned):
    """One number, or one label, about all counts."""


class QuantileQuery(ColumnQuery):
    q: Quantile


class TopQuery(ColumnQuery):
    k: Whole


class ExpressionQuery(ColumnQuery):
    expression: Expression | None = None
    expressions: Expressions | None = None

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        if (self.expression is None) == (self.expressions is None):
            raise OptionError(None, "needs either 'expression' (one) or 'expressions' (several, by name)")
        return self


class Selection(Query):
    @model_validator(mode="after")
    def _options_of_the_mechanism(self) -> Self:
        meta = self.mechanism == "meta"
        for option in self.given():
            if _WITH_META.get(option, meta) != meta:
                other = 'another mechanism than "meta"' if meta else 'mechanism = "meta"'
                raise OptionError(option, f"{option} of {a(self.kind)} goes with {other}")
        return self


class StreamingTopQuery(Columns, Selection):
    k: Whole
    switches: Natural | None = None
    eta: Natural | None = None
    accounting: Literal["adaptive", "paper", "standard", "monotone"] | None = None
    reuse: Flag | None = None


class UnknownHistogramQuery(Selection):
    column: Text
    max_per_event: Whole | None = None
    max_weight: Whole | None = None
    threshold: Literal["sum", "per_tick", "paper"] | None = None
    sticky: Flag | None = None
    kbar: Whole | None = None


class UnknownTopQuery(UnknownHistogramQuery):
    k: Whole


KINDS: dict[str, type[Query]] = {
    "counter": CounterQuery,
    "histogram": HistogramQuery,
    "mean": MeanQuery,
    "max": ColumnQuery,
    "min": ColumnQuery,
    "quantile": QuantileQuery,
    "top": TopQuery,
    "leader": ColumnQuery,
    "leaders": TopQuery,
    "query": ExpressionQuery,
    "streaming-top": StreamingTopQuery,
    "unknown-histogram": UnknownHistogramQuery,
    "unknown-top": UnknownTopQuery,
}
LINEAR = ("counter", "histogram", "mean")
UNKNOWN = ("unknown-histogram", "unknown-top")  # of labels that nobody declared
SELECTION = (*UNKNOWN, "streaming-top")  # labels and counts; the kinds that are left are queries on column sums
# Options that go with one mechanism of their kind: with "meta" (True), or with any other (False).
_WITH_META = {
    **dict.fromkeys(("threshold", "sticky", "switches", "eta", "accounting", "reuse"), False),
    "kbar": True,
}


def a(kind: str) -> str:
    """A kind with its article."""
    return f"{'an' if kind.startswith('u') else 'a'} {kind}"


def rests_on_rate(kind: str, mechanism: str | None) -> bool:
    """Whether an error bound, or the choice of a mechanism, rests on the declared `max_events_per_tick`."""
    if kind in LINEAR:
        return mechanism == "sparse"
    return kind not in SELECTION or mechanism == "meta"
