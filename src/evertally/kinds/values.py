"""Sums and variances of bounded values."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evertally.kinds.fields import Number, Positive, Probability, Text, Ticks, says
from evertally.kinds.kind import Card, Kind, Result
from evertally.kinds.known_before import by_values
from evertally.kinds.proofs import NOISE_PROCESSES
from evertally.kinds.query_table import Query
from evertally.kinds.reads import AMOUNTS
from evertally.values.epochs import LABELS as TOTAL_AND_BOUND
from evertally.values.epochs import AdaptiveSum
from evertally.values.sums import RunningSum
from evertally.values.variance import LABELS as MOMENTS
from evertally.values.variance import RunningVariance

Rounding = Annotated[Literal["random", "nearest"], says('must be "random" or "nearest"')]
Lengths = Annotated[list[Ticks], Field(min_length=1), says('must be a list of lengths such as [30, 90] or ["7d"]')]


class SumQuery(Query):
    column: Text
    upper: Number
    lower: Number | None = None
    resolution: Number | None = None
    rounding: Rounding | None = None
    max_total_per_user: Positive | None = None
    every: Ticks | None = None


class VarianceQuery(Query):
    column: Text
    lower: Number
    upper: Number
    resolution: Number | None = None
    every: Ticks | None = None


class AdaptiveSumQuery(Query):
    column: Text
    upper: Number
    resolution: Number | None = None
    rounding: Rounding | None = None
    epochs: Lengths | None = None
    pilot: Ticks | None = None
    first_bound: Positive | None = None
    quantile: Probability | None = None
    sizes_share: Probability | None = None


KINDS = (
    Kind(
        statistic=RunningSum,
        also=("sum",),
        options=SumQuery,
        reads=AMOUNTS,
        result=Result(value="real"),
        card=Card("figure", "Sum of {column} so far", made="Each {noun} adds its {column}, and nothing else."),
        proofs=NOISE_PROCESSES,
        change_proof="factorization-counting 2.4, additions 12",
        user_proof="users-and-domains 1.2 and 3",
        in_ticks=("every",),
    ),
    Kind(
        statistic=RunningVariance,
        also=("variance",),
        options=VarianceQuery,
        reads=AMOUNTS,
        result=Result(value="real", categories=lambda parameters: [*MOMENTS]),
        card=Card(
            "figure",
            "Mean, variance and standard deviation of {column} so far",
            names=lambda parameters, lasting: ["mean", "variance", "standard deviation"],
            apart=True,
        ),
        proofs=NOISE_PROCESSES,
        change_proof="users-and-domains 3",
        user_proof="users-and-domains 1.2",
        in_ticks=("every",),
        error_later="The error of a variance depends on the number of events; each release has its interval.",
        known_before=by_values,
    ),
    Kind(
        statistic=AdaptiveSum,
        options=AdaptiveSumQuery,
        reads=AMOUNTS,
        result=Result(value="real", categories=lambda parameters: [*TOTAL_AND_BOUND]),
        card=Card(
            "figure",
            "Sum of {column} so far, and the bound that amounts are cut to now",
            names=lambda parameters, lasting: ["sum", "bound"],
            apart=True,
        ),
        proofs=NOISE_PROCESSES,
        change_proof="users-and-domains 1.7 and 3, additions 12",
        user_proof="users-and-domains 1.2",
        in_ticks=("epochs", "pilot"),
    ),
)
