"""Users of each period: of the last one that is over, or of the one that runs, so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from evertally.applications.encoder import EncodedEngine
from evertally.contract.forms import NumberForm
from evertally.contract.mechanism import Mechanism
from evertally.contract.options import check_neighbours, option, statistic
from evertally.contract.owned import OwnedDoor
from evertally.contract.parts import Blueprint
from evertally.contract.ticks import LONGEST_HORIZON
from evertally.counting.linear import LinearEngine
from evertally.counting.process import NoiseProcess
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Change, Contribution, Neighbours
from evertally.ranking import Ranking
from evertally.users.day_factor import LONGEST_DAY
from evertally.users.options import check_users
from evertally.users.period_noise import DayMoves, DayNoise, EndNoise, day_ways
from evertally.users.period_rule import PeriodRule
from evertally.users.white import Counted, made, white_ways


@statistic
class PeriodUsers(Mechanism):
    """How many users were active in a period of `period` ticks, everybody counted once.

    The number of a period is released when it is over, and shown again until the next one is (0 before the first).
    With `so_far=True` the number of the period that runs is released at every tick, and begins anew with each period.
    A last period that the horizon cuts off is not released without `so_far`.

    Theorem (users-and-domains 2.4 and 1.5 [R]): streams with and without all events of one user ("add_remove"), any
    number of events, are told apart by at most `guarantee`, also when they are chosen after seeing releases. Factors
    (standard deviation times sqrt(2 rho)) for N periods: (sqrt(N) + 1)/2 with one draw that all releases share
    ("centred"), sqrt(k) if only the first k active periods of a user count (`max_active_periods`; worth it for
    k < N/4, and without a horizon the only way); "so far" 32.2 for 365 days of 24 ticks. "replace": sqrt(min(2k, N)),
    no shared draw. Exactness tier "exact". Time O(users of the tick), "so far" also O(K) numbers of `period` words;
    memory O(users of the period), with `max_active_periods` O(users ever seen).

    >>> import evertally as et
    >>> days = et.PeriodUsers(period=2, guarantee=et.ZCDP(30), horizon=6, key=et.simulation(1))
    >>> [days.step_events(users).value for users in (["ann"], ["ann", "bob"], ["cid"], ["cid"], [])]
    [0, 2, 2, 1, 1]
    >>> today = et.PeriodUsers(period=24, so_far=True, guarantee=et.ZCDP(0.5), horizon=8760, key=et.simulation(1))
    >>> today.mechanism, round(today.worst_stddev(), 1)
    ('centred', 32.2)
    """

    period: int = option("How many ticks a period has.")
    so_far: bool = option("Whether the period that runs is shown at every tick.", default=False)
    max_active_periods: int | None = option(
        "How many active periods of a user count in the whole stream; None: all of them.", default=None
    )
    unit: Literal["user"] = option(
        'What is protected: all events of one "user"; there is no other unit.', default="user"
    )

    @classmethod
    def user_rule(cls, options: Mapping[str, Any]) -> str:
        most = options.get("max_active_periods")
        return "every period counts once" if most is None else f"the first {most} active periods count, each once"

    def ways(self) -> Ranking:
        """The ranked table of ways to make the noise, with bounds that hold with probability 95 %."""
        return self._ranked("auto")

    def _ranked(self, mechanism: str) -> Ranking:
        counted, length = self._counted, self._length
        if self.so_far:
            return day_ways(self.guarantee, self._moves, length, mechanism, self.horizon)
        numbers = None if self.horizon is None else self.horizon // length
        return white_ways(self.guarantee, counted, mechanism, numbers, 16)

    def _blueprint(self) -> Blueprint:
        relation = check_neighbours(self.neighbours, self.guarantee)
        check_users(self)
        length = self._length = whole("period", self.period, 1, LONGEST_DAY if self.so_far else LONGEST_HORIZON)
        most = self.max_active_periods
        if most is not None:
            most = self.max_active_periods = whole("max_active_periods", most, 1, LONGEST_HORIZON)
        periods = self._periods(length)
        self._counted = counted = _counted(relation, periods, most)
        self._moves = moves = DayMoves(counted.moved, counted.group, relation is Neighbours.REPLACE)
        best = self._ranked(self.mechanism).best
        charge: Any = best.charge
        horizon, so_far = self.horizon, self.so_far

        def noise(source: ItemSource) -> NoiseProcess:
            if so_far:
                return DayNoise(moves.made(best.name, charge, length), horizon=horizon, source=source)
            return EndNoise(made(best.name, charge, counted), length, horizon=horizon, source=source)

        def engine(source: ItemSource) -> EncodedEngine:
            rule: Any = PeriodRule(length, so_far=so_far, most=most)
            return EncodedEngine(rule, LinearEngine(lambda: noise(source)))

        ticks = length if so_far else 1
        return Blueprint(
            word="PeriodUsers",
            address=self._given("period", "so_far", "max_active_periods", "unit"),
            mechanism=best.name,
            charge=charge,
            contribution=Contribution(unit="user", user_rule=self.user_rule({"max_active_periods": most})),
            sensitivity=Change(counted.moved * ticks, counted.moved * ticks, 1),
            door=lambda source, limit: OwnedDoor(),
            engine=engine,
            form=NumberForm(1),
            owned=True,
        )

    def _periods(self, length: int) -> int | None:
        """In how many periods a user can be shown; None: no limit."""
        if self.horizon is None:
            if self.max_active_periods is None:
                raise ConfigurationError(
                    "without a horizon a user may be active in any number of periods: declare the horizon, or "
                    "max_active_periods, how many periods of a user count"
                )
            return None
        if self.so_far:
            return -(-self.horizon // length)
        if length > self.horizon:
            raise ConfigurationError(f"a period of {length} ticks is not over within the horizon of {self.horizon}")
        return self.horizon // length


def _counted(relation: Neighbours, periods: int | None, most: int | None) -> Counted:
    """In how many periods one step of the relation changes the count, by 1 each."""
    limits = [limit for limit in (periods, most) if limit is not None]
    if relation is not Neighbours.REPLACE:
        return Counted(min(limits), periods)
    # The old and the new user may be active in different periods; in the same one they make no difference.
    both = [limit for limit in (periods, None if most is None else 2 * most) if limit is not None]
    return Counted(min(both), None)
