"""Independent noise for numbers that are released once each, with or without a draw that several of them share.

users-and-domains 1.4 with lambda = 0, and 1.5 [R, reviewed twice]. A unit is in at most n of the numbers, and counts 1
in each. Alone, each number gets one draw of its own, against a change of n squares of 1. Centred, each gets
floor(Z/r + Z_0/2 + 1/2): the factor is R = r, an even number, so that the path y - 1/2 of a unit moves Z by r/2, up or
down, in every number of its group, and the group's Z_0 by 1. With the best split the standard deviation is
(sqrt n + 1)/2 in place of sqrt n (over sqrt(2 rho)).

The groups that a unit is in must be known before any number of them is released (retention: one row), or be one for
all numbers. Replaced units are never centred: whoever comes in another's place may be in another group.
"""

from __future__ import annotations

from dataclasses import dataclass

from evertally.bounds.tails import Spread
from evertally.contract.ticks import LONGEST_HORIZON
from evertally.counting.centred import UNIT, joined, white_laws
from evertally.counting.choose import budgets
from evertally.counting.process import Budget, IntArray, node_law, spread_of
from evertally.errors import ConfigurationError
from evertally.noise import Law
from evertally.privacy import Change, Guarantee
from evertally.ranking import Ranking, Way

ALONE, CENTRED = "independent", "centred"


@dataclass(frozen=True)
class Counted:
    """How one step of the neighbouring relation moves the numbers: each by 1 at most, `moved` of them in all; and how
    many numbers a group has, None where groups may not share a draw."""

    moved: int
    group: int | None = None

    @property
    def change(self) -> Change:
        return Change(self.moved, self.moved, 1)


@dataclass(frozen=True)
class White:
    """The laws of independent noise: of each number's own draw, and of the draw of a group.

    >>> from evertally.privacy import ZCDP
    >>> white = White.of(ZCDP(0.5), 12, shared=True)
    >>> round(white.spread.stddev, 2), round(White.of(ZCDP(0.5), 12, shared=False).spread.stddev, 2)
    (2.25, 3.46)
    """

    own: Law
    shared: Law | None
    unit: int = UNIT  # r. It is large because halves are rounded up: with r = 2 every other number would be

    @classmethod
    def of(cls, charge: Budget, moved: int, *, shared: bool) -> White:
        if not shared:
            return cls(node_law(charge, Change(1, 1, 1), moved), None)
        laws = white_laws(charge, moved)
        return cls(laws.fresh, laws.shared)

    def noise(self, own: IntArray, shared: IntArray) -> IntArray:
        """The noise of numbers from their own draws and those of their groups."""
        return own if self.shared is None else joined(own, shared, self.unit)

    @property
    def spread(self) -> Spread:
        """The law of one number's noise."""
        if self.shared is None:
            return spread_of(self.own, 1.0, 1.0)
        weight = 1 / self.unit
        return spread_of(self.own, weight * weight, weight, roundings=1) + spread_of(self.shared, 0.25, 0.5)


def white_ways(guarantee: Guarantee, counted: Counted, mechanism: str, numbers: int | None, memory: int) -> Ranking:
    """Both ways to make the noise, with each budget that keeps the promise, for so many numbers in all."""
    if mechanism not in ("auto", ALONE, CENTRED):
        raise ConfigurationError(f'mechanism is "auto", "{CENTRED}" or "{ALONE}", not {mechanism!r}')
    names = (CENTRED, ALONE) if mechanism == "auto" else (mechanism,)
    return Ranking([_way(name, charge, counted, numbers, memory) for name in names for charge in budgets(guarantee)])


def _way(name: str, charge: Budget, counted: Counted, numbers: int | None, memory: int) -> Way:
    if name == CENTRED and counted.group is None:
        reason = 'a shared draw is for "add_remove" and a known number of periods; use mechanism="independent"'
        return Way(name=name, charge=charge, refused=reason)
    try:
        spread = made(name, charge, counted).spread
    except ConfigurationError as refusal:  # a noise scale out of range; the other way may have one in range
        return Way(name=name, charge=charge, refused=f'mechanism "{name}": {refusal}', nearly=True)
    return ranked(name, charge, spread, numbers, memory)


def ranked(name: str, charge: Budget, spread: Spread, numbers: int | None, memory: int) -> Way:
    """The row of a way whose numbers all have this noise."""
    count = LONGEST_HORIZON if numbers is None else numbers
    return Way(
        name=name,
        charge=charge,
        score=spread.stddev,
        expect=lambda: spread.radius(0.5 / count),
        promise=lambda: spread.radius(0.05 / count),
        memory=memory,
        survey=lambda: (spread.stddev, spread.stddev),
    )


def made(name: str, charge: Budget, counted: Counted) -> White:
    """The laws of a way."""
    if name == CENTRED:
        assert counted.group is not None
        return White.of(charge, counted.group, shared=True)
    return White.of(charge, counted.moved, shared=False)
