"""Figure 4: the frequency of the most frequent of 20 items, from a released histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from benchmarks.constant_matters.counting import FloatArray, Process

import evertally as et

ITEMS, HORIZON, EPSILON = 20, 2048, 0.1
EXPONENTS = (1.0, 1.5, 2.0)  # the paper does not say which


@dataclass(frozen=True)
class Top:
    """One process, one exponent, one noise multiplier: signal over noise, two ways, with standard errors.

    `maximum`: the mean over ticks of the largest true count over the root mean square of (largest released - largest
    true), upward bias included. `same_item`: the same with the released count of the item that truly leads.
    """

    process: Process
    exponent: float
    noise: str
    runs: int
    maximum: tuple[float, float]
    same_item: tuple[float, float]
    true: FloatArray = field(repr=False)  # the first run, for the figure
    released: FloatArray = field(repr=False)


def play(process: Process, exponent: float, noise: str, multiplier: float, horizon: int, runs: int, seed: int) -> Top:
    """Plays the histogram on fresh Zipf streams, one item a tick, add or remove one tick's item."""
    chances = 1 / np.arange(1, ITEMS + 1) ** exponent
    chances /= chances.sum()
    largest, off, same = (np.empty((runs, horizon)) for _ in range(3))
    for i in range(runs):
        rng = np.random.default_rng(seed + i)
        rows = np.zeros((horizon, ITEMS), dtype=np.int64)
        rows[np.arange(horizon), rng.permutation(ITEMS)[rng.choice(ITEMS, horizon, p=chances)]] = 1
        histogram = et.Histogram(
            categories=[f"item {j}" for j in range(ITEMS)],
            guarantee=et.ZCDP(1 / (2 * multiplier**2)),
            horizon=horizon,
            mechanism=process.mechanism,
            key=et.simulation(seed + i),
            **dict(process.options),
        )
        counts, released = np.cumsum(rows, axis=0), histogram.run(rows)
        leader = counts.argmax(axis=1)[:, np.newaxis]
        largest[i] = counts.max(axis=1)
        off[i] = released.max(axis=1) - largest[i]
        same[i] = np.take_along_axis(released, leader, axis=1)[:, 0] - largest[i]
        if i == 0:
            shown = largest[0].copy(), largest[0] + off[0]
    return Top(process, exponent, noise, runs, _snr(largest, off), _snr(largest, same), *shown)


def _snr(signal: FloatArray, error: FloatArray) -> tuple[float, float]:
    """mean_t(mean signal_t / rms error_t) over runs, and its standard error by leaving out one run at a time."""
    n = len(signal)
    squares = error**2

    def value(total: FloatArray, squared: FloatArray, count: int) -> float:
        return float(np.mean(total / count / np.sqrt(squared / count)))

    sums, squared_sums = signal.sum(axis=0), squares.sum(axis=0)
    without = np.array([value(sums - signal[i], squared_sums - squares[i], n - 1) for i in range(n)])
    return value(sums, squared_sums, n), math.sqrt((n - 1) / n * float(np.sum((without - without.mean()) ** 2)))
