"""Bugs in what users in several ticks are charged, and in the rules that keep their ticks apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from audit.bugs.planting import Bug, plant, replaced
from evertally.counting import sqrt
from evertally.encode import SeparatedCap
from evertally.privacy import Change, Contribution, Neighbours, Participation, neighbours
from evertally.statistics import separated_options


@plant("one user for another, in other categories")
def replaced_user_as_removed() -> Bug:
    """user replacement charged as add/remove (users-and-domains 10, bug 8: disjoint categories cost 2)"""

    def once(removed: Change, linf: int, *, signs: bool) -> Change:
        return Change(removed.l1, removed.l2_squared, linf)

    return replaced(neighbours, replaced_user=once)


@plant("one user's event moved to another tick")
def replaced_events_of_a_group() -> Bug:
    """user replacement charged as w replaced events (users-and-domains 1.2 and 10, bug 20: old and new user need not
    share ticks)"""
    original = neighbours.change

    def change(relation: Any, contribution: Contribution, columns: int, cancels: bool = True) -> Change:
        w = contribution.max_events_per_user
        if w is None or Neighbours.parse(relation) is not Neighbours.REPLACE:
            return original(relation, contribution, columns, cancels)
        event = replace(contribution, unit="event", max_events_per_user=None)
        return original(relation, event, columns).group(w)

    return replaced(separated_options, change=change)


@plant("a user at the edge of two blocks")
def calendar_as_separation() -> Bug:
    """calendar door with the charge of a separation (users-and-domains 10, bug 6: neighbouring days of two blocks)"""
    original = sqrt.toeplitz_reach

    def reach(r: Any, horizon: int, rule: Participation) -> int:
        return original(r, horizon, replace(rule, calendar=False, first_block=None))

    return replaced(sqrt, toeplitz_reach=reach)


@plant("a user of a stream that begins inside a block")
def aligned_blocks() -> Bug:
    """aligned charge for blocks that do not begin at tick 1 (users-and-domains 10, bug 21: 1.58 at T = 4, b = 2)"""
    original = sqrt.toeplitz_reach

    def reach(r: Any, horizon: int, rule: Participation) -> int:
        return original(r, horizon, replace(rule, first_block=None))

    return replaced(sqrt, toeplitz_reach=reach)


@plant("two users by turns")
def one_table_for_all() -> Bug:
    """separation kept for all users together (users-and-domains 10, bug 7: two users alternating)"""
    original = SeparatedCap.look
    return replaced(SeparatedCap, look=lambda self, users, tick: original(self, ["all"] * len(users), tick))


@plant("one block of a busy user")
def memory_across_blocks() -> Bug:
    """separation in a stream that protects blocks (users-and-domains 1.1 and 10, bug 19: kept ticks cascade)"""

    def taken(self: Contribution) -> None:
        object.__setattr__(self, "user_rule", self.user_rule or "anything")

    return replaced(Contribution, _check_separation=taken)
