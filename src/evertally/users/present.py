"""Items that are inserted and deleted, and how many of them are present."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from evertally.applications.encoder import EncodedEngine
from evertally.contract.doors import RecordsOfTicks
from evertally.contract.forms import NumberForm
from evertally.contract.guarded import exclusive
from evertally.contract.mechanism import Mechanism
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint
from evertally.contract.release import Release
from evertally.contract.ticks import LONGEST_HORIZON
from evertally.counting.linear import LinearEngine
from evertally.counting.process import NoiseProcess
from evertally.dynamic.families import Count
from evertally.encode.frames import Table, column
from evertally.encode.updates import UpdateDoor, records, updates_of
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Contribution, Neighbours
from evertally.ranking import Ranking
from evertally.users.present_noise import Presences
from evertally.users.present_rule import PresenceRule


@statistic
class PresentItems(Mechanism):
    """How many items are present, where an item may come back: sessions that are open, seats that are taken, words that
    are in a dictionary.

    Records and columns as in `DynamicCount`, by id. `semantics="set"`: an item is present if the last record about it
    inserted it; "copies": while more of it was inserted than deleted. Deleting what is not there does nothing. An item
    whose presence has changed `max_flips` times, from tick to tick, stays as it is for ever; whoever sets it too low
    gets biased counts, not less privacy.

    Theorem (users-and-domains 2.5, 1.4 and 1.5 [R, for a declared number of flips]): streams with and without all
    records of one item ("add_remove") are told apart by at most `guarantee`, also when they are chosen after seeing
    releases. With F flips an item's path has at most ceil(F/2) runs. Factors (standard deviation times sqrt(2 rho)) for
    4096 ticks: 4.9 for F = 2, 7.7 for 8, 12.2 for 32, 27 for 512; 32.5 without a limit. "replace": noise for four times
    the squared norm, no shared draw. `protects="event"`: one record; for "set" without `max_flips`, where the worlds
    agree again at the next record of the item: factor 4.8. Pure budgets: a process for running sums of changes, or
    independent Laplace noise. Exactness tier "exact". Time O(1) for a record and O(K) for a tick, K < 700; memory
    O(items ever inserted).

    >>> import evertally as et
    >>> seats = et.PresentItems(max_flips=8, guarantee=et.ZCDP(0.5), horizon=4096, key=et.simulation(1))
    >>> release = seats.step_events(["a1", "a2", "b1"], deleted=["a2"])
    >>> seats.mechanism, round(seats.stddev(4096), 2)
    ('path', 7.65)
    >>> lower, upper = release.interval(beta=0.01)
    >>> lower <= 2 <= upper
    True
    """

    max_flips: int | None = option(
        "How often the presence of an item may change in the whole stream; None: no limit.", default=None
    )
    semantics: Literal["set", "copies"] = option(
        'Whether an item is there or not ("set"), or there while there are "copies" of it.', default="set"
    )
    protects: Literal["event", "item"] = option(
        'What is protected: one "item", all records that name it, or one "event".', default="item"
    )

    @exclusive
    def step_events(self, events: Any, deleted: Any = None, *, users: Any = None, tick: int | None = None) -> Release:
        """One tick from records (action, value, id), the value being nothing; or, with `deleted`, from the names that
        are inserted and those that are deleted, in this order."""
        if deleted is not None:
            events, deleted = column(events), column(deleted)
            events = records(events, deleted, pairs=False, by_name=True, named=True)
        plain: Any = Mechanism.step_events
        release: Release = plain.__wrapped__(self, events, users=users, tick=tick)
        return release

    def _of_table(self, found: Table) -> Any:
        return updates_of(found, ["action", "id"])

    @property
    def protected_unit(self) -> str:
        return "event" if self.protects == "event" else "item by id"

    def ways(self) -> Ranking:
        """The ranked table of ways to make the noise, with bounds that hold with probability 95 %."""
        return self._presences.ways(self.guarantee, "auto")

    def _blueprint(self) -> Blueprint:
        most = self._checked()
        assert self.horizon is not None
        presences = self._presences = Presences(
            self.horizon, most, self.protects == "event", Neighbours.parse(self.neighbours) is Neighbours.REPLACE
        )
        best = presences.ways(self.guarantee, self.mechanism).best
        charge: Any = best.charge
        copies = self.semantics == "copies"
        made: Callable[[Any], NoiseProcess] = presences.process(best.name, charge)
        door = UpdateDoor(Count().cell, by_name=True, named=True, single=True)

        def engine(source: ItemSource) -> EncodedEngine:
            rule: Any = PresenceRule(copies=copies, most=most)
            return EncodedEngine(rule, LinearEngine(lambda: made(source)))

        return Blueprint(
            word="PresentItems",
            address=self._given("max_flips", "semantics", "protects", "unit"),
            mechanism=best.name,
            charge=charge,
            contribution=Contribution(signed=True),
            sensitivity=presences.change,
            door=lambda source, limit: RecordsOfTicks(door.arrivals, 1),
            engine=engine,
            form=NumberForm(1),
        )

    def _checked(self) -> int | None:
        """The limit on flips; refuses what nobody has proved."""
        if self.semantics not in ("set", "copies"):
            raise ConfigurationError(f'semantics is "set" or "copies", not {self.semantics!r}')
        if self.protects not in ("event", "item"):
            raise ConfigurationError(f'protects is "item" or "event", not {self.protects!r}')
        if self.unit != "event" or self.max_events_per_user is not None:
            raise ConfigurationError(
                "PresentItems protects items, or single records; items that several users insert have no proved "
                "charge. Leave unit and max_events_per_user out"
            )
        if Neighbours.parse(self.neighbours) is Neighbours.INDEPENDENT:
            raise ConfigurationError('items are there or not ("add_remove"), or in each other\'s place ("replace")')
        if self.horizon is None:
            raise ConfigurationError(
                "how often and how long an item is present has no bound without a horizon: declare it"
            )
        if self.protects == "event":
            if self.semantics == "copies" or self.max_flips is not None:
                raise ConfigurationError(
                    "one record more or less may change all later presence of an item where copies or flips are "
                    "counted; use protects='item', or semantics='set' without max_flips"
                )
            if Neighbours.parse(self.neighbours) is Neighbours.REPLACE:
                raise ConfigurationError('one record in place of another is not covered; use neighbours="add_remove"')
        return None if self.max_flips is None else whole("max_flips", self.max_flips, 1, LONGEST_HORIZON)
