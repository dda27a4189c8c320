"""Quantiles and histograms of a column of numbers."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from evertally.kinds.fields import Edges, OptionError, Outside, Text, Ticks, Whole, says
from evertally.kinds.kind import Card, Kind, Lasting, Result, bins
from evertally.kinds.known_before import in_ranks
from evertally.kinds.proofs import NOISE_PROCESSES, REPLACED_AND_APART
from evertally.kinds.query_table import APART_IN_TICKS, Apart, Query
from evertally.kinds.reads import AMOUNTS, Parameters
from evertally.values.histograms import ValueHistogram
from evertally.values.quantile_form import shown_share
from evertally.values.quantiles import SHARES, ValueQuantile

_PROOF = "users-and-domains 4, factorization-counting 2.4"

SomeShare = Annotated[int | float, Field(gt=0, le=1), says("must be a share of the values, above 0 and at most 1")]
Shares = Annotated[list[SomeShare], Field(min_length=1), says("must be a list of shares such as [0.5, 0.95]")]


class ValueHistogramQuery(Query):
    column: Text
    edges: Edges
    outside: Outside | None = None


class ValueQuantileQuery(Apart):
    column: Text
    edges: Edges | None = None
    bits: Whole | None = None
    fanout: Whole | None = None
    q: Shares | None = None
    outside: Outside | None = None
    every: Ticks | None = None

    @model_validator(mode="after")
    def _one_domain(self) -> Self:
        if (self.edges is None) == (self.bits is None):
            raise OptionError("bits" if self.bits else None, "needs 'edges', or 'bits' for whole numbers, and not both")
        return self


def _shares(parameters: Parameters) -> list[str]:
    return [shown_share(share) for share in parameters.get("q") or SHARES]


def _percentiles(parameters: Parameters, lasting: Lasting) -> list[str]:
    """p50 for 0.5, exactly: a share is what its shortest spelling says."""
    return [f"p{(100 * Decimal(share)).normalize():f}" for share in _shares(parameters)]


def _by_factors(parameters: Parameters) -> bool:
    """Whether edges were declared by a ratio, or are as good as: all of one ratio, to 1 %, but for a shorter last."""
    edges = parameters.get("edges")
    if edges is None or isinstance(edges, dict):
        return edges is not None
    if len(edges) < 4 or edges[0] <= 0:
        return False
    ratios = [b / a for a, b in pairwise(edges)]
    return all(abs(ratio / ratios[0] - 1) < 0.01 for ratio in ratios[:-1])


KINDS = (
    Kind(
        statistic=ValueQuantile,
        also=("value-quantile",),
        options=ValueQuantileQuery,
        reads=AMOUNTS,
        result=Result(value="real", categories=_shares),
        card=Card(
            "figure",
            "Percentiles of {column} so far",
            names=_percentiles,
            logarithmic=_by_factors,
            made="Each {noun} adds 1 to the range that its {column} is in; percentiles are read off these counts.",
        ),
        proofs=NOISE_PROCESSES,
        change_proof=_PROOF,
        user_proof=REPLACED_AND_APART,
        in_ticks=(*APART_IN_TICKS, "every"),
        error_later="The error of a percentile depends on how many values lie near it; each release has its interval.",
        known_before=in_ranks,
    ),
    Kind(
        statistic=ValueHistogram,
        also=("value-histogram",),
        options=ValueHistogramQuery,
        reads=AMOUNTS,
        result=Result(categories=bins),
        card=Card(
            "bars",
            "Events so far, by {column}",
            made="Each {noun} adds 1 to the range that its {column} is in, and nothing else.",
        ),
        proofs=NOISE_PROCESSES,
        change_proof="factorization-counting 6.3, users-and-domains 4",
        user_proof="users-and-domains 1.2",
    ),
)
