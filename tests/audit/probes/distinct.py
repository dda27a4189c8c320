"""Probes of distinct users: the rows of their short audit that play no games."""

from __future__ import annotations

from typing import Any

from audit.probes.applications import verdict
from audit.probes.probing import Verdict, probe
from audit.probes.user_ticks import apart, of
from evertally.audit.owned import OwnedSearch
from evertally.audit.report import Report
from evertally.noise import simulation
from evertally.privacy import ZCDP
from evertally.users.distinct import DistinctUsers

_WARDS = ["north", "south", "west"]


def row(**options: Any) -> Report:
    """The row of the short audit that searches for neighbours. Epochs share no noise: all that is moved shows."""
    made = DistinctUsers(guarantee=ZCDP(0.5), horizon=None, mechanism="epoch-tree", key=simulation(0), **options)
    return OwnedSearch(made, most=60).report()


@probe("closed form", "users who come back after a restart")
def returning() -> Verdict:
    return verdict(row())


@probe("closed form", "users who share a bit")
def bit_mates() -> Verdict:
    return verdict(row(bits=256))


@probe("closed form", "one event of a user")
def one_event() -> Verdict:
    return verdict(row(unit="event"))


@probe("closed form", "users in a category")
def in_categories() -> Verdict:
    return verdict(row(by=_WARDS, max_categories=2))


@probe("closed form", "users in undeclared categories")
def undeclared() -> Verdict:
    return verdict(row(by=_WARDS[:1], other="rest", max_categories=2))


def erased(made: Any) -> Any:
    """What happens to a mechanism between two ticks: a user is erased."""
    if made.tick:
        made.erase(["ann"])
    return made


@probe("closed form", "an erased user who comes back")
def erased_user() -> Verdict:
    def make(key: Any) -> DistinctUsers:
        return DistinctUsers(guarantee=ZCDP(0.5), horizon=8, mechanism="sqrt", key=key)

    return apart(make, of("ann", (1, 2), 8), of("ann", (), 8), erased)
