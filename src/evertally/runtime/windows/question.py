"""What may be asked about windows, and how much of it at once."""

from __future__ import annotations

from dataclasses import dataclass

from evertally.errors import ConfigurationError
from evertally.runtime.clock import Clock, duration
from evertally.runtime.spec.types import Words

TOTAL = "total"
FEW_LABELS = 50  # that are all shown without being asked for
_MOST_WINDOWS = 10_000
_MOST_NUMBERS = 200_000
_MOST_READ = 5_000_000  # released numbers that are looked at for one answer: about a second


@dataclass(frozen=True)
class Question:
    """Windows of one query. `window` None: totals; `first` is the tick after which the first one may begin.

    The windows end at `last`, `last - every`, ...; `points` thins them out evenly.
    """

    query: str
    window: int | None
    first: int = 0
    last: int | None = None
    every: int | None = None
    labels: tuple[str, ...] | None = None
    per: int | None = None
    points: int | None = None

    def ends(self, published: int) -> list[int]:
        """The last ticks of the full windows, oldest first.

        >>> Question("orders", window=7).ends(30), Question("orders", window=None, first=4, points=2).ends(9)
        ([9, 16, 23, 30], [6, 9])
        """
        last = published if self.last is None else min(self.last, published)
        every = self.every or self.window or 1
        earliest = max(self.first, 0) + (self.window or 1)
        count = max(0, (last - earliest) // every + 1)
        if self.points is not None and count > self.points:
            every *= -(-count // self.points)
            count = (last - earliest) // every + 1
        if count > _MOST_WINDOWS:
            raise ConfigurationError(f"that would be {count} windows, more than {_MOST_WINDOWS}; {_HINT}")
        return [last - every * place for place in reversed(range(count))]


_HINT = "ask for fewer: `points` thins, `every` makes steps, `from` and `to` cut"


def check_work(ticks: int, width: int, windows: int, labels: int) -> None:
    """Refuses what would take too long, or too much room. Public numbers only."""
    if windows * labels > _MOST_NUMBERS:
        raise ConfigurationError(
            f"that would be {windows * labels} numbers, more than {_MOST_NUMBERS}; {_HINT}, or name some labels"
        )
    if ticks * width > _MOST_READ:
        raise ConfigurationError(f"that would read {ticks * width} released numbers, more than {_MOST_READ}; {_HINT}")


def asked_for(clock: Clock, words: Words, window: str | None, per: str | None) -> tuple[int | None, int | None]:
    """Window and rate in ticks, None for totals and for numbers as they are. Both are those of the spec where nothing
    is said; a window that is asked for has the rate that is asked for with it, and "" is none."""
    ticks, rate = (words.window or 1, words.per) if window is None else (_in_ticks(clock, "window", window), None)
    if per is not None:
        rate = _in_ticks(clock, "per", per) if per else None
    return ticks, rate


def _in_ticks(clock: Clock, option: str, text: str) -> int | None:
    """A window as it is written: "7d", "28" ticks; None for "total"."""
    if text == TOTAL and option == "window":
        return None
    digits = text.isascii() and text.isdigit() and len(text) < 16
    return clock.ticks_in(option, int(text) if digits else text)


def each(clock: Clock, ticks: int) -> str:
    """So many ticks as what a rate is per.

    >>> each(Clock.declared(column=None, start="2013-01-01", tick="6h"), 4)
    'day'
    """
    if clock.integer:
        return "tick" if ticks == 1 else f"{ticks} ticks"
    words = clock.lasting(ticks)
    return duration(ticks * clock.length) if words.startswith("1 ") else words
