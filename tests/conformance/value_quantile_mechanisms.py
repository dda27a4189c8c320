"""Quantiles and histograms of values."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject, numbers
from evertally.privacy import ZCDP, Guarantee, PureDP
from evertally.statistics import Histogram
from evertally.values.histograms import ValueHistogram
from evertally.values.quantiles import ValueQuantile

_EDGES = [0, 1, 2, 4, 7, 8, 11]
_SHARES = (0.25, 0.5, 0.9)


def _values(ticks: int) -> list[list[float]]:
    return [[float((3 * t + i * i) % 13) for i in range(40)] for t in range(ticks)]


def _ranks(value: Any, seen: list[float]) -> NDArray[np.float64]:
    """By how many values each released quantile misses its share: too few up to it, or too many below its cell."""
    cells = np.clip(np.searchsorted(_EDGES, seen, side="left"), 1, len(_EDGES) - 1)
    missed = []
    for q, edge in zip(_SHARES, numbers(value), strict=True):
        answer, target = _EDGES.index(int(edge)), q * len(seen)
        missed.append(max(0.0, target - float(np.sum(cells <= answer)), float(np.sum(cells < answer)) - target))
    return np.array(missed)


def _quantiles(name: str, guarantee: Guarantee, horizon: int | None, every: int | None = None, **more: Any) -> Subject:
    def truth(inputs: list[list[float]]) -> list[list[float]]:
        block = every or len(inputs)
        return [list(chain.from_iterable(inputs[t - t % block : t + 1])) for t in range(len(inputs))]

    return Subject(
        name=f"ValueQuantile({name})",
        make=lambda key: ValueQuantile(
            edges=_EDGES, q=_SHARES, every=every, guarantee=guarantee, horizon=horizon, key=key, **more
        ),
        feed=_values,
        truth=truth,
        garbage=GARBAGE,
        wrong_calls=[7, None],
        ticks=12,
        independent_numbers=False,
        error=_ranks,
        bound=lambda mechanism, beta, t: 2 * float(mechanism.error_bound(beta=beta, tick=t)),  # (1 + q) alpha
        runs=40,
    )


def _bins(inputs: list[list[float]]) -> list[dict[str, int]]:
    rows = [np.histogram(np.clip(np.array(values), 1e-9, 11) * -1, bins=[-11, -7, -2, 0])[0][::-1] for values in inputs]
    labels = ("0 to 2", "2 to 7", "7 to 11")
    return [dict(zip(labels, sums.tolist(), strict=True)) for sums in accumulate(rows)]


VALUE_QUANTILE_MECHANISMS: tuple[Subject, ...] = (
    _quantiles("zCDP", ZCDP(0.5), 12),
    _quantiles("pure, replace", PureDP(1.0), 12, neighbours="replace", max_window=3),
    _quantiles("anew every 5 ticks", ZCDP(0.5), None, every=5),
    Subject(
        name="ValueHistogram",
        make=lambda key: ValueHistogram(edges=[0, 2, 7, 11], guarantee=ZCDP(0.5), horizon=12, key=key),
        feed=_values,
        truth=_bins,
        garbage=GARBAGE,
        wrong_calls=[7, None],
        ticks=12,
        runs=334,
    ),
    Subject(
        name="Histogram with edges",
        make=lambda key: Histogram(edges=[0, 2, 7, 11], guarantee=PureDP(1.0), horizon=12, max_window=3, key=key),
        feed=_values,
        truth=_bins,
        garbage=GARBAGE,
        wrong_calls=[7, None],
        ticks=12,
        runs=334,
    ),
)
