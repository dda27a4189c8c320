"""Bugs in what is charged: sensitivities, conversions, the ledger."""

from __future__ import annotations

import math
from fractions import Fraction

from audit.bugs.planting import Bug, plant, replaced
from evertally.contract.mechanism import Mechanism
from evertally.privacy import Change, Cost, Ledger, Neighbours, PureDP, _promise, guarantees, neighbours
from evertally.privacy._promise import Promise
from evertally.statistics import means
from formulas.conversions import ideal_gaussian_rho


@plant("one event replaced")
def replace_as_remove() -> Bug:
    """replacement charged as removal: sensitivity off by sqrt 2 (factorization-counting E9: replacing a subset costs
    sqrt(2b))"""
    original = neighbours._event
    return replaced(neighbours, _event=lambda relation, c, d: original(Neighbours.ADD_REMOVE, c, d))


@plant("one item taken out of an event that was cut")
def truncation_not_charged() -> Bug:
    """truncation not charged (factorization-counting 6.3: removing one of b + 1 items lets another in)"""
    return replaced(neighbours, _item=lambda relation, c, d: Change(c.max_weight, c.max_weight**2, c.max_weight))


@plant("one user with four events")
def root_of_the_group() -> Bug:
    """user's events charged by their number, not its square (factorization-counting E6: l2 over time instead of l1 over
    time)"""

    def group(self: Change, size: int) -> Change:
        return Change(size * self.l1, size * self.l2_squared, size * self.linf)

    return replaced(Change, group=group)


@plant("totals that belong to nobody")
def totals_of_nobody() -> Bug:
    """totals taken where users are protected (price-of-continual-release 9.5: the cap is kept at the door, and totals
    do not pass it)"""
    return replaced(Mechanism, _check_owners=lambda self: None)


@plant("a promise that one in ten is published")
def any_delta() -> Bug:
    """any delta taken without a word (a mechanism that publishes each person with probability delta is (0,
    delta)-private)"""
    return replaced(guarantees, checked_delta=lambda delta, force: delta)


@plant("a promise that one in ten is published")
def silent_delta() -> Bug:
    """a large delta shown like any other (a mechanism that publishes each person with probability delta is (0,
    delta)-private)"""
    return replaced(_promise, delta_warning=lambda delta, events=None: None)


@plant("every column changed by independent events")
def independent_for_one() -> Bug:
    """independent neighbours charged for one column (parameterized-histograms 1.2 and 6: all columns change, each in
    its own tick)"""
    return replaced(neighbours, _independent=lambda c, d: Change(c.max_weight, c.max_weight**2, c.max_weight))


@plant("one event of any weight")
def weight_not_charged() -> Bug:
    """max_weight not multiplied into the sensitivity (price-of-continual-release P12: weighted rows need another
    scale)"""
    return replaced(neighbours, _cells=lambda cells, height: Change(cells, cells, 1))


@plant("one value of a mean")
def mean_for_one_column() -> Bug:
    """mean charged for one of its two columns (factorization-counting 3.2: coordinates touched by one event are one
    vector query)"""
    return replaced(means, Change=lambda l1, l2_squared, linf: Change(linf, linf * linf, linf))


@plant("one tick of an (epsilon, delta) stream")
def conversion_without_tail() -> Bug:
    """conversion without the tail: rho = eps^2/2 (price-of-continual-release P11: conversions; pure DP implies zCDP,
    not the other way round)"""
    return replaced(guarantees, rho_of_epsilon_delta=lambda epsilon, delta: Fraction(epsilon) ** 2 / 2)


@plant("one tick of an (epsilon, delta) stream")
def gaussian_curve_for_discrete_noise() -> Bug:
    """exact Gaussian curve for discrete noise (price-of-continual-release 2.1 row 4 and P11: it misses (1, 1e-6) by 2
    %)"""
    return replaced(
        guarantees, rho_of_epsilon_delta=lambda epsilon, delta: Fraction(ideal_gaussian_rho(epsilon, delta))
    )


@plant("what a zCDP counter says of (epsilon, delta)")
def half_of_the_tail() -> Bug:
    """conversion with half of the tail: rho + sqrt(rho L) (streaming-selection 2.1 (1): rho + 2 sqrt(rho L))"""

    def epsilon(rho: Fraction, delta: Fraction) -> Fraction:
        return Fraction(rho + math.sqrt(rho * -math.log(delta)))

    return replaced(guarantees, epsilon_of_rho=epsilon)


@plant("two mechanisms of one stream")
def shares_beyond_one() -> Bug:
    """shares of a stream may add up to more than one (factorization-counting 12.11: several statistics of one stream
    compose)"""
    return replaced(Promise, admits=lambda self, cost: True)


@plant("two mechanisms of one stream")
def pure_entries_ignored() -> Bug:
    """ledger ignores pure entries (streaming-selection 2.3, design decision 10: entries are (pure epsilon, rho,
    delta))"""

    def cost(self: Ledger) -> Cost:
        return sum((e.charge.cost for e in self.entries if not isinstance(e.charge, PureDP)), Cost())

    return replaced(Ledger, cost=property(cost))
