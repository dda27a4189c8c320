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
_FAR = 12  # ticks that a minute, or an hour, must have to be worth offering
_UNITS = (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000))


def offered(
    clock: Clock, last: int | None, days: tuple[int, ...] = WINDOWS, own: Iterable[int | None] = ()
) -> list[dict[str, Any]]:
    """A tick (where days begin with one), and so many days as far as they are longer than a tick and shorter than the
    stream; minutes and hours where ticks are far shorter; and the lengths that somebody wants, in ticks (`own`).

    >>> clock = Clock.declared(column=None, start="2013-01-01", tick="6h")
    >>> [(one["ticks"], one["words"]) for one in offered(clock, 1460)]
    [(1, '6 h'), (4, 'Day'), (28, '7 days'), (120, '30 days')]
    >>> [one["words"] for one in offered(clock, 1460, RANGES)]
    ['7 days', '30 days', '90 days']
    >>> quick = Clock.declared(column=None, start="2013-01-01", tick="5s")
    >>> [one["words"] for one in offered(quick, 120960, own=[6, None])]
    ['5 s', '30 s', '1 min', '1 h', 'Day']
    >>> [one["words"] for one in offered(quick, 1209600, RANGES)]
    ['1 h', 'Day', '7 days', '30 days']
    """
    found = {1} if days[0] == 1 else set()
    if clock.integer:
        lengths = [*_COUNTED]
    else:
        some = [*_less_than_days(clock.length, bool(found)), *(number * _DAY for number in days)]
        lengths = [length // clock.length for length in some if length % clock.length == 0 and length > clock.length]
    lengths += [ticks for ticks in own if ticks is not None]
    found |= {ticks for ticks in lengths if last is None or ticks < last}
    return [_length(clock, ticks) for ticks in sorted(found)]


def _less_than_days(tick: int, windows: bool) -> list[int]:
    """For ticks that are far shorter than a day: an hour, beside it a minute as a window, a day as a stretch."""
    if windows:
        return [length for length in (_MINUTE, _HOUR) if length >= _FAR * tick]
    return [_HOUR, _DAY] if _FAR * tick <= _HOUR else []


def _length(clock: Clock, ticks: int) -> dict[str, Any]:
    if clock.integer:
        return {"ticks": ticks, "seconds": None, "words": clock.lasting(ticks)}
    return {"ticks": ticks, "seconds": ticks * clock.length / 1e6, "words": short(ticks * clock.length)}


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
