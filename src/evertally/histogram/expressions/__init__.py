"""Queries on column sums that prove their own sensitivity (parameterized-histograms 1.5 and 7.1).

The partition mechanisms are private for a query g only if g is *unit-scale*: |g(v) - g(w)| <= 1 for all integer vectors
v, w with |v_i - w_i| <= 1 in every column i. No test shows that; a construction does. An expression is built from
columns by steps that are known to keep a bound on the sensitivity, so it carries a certificate instead of a promise:

    column 1; constant 0; sum of w_i g_i: sum of |w_i| S_i; order statistics and means of ranks: max of S_i;
    floor, ceiling, rounding half up, h-index: the bound rounded up to an integer.

Means of ranks: sorting does not increase the largest difference between two vectors, and a mean is a weighted sum.
Rounding: floor(a) - floor(b) < a - b + 1 is an integer. Rounding halves to *even* is missing on purpose: it takes
1/2 to 0 and 3/2 to 2.

Evaluation is exact, in integers and fractions: a double that is off in its last place breaks the inequality, and can
double the privacy loss of a partition. A mechanism uses `ceiling`, an integer that moves by at most 1 again.

The bounds hold for all integer vectors, negative ones included: a certificate does not rest on a projection to counts.
"""

from evertally.histogram.expressions.building import (
    Columns,
    Values,
    ceil,
    clamp,
    floor,
    h_index,
    maximum,
    mean,
    minimum,
    order_statistic,
    quantile,
    round_half_up,
    top_mean,
    total,
    trimmed_mean,
)
from evertally.histogram.expressions.certificates import Certificate, Width
from evertally.histogram.expressions.exact_numbers import exact_number
from evertally.histogram.expressions.expression import Column, Combination, Expression
from evertally.histogram.expressions.ranks import (
    HIndex,
    Maximum,
    Mean,
    Minimum,
    OrderStatistic,
    Quantile,
    RankMean,
    TopMean,
    TrimmedMean,
)
from evertally.histogram.expressions.reading import from_json, trace
from evertally.histogram.expressions.rounding import Rounded

__all__ = [
    "Certificate",
    "Column",
    "Columns",
    "Combination",
    "Expression",
    "HIndex",
    "Maximum",
    "Mean",
    "Minimum",
    "OrderStatistic",
    "Quantile",
    "RankMean",
    "Rounded",
    "TopMean",
    "TrimmedMean",
    "Values",
    "Width",
    "ceil",
    "clamp",
    "exact_number",
    "floor",
    "from_json",
    "h_index",
    "maximum",
    "mean",
    "minimum",
    "order_statistic",
    "quantile",
    "round_half_up",
    "top_mean",
    "total",
    "trace",
    "trimmed_mean",
]
