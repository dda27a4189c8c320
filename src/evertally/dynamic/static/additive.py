"""Additive static mechanisms: row = A data + integer noise, A an integer strategy (dynamic-data 2.4, 3.2, 3.3).

Privacy, for every vector of integers, signed ones too: one item moves the row by a column of A, so discrete Laplace
noise of scale l1/eps costs eps, and discrete Gaussian noise of variance l2^2/(2 rho) costs rho; scales are rounded up.
Rows are taken modulo 2^64, which is post-processing of the exact ones. The noise sees no data, so that the noises of k
releases add up as independent ones: the error grows with sqrt(k).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from evertally.bounds.tails import Spread
from evertally.counting.process import spread_of
from evertally.dynamic.families import Family
from evertally.dynamic.parts import Budget, FloatArray, IntArray, Place
from evertally.dynamic.strategies import Load, Norms, Strategy
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law, round_up
from evertally.noise.laws import SMALLEST_SCALE
from evertally.privacy import PureDP


class Additive:
    """Noise on the rows of a strategy: Laplace for a pure budget, Gaussian for rho.

    Error of a query with weights w: sqrt(sum w^2) deviations of one draw. Time and memory O(width) for a release.

    >>> import numpy as np
    >>> from evertally.dynamic.families import Ranges
    >>> from evertally.dynamic.strategies import Hierarchies
    >>> from evertally.noise import ZeroNoise
    >>> family = Ranges(size=8)
    >>> static = Additive(family, Hierarchies(family, [2]))
    >>> place = Place(ZeroNoise().source("doc"), "static", node=1)
    >>> row = static.fit(np.arange(8), PureDP(1), place)
    >>> float(static.weights((1, 6)) @ row), round(static.stddev([PureDP(1)], (1, 6)), 2)
    (21.0, 5.68)
    """

    unit = 1
    pure = True
    concentrated = True
    additive = True

    def __init__(self, family: Family, strategy: Strategy) -> None:
        self.family = family
        self.strategy = strategy
        self.cells = strategy.cells
        self.width = strategy.width
        self._load: Load | None = None

    @property
    def norms(self) -> Norms:
        """Of the largest column: what one item moves."""
        return self.strategy.norms

    @property
    def address(self) -> str:
        """Names the rows, in the address of their noise; rows of two addresses must not be added."""
        return self.strategy.address

    def fit(self, data: IntArray, budget: Budget, place: Place, size_hint: int | None = None) -> IntArray:
        return self.strategy.apply(data) + place.draws(self.law(budget), self.width, self.address)

    def law(self, budget: Budget) -> Law:
        """The noise of each row; refuses a budget so small that no such law is there."""
        if isinstance(budget, PureDP):
            return DiscreteLaplace(max(round_up(self.norms.l1 / budget.exact_epsilon), SMALLEST_SCALE))
        return DiscreteGaussian(max(round_up(self.norms.l2_squared / (2 * budget.exact_rho)), SMALLEST_SCALE**2))

    def weights(self, query: Any) -> FloatArray:
        return self.strategy.weights(query)

    def error(self, budgets: Sequence[Budget], beta: float, size: float | None, query: Any = None) -> float:
        """Whatever the size: the noise does not look at data. For all queries by the union over the family."""
        if query is not None:
            return self._radius(budgets, Load.of(self.weights(query)), beta)
        return self._radius(budgets, self.worst(), beta / self.family.queries)

    def stddev(self, budgets: Sequence[Budget], query: Any) -> float | None:
        return self._spread(budgets, Load.of(self.weights(query))).stddev if budgets else 0.0

    def worst(self) -> Load:
        """What covers the weights of every query."""
        if self._load is None:
            self._load = self.strategy.worst()
        return self._load

    def worst_stddev(self, budgets: Sequence[Budget]) -> float:
        """The largest standard deviation of any query."""
        return self._spread(budgets, self.worst()).stddev

    def _radius(self, budgets: Sequence[Budget], load: Load, beta: float) -> float:
        if not budgets:
            return 0.0  # nothing was released, and nothing is off
        if load.single:
            return load.peak * self._spread(budgets, Load(1.0, 1.0)).radius(beta)
        # A hair more: tails have a bound of their own for one draw, which several of the same square sum do not keep.
        spread = self._spread(budgets, replace(load, squares=load.squares * (1 + 1e-9)))
        # A sum with other weights than 1 lies on no lattice of step 1, which the normal tail speaks about.
        return (spread if load.plain else replace(spread, finest=0.0)).radius(beta)

    def _spread(self, budgets: Sequence[Budget], load: Load) -> Spread:
        spreads = [spread_of(self.law(budget), load.squares, load.peak) for budget in budgets]
        return reduce(Spread.__add__, spreads)
