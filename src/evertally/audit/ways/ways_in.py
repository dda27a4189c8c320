"""The row "ways in": the same events through every form of column and every door must release the same bytes.

Events are all that the spec lets a column hold (spec_down/cells.py), few at a time and thousands: doors have compiled
ways for many, tables of users grow, numbers stand beside texts that spell them. Beside forms that the runtime reads
there are three ways that do not depend on loops over columns at all:

    piece by piece     each event of a tick by itself, where their sums add up (contract/folding.py)
    those that count   of each user the first events, up to the cap, counted here by a dictionary
    without somebody   of a user who was erased no event counts: the same as if he did not come back
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from evertally.audit.known_code import once
from evertally.audit.report import Report
from evertally.audit.spec_down.cells import EACH, STRANGE, Columns, blanked, columns_of
from evertally.audit.spec_down.playing import Record, Records
from evertally.audit.spec_down.small import Small
from evertally.audit.ways import METHOD
from evertally.audit.ways.beside import beside
from evertally.audit.ways.forms import FORMS, Form, objects
from evertally.audit.ways.hashes import wrong_hashes
from evertally.audit.ways.names import crowd, wrong_names
from evertally.contract import restore
from evertally.contract.folding import Folded, adds_up
from evertally.encode import UserCap
from evertally.encode.content_order import order_key
from evertally.encode.labels import canonical
from evertally.encode.owners import owners
from evertally.errors import ConfigurationError, EvertallyError
from evertally.noise import simulation
from evertally.runtime.input.sources import Batch
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.mechanisms import twins
from evertally.runtime.releases import pack
from evertally.runtime.sieve import stepped

Kind = Literal["strange", "spelled", "plain", "lists", "maps"]

NAME = "ways in"
_COLLECTIONS: dict[Kind, type] = {"lists": list, "maps": dict}
_FEW, _MANY = 45, 2900  # events of a tick
_TICKS, _LONGER = 3, 6  # ticks
_SPELLED = (True, 1, "1", "true")  # labels in several spellings
_SPELLED_WITH_BLANKS = 2
_NUMBERS = 1300  # users who are numbers
_PIECES = 400  # events of a tick that are fed one by one


def ways_in(small: Small, seed: int = 0) -> Report:
    """Plays a copy of a query through all of them."""
    for subject, look in (("names", wrong_names), ("hashes", wrong_hashes)):
        wrong = once("evertally.encode", f"ways in: {subject}", partial(_tried, look))
        if wrong:
            return Report.attack(small.made, NAME, True, wrong, METHOD)
    ways = _Ways(small, seed)
    for look in (
        ways.forms_of_few,
        ways.forms_of_many,
        ways.numbers,
        ways.pieces,
        ways.beside_others,
        ways.those_that_count,
        ways.without_somebody,
    ):
        wrong = _tried(look)
        if wrong:
            return Report.attack(small.made, NAME, True, wrong, METHOD)
    return Report.attack(small.made, NAME, False, f"{', '.join(ways.looked)}: the same bytes", METHOD)


def _tried(look: Callable[[], str]) -> str:
    try:
        return look()
    except EvertallyError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"a way that the product has ends with {type(error).__name__}"


class _Ways:
    """A copy of a query, its records, and what was looked at."""

    def __init__(self, small: Small, seed: int) -> None:
        self._small, self._key, self._random = small, simulation(seed), np.random.default_rng(seed)
        self._columns = columns_of(small, small.spec.file.content["query"][0])
        self._ticks = min(_TICKS, small.ticks)
        self.looked = ["names", "hashes"]

    def _note(self, what: str) -> None:
        self.looked += [] if what in self.looked else [what]

    # -- playing -------------------------------------------------------------------------------------------------------

    def _fresh(self) -> Any:
        name = self._small.query.name
        return twins({name: self._small.made}, self._key)[name]

    def _given(self, records: Sequence[Record], form: Form = objects) -> Any:
        return self._tick(self._batches(records, form))

    def _batches(self, records: Sequence[Record], form: Form = objects) -> list[Batch]:
        return form(self._small.spec.wanted(self._small.spec.user_column), records)

    def _tick(self, batches: Sequence[Batch]) -> Any:
        spec = self._small.spec
        tick: Any = TickEvents(spec, batches)
        return tick.ordered(order_key(self._key)) if spec.order == "content" else tick

    def _bytes(self, release: Any) -> bytes:
        return pack(self._small.query, release, 0.05, rows=True)

    def _played(
        self, records: Records, form: Form = objects, restored: bool = False, exact: bool = False
    ) -> list[bytes]:
        """What is released, tick by tick; `exact`: and a digest of what reached the engine, which no noise blurs."""
        return self._released([self._batches(events, form) for events in records], restored, exact)

    def _released(self, ticks: Sequence[list[Batch]], restored: bool = False, exact: bool = True) -> list[bytes]:
        """The same of batches."""
        mechanism, found = self._fresh(), []
        for tick, batches in enumerate(ticks, start=1):
            if restored and tick > 1:
                mechanism = restore(mechanism.snapshot(), key=self._key, allow_copy=True)
            found.append(self._bytes(stepped(mechanism, self._tick(batches), self._small.query, tick)))
            if exact:
                found.append(mechanism._last_input())
        return found

    def _users(self, batches: Sequence[Batch]) -> list[str | None]:
        """Whose events they are, one by one."""
        codes, names = owners(self._tick(batches).users())
        listed: list[str | None] = [*names.list(), None]
        return [listed[code] for code in codes]

    # -- records -------------------------------------------------------------------------------------------------------

    def _records(self, count: int, kind: Kind, ticks: int = 0) -> list[list[Record]]:
        """Some ticks of records, many in the second one."""
        pools = [_of_kind(pool, kind) for pool in self._columns.values]
        found = []
        for tick in range(ticks or self._ticks):
            size = count if tick == 1 or self._ticks == 1 else _FEW
            cells = [self._random.integers(0, len(pool), size).tolist() for pool in pools]
            rows = zip(*cells, strict=True) if pools else [()] * size
            found.append([self._record(pools, row, i) for i, row in enumerate(rows)])
        return found

    def _record(self, pools: Sequence[Sequence[Any]], row: Sequence[int], copy: int) -> Record:
        record = Columns(self._columns.names, tuple(map(tuple, pools)), ()).record(tuple(row), copy)
        user = self._small.spec.user_column
        if user is not None and user in record and record[user] not in (None, EACH):
            record[user] = self._user(record[user], copy)
        return record

    def _user(self, name: Any, copy: int) -> Any:
        """Some busy users, and a crowd: long names, names that share a hash, numbers, and the same as texts; and others
        whose names differ in blanks alone."""
        if copy % 3 == 0:
            alike = [name, name, *blanked(name)]
            return alike[copy // 3 % len(alike)]
        if copy % 3 == 1:
            return int(copy // 6) if copy % 2 else str(copy // 6)
        names = crowd()
        return names[-1 - copy % len(names)].decode()

    # -- ways ----------------------------------------------------------------------------------------------------------

    def forms_of_few(self) -> str:
        """Everything that a column may hold, in every form."""
        for kind in ("strange", "spelled"):
            records = self._records(_FEW, kind)
            wrong = self._compared(records, "few events", FORMS) or self._in_another_order(records)
            if wrong:
                return wrong
        return self._tables()

    def forms_of_many(self) -> str:
        """Thousands of plain events; and hundreds that are all lists, or all maps to weights."""
        forms = {name: form for name, form in FORMS.items() if name != "one by one"}
        wrong = self._compared(self._records(_MANY, "plain"), "many events", forms)
        for kind in self._collections():
            wrong = wrong or self._compared(self._records(_PIECES, kind), kind, forms)
        return wrong

    def _collections(self) -> list[Kind]:
        cells = [cell for pool in self._columns.values for cell in pool]
        return [kind for kind, form in _COLLECTIONS.items() if any(type(cell) is form for cell in cells)]

    def numbers(self) -> str:
        """Users who are whole numbers, and texts that spell them: as many as tables grow by."""
        user = self._small.spec.user_column
        if user is None:
            return ""
        spelled = self._records(_MANY, "plain")
        spelled = [[event | {user: str(i * i % _NUMBERS)} for i, event in enumerate(events)] for events in spelled]
        counted = [[event | {user: int(event[user])} for event in events] for events in spelled]
        known = self._played(spelled, exact=True)
        for name in ("JSON lines", "Arrow", "codes of a dictionary"):
            if self._played(counted, FORMS[name], exact=True) != known:
                return f"users who are numbers, as {name}, release something else than as texts"
        self._note("numbers")
        return ""

    def _compared(self, records: list[list[Record]], what: str, forms: dict[str, Form]) -> str:
        known = self._played(records, exact=True)
        if self._played(records, restored=True, exact=True) != known:
            return f"{what}: restored between ticks it releases something else"
        for name, form in forms.items():
            if self._played(records, form, exact=True) != known:
                return f"{what} as {name} release something else than as objects"
        self._note(what)
        return ""

    def _in_another_order(self, records: list[list[Record]]) -> str:
        """Where the order is that of content."""
        if self._small.spec.order == "content":
            turned = [events[::-1] for events in records]
            if self._played(turned, exact=True) != self._played(records, exact=True):
                return "events in another order release something else, and their order is that of content"
            self._note("another order")
        return ""

    def _tables(self) -> str:
        """Events as a table of columns, as somebody with a data frame hands them over."""
        names = [column.name for column in self._small.query.columns]
        if len(names) < 2 or self._small.made.takes_users:
            return ""
        records = self._records(_FEW, "plain")
        mechanism, found = self._fresh(), []
        try:
            for tick, events in enumerate(records, start=1):
                table = pa.table({name: pa.array([_text(event.get(name)) for event in events]) for name in names})
                found += [self._bytes(mechanism.step_events(table, tick=tick)), mechanism._last_input()]
        except (TypeError, ConfigurationError):
            return ""  # it takes records, or a table of another shape
        if found != self._played(records, exact=True):
            return "a table of events releases something else than its rows"
        self._note("tables")
        return ""

    def pieces(self) -> str:
        """Each event by itself: what is read one by one, against what is read at once."""
        kinds: list[Kind] = ["strange", "spelled", "plain", *self._collections()]
        for kind in kinds:
            records = self._records(_PIECES, kind)
            found = self._alone(records)
            if found is None:
                return ""
            if found != self._played(records, exact=True):
                return "a tick piece by piece releases something else than at once"
        self._note("pieces")
        return ""

    def _alone(self, records: Records) -> list[bytes] | None:
        """What is released if each event is fed by itself; None if a tick does not add up."""
        if not adds_up(self._small.made):
            return None
        mechanism, found = self._fresh(), []
        for tick, events in enumerate(records, start=1):
            folded, given = Folded(mechanism, tick), self._given(events)
            for place in range(len(events)):
                one = np.zeros(len(events), np.bool_)
                one[place] = True
                folded.feed(given.only(one).events(self._small.query))
            found += [self._bytes(folded.release()), mechanism._last_input()]
        return found

    def beside_others(self) -> str:
        """Bodies of every form in which one record is hostile."""
        wrong = beside(self._small, self._columns, self._released, self._batches, self._alone, self._users)
        self._note("hostile records")
        return wrong

    def those_that_count(self) -> str:
        """What a cap leaves, by a dictionary: sent alone, it must release the same."""
        cap, user = self._small.made._users, self._small.spec.user_column
        if not isinstance(cap, UserCap) or user is None or self._small.spec.order == "content":
            return ""
        for count in (_FEW, _MANY):
            records, counted = self._records(count, "strange"), Counter[str]()
            records = [events + events[: count // 2] for events in records]  # users who come again
            left: list[list[Record]] = []
            for events in records:
                left.append([])
                for event in events:
                    name = canonical(event[user])
                    if name is not None and counted[name] < cap.max_events:
                        counted[name] += 1
                        left[-1].append(event)
            if self._played(records, restored=True, exact=True) != self._played(left, exact=True):
                return f"of {len(counted)} users others count than the first {cap.max_events} events of each"
        self._note("those that count")
        return ""

    def without_somebody(self) -> str:
        """After a user is erased, his events are as good as none."""
        user, ticks = self._small.spec.user_column, min(_LONGER, self._small.ticks)
        if user is None or not self._small.made.takes_users or ticks < 2:
            return ""
        left = self._records(_FEW, "plain", ticks=ticks)
        # One who was there before, and one who comes for the first time when he is erased already.
        gone = [self._columns.values[self._columns.names.index(user)][0], "evertally-erased"]
        left[1:] = [[event for event in events if event[user] != gone[0]] for events in left[1:]]
        again = [event | {user: name} for event in left[0][:4] for name in gone]
        records = [left[0], *([*again, *events, *again] for events in left[1:])]
        mechanism, other, found = self._fresh(), self._fresh(), list[tuple[bytes, bytes]]()
        for tick, (events, fewer) in enumerate(zip(records, left, strict=True), start=1):
            if tick == 2:
                try:
                    mechanism.erase(gone)
                    other.erase(gone)
                except ConfigurationError:
                    return ""  # it says so, and nobody is erased
            both = (mechanism, events), (other, fewer)
            one, two = (stepped(each, self._given(given), self._small.query, tick) for each, given in both)
            found.append((self._bytes(one), self._bytes(two)))
        if any(one != two for one, two in found):
            return "a user who was erased, and comes again, releases something else than one who does not"
        self._note("without somebody")
        return ""


def _text(cell: Any) -> str | None:
    return None if cell is None else str(cell)


def _of_kind(pool: Sequence[Any], kind: Kind) -> tuple[Any, ...]:
    """All that is tried; labels and numbers in several spellings, of whole numbers and texts alone; or those that are
    read at once, lists only where there is nothing else; lists and maps alone."""
    if kind == "strange":
        return *pool, *_SPELLED, 1.0, "2.0"
    if kind in _COLLECTIONS:
        return tuple(cell for cell in pool if type(cell) is _COLLECTIONS[kind]) or _of_kind(pool, "plain")
    plain = tuple(cell for cell in pool if cell is None or cell is EACH or _reads_at_once(cell)) or tuple(pool)
    if kind == "plain":
        return plain
    whole = [cell for cell in plain if type(cell) is not float]
    return *whole, *_SPELLED, *(odd for cell in whole[:_SPELLED_WITH_BLANKS] for odd in blanked(cell))


def _reads_at_once(cell: Any) -> bool:
    return type(cell) in (str, int, float) and cell != STRANGE
