"""Which streams are neighbours, and by how much one step of the neighbouring relation can change a stream.

The time of an event is kept in every relation: an event is emptied or replaced in its tick, later events do
not shift (factorization-counting 1.1, streaming-selection 1.1). A tick may hold any number of events.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from evertally.errors import ConfigurationError
from evertally.integers import whole


class Neighbours(Enum):
    """What an outsider must not notice. One relation per stream.

    - ADD_REMOVE: one event is there or not; its tick stays.
    - REPLACE: one event has any other legal content; its tick stays.
    - INDEPENDENT: in *each* column, one event of its own tick has another value (parameterized-histograms 1.2).
      Proved for linear per-column mechanisms and oblivious input only (parameterized-histograms 6).

    >>> Neighbours.parse("replace")
    <Neighbours.REPLACE: 'replace'>
    """

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"
    INDEPENDENT = "independent"

    @classmethod
    def parse(cls, value: str | Neighbours) -> Neighbours:
        if issubclass(type(value), str):
            value = str.__str__(value)  # a subclass may be equal to another word every time
        try:
            return cls(value)
        except ValueError:
            options = ", ".join(repr(relation.value) for relation in cls)
            raise ConfigurationError(f"neighbours must be one of {options}, not {value!r}") from None


@dataclass(frozen=True)
class Contribution:
    """What one event may contribute, as enforced before it is counted.

    An event is a set of labels with integer weights: at most `max_per_event` labels, each with a weight of
    at most `max_weight` (and, if `signed`, at least `-max_weight`; otherwise at least 0).

    - `protects="event"`: the whole content of the event. `protects="item"`: one item of it. Then `truncated` says that
      longer events are cut to `max_per_event` labels, and **the cut must rank each label by a fixed function of the
      label (and tick) alone**: under an order that depends on the rest of the event, one item more can change every
      label that is kept. `merged` says that several items may meet in one column (duplicates, an OTHER column) and are
      added up before weights are bounded and events are cut; False promises that each item has its column to itself.
    - `unit="user"`: all events of one user, at most `max_events_per_user` in the life of the stream, kept
      by a rule that looks at that user's own events only (price-of-continual-release 9.5). Or any number of them, where
      the statistic bounds a user by itself: `user_rule` says how (users-and-domains 1.1).
    - `unit="user-period"`: all events of one user inside one public block of `period` ticks (users-and-domains 1.1).
      Weaker than "user": whoever is active in many blocks is protected less.
    - `max_ticks_per_user`, `min_separation`, `calendar`: in place of `max_events_per_user` a user counts in at most so
      many ticks, so many ticks apart, or (`calendar`) once in every public block of `min_separation` ticks; in each of
      them with at most `max_events_per_user_tick` events (users-and-domains 1.3; privacy/participation.py).

    >>> Contribution(max_per_event=3, max_weight=2).signed
    False
    """

    max_per_event: int = 1
    max_weight: int = 1
    signed: bool = False
    protects: Literal["event", "item"] = "event"
    truncated: bool = True
    merged: bool = True
    unit: Literal["event", "user", "user-period"] = "event"
    max_events_per_user: int | None = None
    user_rule: str = ""
    period: int | None = None
    max_ticks_per_user: int | None = None
    min_separation: int | None = None
    calendar: bool = False
    first_block: int | None = None
    max_events_per_user_tick: int = 1
    in_steps: bool = False  # a replaced user pays for 2w replaced events: what streams of earlier versions pay

    def __post_init__(self) -> None:
        # Kept as Python's own integers: what is charged for must be what was checked.
        object.__setattr__(self, "max_per_event", whole("max_per_event", self.max_per_event, 1))
        object.__setattr__(self, "max_weight", whole("max_weight", self.max_weight, 1))
        if self.protects not in ("event", "item"):
            raise ConfigurationError(f"protects must be 'event' or 'item', not {self.protects!r}")
        if self.unit not in ("event", "user", "user-period"):
            raise ConfigurationError(f"unit must be 'event', 'user' or 'user-period', not {self.unit!r}")
        if self.unit != "user" and self.max_events_per_user is not None:
            raise ConfigurationError("max_events_per_user only has a meaning with unit='user'")
        if (self.unit == "user-period") != (self.period is not None):
            raise ConfigurationError("unit='user-period' goes with a period, the number of ticks of a block")
        if self.period is not None:
            object.__setattr__(self, "period", whole("period", self.period, 1))
        self._check_separation()
        if self.unit == "user-period" and not self.user_rule:
            # One removed event may change which later ones are kept, without bound (users-and-domains 1.1).
            raise ConfigurationError(
                "unit='user-period' is for statistics that bound a user in every block by themselves, such as "
                "DistinctUsers and ActiveUsers; use unit='user'"
            )
        if self.unit == "user" and not self.user_rule:
            if self.max_events_per_user is None:
                raise ConfigurationError(
                    "unit='user' needs max_events_per_user: the number of events of one user that are kept "
                    "in the whole life of the stream"
                )
            capped = whole("max_events_per_user", self.max_events_per_user, 1)
            object.__setattr__(self, "max_events_per_user", capped)
        if self.unit != "event" and self.protects == "item":
            raise ConfigurationError(f"unit={self.unit!r} protects whole events; use protects='event'")

    @property
    def separated(self) -> bool:
        """Whether a user's ticks are limited, or kept apart."""
        return self.max_ticks_per_user is not None or self.min_separation is not None

    def _check_separation(self) -> None:
        """A rule with memory is for whole users: without one event, or one block, it may keep other later ones, without
        bound (users-and-domains 1.1). Once in a block of the calendar looks at that block alone."""
        for name in ("max_ticks_per_user", "min_separation", "first_block"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        most = whole("max_events_per_user_tick", self.max_events_per_user_tick, 1)
        object.__setattr__(self, "max_events_per_user_tick", most)
        if not self.separated:
            if self.calendar or self.first_block is not None or most != 1:
                raise ConfigurationError(
                    "calendar, first_block and max_events_per_user_tick go with min_separation or max_ticks_per_user"
                )
            return
        if self.unit == "event":
            raise ConfigurationError(
                "max_ticks_per_user and min_separation go with unit='user': without one of a user's events other later "
                "ones would be kept, and no charge for single events covers that"
            )
        if self.max_events_per_user is not None:
            raise ConfigurationError(
                "max_events_per_user is another rule than max_ticks_per_user and min_separation: give one of them"
            )
        if self.calendar and self.min_separation is None:
            raise ConfigurationError("calendar needs min_separation: the length of a block, in ticks")
        if self.first_block is not None and not (self.calendar and self.first_block <= (self.min_separation or 1)):
            raise ConfigurationError(
                "first_block goes with calendar=True, and is at most min_separation: how many ticks the first block has"
            )
        if self.unit == "user-period":
            b = self.min_separation or 1
            aligned = self.calendar and self.first_block in (None, b) and (self.period or 0) % b == 0
            if not aligned or self.max_ticks_per_user is not None:
                raise ConfigurationError(
                    "unit='user-period' keeps ticks by blocks of the calendar alone: calendar=True, with a "
                    "min_separation that divides the period, and no max_ticks_per_user"
                )
        object.__setattr__(self, "user_rule", self.user_rule or separation_rule(self))


def separation_rule(contribution: Any) -> str:
    """The rule in words that follow "of each user".

    >>> separation_rule(Contribution(unit="user", max_ticks_per_user=52, min_separation=7))
    'the first event of a tick counts, in at most 52 ticks, each at least 7 ticks after the one before'
    """
    n, k, b = (
        contribution.max_events_per_user_tick,
        contribution.max_ticks_per_user,
        contribution.min_separation,
    )
    events = "the first event of a tick counts" if n == 1 else f"the first {n} events of a tick count"
    most = "" if k is None else f", in at most {k} ticks"
    if contribution.calendar:
        return f"{events}{most}, of every block of {b} ticks in one"
    return events + most + ("" if b is None or b == 1 else f", each at least {b} ticks after the one before")


@dataclass(frozen=True)
class Change:
    """The largest change of a stream in one step of the neighbouring relation.

    Summed over all changed (tick, column) cells: `l1` and `l2_squared`; `linf` for one column. For a change
    in one tick these are the norms of its row difference; changes of several ticks are bounded as if they
    met in one, the worst case of the sensitivity lemma (factorization-counting 2.4, S1 and S2).

    >>> Change(l1=2, l2_squared=2, linf=1).group(3)
    Change(l1=6, l2_squared=18, linf=3)
    """

    l1: int
    l2_squared: int
    linf: int

    def group(self, size: int) -> Change:
        """The change by `size` such steps (triangle inequality)."""
        k = whole("the size of a group", size, 1)
        return Change(k * self.l1, k * k * self.l2_squared, k * self.linf)


def change(neighbours: Neighbours | str, contribution: Contribution, columns: int, cancels: bool = True) -> Change:
    """How far apart two neighbouring streams can be, for events counted in `columns` columns.

    Theorems: the table of factorization-counting 6.3 [R], scaled by `max_weight` (for one of several merged items a
    little more, see the comments in `_item`); price-of-continual-release 9.4 for `min(2b, d)`. INDEPENDENT:
    parameterized-histograms 1.2, 1.7 and 6 (all columns change, each in its own tick; a limit on labels per event does
    not help and is refused). User level: adding or removing a user is a group of w events (price-of-continual-release
    9.5), replacing one twice that in l1 and in l2_squared (users-and-domains 1.2 [R]), signed rows four times in
    l2_squared; `linf` goes on to say how many events differ at most, 2w of them, and is no norm of the difference.

    `cancels=False`: for noise whose Gram matrix may be negative somewhere. What an old and a new user do to such a
    release may add up, and a replaced user costs four times in l2_squared whatever the signs.

    >>> change("add_remove", Contribution(max_per_event=3), columns=10)
    Change(l1=3, l2_squared=3, linf=1)
    >>> change("replace", Contribution(max_per_event=3, max_weight=2), columns=4)
    Change(l1=8, l2_squared=16, linf=2)
    >>> change("replace", Contribution(unit="user", max_events_per_user=3), columns=10)
    Change(l1=6, l2_squared=18, linf=6)
    """
    relation = Neighbours.parse(neighbours)
    d = whole("columns", columns, 1)
    if relation is Neighbours.INDEPENDENT:
        return _independent(contribution, d)
    if contribution.separated:
        raise ConfigurationError("what separated ticks cost depends on the noise: see privacy.participation")
    whole_event = contribution.protects == "event"
    base = _event(relation, contribution, d) if whole_event else _item(relation, contribution, d)
    if contribution.max_events_per_user is None:
        return base
    w = contribution.max_events_per_user
    if relation is Neighbours.ADD_REMOVE:
        return base.group(w)
    if contribution.in_steps:
        return base.group(2 * w)
    removed = _event(Neighbours.ADD_REMOVE, contribution, d).group(w)
    return replaced_user(removed, base.linf * 2 * w, signs=contribution.signed or not cancels)


def replaced_user(removed: Change, linf: int, *, signs: bool) -> Change:
    """What one user in place of another moves, from what a user moves who is there or not (users-and-domains 1.2 [R]).

    Twice, not the one-event replacement of a group: the old user's events and the new one's need not share ticks, so
    that no column takes both and cancels them. `signs`: two legal rows may have a negative inner product, or the Gram
    matrix of the noise a negative entry; then norms add up, and squares are four times as large.
    """
    return Change(2 * removed.l1, (4 if signs else 2) * removed.l2_squared, linf)


def moves_one_way(neighbours: Neighbours | str, contribution: Contribution) -> bool:
    """Whether one of two neighbouring streams has at least the counts of the other, in all ticks and columns.

    So it is where a whole event, or all events of a user, is there or not, and amounts are not negative. Replacement
    lets one column fall while another rises; signed amounts do; and where one item of an event is protected, the item
    that was cut off comes in when another goes. What it saves: additions 7.

    >>> moves_one_way("add_remove", Contribution()), moves_one_way("replace", Contribution())
    (True, False)
    """
    entire = contribution.protects == "event" and not contribution.signed
    return Neighbours.parse(neighbours) is Neighbours.ADD_REMOVE and entire


def _event(relation: Neighbours, contribution: Contribution, d: int) -> Change:
    b, w = min(contribution.max_per_event, d), contribution.max_weight
    if relation is Neighbours.ADD_REMOVE:
        return _cells(b, w)
    # Signed: the worst case keeps the labels and flips the signs. Unsigned: it takes other labels.
    return _cells(b, 2 * w) if contribution.signed else _cells(min(2 * b, d), w)


def _item(relation: Neighbours, contribution: Contribution, d: int) -> Change:
    w, cut, signed = contribution.max_weight, contribution.truncated, contribution.signed
    kept = min(contribution.max_per_event, d) if cut else d
    # Removing one of b+1 items lets the cut one in: under truncation, removal is as bad as replacement.
    if relation is Neighbours.ADD_REMOVE:
        if signed:
            return _cells(1, 2 * w if cut or contribution.merged else w)
        return _cells(min(2, d) if cut else 1, w)
    if not contribution.merged:
        return _cells(1, 2 * w) if signed else _cells(min(2, d), w)
    # Merged items: the column that an item leaves and the one it joins may both stay, with another weight.
    # Signed, both may flip. Unsigned, one of them stays (w - 1 at most) while the other swaps places in the cut.
    if signed:
        return _cells(min(2, kept), 2 * w)
    two = _cells(min(2, d), w)
    if cut and d >= 3 and kept >= 2:
        return Change(two.l1 + (w - 1), two.l2_squared + (w - 1) ** 2, w)
    return two


def _independent(contribution: Contribution, d: int) -> Change:
    if contribution.max_per_event < d:
        raise ConfigurationError(
            f"independent neighbours change all {d} columns at once, so a limit of "
            f"{contribution.max_per_event} labels per event gives no protection; "
            f"set max_per_event={d} or use 'add_remove' or 'replace'"
        )
    if contribution.unit == "user" or contribution.protects == "item":
        raise ConfigurationError("independent neighbours are defined for unit='event', protects='event' only")
    return _cells(d, 2 * contribution.max_weight if contribution.signed else contribution.max_weight)


def _cells(cells: int, height: int) -> Change:
    return Change(l1=cells * height, l2_squared=cells * height**2, linf=height)
