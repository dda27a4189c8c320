"""Noise for presence: what is there now, where nothing stays longer than W ticks (dynamic-data 13.2).

users-and-domains 1.4 [R, reviewed twice]. The input is the path itself, a_t = how many are there. y = R a + Z with
integer coefficients r (path_factor.py) and discrete Gaussians Z of variance D2^2 c(W)/(2 rho): rho-zCDP as a whole, for
adaptive streams, because one run of at most W ticks moves R a by at most sqrt(c(W)). What leaves is the integer nearest
to R^-1 y, half up: the exact number plus floor(e_t + 1/2),

    e_t = (Z_t - sum_{0<k<K} r_k e_{t-k}) / r_0,

a path that involves no data (recursion.py).

**It hides runs, and nothing else.** What is inserted and never deleted is a run without end, of unbounded cost. So this
process is in no list that a counter takes noise from; it is made from a `Runs`, by the code that ends every run.

Error: standard deviation sqrt(c(W) S/(2 rho)), S = sum l_k^2, the same at all ticks, with or without a horizon: factor
1.90 for W = 7, 3.33 for W = 168. Time and memory O(K d) for a tick, K <= 681.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evertally.counting.path_factor import best_factor
from evertally.counting.recursion import RecursiveProcess
from evertally.noise import DiscreteGaussian, Source, round_up
from evertally.privacy import ZCDP


@dataclass(frozen=True)
class Runs:
    """How far one step of the neighbouring relation moves paths of presence: like `squared` runs, none of which is
    longer than `longest` ticks. Who makes one says that a door ends every run in time."""

    squared: int
    longest: int


class PathProcess(RecursiveProcess):
    """Noise of the path process.

    >>> from evertally.noise import simulation
    >>> noise = PathProcess(ZCDP(0.5), Runs(1, 7), horizon=None, columns=1, source=simulation(0).source("demo"))
    >>> round(noise.worst().stddev, 2), noise.advance(3).shape
    (1.92, (3, 1))
    """

    def __init__(
        self, charge: ZCDP, runs: Runs, *, horizon: int | None, columns: int, source: Source, lane: str = "path"
    ) -> None:
        assert type(runs) is Runs, "a Change says nothing about runs"
        factor = self.factor = best_factor(runs.longest)
        law = DiscreteGaussian(round_up(runs.squared * factor.cost(runs.longest) / (2 * charge.exact_rho)))
        super().__init__(factor.r, law, factor.inverse(), horizon=horizon, columns=columns, source=source, lane=lane)

    @staticmethod
    def memory_for(longest: int, columns: int) -> int:
        """Bytes of noise that are kept."""
        return 8 * columns * len(best_factor(longest).r)


def path_deviation(longest: int) -> float:
    """The factor sqrt(c(W) S) of the best coefficients: standard deviation times sqrt(2 rho).

    >>> [round(path_deviation(W), 2) for W in (7, 24, 168)]
    [1.9, 2.45, 3.33]
    """
    factor = best_factor(longest)
    return math.sqrt(factor.cost(longest) * float(np.sum(factor.inverse() ** 2)))
