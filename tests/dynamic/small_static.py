"""Tiny static mechanisms for tests of constructions: counts of cells, each with noise; and one that writes down what
it was asked. The real ones are in `evertally.dynamic.static`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evertally.bounds.tails import Spread
from evertally.counting.process import spread_of
from evertally.dynamic.parts import Place
from evertally.noise import DiscreteGaussian, DiscreteLaplace, round_up
from evertally.privacy import PureDP


def law_of(budget):
    if isinstance(budget, PureDP):
        return DiscreteLaplace(round_up(1 / budget.exact_epsilon))
    return DiscreteGaussian(round_up(1 / (2 * budget.exact_rho)))


class SmallHistogram:
    """row = data + noise; a query is a cell."""

    unit = 1
    pure = concentrated = additive = True

    def __init__(self, cells=1):
        self.cells = self.width = cells

    def fit(self, data, budget, place, size_hint=None):
        return data + place.draws(law_of(budget), self.width)

    def weights(self, query):
        return np.eye(self.cells)[query]

    def error(self, budgets, beta, size, query=None):
        if not budgets:
            return 0.0
        return self._spread(budgets).radius(beta / (self.cells if query is None else 1))

    def stddev(self, budgets, query):
        return self._spread(budgets).stddev if budgets else 0.0

    def _spread(self, budgets) -> Spread:
        spreads = [spread_of(law_of(budget), 1.0, 1.0) for budget in budgets]
        total = spreads[0]
        for spread in spreads[1:]:
            total = total + spread
        return total


class Sampled(SmallHistogram):
    """Not additive, needs data that are no less than 0, and its error grows with the size of the data."""

    additive = False

    def fit(self, data, budget, place, size_hint=None):
        assert (data >= 0).all()
        return super().fit(data, budget, place, size_hint)

    def error(self, budgets, beta, size, query=None):
        return math.inf if size is None else super().error(budgets, beta, size, query) + math.sqrt(size)

    def stddev(self, budgets, query):
        return None


@dataclass(frozen=True)
class Asked:
    lane: str
    node: int
    budget: object
    data: tuple


class Recorded(SmallHistogram):
    """Exact, and notes every release: where, for how much, of what."""

    def __init__(self, cells=1):
        super().__init__(cells)
        self.asked: list[Asked] = []

    def fit(self, data, budget, place: Place, size_hint=None):
        self.asked.append(Asked(place.lane, place.node, budget, tuple(data.tolist())))
        return data.copy()
