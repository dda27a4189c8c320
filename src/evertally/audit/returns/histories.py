"""Who comes at which ticks, to be silent for a little less, just as much, and a little more than every declared length.

Three sorts of people for every silence, at ticks of their own with empty ones between:

    returning   brings all that counts, is silent, comes back with as much
    every       comes again and again, always after the same silence, with one event
    spent       comes at once until it does not count any more, is silent, comes back

and all of them at the last tick. A crowd of thousands comes in two ticks: some of it comes back after every silence,
all of it at the end; others come shortly before the crowd is forgotten, and come back shortly after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

CROWD = 1500  # names that come at once, twice
_FIRST, _SECOND = 2, 5  # when
_SOME = 30  # of the crowd, who come back after one silence
_LARGE = 10  # events of each of them
_TIMES = 7  # that somebody comes again and again
_REGULAR = 400  # ticks
_MOST = 40  # ticks that somebody needs until it does not count any more
_SILENCES = (1, 2, 3, 8, 32, 128, 512, 2048, 2**13, 2**15, 2**20, 2**25)


@dataclass(frozen=True)
class Visit:
    """Somebody, or something, comes at a tick, with so many events; of an item, one that ends it."""

    tick: int
    name: str
    events: int = 1
    ends: bool = False


Visits = list[Visit]
ByTick = dict[int, Visits]


@dataclass(frozen=True)
class Manners:
    """How long streams are, and what it takes until somebody counts no further.

    `lengths`: every declared window, period and age, in ticks. `whole`: events of a visit that bring all that counts.
    `turns`: ticks until it does not count any more. `singly`: whether visits of one event can be judged, too.
    """

    last: int
    lengths: tuple[int, ...] = ()
    whole: int = 1
    turns: int = 1
    singly: bool = True

    @property
    def silences(self) -> list[int]:
        """How long somebody is silent.

        >>> Manners(last=100, lengths=(24,)).silences
        [1, 2, 3, 8, 23, 24, 25, 32, 49, 50, 75, 76, 99]
        """
        last, lengths = self.last, self.lengths
        around = {n for length in lengths for n in (length - 1, length, length + 1, 2 * length + 1)}
        long = {last // 2, 3 * last // 4, *(last - length for length in lengths), last - 1}
        return sorted(n for n in {*_SILENCES, *around, *long} if 0 < n < last)


def few(manners: Manners) -> ByTick:
    """Some dozens of people.

    >>> sorted(few(Manners(last=9)))
    [1, 2, 3, 4, 5, 6, 7, 8, 9]
    >>> [visit.name for visit in few(Manners(last=100))[76]]
    ['returning after 75']
    """
    return _by_tick(manners, _people(manners))


def many(manners: Manners) -> ByTick:
    """The same people in a crowd, and somebody who comes at every tick for a long time."""
    regular = (Visit(tick, "regular", manners.whole) for tick in range(1, min(_REGULAR, manners.last) + 1))
    return _by_tick(manners, [*_people(manners), *_crowd(manners), *_bridges(manners), *regular])


def _people(manners: Manners) -> Iterator[Visit]:
    last, whole = manners.last, manners.whole
    for number, silence in enumerate(manners.silences):
        start = min(1 + 2 * number, last - silence) if silence <= last // 2 else 1
        name = f"returning after {silence}"
        yield from (Visit(tick, name, whole) for tick in (start, start + silence, last))
        name = f"spent, then after {silence}"
        spent = [start + turn for turn in range(min(manners.turns, _MOST) + 1)]
        for turn, tick in enumerate([*spent, spent[-1] + silence, last]):
            yield Visit(tick, name, whole, turn % 2 == 1)
        if manners.singly:
            name = f"every {silence}"
            for turn in range(_TIMES):
                yield Visit(start + 1 + turn * silence, name, 1, turn % 2 == 1)


def _crowd(manners: Manners) -> Iterator[Visit]:
    events = 1 if manners.singly or manners.whole > _LARGE else manners.whole
    for tick in (_FIRST, _SECOND):
        names = [f"guest {tick}, {i}" for i in range(CROWD)]
        yield from (Visit(tick, name, events) for name in names)
        if not manners.singly and events < manners.whole:
            continue  # who has something left may count again
        silences = manners.silences
        for number, silence in enumerate(silences):
            yield from (Visit(tick + silence, name, events) for name in names[number :: len(silences)][:_SOME])
        yield from (Visit(manners.last, name, events) for name in names)


def _bridges(manners: Manners) -> Iterator[Visit]:
    """Who is remembered while the crowd is forgotten."""
    for length in manners.lengths:
        for arrived in (_FIRST, _SECOND):
            for start in (arrived + 2, arrived + length // 2, arrived + length - 1):
                name = f"bridge {length}, {start}"
                yield from (Visit(tick, name, manners.whole) for tick in (start, start + length - 1, manners.last))


def _by_tick(manners: Manners, visits: Iterable[Visit]) -> ByTick:
    """Visits within the stream, each person once a tick."""
    found: dict[int, dict[str, Visit]] = {}
    for visit in (visit for visit in visits if visit.tick <= manners.last):
        found.setdefault(visit.tick, {}).setdefault(visit.name, visit)
    return {tick: list(of.values()) for tick, of in sorted(found.items())}
