"""Static mechanisms with one mistake each, and who notices: for the conformance tests, and for the auditor's matrix.

`make(family)` builds the mutant; `caught_by` names the check of `evertally.checks.static_mechanisms` that must fail.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from evertally.dynamic.families import Points, Queries, Ranges
from evertally.dynamic.parts import Place
from evertally.dynamic.static import Additive, MultiplicativeWeights
from evertally.dynamic.strategies import Explicit, Hierarchies, Identity, Norms
from evertally.noise import DiscreteGaussian, DiscreteLaplace
from evertally.privacy import ZCDP, PureDP


class FirstColumnOnly(Additive):
    """Noise for the first column of A instead of the largest."""

    @property
    def norms(self):
        column = np.abs(self.strategy.apply(np.eye(self.cells, dtype=np.int64)[0]))
        return Norms(int(column.sum()), int((column**2).sum()), int(column.max()))


class OneLevelTooFew(Additive):
    """The cells of a hierarchy are not counted as a level."""

    @property
    def norms(self):
        true = self.strategy.norms
        return Norms(true.l1 - 1, true.l2_squared - 1, true.linf)


class RootOfTheNorm(Additive):
    """Gaussian noise by the l2 norm instead of its square."""

    def law(self, budget):
        norm = Fraction(self.norms.l2_squared).limit_denominator(10**6) ** Fraction(1, 2)
        return DiscreteGaussian(Fraction(norm) / (2 * budget.exact_rho))


class ScaleRoundedDown(Additive):
    """A scale that is cut to eight bits."""

    def law(self, budget):
        exact = self.norms.l1 / budget.exact_epsilon
        return DiscreteLaplace(Fraction(int(exact * 256), 256))


class OneNoiseForAll(Additive):
    """The node of the place is not looked at: every release has the same noise."""

    def fit(self, data, budget, place, size_hint=None):
        return super().fit(data, budget, Place(place.source, place.lane, 0), size_hint)


class OccupiedCellsOnly(Additive):
    """Noise where there is something, as if an empty cell had nothing to hide."""

    def fit(self, data, budget, place, size_hint=None):
        row = self.strategy.apply(data)
        occupied = np.flatnonzero(row)
        row[occupied] += place.draws(self.law(budget), occupied.size, self.address)
        return row


class NegativeCountsCutBefore(Additive):
    """Counts below zero are cut before the noise: signed data do not add up any more."""

    def fit(self, data, budget, place, size_hint=None):
        return super().fit(np.maximum(data, 0), budget, place, size_hint)


class NegativeCountsCutAfter(Additive):
    """Rows below zero are cut after the noise: private, and no longer additive."""

    def fit(self, data, budget, place, size_hint=None):
        return np.maximum(super().fit(data, budget, place, size_hint), 0)


class TrueSize(MultiplicativeWeights):
    """The synthetic data have as many items as there are, and one."""

    def fit(self, data, budget, place, size_hint=None):
        return super().fit(data, budget, place, size_hint=1 + int(np.minimum(data, 2**30).sum()))


class SelectedMeasuredExactly(MultiplicativeWeights):
    """The measurement noise is for a sensitivity of one grid step, not of a whole item."""

    def rounds(self, budget, size, own_size):
        from evertally.dynamic.static.rounds import Rounds

        true = super().rounds(budget, size, own_size)

        class Finer(Rounds):
            def measure_law(self):
                return Rounds(self.pure, self.count, self.select_epsilon, self.measure, self.size, 1).measure_law()

        return Finer(true.pure, true.count, true.select_epsilon, true.measure, true.size, true.grid)


class SelectionAtHalfTheScale(MultiplicativeWeights):
    """Gumbel scale sensitivity/eps0 instead of 2 sensitivity/eps0: twice the paid loss of a selection."""

    def rounds(self, budget, size, own_size):
        from evertally.dynamic.static.rounds import Rounds

        true = super().rounds(budget, size, own_size)

        class Louder(Rounds):
            @property
            def select_scale(self):
                return super().select_scale / 2

        return Louder(true.pure, true.count, true.select_epsilon, true.measure, true.size, true.grid)


@dataclass(frozen=True)
class Mistake:
    """A mutant, the family and budget it is played with, and the check that must fail (None: the exact law)."""

    name: str
    make: Callable
    family: object
    budget: object
    caught_by: str | None

    @property
    def static(self):
        return self.make(self.family)


_UNEVEN = np.array([[1, 2], [0, 3]])
_ABC, _RANGE = Points(["a", "b"]), Ranges(size=8)
_NESTED = Queries({"x": [1, 0], "all": [1, 1]}, ["x", "y"])  # an item in x moves their scores in two directions
_FINE = Queries({"a": [1, 0.25], "b": [0.5, 1]}, ["x", "y"])

MISTAKES = [
    Mistake("noise for the first column", lambda f: FirstColumnOnly(f, Explicit(f, _UNEVEN)), _ABC, PureDP(1),
            "check_columns_fit_the_noise"),
    Mistake("one level too few", lambda f: OneLevelTooFew(f, Hierarchies(f, [2])), _RANGE, PureDP(1),
            "check_columns_fit_the_noise"),
    Mistake("one level too few, Gaussian", lambda f: OneLevelTooFew(f, Hierarchies(f, [2])), _RANGE, ZCDP(1),
            "check_columns_fit_the_noise"),
    Mistake("the norm, not its square", lambda f: RootOfTheNorm(f, Hierarchies(f, [2])), _RANGE, ZCDP(1),
            "check_columns_fit_the_noise"),
    Mistake("a scale rounded down", lambda f: ScaleRoundedDown(f, Hierarchies(f, [2])), _RANGE,
            PureDP(Fraction(7, 10)), "check_columns_fit_the_noise"),
    Mistake("one noise for all releases", lambda f: OneNoiseForAll(f, Identity(f)), _ABC, PureDP(1),
            "check_addresses"),
    Mistake("no noise on empty cells", lambda f: OccupiedCellsOnly(f, Identity(f)), _ABC, PureDP(1),
            "check_addresses"),
    Mistake("negative counts cut before", lambda f: NegativeCountsCutBefore(f, Identity(f)), _ABC, PureDP(1),
            "check_noise_adds"),
    Mistake("negative rows cut after", lambda f: NegativeCountsCutAfter(f, Identity(f)), _ABC, PureDP(Fraction(1, 9)),
            "check_noise_adds"),
    Mistake("the true size", TrueSize, _FINE, PureDP(1), "check_addresses"),
    Mistake("the true mass", lambda f: TrueSize(f, max_rounds=1), _FINE, PureDP(1), "check_neighbours_look_alike"),
    Mistake("measured too finely", SelectedMeasuredExactly, _FINE, PureDP(2), None),
    Mistake("selection at half the scale", SelectionAtHalfTheScale, _NESTED, PureDP(2), None),
]  # fmt: skip
