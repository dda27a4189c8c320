"""The public clock: which tick an event belongs to, decided by its own time stamp and by declared bounds
alone.

Ticks are numbered 1, 2, 3, ... from the declared start. Nothing here looks at a second event: were the clock
to start at the first time stamp of the data, or a tick to close at the last, removing one event could move
all the others.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evertally.errors import ConfigurationError

# Instants are clipped to +-2^62 and starts to +-2^61, so their difference is always a 64-bit integer.
INSTANT_LIMIT = 2**62
_START_LIMIT = 2**61

FIRST_SERVE = "first serve"
Close = Literal["wall", "request"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DAY = 86_400_000_000  # in microseconds
_CALENDAR = 146_097 * _DAY  # 400 years, after which the calendar begins anew
_LAST = (dt.datetime.max.replace(tzinfo=dt.UTC) - _EPOCH) // _MICROSECOND
_SUMMER = (
    ". A day is 24 hours here: where clocks are changed for summer, start and end need one offset. For days as clocks "
    "show them, give start, end and the times of rows without a zone, in local time"
)
_LENGTH = re.compile(r"([1-9]\d{0,8})([smhdw])")
_TIME = re.compile(
    r"([1-9]\d{3})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?"
)


def microseconds(moment: dt.datetime) -> int:
    """Microseconds since 1970 in UTC; a moment without a zone is taken as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - _EPOCH) // _MICROSECOND


def instant(text: str) -> int | None:
    """Microseconds since 1970 (UTC) of a written time, or None if it is not one.

    `2013-01-01`, `2013-01-01T10:00`, `2013-01-01 10:00:00.25`, each time also with `Z` or an offset such as
    `+01:00`. Without a zone, UTC. Years 1000 to 9999; digits beyond microseconds are cut.

    >>> instant("1970-01-01T01:00:00+01:00"), instant("1970-01-01"), instant("2013-02-30"), instant("noon")
    (0, 0, None, None)
    """
    match = _TIME.fullmatch(text.strip(" \t\r\n"))
    if match is None or not text.isascii():
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction = int((match[7] or "").ljust(6, "0")[:6])
    try:
        moment = dt.datetime(year, month, day, hour, minute, second, fraction, tzinfo=dt.UTC)
    except ValueError:
        return None
    offset = _offset_minutes(match[8])
    return None if offset is None else microseconds(moment) - offset * 60_000_000


def _offset_minutes(zone: str | None) -> int | None:
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)


