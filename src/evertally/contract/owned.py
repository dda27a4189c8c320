"""The door of statistics that bound a user by themselves: events together with those whose they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from evertally.contract.parts import IntArray
from evertally.encode.labels import as_list, own_column, require_column
from evertally.encode.owned import OwnedTick, owned_tick

# What a statistic reads of a column of events: a row of whole numbers for each, bounded, whatever it holds.
ReadCells = Callable[[Any], IntArray]


class OwnedDoor:
    """Ticks of events and users in. `read` is what is read of the events; None: their users are all that counts.

    It has no memory: what a user may still contribute is the business of the rule behind it. `step` and totals are
    refused, for a total does not say whose it is. `run` takes a list of ticks: the users of each, or a pair of events
    and users where events are read.
    """

    def __init__(self, read: ReadCells | None = None) -> None:
        self.read = read

    def owned(self, events: Any, users: Any, tick: int) -> OwnedTick:
        """One tick; mistakes in the call raise TypeError, what records hold never does."""
        if users is None and self.read is None:
            users, events = events, None
        if users is None:
            raise TypeError("this mechanism counts users: give one user for each event, step_events(events, users=...)")
        require_column(users, "users")
        users = own_column(users)
        if self.read is None:
            return owned_tick(users, None, tick)
        require_column(events, "events")
        events = own_column(events)
        if len(users) != len(events):
            raise TypeError("users and events differ in length; give exactly one user for each event")
        return owned_tick(users, self.read(events), tick)

    def total(self, x: Any, tick: int) -> OwnedTick:
        raise TypeError("there are no totals of users to hand over: use step_events")

    def events(self, events: Any, tick: int) -> OwnedTick:
        return self.owned(events, None, tick)

    def many(self, x: Any, first: int) -> list[tuple[Any, int]]:
        require_column(x, "the ticks of a run")
        return [(tick, first + i) for i, tick in enumerate(as_list(x))]

    def pieces(self, many: list[tuple[Any, int]]) -> Iterator[list[OwnedTick]]:
        for content, tick in many:
            if self.read is None:
                yield [self.owned(None, content, tick)]
            elif isinstance(content, tuple) and len(content) == 2:
                yield [self.owned(*content, tick)]
            else:
                raise TypeError("run takes a pair (events, users) for each tick")

    def batch(self, totals: OwnedTick) -> list[OwnedTick]:
        return [totals]

    def last(self, batch: list[OwnedTick]) -> OwnedTick:
        return batch[-1]

    def digest(self, totals: OwnedTick) -> bytes:
        return totals.digest()
