"""Neighbouring streams, by the words of the spec alone: what is protected, and by which relation.

* `unit = "event"`: one record is there or not, or has another content in its tick and place.
* `unit = "user"`, items by name, nodes: all records of one owner, in any ticks and any number, are there or not; or
  those of another take their place, in other ticks.
* `unit = "user-period"`: all records of one user in one block of ticks; other blocks keep theirs.
* `neighbours = "independent"`: in each declared column one record of a tick of its own has another value.

Everything else is the same in both streams: others come before and after, fill caps and tables, say the same things.
Some pairs are written down (far more events than any cap, in one tick and in all), the rest is drawn, and the worst are
changed step by step (`changed`) into worse ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from evertally.audit.spec_down.cells import EACH, STRANGE, Columns
from evertally.audit.spec_down.playing import Record
from evertally.audit.spec_down.small import Small

Side = Literal["both", "left", "right"]
_MOST_CONTENTS = 40
_MOST_COPIES = 2000  # of one record in a tick
_CROWD = 200  # records of one kind: many of a tick take another way through doors than a few
_MOST_CROWDED = 14
_LONGEST = 24  # records that a pair may grow to, beside copies


@dataclass(frozen=True)
class Entry:
    """`copies` of a record, by the numbers of its values, at a tick of one of two streams, or of both."""

    tick: int
    cells: tuple[int, ...]
    side: Side
    copies: int = 1


@dataclass(frozen=True)
class Pair:
    """Two neighbouring streams, in the order in which records arrive."""

    entries: tuple[Entry, ...]

    def side(self, side: Side, ticks: int) -> tuple[tuple[tuple[tuple[int, ...], int], ...], ...]:
        """One of the streams: by tick, the records and how often each comes."""
        kept = [entry for entry in self.entries if entry.side in (side, "both")]
        return tuple(tuple((e.cells, e.copies) for e in kept if e.tick == tick) for tick in range(1, ticks + 1))


class Relation:
    """What neighbours are in a small copy of a query, and some of them."""

    def __init__(self, small: Small, columns: Columns, stream: Mapping[str, Any], table: Mapping[str, Any]) -> None:
        self.columns, self.ticks = columns, small.ticks
        self.owned = bool(columns.owners)
        self.neighbours = str(stream.get("neighbours", "add_remove"))
        self.replaced = self.neighbours == "replace"
        self.period = small.spec.period if small.spec.unit == "user-period" else None
        caps = [small.spec.max_events_per_user, table.get("max_events_per_user_tick"), table.get("max_ticks_per_user")]
        caps += [table.get(name) for name in ("max_pairs", "max_categories", "lifetimes")]
        self.cap = max((cap for cap in caps if cap is not None), default=1)
        self._table = table

    # -- records -------------------------------------------------------------------------------------------------------

    def contents(self, random: np.random.Generator) -> list[tuple[int, ...]]:
        """Contents of the target's records: every value of every column beside the first ones, and some at random."""
        sizes = [len(pool) for pool in self.columns.values]
        free = [i for i in range(len(sizes)) if i not in self.columns.owners]
        first = [0] * len(sizes)
        for owner in self.columns.owners[1:]:  # of an edge one end is the target's
            first[owner] = 1
        found = [tuple(first)]
        for i in free:
            found += [(*first[:i], value, *first[i + 1 :]) for value in range(1, sizes[i])]
        found += [self.own(random) for _ in range(2 * len(found)) if len(free) > 1 or len(self.columns.owners) > 1]
        return list(dict.fromkeys(found))[:_MOST_CONTENTS]

    def own(self, random: np.random.Generator) -> tuple[int, ...]:
        """A record of the target."""
        cells = list(self.other(random)) if self.owned else self._any(random)
        if self.owned:
            cells[int(random.choice(self.columns.owners))] = 0
        return tuple(cells)

    def other(self, random: np.random.Generator) -> tuple[int, ...]:
        """A record of somebody else; of anybody, where single records are protected."""
        cells = self._any(random)
        for owner in self.columns.owners:
            cells[owner] = int(random.integers(1, len(self.columns.values[owner])))
        return tuple(cells)

    def _any(self, random: np.random.Generator) -> list[int]:
        return [int(random.integers(len(pool))) for pool in self.columns.values]

    # -- pairs ---------------------------------------------------------------------------------------------------------

    def pairs(self, random: np.random.Generator) -> Iterator[Pair]:
        """Pairs that are tried in any case."""
        contents, around = self.contents(random), self._around(random)
        if self.neighbours == "independent":
            yield from self._independent()
            return
        for context in ((), around, *self._lives(contents)):
            for cells in contents:
                for own in self._own(cells, contents):
                    yield from self._in_place(own, context, contents, random)

    def crowded(self, random: np.random.Generator) -> Iterator[Pair]:
        """The same beside many others, of many owners, and beside what nobody can read: doors take other ways then."""
        if self.neighbours == "independent":
            return
        contents = self.contents(random)
        strange = self._with(self.other(random), range(len(self.columns.values)), STRANGE)
        for cells in contents[:_MOST_CROWDED]:
            alike = self._with(cells, self.columns.owners, EACH)  # others who do the same
            own = list(self._own(cells, contents))
            # Tables grow while somebody is in them, who is there before and after.
            around = tuple(entry for entry in own[2] if entry.tick != 2 or self.ticks < 3) if self.owned else own[0]
            for mine, other, copies, ticks in (
                (own[0], alike, _CROWD, (1, self.ticks)),
                (around, alike, _CROWD, (min(2, self.ticks),)),
                (own[0], strange, 1, (1, self.ticks)),
            ):
                context = tuple(Entry(tick, other, "both", copies) for tick in ticks * 2)
                yield from self._in_place(mine, context, contents, random)

    def _with(self, cells: tuple[int, ...], places: Iterable[int], value: Any) -> tuple[int, ...]:
        """A record with this value wherever a column may have it."""
        found = list(cells)
        for place in places:
            found[place] = next((i for i, v in enumerate(self.columns.values[place]) if v is value), found[place])
        return tuple(found)

    def _block(self, tick: int) -> range:
        """The ticks that are protected together with one."""
        if self.period is None:
            return range(1, self.ticks + 1)
        start = tick - (tick - 1) % self.period
        return range(start, min(start + self.period, self.ticks + 1))

    def _own(self, cells: tuple[int, ...], contents: list[tuple[int, ...]]) -> Iterator[tuple[Entry, ...]]:
        if not self.owned:
            last = self._block(1)[-1]
            yield from ((Entry(tick, cells, "left"),) for tick in dict.fromkeys([1, last, max(1, self.ticks - 1)]))
            return
        # The last block may be shorter than others.
        for block in dict.fromkeys([self._block(1), self._block(self.ticks)]):
            yield from self._in_block(block, cells, contents)

    def _in_block(
        self, block: range, cells: tuple[int, ...], contents: list[tuple[int, ...]]
    ) -> Iterator[tuple[Entry, ...]]:
        first, last, many = block[0], block[-1], min(self.cap + 2, _MOST_COPIES)
        yield (Entry(first, cells, "left", many),)
        yield (Entry(last, cells, "left", many),)
        yield tuple(Entry(tick, cells, "left", many) for tick in block)
        yield tuple(Entry(tick, cells, "left") for tick in block)
        yield Entry(first, cells, "left", max(1, self.cap // 2)), Entry(last, cells, "left", many)
        following = contents[(contents.index(cells) + 1) % len(contents)]
        yield tuple(Entry(tick, cells if tick % 2 else following, "left", many) for tick in block)
        yield tuple(Entry(first, one, "left") for one in (cells, *contents[: self.cap + 2]))

    def _in_place(
        self,
        own: tuple[Entry, ...],
        context: tuple[Entry, ...],
        contents: list[tuple[int, ...]],
        random: np.random.Generator,
    ) -> Iterator[Pair]:
        half = len(context) // 2
        before, after = context[:half], context[half:]
        if not self.replaced:
            yield Pair((*before, *own, *after))
            return
        following = (contents.index(own[0].cells) + 1) % len(contents)
        for number in (following, *random.integers(len(contents), size=2).tolist()):
            cells = contents[number]
            if self.owned:
                there = tuple(replace(entry, side="right", cells=cells, tick=self._elsewhere(entry)) for entry in own)
            else:
                there = tuple(replace(entry, side="right", cells=cells) for entry in own)
            yield Pair((*before, *own, *there, *after))

    def _elsewhere(self, entry: Entry) -> int:
        """Another tick of the same block: what takes a user's place need not share its ticks."""
        block = self._block(entry.tick)
        return block[0] + block[-1] - entry.tick

    def _around(self, random: np.random.Generator) -> tuple[Entry, ...]:
        """Others who come before and after, more than once, in every tick."""
        ticks = sorted(list(range(1, self.ticks + 1)) * 2)
        return tuple(Entry(tick, self.other(random), "both", int(random.integers(1, 4))) for tick in ticks)

    def _lives(self, contents: list[tuple[int, ...]]) -> Iterator[tuple[Entry, ...]]:
        """Others end what somebody began, and begin and end it once more: without its first insertion a name that comes
        and goes has another life, later (dynamic-data 6.3)."""
        action, name = (self._place(self._table.get(option)) for option in ("action", "id"))
        if action is None or name is None or name in self.columns.owners:
            return
        begun = contents[0]
        ended = tuple(1 if i == action else cell for i, cell in enumerate(begun))
        begun, ended = (
            tuple(1 if i in self.columns.owners else c for i, c in enumerate(cells)) for cells in (begun, ended)
        )
        copies = min(self.cap + 2, _MOST_COPIES) if self.owned else 1
        later = [(tick, ended if tick % 2 == 0 else begun) for tick in range(2, min(self.ticks, 4) + 1)]

        yield tuple(Entry(tick, cells, "both", copies) for tick, cells in later)

    def _place(self, column: Any) -> int | None:
        return self.columns.names.index(column) if column in self.columns.names else None

    def _independent(self) -> Iterator[Pair]:
        """A record for each declared column, at ticks of their own, on one side or the other; in its place is one that
        says nothing, or, where amounts have signs, one of another amount."""
        place, silent = self._place(self._table.get("column")), [0] * len(self.columns.values)
        if place is not None:
            silent[place] = len(self.columns.values[place]) - 1  # None is the last
        for labels in self._by_column(place):
            for shift in range(self.ticks):
                for sides in (("left", "left"), ("left", "right")):
                    for others in (None, *self._amounts(place)):
                        entries = []
                        for n, label in enumerate(labels):
                            side: Any = sides[n % 2]
                            tick = 1 + (n + shift) % self.ticks if shift else 1
                            cells = tuple(label if i == place else cell for i, cell in enumerate(silent))
                            entries.append(Entry(tick, cells, side))
                            if place is not None:
                                other = {place: len(self.columns.values[place]) - 1} if others is None else others
                                said = tuple(other.get(i, cell) for i, cell in enumerate(cells))
                                entries.append(Entry(tick, said, _opposite(side)))
                        yield Pair(tuple(entries))

    def _amounts(self, place: int | None) -> Iterator[dict[int, int]]:
        """Another amount in the place of the first one, by its column."""
        if self._table.get("signed"):
            for i, pool in enumerate(self.columns.values):
                if i != place:
                    yield from ({i: value} for value in range(1, len(pool)))

    def _by_column(self, place: int | None) -> list[list[int]]:
        """Ways to say something once in every column: all that is not declared is in one, and there is only one where
        nothing is."""
        values = () if place is None else self.columns.values[place]
        plain = [i for i, value in enumerate(values) if value is not None and not isinstance(value, list | dict)]
        columns = self._table.get("columns")
        declared = self._table.get("categories") or (list(range(columns)) if isinstance(columns, int) else [])
        if not declared:
            return [[i] for i in plain] or [[0]]
        others = [i for i in plain if values[i] not in declared]
        return [[*(i for i in plain if values[i] in declared), *others[:1]]]

    # -- steps ---------------------------------------------------------------------------------------------------------

    def changed(self, pair: Pair, random: np.random.Generator) -> Pair:
        """Neighbours that are a little different from others: one record moved, changed, added or left out."""
        if self.neighbours == "independent":  # each column has its one change already
            return pair
        entries = list(pair.entries)
        what = int(random.integers(5))
        i = int(random.integers(len(entries)))
        entry = entries[i]
        if what == 0:
            entries = self._moved(entries, entry, int(random.integers(1, self.ticks + 1)))
        elif what == 1:
            entries[i] = replace(entry, cells=self._again(entry, random))
        elif what == 2 and len(entries) < _LONGEST:
            both = Entry(int(random.integers(1, self.ticks + 1)), self.other(random), "both")
            entries.insert(int(random.integers(len(entries) + 1)), both)
        elif what == 3 and self.owned and len(entries) < _LONGEST:
            side: Side = "right" if self.replaced and random.integers(2) else "left"
            block = self._block(next(e.tick for e in entries if e.side != "both"))
            entries.insert(i, Entry(int(random.choice(block)), self.own(random), side))
        elif entry.side == "both" or (self.owned and sum(e.side == entry.side for e in entries) > 1):
            del entries[i]
        return Pair(tuple(entries))

    def _moved(self, entries: list[Entry], entry: Entry, tick: int) -> list[Entry]:
        if entry.side == "both" or self.owned:
            inside = entry.side == "both" or tick in self._block(entry.tick)
            return [replace(e, tick=tick) if e is entry and inside else e for e in entries]
        # A record that is replaced keeps its tick: both go.
        return [replace(e, tick=tick) if e.side != "both" else e for e in entries]

    def _again(self, entry: Entry, random: np.random.Generator) -> tuple[int, ...]:
        cells = list(entry.cells)
        owner = [i for i in self.columns.owners if cells[i] == 0]
        fresh = self.other(random) if entry.side == "both" else self.own(random)
        if not owner and cells:  # one column at a time
            i = int(random.integers(len(cells)))
            cells[i] = fresh[i]
            return tuple(cells)
        return fresh


def _opposite(side: Side) -> Side:
    return "right" if side == "left" else "left"


def records_of(stream: tuple[Any, ...], columns: Columns) -> list[list[Record]]:
    """The records of a stream, tick by tick."""
    return [[columns.record(cells, n) for cells, copies in tick for n in range(copies)] for tick in stream]
