"""Bugs of distinct users: who is forgotten, what shares a place, what is charged (users-and-domains 10)."""

from __future__ import annotations

from typing import Any

import numpy as np

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally.encode.texts import Texts
from evertally.encode.user_table import UserTable
from evertally.users import distinct
from evertally.users.distinct_charge import moved_by
from evertally.users.distinct_rules import FirstCategories, FirstPairs, FirstSeen

_offered = FirstPairs.offered


@plant("users who come back after a restart")
def forgotten_at_restart() -> Bug:
    """the set of users is lost at a restart (users-and-domains 10: bug 1, a user counts twice)"""

    def load(self: FirstSeen, tick: int, data: bytes) -> None:
        self.users = UserTable(fields=0)

    return replaced(FirstSeen, load=load)


@plant("users who share a bit")
def bits_as_names() -> Bug:
    """a map of bits charged as a table of names (users-and-domains 10: bug 2, a bit-mate takes the user's place)"""
    return replaced(distinct, moved_by=lambda *step, full=False, **options: moved_by(*step, **options))


@plant("one event of a user")
def events_as_users() -> Bug:
    """one event charged as a whole user (users-and-domains 2.1: the weaker unit is the dearer one)"""
    return replaced(distinct, moved_by=lambda relation, unit, **options: moved_by(relation, "user", **options))


@plant("users in a category")
def labels_without_users() -> Bug:
    """pairs deduplicated by their label alone (users-and-domains 10: bug 14, two users, one label)"""

    def offered(self: FirstPairs, names: Texts, codes: Any, cells: Any) -> Any:
        return _offered(self, Texts.of(["everybody"]), np.zeros_like(codes), cells)

    return replaced(FirstPairs, offered=offered)


@plant("users in undeclared categories")
def labels_before_columns() -> Bug:
    """labels deduplicated before they become columns (users-and-domains 10: bug 22, a user with m undeclared labels)"""

    def reader(labels: Any, other: bool) -> Any:
        numbers: dict[Any, int] = {label: i for i, label in enumerate(labels[:-1])}
        return lambda events: np.array([[numbers.setdefault(e, len(numbers))] for e in events], np.int64).reshape(-1, 1)

    def admit(self: FirstCategories, tick: Any) -> Any:
        users, cells, fields = self.pairs.offered(tick.names, tick.codes, tick.cells[:, 0])
        self.pairs.write(users, cells, fields)
        return np.bincount(np.minimum(cells, self._width - 1), minlength=self._width)

    return all_of(replaced(distinct, column_reader=reader), replaced(FirstCategories, admit=admit))


@plant("an erased user who comes back")
def erased_user_counts_again() -> Bug:
    """an erased user counts again (users-and-domains 10: bug 24; the digest of a name must be recognised)"""

    def erase(self: FirstSeen, names: Texts) -> None:
        self.users.begin()
        self.users.forget(self.users.find(names))
        self.users.begin()

    return replaced(FirstSeen, erase=erase)
