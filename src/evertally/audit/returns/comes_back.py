"""The row "comes back": whoever was paid for once is silent for long, comes back, and counts no further.

The query at its full horizon, with few labels, without noise (muted.py). What its engine is handed at every tick, with
records and without, must be what the books say (books.py, lives.py), which forget nobody: for some dozens of people,
and for the same people among thousands. Where nothing happens in ticks without events, the first ticks are walked one
by one, and of all others those in which somebody comes, up to the last of the horizon.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from evertally.audit.report import Report
from evertally.audit.returns.books import (
    MOST_EVENTS,
    ActiveBooks,
    Books,
    CohortBooks,
    Counting,
    FirstEvents,
    FirstVisit,
    Moving,
    PeriodBooks,
    SeparateTicks,
)
from evertally.audit.returns.histories import ByTick, Manners, Visit, Visits, few, many
from evertally.audit.returns.lives import FlipBooks, LifeBooks
from evertally.audit.returns.muted import Numbers, Walk, as_numbers
from evertally.audit.spec_down.cells import columns_of
from evertally.audit.spec_down.neighbours import Relation
from evertally.audit.spec_down.playing import Record, prepared
from evertally.audit.spec_down.small import Small
from evertally.contract.admission import AdmissionEngine
from evertally.dynamic.lifetimes import Named
from evertally.encode import SeparatedCap, UserCap
from evertally.errors import EvertallyError
from evertally.noise import simulation
from evertally.runtime.mechanisms import twins
from evertally.sketches.once import OncePerUser
from evertally.users.active_rule import ActiveRule
from evertally.users.distinct_rules import FirstCategories, FirstSeen
from evertally.users.distinct_unknown import FirstLabels
from evertally.users.joins import Followed
from evertally.users.period_rule import PeriodRule
from evertally.users.present_rule import PresenceRule
from evertally.users.retention_rule import CohortRule
from evertally.values.sum_doors import Allowance

NAME, METHOD = "comes back", "own books"
_WALKED, _SPARSE, _LONGEST = 10_000, 2048, 2**15  # ticks that are walked one by one
_NUMBERS = 2**27  # that rules go through in all of them: wide rows and long windows are walked for fewer ticks
_LAST = 2**20  # that somebody comes in a stream without an end
_DOZENS = 200
_ADDRESSES = ("10.1.2.3", "2001:db8::1")  # labels of a form that is asked for
_FIRSTS = (FirstSeen, FirstCategories, FirstLabels, OncePerUser, Followed, Allowance)
_KNOWN = (*_FIRSTS, ActiveRule, PeriodRule, CohortRule, PresenceRule, Named)


def remembers(made: Any) -> bool:
    """Whether a mechanism has a memory of users, or of named items, that the books know."""
    return isinstance(made._users, UserCap | SeparatedCap) or isinstance(_rule(made), _KNOWN)


def comes_back(small: Small, seed: int = 0) -> Report:
    """Walks a copy of a query, which has its own horizon."""
    told: list[str] = []
    try:
        for look in _looks(small, seed):
            wrong = look.wrong()
            if wrong:
                return Report.attack(small.made, NAME, True, wrong, METHOD)
            told.append(look.told)
            if look.cut:
                return Report.not_here(small.made, NAME, f"more would take too long: {look.told}")
    except _NotHere as why:
        return Report.not_here(small.made, NAME, str(why))
    except EvertallyError as error:
        return Report.attack(small.made, NAME, True, f"{type(error).__name__}: {error}", METHOD)
    except Exception as error:
        return Report.attack(
            small.made, NAME, True, f"somebody who comes back ends it with {type(error).__name__}", METHOD
        )
    return Report.attack(small.made, NAME, False, "; ".join(dict.fromkeys(told)), METHOD)


class _NotHere(Exception):
    """What the books cannot say."""


def _rule(made: Any) -> Any:
    engine = made._engine
    return engine.rule if isinstance(engine, AdmissionEngine) else None


def _looks(small: Small, seed: int) -> Iterator[_Look]:
    if isinstance(small.made._users, UserCap | SeparatedCap):
        yield _BehindCap(small, seed)
    if isinstance(_rule(small.made), _KNOWN):
        yield _BehindRule(small, seed)


class _Look(ABC):
    """A memory of a mechanism, what it was walked through, and what the books say."""

    def __init__(self, small: Small, seed: int) -> None:
        self._small, self._key = small, simulation(seed)
        self._table = small.spec.file.content["query"][0]
        self._columns = columns_of(small, self._table)
        stream = small.spec.file.content["stream"]
        self._contents = Relation(small, self._columns, stream, self._table).contents(np.random.default_rng(seed))
        self._nobody = prepared(small, [[]])[0]

    # -- a subclass says

    @abstractmethod
    def books(self) -> Books:
        """Books without an entry."""

    @abstractmethod
    def handed(self, walk: Walk) -> Any:
        """What is compared of a tick."""

    @abstractmethod
    def of_newcomers(self, tick: int, records: Sequence[Record]) -> Any:
        """The same of a part that has seen nothing before this tick."""

    # -- records

    def records(self, visits: Visits) -> list[Record]:
        """What visitors bring: records of one content, but for their names, and what ends an item."""
        return [record for visit in visits for record in self._brought(visit)]

    def _brought(self, visit: Visit) -> Iterator[Record]:
        for content in self.said(visit):
            yield content | dict.fromkeys(self._named, visit.name)

    def said(self, visit: Visit) -> list[Record]:
        """The contents of the records of a visit."""
        action = {self._action: self._table.get("delete", "delete")} if visit.ends and self._action else {}
        return [self.content | action] * visit.events

    @cached_property
    def content(self) -> Record:
        """A content that counts. Of some rules not everybody does: dozens are asked."""
        records = [self._columns.record(cells) for cells in self._contents]
        records += [dict.fromkeys(self._columns.names, address) for address in _ADDRESSES]
        for record in records:
            dozens = [record | dict.fromkeys(self._named, f"somebody {i}") for i in range(_DOZENS)]
            if self.of_newcomers(1, dozens) != self._nothing:
                return record
        raise _NotHere("no record was found that counts")

    @cached_property
    def _named(self) -> list[str]:
        """Columns that say whose a record is, or what."""
        named = [self._small.spec.user_column, self._table.get("id")]
        return [name for name in named if name in self._columns.names]

    @cached_property
    def _action(self) -> str | None:
        action = self._table.get("action")
        return action if action in self._columns.names else None

    # -- walking

    @cached_property
    def _manners(self) -> Manners:
        declared, horizon = self.books().declared, self._small.spec.horizon
        if declared.sparse:
            last = _LAST if horizon is None else horizon
        else:
            longest = max(declared.lengths, default=0)
            last = max(_WALKED, 2 * longest + 64)
            last = min(last, horizon or last, _LONGEST, _NUMBERS // (self._small.made._engine.width + longest))
        return Manners(last, declared.lengths, declared.whole, declared.turns, declared.singly)

    @property
    def told(self) -> str:
        """What was walked, in words."""
        manners, horizon = self._manners, self._small.spec.horizon
        walked = f"{len(self._ticks({}))} ticks" + ("" if horizon is None else f" of {horizon}")
        if self.books().declared.sparse and manners.last > _SPARSE:
            walked += ", and all in which somebody comes"
        silences = [silence for silence in manners.silences if silence > max(manners.lengths, default=0)]
        longest = f"silent for up to {silences[-1]} ticks" if silences else "nobody is silent for longer than declared"
        return f"{walked}; {longest}, by themselves and among thousands: what counts is what dictionaries say"

    @property
    def cut(self) -> bool:
        """Whether nobody was silent for long, though the stream is long enough."""
        manners = self._manners
        return manners.last <= max(manners.lengths, default=0) and manners.last != self._small.spec.horizon

    def _ticks(self, visits: ByTick) -> list[int]:
        manners = self._manners
        walked = min(manners.last, _SPARSE) if self.books().declared.sparse else manners.last
        return sorted({*range(1, walked + 1), *visits})

    def wrong(self) -> str:
        """What differs from the books; nothing, if all is well."""
        for who, history in (("few", few), ("thousands", many)):
            visits, books, cap = history(self._manners), self.books(), self.before()
            name = self._small.query.name
            walk = Walk(twins({name: self._small.made}, self._key)[name])
            for tick in self._ticks(visits):
                here = [visit for visit in visits.get(tick, []) if self._action or not visit.ends]
                walk.step(self._rows(self.records(here)), self._small.query, tick)
                left = here if cap is None else cap.counting(tick, here)
                if self.handed(walk) != self._expected(books, tick, left):
                    came = f"{len(here)} come" if here else "nobody comes"
                    return f"at tick {tick}, when {came}, among {who}, it counts otherwise than dictionaries do"
        return ""

    def before(self) -> Counting | None:
        """What decides before the books do."""
        return None

    def _expected(self, books: Books, tick: int, visits: Visits) -> Any:
        if isinstance(books, Moving):
            return books.moved(tick, visits)
        assert isinstance(books, Counting)
        counting = books.counting(tick, visits)
        return self.of_newcomers(tick, self.records(counting)) if counting else self._nothing

    @cached_property
    def _nothing(self) -> Any:
        return self.of_newcomers(1, [])

    def _rows(self, records: Sequence[Record]) -> Any:
        return prepared(self._small, [records])[0] if records else self._nobody

    @cached_property
    def fresh(self) -> Any:
        """A mechanism that sees no tick."""
        name = self._small.query.name
        return twins({name: self._small.made}, self._key)[name]


def _of_cap(cap: UserCap | SeparatedCap) -> Counting:
    return FirstEvents(cap.max_events) if isinstance(cap, UserCap) else SeparateTicks(cap)


class _BehindCap(_Look):
    """Caps: what comes through the door is what comes through another one of those that count."""

    def books(self) -> Books:
        return _of_cap(self._small.made._users)

    def handed(self, walk: Walk) -> bytes:
        return walk.came_through

    def of_newcomers(self, tick: int, records: Sequence[Record]) -> bytes:
        door = self.fresh._door
        digest: bytes = door.digest(door.events(self._rows(records).events(self._small.query), tick))
        return digest


class _BehindRule(_Look):
    """Rules before an engine: what they hand it, against the same rule when it has seen nobody, or against numbers."""

    def before(self) -> Counting | None:
        cap = self._small.made._users
        return None if cap is None else _of_cap(cap)

    def books(self) -> Books:
        made, rule = self._small.made, _rule(self._small.made)
        if isinstance(rule, ActiveRule):
            cell = min(self.of_newcomers(1, self.records([Visit(1, "somebody")])))
            width = self._small.made._engine.width // len(made.windows)
            return ActiveBooks(made.windows, cell, width, made.max_active)
        if isinstance(rule, PeriodRule):
            return PeriodBooks(made.period, made.so_far, made.max_active_periods)
        if isinstance(rule, CohortRule):
            return CohortBooks(made.period, made.horizon // made.period, made.ages)
        if isinstance(rule, PresenceRule):
            return FlipBooks(made.semantics == "copies", made.max_flips)
        if isinstance(rule, Named):
            cell = min(self.of_newcomers(1, self.records([Visit(1, "somebody")])))
            return LifeBooks(made.lifetimes, made.max_lifetime, cell)
        whole = self._whole(made, rule)
        if whole > MOST_EVENTS:
            raise _NotHere(f"somebody may bring {whole - 1} events until nothing counts: more than are played")
        return FirstVisit(whole, getattr(made, "max_users", None))

    def _whole(self, made: Any, rule: Any) -> int:
        """Events of a visit that bring all that counts."""
        if isinstance(rule, Followed):
            return int(made.max_pairs) + 1
        if isinstance(rule, Allowance):
            moved = self.of_newcomers(1, [self.content | dict.fromkeys(self._named, "somebody")])
            return -(-rule._most // max(1, abs(moved[0]) - 1)) + 1  # an amount may be rounded down by one step
        return 1

    def said(self, visit: Visit) -> list[Record]:
        if not isinstance(_rule(self._small.made), Followed):
            return super().said(visit)
        after, then = ({self._table["column"]: self._table[option][0]} for option in ("after", "then"))
        return [after, *[then] * visit.events]

    @cached_property
    def content(self) -> Record:
        # A rule that shows a period when it is over says nothing of a newcomer, and reads no content.
        if isinstance(_rule(self._small.made), PeriodRule | CohortRule):
            return self._columns.record(self._contents[0])
        return super().content

    def handed(self, walk: Walk) -> Numbers:
        return walk.handed

    def of_newcomers(self, tick: int, records: Sequence[Record]) -> Numbers:
        fresh, rows = self.fresh, self._rows(records)
        rule = _rule(fresh)
        events = rows.events(self._small.query)
        owned = fresh.takes_users and fresh._users is None
        arrivals = fresh._door.owned(events, rows.users(), tick) if owned else fresh._door.events(events, tick)
        rule.begin(0)
        try:
            return as_numbers([rule.admit(arrivals)])
        finally:
            rule.undo(0)
