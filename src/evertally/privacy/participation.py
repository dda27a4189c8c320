"""How often a user may take part: at most so many ticks, so far apart (users-and-domains 1.3).

What that costs belongs to a noise process, never to the query: a process that knows its own Gram matrix answers for the
separation, any other pays for a group (counting/participation.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.privacy.neighbours import Change, Contribution, Neighbours, change

_LONGEST = 2**40


@dataclass(frozen=True)
class Participation:
    """One user is in at most `ticks` ticks (None: as many as fit), any two of them at least `separation` ticks apart;
    or (`calendar`) in at most one tick of every public block of `separation` ticks, the first of which has
    `first_block` ticks (None: all of them). In each of these ticks the user moves the row by at most `per_tick`.

    `times`: 1 where users are there or not; 2 where one is replaced by another, 4 if two of their rows may have a
    negative inner product.

    >>> weekly = Participation(Change(1, 1, 1), ticks=52, separation=7)
    >>> weekly.most(365), weekly.most(30), weekly.group(365)
    (52, 5, Change(l1=52, l2_squared=2704, linf=52))
    """

    per_tick: Change
    ticks: int | None
    separation: int = 1
    calendar: bool = False
    first_block: int | None = None
    times: int = 1

    def __post_init__(self) -> None:
        if self.ticks is not None:
            object.__setattr__(self, "ticks", whole("max_ticks_per_user", self.ticks, 1, _LONGEST))
        object.__setattr__(self, "separation", whole("min_separation", self.separation, 1, _LONGEST))
        if self.first_block is not None:
            if not self.calendar:
                raise ConfigurationError("first_block belongs to calendar=True: how many ticks the first block has")
            object.__setattr__(self, "first_block", whole("first_block", self.first_block, 1, self.separation))
        if self.times not in (1, 2, 4):
            raise ConfigurationError("a user who is there or not counts once, a replaced one 2 or 4 times")

    @property
    def first(self) -> int:
        """How many ticks the first block has."""
        return self.separation if self.first_block is None else self.first_block

    def starts(self, count: int) -> list[int]:
        """The earliest ticks that a user can be in, one after the other: of the calendar the first of each block."""
        later = 1 + (self.first if self.calendar else self.separation)
        return [1 if i == 0 else later + (i - 1) * self.separation for i in range(count)]

    def most(self, horizon: int | None) -> int:
        """How many ticks a user is in at most."""
        if horizon is None:
            if self.ticks is None:
                raise ConfigurationError(
                    "without a horizon a user needs max_ticks_per_user: however far apart, ticks without end add up"
                )
            return self.ticks
        first = self.first if self.calendar else self.separation
        fit = 1 + max(0, -(-(horizon - first) // self.separation))
        return fit if self.ticks is None else min(self.ticks, fit)

    def group(self, horizon: int | None) -> Change:
        """What holds for every noise whose Gram matrix is nowhere negative: all ticks as if they were one."""
        return self._relation(self.per_tick.group(self.most(horizon)))

    def loose(self, horizon: int | None) -> Change:
        """The same for noise of which nothing is proved."""
        moved = self.group(horizon)
        return Change(moved.l1, 2 * moved.l2_squared, moved.linf) if self.times == 2 else moved

    def in_one_tick(self) -> Change:
        """How far two neighbouring streams are apart in any one tick."""
        return self._relation(self.per_tick)

    def _relation(self, moved: Change) -> Change:
        both = 1 if self.times == 1 else 2
        return Change(both * moved.l1, self.times * moved.l2_squared, (2 if self.times == 4 else 1) * moved.linf)


def participation(neighbours: Neighbours | str, contribution: Contribution, columns: int) -> Participation | None:
    """What a contribution says about the ticks of a user; None if it says nothing.

    >>> rule = Contribution(unit="user", max_ticks_per_user=52, min_separation=7)
    >>> found = participation("replace", rule, columns=1)
    >>> found.ticks, found.separation, found.times
    (52, 7, 2)
    """
    relation = Neighbours.parse(neighbours)
    if not contribution.separated:
        return None
    if relation is Neighbours.INDEPENDENT:
        raise ConfigurationError("independent neighbours are defined for unit='event', protects='event' only")
    event = Contribution(
        max_per_event=contribution.max_per_event, max_weight=contribution.max_weight, signed=contribution.signed
    )
    one = change(Neighbours.ADD_REMOVE, event, columns)
    replaced = 4 if contribution.signed else 2
    return taking_part(contribution, one, 1 if relation is Neighbours.ADD_REMOVE else replaced)


def taking_part(contribution: Contribution, event: Change, times: int) -> Participation:
    """The same for events that move the row by at most `event` each."""
    ticks, separation = contribution.max_ticks_per_user, contribution.min_separation or 1
    if contribution.unit == "user-period":
        # Blocks of the calendar lie inside periods: of one period a user is in so many ticks, and in no others.
        assert contribution.period is not None
        ticks = contribution.period // separation
    per_tick = event.group(contribution.max_events_per_user_tick)
    return Participation(per_tick, ticks, separation, contribution.calendar, contribution.first_block, times)
