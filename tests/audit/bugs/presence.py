"""Bugs of users of periods, retention tables and items that come and go."""

from __future__ import annotations

from typing import Any

import numpy as np

from audit.bugs.planting import Bug, plant, replaced
from evertally.encode.user_table import UserTable
from evertally.users import retention, retention_rule
from evertally.users.period_noise import DayMoves, EndNoise
from evertally.users.period_rule import PeriodRule
from evertally.users.present_noise import Presences
from evertally.users.present_rule import PresenceRule
from evertally.users.retention_rule import CohortRule
from evertally.users.retention_table import TableNoise
from evertally.users.white import Counted

_COHORTS = "a table of cohorts, all streams of a user"
_PERIODS = "users of periods, all streams of a user"
_ITEMS = "items that come and go, all streams of an item"


@plant(_COHORTS)
def cohort_of_the_last_event() -> Bug:
    """a cohort chosen at the last event (users-and-domains 10, row 16: a user active in j periods is in j rows)"""
    admit = CohortRule.admit

    def moving(self: CohortRule, arrivals: Any) -> Any:
        row = admit(self, arrivals)
        period = (arrivals.tick - 1) // self._cells.period + 1
        numbers = self._users.find(arrivals.names)
        self._users.write(retention_rule._COHORT, numbers, np.full(len(numbers), period + 1))
        return row

    return replaced(CohortRule, admit=moving)


@plant(_COHORTS)
def cohorts_forgotten() -> Bug:
    """users lost when a table is put away (users-and-domains 9, trap 7: who comes again is in a second row)"""
    return replaced(CohortRule, save=lambda self: UserTable(fields=2).save())


@plant(_COHORTS)
def one_draw_for_all_rows() -> Bug:
    """one shared draw for all rows of a table (users-and-domains 10, row 25: 1.60 times the claim)"""

    def end(self: TableNoise, period: int) -> None:
        places, white = self.cells.ending(period), self.white
        own = self._source.draws("cells", white.own, [period], len(places))[0, ::-1]
        shared = self._source.draws("rows", white.shared, [0] * len(places))[:, 0]  # type: ignore[arg-type]
        self._noise[1 + places] = white.noise(own, shared)

    return replaced(TableNoise, _end=end)


@plant(_COHORTS)
def a_draw_for_every_cell() -> Bug:
    """a shared draw that every cell draws for itself (users-and-domains 10, row 3: it hides no level then)"""

    def end(self: TableNoise, period: int) -> None:
        places, white = self.cells.ending(period), self.white
        own = self._source.draws("cells", white.own, [period], len(places))[0, ::-1]
        shared = self._source.draws("rows", white.shared, [period], len(places))[0]  # type: ignore[arg-type]
        self._noise[1 + places] = white.noise(own, shared)

    return replaced(TableNoise, _end=end)


@plant("a table of cohorts, users in each other's place")
def one_row_for_two_users() -> Bug:
    """replaced users charged 4 B_c in a table (users-and-domains 10, row 26: they are in two rows, twice the claim)"""
    return replaced(retention, Counted=lambda moved, group: Counted(moved if group else moved // 2, group))


@plant(_PERIODS)
def periods_noised_anew() -> Bug:
    """a period shown again with new noise (users-and-domains 2.4: each number is released once)"""

    def advance(self: EndNoise, count: int = 1) -> Any:
        ticks = range(self.tick + 1, self.tick + count + 1)
        own = self._source.draws("periods", self.white.own, ticks)
        shared = self._source.draws("centre", self.white.shared, [0])  # type: ignore[arg-type]
        self.tick += count
        return self.white.noise(own, shared)

    return replaced(EndNoise, advance=advance)


@plant(_PERIODS)
def every_period_counts() -> Bug:
    """a cap on active periods that nobody keeps (users-and-domains 2.4: the charge is for k of them)"""
    newly = PeriodRule._newly

    def forgetful(self: PeriodRule, arrivals: Any, period: int) -> int:
        found = newly(self, arrivals, period)
        numbers = self._users.find(arrivals.names)
        if self._users.fields:
            self._users.write(1, numbers, np.zeros(len(numbers), dtype=np.int64))
        return found

    return replaced(PeriodRule, _newly=forgetful)


@plant(_PERIODS)
def days_charged_by_their_last_tick() -> Bug:
    """users of a day so far charged for one tick of it (users-and-domains 2.4: a step lasts until the day is over)"""
    made = DayMoves.made

    def shorter(self: DayMoves, name: str, charge: Any, length: int) -> Any:
        days, one = made(self, name, charge, length), made(self, name, charge, 1)
        return type(days)(days.day, one.own, days.shared)

    return replaced(DayMoves, made=shorter)


@plant(_ITEMS)
def items_never_freeze() -> Bug:
    """items that come and go more often than is charged for (users-and-domains 2.5: after F changes they are frozen)"""
    init = PresenceRule.__init__

    def thawed(self: PresenceRule, *, copies: bool, most: int | None) -> None:
        init(self, copies=copies, most=None)

    return replaced(PresenceRule, __init__=thawed)


@plant(_ITEMS)
def no_shared_draw_at_its_price() -> Bug:
    """the shared draw left out, the noise of the centred plan kept (users-and-domains 10, row 4)"""
    laws = Presences.laws

    def bare(self: Presences, charge: Any) -> Any:
        found = laws(self, charge)
        return type(found)(found.factor, found.fresh, None)

    return replaced(Presences, laws=bare)
