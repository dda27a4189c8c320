"""Quantiles and histograms of a column of numbers."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from evertally.errors import ConfigurationError
from evertally.kinds.fields import OptionError, Text, Ticks, Whole, says
from evertally.kinds.kind import Card, Kind, Lasting, Result
from evertally.kinds.proofs import NOISE_PROCESSES, REPLACED_AND_APART
from evertally.kinds.query_table import APART_IN_TICKS, Apart, Query
from evertally.kinds.reads import AMOUNTS, Parameters
from evertally.values.cells import Cells, read_edges
from evertally.values.histograms import ValueHistogram
from evertally.values.quantile_form import shown_share
from evertally.values.quantiles import SHARES, ValueQuantile

_EDGES = "must be a list of increasing numbers, or a table such as {from = 0.1, to = 1000, ratio = 1.05}"
_PROOF = "users-and-domains 4, factorization-counting 2.4"


def _edges(value: Any) -> Any:
    try:
        read_edges(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return value


Edges = Annotated[list[int | float] | dict[str, int | float], AfterValidator(_edges), says(_EDGES)]
SomeShare = Annotated[int | float, Field(gt=0, le=1), says("must be a share of the values, above 0 and at most 1")]
Shares = Annotated[list[SomeShare], Field(min_length=1), says("must be a list of shares such as [0.5, 0.95]")]
Outside = Literal["ends", "cells"]


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


def _bins(parameters: Parameters) -> list[str]:
    return Cells(read_edges(parameters["edges"]), parameters.get("outside") or "ends").labels()


KINDS = (
    Kind(
        statistic=ValueQuantile,
        also=("value-quantile",),
        options=ValueQuantileQuery,
        reads=AMOUNTS,
        result=Result(value="real", categories=_shares),
        card=Card("figure", "Percentiles of {column} so far", names=_percentiles, logarithmic=_by_factors),
        proofs=NOISE_PROCESSES,
        change_proof=_PROOF,
        user_proof=REPLACED_AND_APART,
        in_ticks=(*APART_IN_TICKS, "every"),
        error_later="The error of a quantile depends on how many values lie near it; each release has its interval.",
    ),
    Kind(
        statistic=ValueHistogram,
        also=("value-histogram",),
        options=ValueHistogramQuery,
        reads=AMOUNTS,
        result=Result(categories=_bins),
        card=Card("bars", "Events so far, by {column}"),
        proofs=NOISE_PROCESSES,
        change_proof="factorization-counting 6.3, users-and-domains 4",
        user_proof="users-and-domains 1.2",
    ),
)
