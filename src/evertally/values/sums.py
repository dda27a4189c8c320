"""Running sums of bounded amounts: revenue, minutes, kilometres."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evertally.applications.encoder import EncodedEngine
from evertally.contract.forms import RowForm
from evertally.contract.mechanism import by_tick
from evertally.contract.options import option, statistic
from evertally.contract.owned import OwnedDoor
from evertally.contract.parts import Accuracy, Blueprint, IntArray, Options
from evertally.contract.rounding import ROUNDINGS, Rounder
from evertally.contract.units import check_room, own_numbers
from evertally.encode.values import AmountGrid, as_written
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource
from evertally.privacy import Change, Neighbours
from evertally.ranking import Ranking
from evertally.values.sum_doors import Allowance, AmountsOfTicks, places_as_bits
from evertally.values.tumbling import Tumbling


def check_relation(neighbours: str | Neighbours, what: str) -> Neighbours:
    """Values are there, or replaced; a relation by column has no meaning for them."""
    relation = Neighbours.parse(neighbours)
    if relation is Neighbours.INDEPENDENT:
        raise ConfigurationError(f'{what} has no columns of its own right: use "add_remove" or "replace"')
    return relation


@statistic
class RunningSum(Tumbling):
    """The sum of all amounts so far, for amounts between `lower` and `upper`: revenue, minutes, kilometres.

    Amounts are rounded to multiples of `resolution` and bounded in whole steps (factorization-counting 11, step 1).
    `rounding="random"` has no bias: an amount goes up with the probability of its fraction of a step, by a coin that is
    a function of key, tick, amount and user, and of no other event (additions 12); "nearest" tosses none. The release
    is about the rounded amounts; rounding n of them at random is off by about resolution * sqrt(n)/2 at most.

    One event moves the sum by A = max(|lower|, |upper|), a replaced one by upper - lower (0 counts as an amount, for
    what is no number adds nothing). With `unit="user"` either `max_events_per_user` counts, or `max_total_per_user`=V,
    an allowance for life: each amount is cut to what is left, negative ones use up their size. Then a user moves the
    sum by V in all: Change (V, V^2, V), replaced (2V, 2V^2, 2V), with both signs l2^2 = 4V^2 (users-and-domains 3 [R]).

    Noise, error and memory as Counter with max_weight = A (or V) in steps; 8 bytes and a name for each user with an
    allowance. Exactness tier "exact"; time O(1) an event. `step` takes the amounts of the tick, `step_events` with
    users where they have an allowance. `last(window)` is the sum of the last ticks (declare `max_window`); with
    `every` each block of ticks is summed up for itself, with noise for its ticks only.

    >>> import evertally as et
    >>> revenue = et.RunningSum(upper=500, resolution=0.01, unit="user", max_total_per_user=2000,
    ...                         guarantee=et.ZCDP(0.5), horizon=365, key=et.simulation(1))
    >>> release = revenue.step_events([19.99, 45, 700.5, None], users=["ann", "bob", "ann", "cid"])
    >>> release.about
    'what the rule for users kept: of each user amounts of 2000 in total'
    >>> lower, upper = release.interval()
    >>> lower < 19.99 + 45 + 500 < upper, revenue.sensitivity.linf
    (True, 200000)
    """

    upper: float = option("Amounts above this are taken for it.")
    lower: float = option("Amounts below this are taken for it.", default=0)
    resolution: float = option("What amounts are rounded to, e.g. 0.01.", default=1)
    rounding: Literal["random", "nearest"] = option(
        'How: "random" without a bias, by coins of each event; or to the "nearest" multiple.', default="random"
    )
    max_total_per_user: float | None = option(
        'The allowance of each user for the whole stream; goes with unit="user", instead of a number of events.',
        default=None,
    )

    @classmethod
    def user_rule(cls, options: Mapping[str, Any]) -> str:
        most = options.get("max_total_per_user")
        return "" if most is None else f"amounts of {most} in total"

    def _blueprint(self) -> Blueprint:
        if self.rounding not in ROUNDINGS:
            raise ConfigurationError('rounding is "random" or "nearest"')
        numbers = own_numbers(self._given("lower", "upper", "resolution", "max_total_per_user"))
        for name, number in numbers.items():
            setattr(self, name, number)
        grid = self._grid = AmountGrid(self.lower, self.upper, self.resolution)
        relation = check_relation(self.neighbours, "a sum")
        address = numbers | self._given("rounding", "unit", "max_events_per_user")
        if self.max_total_per_user is not None:
            return self._with_allowance(grid, relation, address, numbers)
        contribution = self._contributing(max_weight=grid.most, signed=grid.low < 0)
        events = contribution.max_events_per_user
        far = grid.most if relation is Neighbours.ADD_REMOVE else grid.high - grid.low
        # A user with w events is one with an allowance of w times the largest amount.
        moved, loose = (
            (Change(far, far**2, far), None)
            if events is None
            else (user_change(events * grid.most, relation, grid.signed))
        )

        def door(source: ItemSource, limit: int) -> AmountsOfTicks:
            check_room(limit, grid.most)
            return AmountsOfTicks(grid, Rounder(source, grid.low, grid.high, self.rounding), limit)

        return self._linear("RunningSum", 1, moved, contribution, address, door, InUnits(grid), numbers, loose=loose)

    def _with_allowance(self, grid: AmountGrid, relation: Neighbours, address: Options, settled: Options) -> Blueprint:
        if self.unit != "user":
            # One event more lets a later one of the same user add less: no bound by what one event adds.
            raise ConfigurationError('max_total_per_user protects users: it goes with unit="user"')
        if self.max_events_per_user is not None:
            raise ConfigurationError("a user has an allowance or a number of events, not both: leave one of them out")
        allowed = as_written(self.max_total_per_user)
        most = 0 if allowed is None else math.floor(allowed / grid.step)
        if not 1 <= most <= 2**50:
            raise ConfigurationError(
                f"max_total_per_user is an amount of 1 to 2^50 steps of {self.resolution}; "
                f"got {self.max_total_per_user!r}"
            )
        contribution = self._contributing(
            user_rule=self.user_rule(self._given("max_total_per_user")), max_weight=most, signed=grid.low < 0
        )
        moved, loose = user_change(most, relation, grid.signed)
        limit = self._most_in_a_tick()
        check_room(limit, grid.most)
        rows = self._linear(
            "RunningSum",
            1,
            moved,
            contribution,
            address,
            lambda source, limit: OwnedDoor(places_as_bits(grid)),
            InUnits(grid),
            settled=settled,
            loose=loose,
        )

        def engine(source: ItemSource) -> EncodedEngine:
            rule = Allowance(grid, Rounder(source, grid.low, grid.high, self.rounding), most, limit)
            return EncodedEngine(rule, rows.engine(source))

        return replace(rows, owned=True, engine=engine)

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None) -> float:
        """With probability at least 1 - beta no sum of any tick is further off than this, in the unit of amounts."""
        return InUnits(self._grid).in_units(self._bound(beta, tick))

    def ways(self) -> Ranking:
        """As for every counter, with errors in the unit of amounts."""
        return Ranking(way.shown_as(InUnits(self._grid).in_units) for way in super().ways())

    def _about(self) -> str:
        about, rounded = super()._about(), f"rounded to multiples of {self.resolution}"
        return about if self._plan.owned or self._users is not None else f"{about}, {rounded}"


def user_change(most: int, relation: Neighbours, signed: bool) -> tuple[Change, Change | None]:
    """What a user moves who adds `most` in all, and the same for a factor of which nothing is proved.

    users-and-domains 3 and 1.2: a replaced user is two rows of one sign, whose cross term is not positive."""
    V = most
    if relation is Neighbours.ADD_REMOVE:
        return Change(V, V * V, V), None
    apart = Change(2 * V, 4 * V * V, 2 * V)
    return (apart, None) if signed else (Change(2 * V, 2 * V * V, 2 * V), apart)


class InUnits(RowForm):
    """A sum of whole steps, in the unit that amounts have."""

    def __init__(self, grid: AmountGrid) -> None:
        super().__init__(1)
        self._grid = grid

    def in_units(self, steps: float) -> float:
        """A difference of sums."""
        return float(self._grid.shown(np.asarray(steps)))

    def show(self, row: IntArray) -> float:
        return float(self._grid.shown(row)[0])

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return self._grid.shown(rows[:, 0])

    def deviation(self, accuracy: Accuracy) -> float | None:
        return None if accuracy.stddev is None else self.in_units(accuracy.stddev)
