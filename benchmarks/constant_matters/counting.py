"""Counters on Bernoulli streams, played many times: what their releases are off by, and signal over noise.

Errors are kept in noise multipliers, standard deviations per 1/sqrt(2 rho): that is what processes differ in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from benchmarks.constant_matters.published import DELTA
from benchmarks.formulas import Formula, HonakerFormula, SqrtFormula, TreeFormula
from numpy.typing import NDArray

import evertally as et

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Process:
    """A noise process of the product; `formula` gives its error, and without one the product's own statement does."""

    mechanism: str
    name: str
    formula: Callable[[int], Formula] | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def counter(self, guarantee: et.ZCDP, horizon: int, seed: int) -> et.Counter:
        key = et.simulation(seed)
        return et.Counter(guarantee=guarantee, horizon=horizon, mechanism=self.mechanism, key=key, **dict(self.options))

    @cache  # noqa: B019  # a few processes, one horizon
    def expected(self, horizon: int) -> FloatArray:
        """The standard deviation at each tick, in noise multipliers."""
        if self.formula is not None:
            formula = self.formula(horizon)
            return np.sqrt([formula.variance(t) for t in range(1, horizon + 1)])
        large = 1000  # so that rounding to integers does not blur the factor
        counter = self.counter(et.ZCDP(1 / (2 * large**2)), horizon, 0)
        return np.array([counter.stddev(t) / large for t in range(1, horizon + 1)])


# Whatever is added here gets every row and a line in every figure. The first is what the others are compared with.
PROCESSES = (
    Process("sqrt", "square root", SqrtFormula),
    Process("tree", "binary tree", lambda T: TreeFormula(T, 2), (("radix", 2),)),
    Process("bank", "bank"),
)
FURTHER = {"honaker": Process("honaker", "Honaker tree", HonakerFormula)}

# What signal over noise may mean: the paper does not say. With the power of the noise multiplier that each goes by.
DEFINITIONS = {
    "a: mean over ticks of p t / std_t": 1,
    "b: mean count / root mean square error": 1,
    "c: mean count / mean absolute error": 1,
    "d: count / std at the last tick": 1,
    "e: mean count / mean largest error of a run": 1,
    "f: mean over ticks and runs of count / max(1, absolute error)": 1,
    "g: mean squared count / mean squared error": 2,
}
USUAL = next(iter(DEFINITIONS))


def promise(epsilon: float) -> et.ZCDP:
    """The zCDP that keeps (epsilon, 1e-10), as the product converts it.

    Asked for (epsilon, delta) itself, the tree would take Laplace noise, which is pure and here a little better than
    Gaussian noise; the paper compares Gaussian noise with Gaussian noise.
    """
    return et.ApproxDP(epsilon, DELTA).to_zcdp()


@dataclass(frozen=True)
class Runs:
    """Runs of one process on streams of one density. Errors in noise multipliers; a row or an entry is one run."""

    process: Process
    epsilon: float
    density: float
    multiplier: float
    variance: FloatArray  # by tick
    rms: FloatArray
    absolute: FloatArray
    largest: FloatArray
    weighted: FloatArray  # mean over ticks of (t/std_t) (error/std_t)^2, for the standard error of definition a
    counts: FloatArray  # mean over ticks
    squared_counts: FloatArray
    last_count: FloatArray
    quotients: FloatArray  # definition f
    stream: NDArray[np.int64] = field(repr=False)  # true counts and releases of the first run, for figures
    released: NDArray[np.int64] = field(repr=False)

    @property
    def horizon(self) -> int:
        return len(self.variance)

    @property
    def runs(self) -> int:
        return len(self.largest)

    def snr(self) -> dict[str, float]:
        """Signal over noise by every definition, at the noise of the product."""
        t = np.arange(1, self.horizon + 1)
        std, unit = np.sqrt(self.variance), self.multiplier
        values = (
            float(np.mean(self.density * t / std)) / unit,
            self.counts.mean() / math.sqrt(np.mean(self.rms**2)) / unit,
            self.counts.mean() / self.absolute.mean() / unit,
            self.last_count.mean() / std[-1] / unit,
            self.counts.mean() / self.largest.mean() / unit,
            self.quotients.mean(),
            self.squared_counts.mean() / np.mean(self.rms**2) / unit**2,
        )
        return {name: float(value) for name, value in zip(DEFINITIONS, values, strict=True)}

    def snr_error(self) -> float:
        """Standard error of definition a: std_t is estimated, and 1/std_t moves by half of what variance_t does."""
        return float(self.density * self.weighted.std(ddof=1) / (2 * math.sqrt(self.runs) * self.multiplier))


def play(process: Process, epsilon: float, density: float, horizon: int, runs: int, seed: int) -> Runs:
    """Plays the counter `runs` times, each on a stream and under a key of its own."""
    guarantee = promise(epsilon)
    unit = 1 / math.sqrt(2 * guarantee.exact_rho)
    expected = process.expected(horizon)
    weights = np.arange(1, horizon + 1) / expected**3 / horizon
    squares = np.zeros(horizon)
    rows: list[tuple[float, ...]] = []
    first: tuple[Any, Any] = (None, None)
    for run in range(seed, seed + runs):
        stream = (np.random.default_rng(run).random(horizon) < density).astype(np.int64)
        count = np.cumsum(stream)
        released = process.counter(guarantee, horizon, run).run(stream)
        first = (count, released) if run == seed else first
        off = np.abs(released - count)
        error = off / unit
        squared = error**2
        squares += squared
        rows.append(
            (
                math.sqrt(squared.mean()),
                error.mean(),
                error.max(),
                float(weights @ squared),
                count.mean(),
                np.mean(count.astype(np.float64) ** 2),
                float(count[-1]),
                np.mean(count / np.maximum(off, 1)),
            )
        )
    columns = np.array(rows).T
    return Runs(process, epsilon, density, unit, squares / runs, *columns, stream=first[0], released=first[1])


@dataclass(frozen=True)
class Pooled:
    """Errors of one process over all its runs: noise is the same whatever the stream and the budget."""

    process: Process
    expected: FloatArray
    std: FloatArray
    runs: int
    rms: FloatArray
    largest: FloatArray

    def std_error(self, t: int) -> float:
        """Of the measured standard deviation at tick t: errors are nearly normal."""
        return float(self.std[t - 1] / math.sqrt(2 * self.runs))


def pool(played: list[Runs]) -> Pooled:
    """All runs of one process together."""
    process, horizon = played[0].process, played[0].horizon
    assert all(runs.process is process for runs in played)
    total = sum(runs.runs for runs in played)
    variance = sum(runs.variance * runs.runs for runs in played) / total
    rms = np.concatenate([runs.rms for runs in played])
    largest = np.concatenate([runs.largest for runs in played])
    return Pooled(process, process.expected(horizon), np.sqrt(variance), total, rms, largest)
