"""Means of a bounded amount."""

from __future__ import annotations

from evertally import RunningMean
from evertally.kinds.fields import Number, Text
from evertally.kinds.kind import Card, Kind, Result
from evertally.kinds.known_before import by_values
from evertally.kinds.proofs import APART, NOISE_PROCESSES, REPLACED_AND_APART
from evertally.kinds.query_table import APART_IN_TICKS, Apart
from evertally.kinds.reads import AMOUNTS


class MeanQuery(Apart):
    column: Text
    lower: Number
    upper: Number
    resolution: Number | None = None


KINDS = (
    Kind(
        statistic=RunningMean,
        also=("mean",),
        options=MeanQuery,
        reads=AMOUNTS,
        result=Result(value="real"),
        card=Card(
            "figure",
            "Mean of {column} so far",
            made="Each {noun} adds its {column} to a sum, and 1 to a count; the mean is one divided by the other.",
        ),
        proofs=NOISE_PROCESSES | APART,
        change_proof="factorization-counting 6.2 and 2.4",
        user_proof=REPLACED_AND_APART,
        in_ticks=APART_IN_TICKS,
        error_later="The error of a mean depends on the number of events; each release has its interval.",
        known_before=by_values,
    ),
)
