"""Private multiplicative weights, the offline form with K public rounds (dynamic-data 3.3, 14.9 [R]).

Each round selects a query that the synthetic data answer badly (exponential mechanism), measures it with noise, and
moves the synthetic data towards the measurement. Released are the synthetic data, averaged over the rounds, on an
integer grid; the true size is used nowhere: mass, number of rounds and rate follow from a noisy size.

Privacy: a score |f(D) - n^ p(f)| moves by at most 1 with an item. A round costs eps0 for the selection and eps0 for the
measurement, together with the size 2 K eps0 + eps0' (pure), or K (eps0^2/8 + eps0^2/2) + eps0'^2/2 (zCDP: the selection
has range eps0, measurement and size are Gaussian). K depends on the noisy size, so that it names lanes: one lane has
one law.

Scores are exact integers, in units of the family's grid, and the selection is exact. Everything else sees released
numbers only; it uses operations that IEEE 754 fixes, in a fixed order, so that every machine computes the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from evertally.dynamic.families import Family
from evertally.dynamic.parts import Budget, FloatArray, IntArray, Place
from evertally.dynamic.static.rounds import Rounds, rounds_for
from evertally.dynamic.static.weights_error import LARGEST_SIZE, one_release
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import Law
from evertally.selection.noisy_max import noisy_argmax

ROW_UNIT = 2**20  # the released synthetic data are multiples of 2^-20 of an item
_TERMS = 20  # of the exponential series on [-1, 1]: the rest is below 2^-65


class MultiplicativeWeights:
    """Synthetic data for a written-down list of queries: the error grows with log |Q|, and with a power of the size.

    Budget of any kind. Error at most sqrt(4 n^2 ln|X|/K + (measurement)^2) + selection + 2 (error of the size), and
    never above about n: `error` is that bound, infinite where nobody says how large the data are. It is biased: k
    releases together have k times the error. Time O(K |Q| |X|) for a release, memory O(|Q| |X|).

    >>> from evertally.dynamic.families import Points
    >>> from evertally.noise import simulation
    >>> from evertally.privacy import PureDP
    >>> static = MultiplicativeWeights(Points(["a", "b", "c"]))
    >>> row = static.fit(np.array([9000, 500, 500]), PureDP(4), Place(simulation(1).source("doc"), "static", 1))
    >>> bool(abs(float(static.weights("a") @ row) / static.unit - 9000) < 1500)
    True
    """

    unit = ROW_UNIT
    pure = True
    concentrated = True
    additive = False

    def __init__(self, family: Family, *, max_rounds: int = 256) -> None:
        self.family = family
        self.max_rounds = whole("max_rounds", max_rounds, 1, 2**12)
        self.cells = self.width = family.cells
        self._table = np.array([family.vector(query) for query in family.workload()], dtype=np.int64)
        self._grid = family.unit
        self._known = {row.tobytes() for row in self._table}
        self._errors: dict[tuple[Budget, float, float], float] = {}
        # Such that no sum of f(x) count(x) or f(x) weight(x) over the cells passes 2^61.
        self.largest_count = 2**61 // (self.cells * self._grid)
        self.weight_bits = min(45, 61 - (self.cells * self._grid).bit_length())
        if self.weight_bits < 20:
            raise ConfigurationError("the universe times the grid of its queries is too large for exact scores")

    @property
    def queries(self) -> int:
        """How many queries the rounds work for."""
        return len(self._table)

    @property
    def address(self) -> str:
        """Names the rows; see `Additive.address`."""
        return f"weights-{self.max_rounds}"

    def rounds(self, budget: Budget, size: int, own_size: bool) -> Rounds:
        """How a release spends its budget, once a noisy size is known."""
        return rounds_for(budget, size, own_size, self.cells, len(self._table), self._grid, self.max_rounds)

    def fit(self, data: IntArray, budget: Budget, place: Place, size_hint: int | None = None) -> IntArray:
        # Cell by cell, so that an item still moves one cell by at most 1.
        data = np.clip(data, 0, self.largest_count)
        if size_hint is None:
            noise = int(place.draws(self.size_law(budget), 1, f"{self.address}/size")[0])
            size = int(data.sum()) + noise
        else:
            size = int(size_hint)
        size = min(max(size, 0), LARGEST_SIZE)
        if size == 0:
            return np.zeros(self.width, dtype=np.int64)  # without a look at the data
        shares = self._averaged_shares(data, size, self.rounds(budget, size, size_hint is None), place)
        return np.rint(shares * (float(size) * ROW_UNIT)).astype(np.int64)

    def size_law(self, budget: Budget) -> Law:
        """The noise of the size, where nobody gives one."""
        return self.rounds(budget, 1, own_size=True).size_law()

    def weights(self, query: Any) -> FloatArray:
        return self.family.vector(query) / self._grid

    def error(self, budgets: Sequence[Budget], beta: float, size: float | None, query: Any = None) -> float:
        """Of the queries that the rounds work for; nothing is known about others. Data of at most `size` items each,
        and the size measured by each release itself: a hint that is off by m adds up to 2 m."""
        for budget in budgets:  # refuses a budget that is too small for some number of rounds, before there are data
            self.rounds(budget, LARGEST_SIZE, own_size=True).check()
        known = query is None or self.family.vector(query).tobytes() in self._known
        if size is None or not known:
            return math.inf
        return math.fsum(self._error(budget, beta / len(budgets), float(size)) for budget in budgets)

    def stddev(self, budgets: Sequence[Budget], query: Any) -> float | None:
        return None

    def _error(self, budget: Budget, beta: float, size: float) -> float:
        if (budget, beta, size) not in self._errors:
            self._errors[budget, beta, size] = one_release(self, budget, beta, size)
        return self._errors[budget, beta, size]

    def _averaged_shares(self, data: IntArray, size: int, rounds: Rounds, place: Place) -> FloatArray:
        # K, and whether the size was paid for, decide the laws.
        K = rounds.count
        lane = f"{self.address}/{K}{'' if rounds.size else '-given'}"
        exact = self._table @ data
        noises = place.draws(rounds.measure_law(), K, f"{lane}/measure")
        weights = np.full(self.cells, 1 << self.weight_bits, dtype=np.int64)
        average = np.zeros(self.cells)
        for k in range(K):
            total = float(int(weights.sum()))
            average += weights.astype(np.float64) / total
            # n^ p(f) on the grid of the queries; the score is an exact integer.
            predicted = np.rint((self._table @ weights).astype(np.float64) / total * float(size)).astype(np.int64)
            variates = place.variates("gumbel", len(self._table), f"{lane}/select", k, K)
            chosen = noisy_argmax(np.abs(exact - predicted), rounds.select_scale, variates)[0]
            measured = int(exact[chosen]) + int(noises[k])
            step = float(measured - int(predicted[chosen])) / (2.0 * float(size) * self._grid)
            weights = self._moved(weights, self._table[chosen], min(max(step, -1.0), 1.0))
        return average / float(K)

    def _moved(self, weights: IntArray, query: IntArray, step: float) -> IntArray:
        grown = weights.astype(np.float64) * _exponential(query.astype(np.float64) / self._grid * step)
        # Rounded up: no weight is pushed down, so the entropy of the proof grows by the normaliser alone.
        return np.ceil(grown * (float(1 << self.weight_bits) / float(grown.max()))).astype(np.int64)


def _exponential(x: FloatArray) -> FloatArray:
    """exp on [-1, 1] by its series: additions, products and quotients are the same on every machine, exp is not."""
    value = np.ones_like(x)
    for k in range(_TERMS, 0, -1):
        value = 1.0 + value * x / float(k)
    return value
