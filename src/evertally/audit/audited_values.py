"""Sums and variances of values in configurations of realistic size, to be audited: a part of the list."""

from __future__ import annotations

from typing import Any

from evertally.audit.entries import Audited, made
from evertally.privacy import ZCDP, PureDP
from evertally.statistics import Histogram
from evertally.values.epochs import AdaptiveSum
from evertally.values.sums import RunningSum
from evertally.values.variance import RunningVariance

PURE, CONCENTRATED = PureDP(1.0), ZCDP(0.5)

_SUMS, _BOUNDED = "users-and-domains 3", "factorization-counting 2.4, additions 12"
_COLUMNS = "factorization-counting 6.3, additions 12"
_TWO_USERS = "charged for a Gram matrix of any process, and old and new user show less of it at any two ticks"


_CENTS: dict[str, Any] = {"upper": 20, "resolution": 0.01}
_BY_LABEL: dict[str, Any] = {"categories": ["a", "b", "c"]}
_ALLOWED: dict[str, Any] = {"unit": "user", "max_total_per_user": 50}

VALUES: tuple[Audited, ...] = (
    made(RunningSum, CONCENTRATED, 100, _BOUNDED, **_CENTS),
    made(RunningSum, CONCENTRATED, 64, _BOUNDED, mechanism="tree", **_CENTS),
    made(RunningSum, CONCENTRATED, 100, _BOUNDED, every=10, **_CENTS),
    made(RunningSum, PURE, None, _BOUNDED, every=7, **_CENTS),
    made(RunningSum, PURE, 100, _BOUNDED, lower=-5, neighbours="replace", **_CENTS),
    made(RunningSum, CONCENTRATED, 365, _SUMS, **_CENTS, **_ALLOWED),
    made(RunningSum, PURE, 100, _SUMS, lower=-20, **_CENTS, **_ALLOWED),
    made(RunningSum, CONCENTRATED, 100, _SUMS, why=_TWO_USERS, neighbours="replace", **_CENTS, **_ALLOWED),
    made(Histogram, CONCENTRATED, 64, _COLUMNS, max_weight=20, resolution=0.01, **_BY_LABEL),
    made(Histogram, PURE, 64, _COLUMNS, max_weight=4.5, resolution=0.5, max_per_event=2, signed=True, **_BY_LABEL),
    made(RunningVariance, CONCENTRATED, 100, _SUMS, lower=0, upper=10),
    made(RunningVariance, PURE, 100, _SUMS, lower=0, upper=10),
    made(RunningVariance, CONCENTRATED, 100, _SUMS, lower=0, upper=10, neighbours="replace"),
    made(AdaptiveSum, CONCENTRATED, 100, "users-and-domains 1.7 and 3", upper=1000, pilot=10),
    made(AdaptiveSum, PURE, 64, "users-and-domains 1.7 and 3", upper=100, epochs=[16, 16], neighbours="replace"),
)
