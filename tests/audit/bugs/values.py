"""Bugs of sums and variances of values (users-and-domains 10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, plant, replaced
from evertally.contract import rounding
from evertally.encode.values import AmountGrid
from evertally.privacy import Change, Neighbours
from evertally.values import sums, variance
from evertally.values.epochs_engine import SHOWN, EpochState, EpochSums
from evertally.values.sum_doors import Allowance


@plant("a user with an allowance")
def net_cap() -> Bug:
    """net cap instead of an allowance (users-and-domains 10, number 11: a refund gives back what it takes)"""

    def take(self: Allowance, steps: Any, codes: Any, used: Any) -> int:
        total = 0
        for code, step in zip(codes.tolist(), steps.tolist(), strict=True):
            net = max(-self._most, min(self._most, used[code] + step))
            total += net - used[code]
            used[code] = net
        return int(total)

    return replaced(Allowance, _take=take)


@plant("a user with an allowance")
def one_allowance_for_all() -> Bug:
    """one allowance for all users (users-and-domains 10, number 7: without one user another may add more)"""
    plain = Allowance._take

    def take(self: Allowance, steps: Any, codes: Any, used: Any) -> int:
        spent = getattr(self, "spent", np.zeros(1, dtype=np.int64))
        self.spent: Any = spent
        return plain(self, steps, np.zeros_like(codes), spent)

    return replaced(Allowance, _take=take)


@plant("a user with an allowance")
def allowance_lost_at_restart() -> Bug:
    """allowances lost at a restart (users-and-domains 9, number 7: what a user has used up is never forgotten)"""
    return replaced(Allowance, load=lambda self, tick, data: None)


@plant("a user with an allowance in the place of another")
def replaced_user_charged_once() -> Bug:
    """replaced user charged as one user (users-and-domains 10, number 8: two users, twice the square)"""
    plain = sums.user_change
    return replaced(sums, user_change=lambda most, relation, signed: plain(most, Neighbours.ADD_REMOVE, signed))


@plant("values and their squares")
def variance_charged_as_mean() -> Bug:
    """variance charged as a mean (users-and-domains 3: three columns, 3 A^2)"""
    return replaced(variance, variance_change=lambda A, relation, events: (Change(2 * A, 2 * A * A, A), None))


@plant("one amount taken out of a batch")
def coins_by_place() -> Bug:
    """coins by the place in the batch (additions 12: no other event may be in the address of a coin)"""

    def words(self: Any, places: Any, tick: int, codes: Any, names: Any) -> Any:
        addresses = np.zeros((len(places), 2), dtype=np.uint64)
        addresses[:, 0] = np.arange(len(places))
        return self._coins.item_words(tick, addresses)[:, 0] >> np.uint64(11)

    return replaced(rounding.Rounder, _words=words)


@plant("one amount of many taken away, by column")
def coins_of_no_column() -> Bug:
    """coins without the column (additions 12, columns: numbers of a class are counted within the column)"""
    plain = rounding.Rounder._words
    return replaced(
        rounding.Rounder,
        _words=lambda self, places, tick, codes, names: plain(self, places, tick, None, None),
    )


@plant("the largest amount of a column")
def one_step_too_few() -> Bug:
    """largest amount rounded down (additions 12: max(-low, high) steps, outwards)"""
    return replaced(AmountGrid, most=property(lambda self: max(-self.low, self.high) - 1))


@plant("amounts that are rounded by a coin")
def biased_coins() -> Bug:
    """coins that always go up (additions 12: E[s] = x)"""
    return replaced(
        rounding.Rounder,
        _words=lambda self, places, tick, codes, names: np.zeros(len(places), dtype=np.uint64),
    )


@plant("a boundary of epochs")
def bound_of_unreleased_counts() -> Bug:
    """bound of an epoch from unreleased counts (users-and-domains 10, number 12: the bound is visible)"""
    plain = EpochSums._next_epoch

    def decided(self: EpochSums, state: EpochState) -> EpochState:
        exact = np.concatenate([state.shown[:SHOWN], state.sizes])
        return plain(self, replace(state, shown=exact))

    return replaced(EpochSums, _next_epoch=decided)


@plant("a boundary of epochs")
def noise_follows_the_bound() -> Bug:
    """noise follows the bound inside one counter (users-and-domains 10, number 23: an event moves all later ticks)"""
    plain = EpochSums._next_epoch

    def followed(self: EpochSums, state: EpochState) -> EpochState:
        return replace(plain(self, state), sums=state.sums, closed=0)

    return replaced(EpochSums, _next_epoch=followed)
