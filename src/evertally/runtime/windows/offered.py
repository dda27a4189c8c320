"""Windows and stretches of time that are worth offering to a reader of a stream: public numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evertally.encode.cells import read_edges
from evertally.runtime.clock import Clock
from evertally.runtime.spec import QuerySpec

_MINUTE, _HOUR, _DAY = 60_000_000, 3_600_000_000, 86_400_000_000  # in microseconds
WINDOWS = (1, 7, 30)  # days
RANGES = (7, 30, 90, 365)
_COUNTED = (10, 100, 1000)  # ticks, where a tick is no time
_UNITS = (("h", _HOUR), ("min", _MINUTE), ("s", 1_000_000))


def offered(
    clock: Clock, last: int | None, days: tuple[int, ...] = WINDOWS, named: Iterable[int] = ()
) -> list[dict[str, Any]]:
    """A tick (where days begin with one), and so many days as far as they are longer than a tick and shorter than the
    stream; a minute and an hour where ticks are much shorter. `named`: lengths that the spec names.

    >>> clock = Clock.declared(column=None, start="2013-01-01", tick="6h")
    >>> [(one["ticks"], one["words"]) for one in offered(clock, 1460)]
    [(1, '6 h'), (4, 'Day'), (28, '7 days'), (120, '30 days')]
    >>> [one["words"] for one in offered(clock, 1460, RANGES)]
    ['7 days', '30 days', '90 days']
    >>> clock = Clock.declared(column=None, start="2013-01-01", tick="1s")
    >>> [one["words"] for one in offered(clock, 86_400, named=[30])], [
    ...     one["words"] for one in offered(clock, None, RANGES)
    ... ]
    (['1 s', '30 s', '1 min', '1 h'], ['1 h', 'Day', '7 days', '30 days', '90 days', 'Year'])
    """
    within = [ticks for ticks in named if last is None or ticks <= last]
    if clock.integer:
        counted = [ticks for ticks in _COUNTED if last is None or ticks < last]
        found = {*([1] if days[0] == 1 else []), *counted, *within}
        return [{"ticks": ticks, "seconds": None, "words": clock.lasting(ticks)} for ticks in sorted(found)]
    found = {*([1] if days[0] == 1 else []), *within}
    # Short lengths of time, with how many ticks they need at least to be worth a look.
    lengths = [(_MINUTE, 2), (_HOUR, 2)] if days[0] == 1 else [(_HOUR, 60), (_DAY, 60)]
    for length, least in (*lengths, *((number * _DAY, 2) for number in days)):
        ticks, rest = divmod(length, clock.length)
        if not rest and ticks >= least and (last is None or ticks < last):
            found.add(ticks)
    return [
        {"ticks": ticks, "seconds": ticks * clock.length / 1e6, "words": short(ticks * clock.length)}
        for ticks in sorted(found)
    ]


def short(length: int) -> str:
    """A length of time in few letters, from microseconds.

    >>> short(_DAY), short(7 * _DAY), short(6 * 3_600_000_000), short(365 * _DAY), short(90_000_000)
    ('Day', '7 days', '6 h', 'Year', '90 s')
    """
    days, rest = divmod(length, _DAY)
    if not rest:
        return {1: "Day", 365: "Year"}.get(days, f"{days} days")
    return next((f"{length // unit} {word}" for word, unit in _UNITS if length % unit == 0), f"{length / 1e6:g} s")


def edges_of(query: QuerySpec) -> list[float] | None:
    """The declared edges of a query about numbers."""
    edges = query.parameters.get("edges")
    return None if edges is None else read_edges(edges)


def declared_range(query: QuerySpec) -> list[float] | None:
    """The smallest and the largest value that a mean may have: an interval that covers much of it says nothing."""
    ends = [query.parameters.get(name) for name in ("lower", "upper")]
    if query.result.value != "real" or query.categories is not None or None in ends:
        return None
    return [float(end) for end in ends if end is not None]
