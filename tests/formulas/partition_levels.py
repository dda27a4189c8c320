"""Error bounds of the partition mechanisms that do not know c_max: doubling and two-level, parameterized-histograms 5.

Level 1 closes a segment when the maximum has about doubled and adds noise to all columns. Level 2 runs a mechanism for
known c_max inside each segment, told how far the query can grow there. Everything is a function of the public segment
index j: the paper computes it from the true c_max, which is private (parameterized-histograms 5.4).
Time O(log T), no memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from formulas.partition_blocks import Err
from formulas.partition_bounds import MaxSumBound, QueriesBound, SparseVector, max_sum_bound, queries_bound


@dataclass(frozen=True)
class Doubling:
    """Algorithms 5, 10 and 15: thresholds K_1, 2 K_1, 4 K_1, ..., at most J closes in T ticks.

    `noise(m, J, beta)` is the error of the columns after m closes: `alpha_Gamma` or `alpha_Gamma_gaussian`. What is
    said here holds with probability 1 - beta for all segments at once.

    >>> from functools import partial
    >>> from formulas.partition_blocks import alpha_Gamma
    >>> test = SparseVector.split(1.0, parts=4, discrete=False)
    >>> level = Doubling(test, partial(alpha_Gamma, d=10, epsilon=0.5), T=10**6, beta=0.1)
    >>> level.J, round(level.alpha_tau, 3), round(level.alpha_Gamma(20), 1), level.closes(1000)
    (21, 25.783, 777.3, 11)
    >>> level.Delta(1), level.Delta(11)
    (330, 2472)
    """

    test: SparseVector
    noise: Callable[[int, int, float], float]
    T: int
    beta: float
    K_1: float = 1.0

    @property
    def J(self) -> int:
        """Closes allowed, ceil(log2 T) + 1. The paper stops two earlier and leaves the last segment too long (5.1)."""
        return (self.T - 1).bit_length() + 1

    @property
    def alpha_mu(self) -> float:
        """Radius of mu over all ticks."""
        return self.test.alpha_mu(self.T, self.beta / 3)

    @property
    def alpha_tau(self) -> float:
        """Radius of tau over all segments."""
        return self.test.alpha_tau(self.J, self.beta / 3)

    def alpha_Gamma(self, m: int) -> float:
        """Error of every column after m closes."""
        return self.noise(m, self.J, self.beta / 3)

    def alpha_DM(self, j: int) -> float:
        """How far the true query can be from the threshold at the end of segment j."""
        return self.alpha_mu + self.alpha_tau + self.alpha_Gamma(j - 1) + j

    def Delta(self, j: int) -> int:
        """The true query grows by at most this in segment j."""
        return math.floor(self.K_1 * 2.0 ** (j - 1) + 2 * self.alpha_DM(j))

    def closes(self, c_max: int) -> int:
        """At most this many closes: the l-th needs K_l < c_max + alpha_Gamma(l - 1) + alpha_mu + alpha_tau."""
        reached = (
            closes
            for closes in range(self.J, 0, -1)
            if self.K_1 * 2.0 ** (closes - 1) < c_max + self.alpha_Gamma(closes - 1) + self.alpha_mu + self.alpha_tau
        )
        return next(reached, 0)

    def max_sum(self, j: int, test: SparseVector, err: Err, *, calibrated: bool = False) -> MaxSumBound:
        """Algorithm 6: the level-2 instance (Algorithm 7) of segment j; its `bound` holds while it is in force.

        The whole fails with probability 2 beta and costs twice the budget of one level.
        """
        base, D = self._base(j, err), self.Delta(j)
        return max_sum_bound(test, base, c_max=D, T=self.T, beta=self.beta_j, calibrated=calibrated)

    def queries(
        self, j: int, test: SparseVector, update: Err, err: Err, *, k: int, calibrated: bool = False
    ) -> QueriesBound:
        """Algorithms 11 and 16: the level-2 instance (Algorithm 12 or 17) of segment j, as `max_sum`."""
        base, D = self._base(j, err), self.Delta(j)
        return queries_bound(test, update, base, k=k, c_max=D, T=self.T, beta=self.beta_j, calibrated=calibrated)

    @property
    def beta_j(self) -> float:
        """Share of each of the J + 1 level-2 instances."""
        return self.beta / (self.J + 1)

    def _base(self, j: int, err: Err) -> Err:
        """Level 2 starts from a histogram that is off by alpha_Gamma already."""
        return lambda n, beta: err(n, beta) + self.alpha_Gamma(j - 1)
