"""Retention: of those who came first in one period, how many are active in the periods after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from evertally.applications.encoder import EncodedEngine
from evertally.contract.mechanism import Mechanism
from evertally.contract.options import check_neighbours, option, statistic
from evertally.contract.owned import OwnedDoor
from evertally.contract.parts import Blueprint
from evertally.contract.ticks import LONGEST_HORIZON
from evertally.counting.linear import LinearEngine
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Contribution, Neighbours
from evertally.ranking import Ranking
from evertally.users.options import check_users
from evertally.users.retention_rule import CohortRule
from evertally.users.retention_table import Cells, TableForm, TableNoise
from evertally.users.white import Counted, made, white_ways

_MOST_CELLS = 1 << 20


@statistic
class Retention(Mechanism):
    """How many users of each cohort are active again, period by period.

    A cohort are the users whose first event lies in one period of `period` ticks; cell (cohort, age) is how many of
    them are active in the period that is `age` periods later, ages below `ages`. Each cell is released once, when its
    period is over, and shown again until the stream ends. `value` is a table {cohort: [number for each age]}; cohorts
    count from 1, and age 0 is the size of the cohort. A last period that the horizon cuts off is not counted.

    Theorem (users-and-domains 2.4 and 1.5 [R]): streams with and without all events of one user ("add_remove"), any
    number of events, are told apart by at most `guarantee`, also when they are chosen after seeing releases. A user is
    in one row and in at most `ages` cells, so each cell has noise of factor sqrt(ages), or, with one draw that a row
    shares ("centred"), (sqrt(ages) + 1)/2: 2.23 for 12 ages (over sqrt(2 rho)); differences inside of a row do not
    carry the shared half. "replace": 2 ages cells, without shared draws. Exactness tier "exact". Time O(users of the
    tick + cells), at the end of a period O(users); memory O(users ever seen): who is forgotten would be in two rows.

    >>> import evertally as et
    >>> weeks = et.Retention(period=2, ages=3, guarantee=et.ZCDP(30), horizon=6, key=et.simulation(1))
    >>> ticks = [["ann", "bob"], ["ann"], ["bob", "cid"], [], ["bob"], ["cid", None]]
    >>> [weeks.step_events(users).value for users in ticks][-1]
    {1: [2, 1, 1], 2: [1, 1], 3: [0]}
    >>> year = et.Retention(period=7, ages=12, guarantee=et.ZCDP(0.5), horizon=364, key=et.simulation(1))
    >>> year.mechanism, round(year.stddev(364), 2)
    ('centred', 2.25)
    """

    period: int = option("How many ticks a period has.")
    ages: int = option("How many periods a cohort is followed, the first one included.")
    by_cell: bool = option(
        "Whether the value is flat, {'cohort 1, age 0': number}, as files and pages have it.", default=False
    )
    unit: Literal["user"] = option(
        'What is protected: all events of one "user"; there is no other unit.', default="user"
    )

    @classmethod
    def user_rule(cls, options: Mapping[str, Any]) -> str:
        return "the first event says the cohort, and every period counts once"

    def ways(self) -> Ranking:
        """The ranked table of ways to make the noise, with bounds that hold with probability 95 %."""
        return self._ranked("auto")

    def _ranked(self, mechanism: str) -> Ranking:
        memory = 8 * (1 + len(self._cells))
        return white_ways(self.guarantee, self._counted, mechanism, len(self._cells), memory)

    def _blueprint(self) -> Blueprint:
        relation = check_neighbours(self.neighbours, self.guarantee)
        check_users(self)
        cells = self._cells = _cells_of(self.period, self.ages, self.horizon)
        longest = min(cells.ages, cells.periods)
        replaced = relation is Neighbours.REPLACE
        self._counted = counted = Counted(2 * longest, None) if replaced else Counted(longest, longest)
        best = self._ranked(self.mechanism).best
        charge: Any = best.charge
        horizon = self.horizon
        assert horizon is not None

        def engine(source: ItemSource) -> EncodedEngine:
            white = made(best.name, charge, counted)
            noise = LinearEngine(lambda: TableNoise(white, cells, horizon=horizon, source=source))
            rule: Any = CohortRule(cells)
            return EncodedEngine(rule, noise)

        return Blueprint(
            word="Retention",
            address=self._given("period", "ages", "unit"),
            mechanism=best.name,
            charge=charge,
            contribution=Contribution(unit="user", user_rule=self.user_rule({})),
            sensitivity=counted.change,
            door=lambda source, limit: OwnedDoor(),
            engine=engine,
            form=TableForm(cells, by_cell=self.by_cell),
            owned=True,
        )


def _cells_of(period: Any, ages: Any, horizon: int | None) -> Cells:
    if horizon is None:
        raise ConfigurationError("a table has a row for each period: declare the horizon, how many ticks there are")
    ticks, ages = whole("period", period, 1, LONGEST_HORIZON), whole("ages", ages, 1, LONGEST_HORIZON)
    if ticks > horizon:
        raise ConfigurationError(f"a period of {ticks} ticks is not over within the horizon of {horizon}")
    cells = Cells(ticks, horizon // ticks, ages)
    if len(cells) > _MOST_CELLS:
        raise ConfigurationError(
            f"{cells.periods} periods of {ages} ages are {len(cells)} cells, above {_MOST_CELLS}; choose longer "
            "periods or fewer ages"
        )
    return cells