def written(moment: int) -> str:
    """An instant as ISO text in UTC. Long horizons end beyond the year 9999: such years have a sign and six digits.

    >>> written(0), written(10**18)
    ('1970-01-01T00:00:00Z', '+033658-09-27T01:46:40Z')
    """
    ahead = max(0, -((_LAST - moment) // _CALENDAR))
    text = (_EPOCH + (moment - ahead * _CALENDAR) * _MICROSECOND).isoformat().replace("+00:00", "Z")
    return f"+{int(text[:4]) + 400 * ahead:06}{text[4:]}" if ahead else text


def duration(length: int) -> str:
    """A length of time in words, from microseconds.

    >>> duration(3_600_000_000), duration(900_000_000)
    ('hour', '15 minutes')
    """
    seconds = length // 1_000_000
    words = {"week": "w", "day": "d", "hour": "h", "minute": "m", "second": "s"}
    unit, word = next((_UNITS[u], word) for word, u in words.items() if seconds % _UNITS[u] == 0)
    return word if seconds == unit else f"{seconds // unit} {word}s"


@dataclass(frozen=True)
class Clock:
    """Declared time: tick n covers [start + (n-1) * length, start + n * length).

    With `integer` the time stamps are plain integers in the user's own unit, otherwise microseconds since
    1970 (UTC). Without a `column` an event belongs to the tick of its receipt. `close` says what ends a tick of
    a live stream. A `floating` clock has no start yet: the moment of the first `serve` becomes its start.

    >>> clock = Clock.declared(column="time", start="2013-01-01", tick="1h", end="2013-01-02")
    >>> clock.ticks, clock.end_of(1), clock.tick_before("2013-01-01T05:00")
    (24, '2013-01-01T01:00:00Z', 5)
    >>> served = Clock.declared(column=None, start="first serve", tick="1m").anchored(90_000_000)
    >>> served.end_of(0), served.open_tick(90_000_000), served.open_tick(120_000_000)
    ('1970-01-01T00:01:00Z', 1, 2)
    """

    column: str | None
    start: int
    length: int
    integer: bool
    ticks: int | None
    close: Close = "wall"
    floating: bool = False

    @classmethod
    def declared(
        cls, column: str | None, start: object, tick: object, end: object = None, close: Close = "wall"
    ) -> Clock:
        """A clock from values as a spec file has them; ConfigurationError names the option that is wrong."""
        if close == "request" and column is None:
            raise ConfigurationError('close = "request" needs a column: events enter the tick of their own time')
        if start == FIRST_SERVE:
            if end is not None:
                raise ConfigurationError(f'end needs a start that is known; with "{FIRST_SERVE}" give a horizon')
            return cls(column, 0, _declared_length(tick, integer=False), False, None, close, floating=True)
        integer = isinstance(start, int) and not isinstance(start, bool)
        first = _declared_instant("start", start, integer)
        length = _declared_length(tick, integer)
        clock = cls(column, first, length, integer, None, close)
        if end is None:
            return clock
        ticks = clock._boundary("end", _declared_instant("end", end, integer))
        if ticks < 1:
            raise ConfigurationError("end must be at least one tick after start")
        return replace(clock, ticks=ticks)

    def anchored(self, moment: int) -> Clock:
        """A floating clock whose start is `moment` (microseconds since 1970), rounded down to a tick; then it is fixed.

        Ticks then start at multiples of their length since 1970: full hours, full minutes.
        """
        if not self.floating:
            raise ConfigurationError("this clock has a start already")
        return replace(self, start=moment // self.length * self.length, floating=False)

    def open_tick(self, moment: int) -> int:
        """The tick that contains a moment of the wall clock (microseconds since 1970); 0 and below before the start."""
        if self.integer or self.floating:
            raise ConfigurationError("only a clock with a start in wall-clock time has an open tick")
        return (moment - self.start) // self.length + 1

    def tick_before(self, time: object) -> int:
        """The last tick that is over at `time`, which must be a tick boundary: what `until` means."""
        if self.integer and isinstance(time, str) and re.fullmatch(r"[+-]?\d{1,19}", time):
            time = int(time)
        ticks = self._boundary("until", _declared_instant("until", time, self.integer))
        if self.ticks is not None and ticks > self.ticks:
            raise ConfigurationError(f"until is after the end of the clock, {self.end_of(self.ticks)}")
        return ticks

    def ticks_of(self, instants: NDArray[np.int64]) -> NDArray[np.int64]:
        """The tick of each instant, counted from 1; 0 and below before the start. A function of each instant alone."""
        return (instants - self.start) // self.length + 1

    def end_of(self, tick: int) -> str | int:
        """When a tick is over: the moment as of which its release counts."""
        moment = self.start + tick * self.length
        return moment if self.integer else written(moment)

    def lasting(self, ticks: int) -> str:
        """So many ticks in words: days rather than weeks, as people say it of windows.

        >>> hours = Clock.declared(column="time", start="2013-01-01", tick="1h")
        >>> hours.lasting(24), hours.lasting(7 * 24), hours.lasting(5)
        ('1 day', '7 days', '5 hours')
        """
        if self.integer:
            return f"{ticks} tick{'' if ticks == 1 else 's'}"
        days, rest = divmod(ticks * self.length, _DAY)
        words = f"{days} days" if days > 1 and not rest else duration(ticks * self.length)
        return words if words[0].isdigit() else f"1 {words}"

    def ticks_in(self, option: str, length: object) -> int:
        """A length in ticks: a number of them, or a length of time that is a whole number of ticks.

        >>> Clock.declared(column=None, start="2013-01-01", tick="1h").ticks_in("window", "7d")
        168
        """
        if isinstance(length, int) and not isinstance(length, bool):
            if length < 1:
                raise ConfigurationError(f"{option} must be at least one tick")
            return length
        ticks, rest = self._ticks_lasting(option, length)
        if rest or ticks < 1:
            raise ConfigurationError(f"{option} must be whole ticks, and a tick is {self.lasting(1)}")
        return ticks

    def _ticks_lasting(self, option: str, length: object) -> tuple[int, object]:
        """The whole ticks in a length of time, and what is left of it."""
        if isinstance(length, dt.timedelta) and not self.integer:
            return divmod(length, self.length * _MICROSECOND)
        match = _LENGTH.fullmatch(length) if isinstance(length, str) and not self.integer else None
        if match is None:
            also = "" if self.integer else ', or a length such as "7d" (s, m, h, d, w)'
            raise ConfigurationError(f"{option} must be a number of ticks{also}")
        return divmod(int(match[1]) * _UNITS[match[2]] * 1_000_000, self.length)

    def _boundary(self, option: str, moment: int) -> int:
        ticks, rest = divmod(moment - self.start, self.length)
        if rest:
            days = self.length % _DAY == 0 and not self.integer
            raise ConfigurationError(
                f"{option} must fall on a tick boundary: {self.end_of(ticks)} or {self.end_of(ticks + 1)}, for example"
                + (_SUMMER if days and rest % (_DAY // 96) == 0 else "")
            )
        return ticks


def _declared_instant(option: str, value: object, integer: bool) -> int:
    if integer:
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _START_LIMIT:
            raise ConfigurationError(f"{option} must be an integer, like start, and at most 2^61 in size")
        return value
    moment: int | None = None
    if isinstance(value, dt.datetime):
        moment = microseconds(value)
    elif isinstance(value, dt.date):
        moment = microseconds(dt.datetime(value.year, value.month, value.day))
    elif isinstance(value, str):
        moment = instant(value)
    if moment is None:
        raise ConfigurationError(
            f"{option} must be a time such as 2013-01-01T00:00:00Z, or an integer on an integer clock"
            + (f', or "{FIRST_SERVE}"' if option == "start" else "")
        )
    return moment


def _declared_length(value: object, integer: bool) -> int:
    if integer:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _START_LIMIT:
            raise ConfigurationError("tick must be a positive integer when start is an integer")
        return value
    match = _LENGTH.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ConfigurationError('tick must be a length such as "15m", "1h", "1d" or "7d" (s, m, h, d, w)')
    return int(match[1]) * _UNITS[match[2]] * 1_000_000
