"""Noise for what is counted period by period: once at the end of each, or at every tick of it.

users-and-domains 2.4 [R]. Both are paths over ticks to which nothing but public numbers leads; one draw, shared by all
releases of the stream, hides the level of a user's path (1.5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evertally.bounds.tails import Spread
from evertally.counting.centred import centred_laws, plain_laws, white_laws
from evertally.counting.choose import budgets
from evertally.counting.process import Budget, IntArray, check_horizon, spread_of
from evertally.errors import ConfigurationError
from evertally.noise import Law, Source
from evertally.privacy import Guarantee, PureDP
from evertally.ranking import Ranking, Way
from evertally.secret import Secret
from evertally.users.day_factor import DayFactor, best_day, day_factor
from evertally.users.white import ALONE, CENTRED, White, ranked

NO_SHARED_DRAW = 'a shared draw is for "add_remove" and a known number of periods; use mechanism="independent"'
_NOTHING = Spread("gaussian", 0.0, 0.0, 0.0, 1.0)


class EndNoise(Secret):
    """A number for each period, from its end on, until the next one is over; 0 before the first."""

    def __init__(self, white: White, period: int, *, horizon: int | None, source: Source) -> None:
        self.white, self.period, self.horizon = white, period, horizon
        self.columns, self.tick = 1, 0
        self._source = source
        self._now: tuple[int, int] = (0, 0)  # a period and its noise

    def advance(self, count: int = 1) -> IntArray:
        check_horizon(self, self.tick + count)
        out = np.empty((count, 1), dtype=np.int64)
        for i in range(count):
            out[i, 0] = self._of((self.tick + i + 1) // self.period)
        self.tick += count
        return out

    def seek(self, tick: int) -> None:
        self.tick = tick

    def _of(self, period: int) -> int:
        if period and self._now[0] != period:
            white = self.white
            own = self._source.draws("periods", white.own, [period])[0]
            shared = own if white.shared is None else self._source.draws("centre", white.shared, [0])[0]
            self._now = period, int(white.noise(own, shared)[0])
        return self._now[1] if period else 0

    def spread(self, tick: int) -> Spread:
        return self.white.spread if tick >= self.period else _NOTHING

    def worst(self) -> Spread:
        return self.white.spread

    def widest(self, tick: int) -> Spread:
        return self.spread(tick)

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        if self.horizon is None:
            assert tick is not None
            number = max(1, tick // self.period)
            return self.spread(tick).radius(6 * beta / (math.pi * number) ** 2)
        return self.worst().radius(beta / max(1, self.horizon // self.period))

    def window_spread(self, tick: int, window: int) -> Spread:
        return self.spread(tick) + self.spread(tick - window)  # at least: what is shared cancels


@dataclass(frozen=True)
class Days:
    """The laws of noise inside of days: of the draw of each tick, and of the one that all ticks share."""

    day: DayFactor
    own: Law
    shared: Law | None

    @property
    def spread(self) -> Spread:
        """The law at the last tick of a day, which has most noise."""
        return self.at(self.day.length)

    def at(self, place: int) -> Spread:
        """The law at a tick of a day, from 1 on."""
        unit = self.day.r[0]
        whole = spread_of(self.own, self.day.energy_up_to(place) / unit**2, 1 / unit, roundings=1)
        return whole if self.shared is None else whole + spread_of(self.shared, 0.25, 0.5)


@dataclass(frozen=True)
class DayMoves:
    """In how many days one step of the neighbouring relation moves anything, without a shared draw and, if there may be
    one, with it; and whether it is a replacement."""

    alone: int
    group: int | None
    replaced: bool = False

    def made(self, name: str, charge: Budget, length: int) -> Days:
        """The laws of a way for days of so many ticks."""
        centre = name == CENTRED
        if centre and self.group is None:
            raise ConfigurationError(NO_SHARED_DRAW)
        days = self.group if centre and self.group is not None else self.alone
        if isinstance(charge, PureDP):
            # Every tick by itself; two users in each other's place differ by 1 at most in each of them.
            laws = white_laws(charge, days * length, centre)
            return Days(day_factor(0, length), laws.fresh, laws.shared)
        # Replaced: the difference of two centred paths, 4 B_c a day (1.5), in as many days as either of them is in.
        day = best_day(length, centre or self.replaced)
        cost = day.cost(days, centre or self.replaced)
        laws = centred_laws(charge, cost) if centre else plain_laws(charge, cost, 4 if self.replaced else 1)
        return Days(day, laws.fresh, laws.shared)


def day_ways(guarantee: Guarantee, moves: DayMoves, length: int, mechanism: str, numbers: int | None) -> Ranking:
    """Both ways to make the noise, with each budget that keeps the promise."""
    if mechanism not in ("auto", ALONE, CENTRED):
        raise ConfigurationError(f'mechanism is "auto", "{CENTRED}" or "{ALONE}", not {mechanism!r}')

    def way(name: str, charge: Budget) -> Way:
        try:
            days = moves.made(name, charge, length)
        except ConfigurationError as refusal:
            return Way(name=name, charge=charge, refused=str(refusal))
        return ranked(name, charge, days.spread, numbers, len(days.day.r) * 2 * length)

    names = (CENTRED, ALONE) if mechanism == "auto" else (mechanism,)
    return Ranking([way(name, charge) for name in names for charge in budgets(guarantee)])


class DayNoise(Secret):
    """e_t = (Z_t - sum_{0<k<K} r_k e_(t-k)) / r_0 inside of a day, which begins anew every `length` ticks, plus half of
    the shared draw; rounded half up.

    It is exact: e_t r_0^t is an integer, of at most `length` times 16 bits and a little more.
    """

    def __init__(self, days: Days, *, horizon: int | None, source: Source) -> None:
        self.days, self.horizon = days, horizon
        self.columns, self.tick = 1, 0
        self._source = source
        # How many ticks of today there were, and e_t r_0^t of the last of them, the newest last. Secret.
        self._today: tuple[int, list[int]] = (0, [])

    def advance(self, count: int = 1) -> IntArray:
        check_horizon(self, self.tick + count)
        out = np.array([[self._next(self.tick + i + 1)] for i in range(count)], dtype=np.int64).reshape(count, 1)
        self.tick += count
        return out

    def seek(self, tick: int) -> None:
        self._today = (0, [])
        for earlier in range(tick - tick % self.days.day.length + 1, tick + 1):
            self._next(earlier)
        self.tick = tick

    def _next(self, tick: int) -> int:
        r, length = self.days.day.r, self.days.day.length
        place = (tick - 1) % length + 1
        before, past = self._today if place > 1 else (0, [])
        assert before == place - 1, "the noise of a day goes on from where it is"
        r0 = r[0]
        total = int(self._source.draws("day", self.days.own, [tick])[0, 0]) * r0 ** (place - 1)
        for k in range(1, min(len(r), place)):
            total -= r[k] * r0 ** (k - 1) * past[-k]
        self._today = (place, [*past, total][-(len(r) - 1) :] if len(r) > 1 else [])
        shared = 0
        if self.days.shared is not None:
            shared = int(self._source.draws("centre", self.days.shared, [0])[0, 0])
        unit: int = r0**place
        rounded: int = (2 * total + unit * (shared + 1)) // (2 * unit)
        return rounded

    def spread(self, tick: int) -> Spread:
        return self.days.at((tick - 1) % self.days.day.length + 1) if tick else _NOTHING

    def worst(self) -> Spread:
        return self.days.spread

    def widest(self, tick: int) -> Spread:
        return self.days.at(min(tick, self.days.day.length))

    def window_spread(self, tick: int, window: int) -> Spread:
        return self.spread(tick) + self.spread(tick - window)  # at least: what is shared cancels
