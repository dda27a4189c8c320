"""Tumbling windows: statistics of public periods of ticks, each begun anew."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint, Played, Widening
from evertally.contract.rows import dense, from_bytes, to_bytes
from evertally.contract.ticks import last_tick
from evertally.counting.linear import LinearEngine
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.secret import Secret
from evertally.statistics.linear_options import Linear
from evertally.statistics.own_engines import ENGINES
from evertally.values.epochs_engine import InLane


@statistic
class Tumbling(Linear):
    """Linear statistics that may begin anew in every period. Not used directly; see `RunningSum`, `RunningVariance`.

    Each period has a counter of its own, with noise for as many ticks as a period has. An event lies in one period, and
    what a user does in several adds up to no more than all in one: sum_e c_e^2 <= (sum_e c_e)^2 (users-and-domains 1.7
    with encoders that are all alike). So the whole budget is for every period, also without a horizon.
    """

    period: int | None = option(
        "The length of a tumbling window, in ticks: what is released is about the current one. None: all ticks so far.",
        default=None,
    )

    def _linear(self, *parts: Any, **further: Any) -> Blueprint:
        if self.period is None:
            return super()._linear(*parts, **further)
        horizon = self.horizon
        period = self.period = self._ticks_of_sums()
        if self.max_window or self.mechanism in ENGINES:
            raise ConfigurationError("a period goes with noise of ours, and without max_window: it is a window itself")
        # One counter has as many ticks as a period.
        self.horizon = period
        try:
            rows = super()._linear(*parts, **further)
        finally:
            self.horizon = horizon

        most = self._most_in_a_tick()

        def engine(source: ItemSource) -> Periods:
            def counter(number: int) -> LinearEngine:
                made = rows.engine(InLane(source, f"period-{number}"))  # type: ignore[arg-type]
                assert isinstance(made, LinearEngine)
                return made

            return Periods(counter, period, None if horizon is None else -(-horizon // period))

        return replace(
            rows,
            address=rows.address | {"period": period},
            door=lambda source, limit: rows.door(source, most),
            engine=engine,
        )

    def _most_in_a_tick(self) -> int:
        """What totals of a tick are clipped to, so that sums fit 64 bits: those of a period, where there are any."""
        return 2**61 // self._ticks_of_sums()

    def _ticks_of_sums(self) -> int:
        if self.period is None:
            return last_tick(self.horizon)
        return whole("period", self.period, 1, 2**31 if self.horizon is None else self.horizon)

    def _about(self) -> str:
        about = super()._about()
        return about if self.period is None else f"{about}, of the current period of {self.period} ticks"


@dataclass(frozen=True, repr=False)
class PeriodState(Secret):
    """How far it is, and the state of the counter of the period."""

    tick: int
    inner: Any


class Periods(Secret):
    """One linear engine after the other, each for `period` ticks; `count` of them, None without an end."""

    def __init__(self, counter: Callable[[int], LinearEngine], period: int, count: int | None) -> None:
        self._make, self._period, self._count = counter, period, count
        self._counters: dict[int, LinearEngine] = {0: counter(0)}
        self._first = self._counters[0]  # all are alike
        self.width = self._first.width

    def start(self) -> PeriodState:
        return PeriodState(0, self._first.start())

    def begin(self, tick: int) -> None:
        """Each counter is sought where it is played."""

    def play(self, batch: Any, state: PeriodState) -> Played:
        rows, left = [], dense(batch)
        while len(left):
            number, before = divmod(state.tick, self._period)
            count = min(len(left), self._period - before)
            counter = self._counter(number)
            counter.begin(before)
            played = counter.play(left[:count], state.inner if before else counter.start())
            rows.append(played.rows)
            state, left = PeriodState(state.tick + count, played.state), left[count:]
        return Played(np.concatenate(rows), None, state)

    def _counter(self, number: int) -> LinearEngine:
        known = self._counters.get(number)
        if known is None:
            known = self._make(number)
            # The one before stays: an interrupted call may go back to it.
            self._counters = {n: one for n, one in self._counters.items() if n >= number - 1} | {number: known}
        return known

    def go_back(self, tick: int, state: PeriodState) -> None:
        if tick:
            number = (tick - 1) // self._period
            self._counter(number).go_back(tick - number * self._period, state.inner)
        # Whatever was begun after it is begun anew.
        self._counters = {n: one for n, one in self._counters.items() if tick and n <= (tick - 1) // self._period}

    def accuracy(self, tick: int) -> Accuracy:
        return self._first.accuracy((tick - 1) % self._period + 1)

    def widest(self, tick: int) -> Accuracy | None:
        return self._first.widest(min(tick, self._period)) if isinstance(self._first, Widening) else None

    def window(self, tick: int, window: int) -> Accuracy:
        raise ConfigurationError("periods do not look back")

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        """All periods share the probability of failure; without an end, the n-th has the part 6/(pi n)^2 of it."""
        if self._count is not None:
            return self._first.error_bound(beta / self._count, None)
        assert tick is not None
        number = (tick - 1) // self._period + 1
        return self._first.error_bound(6 * beta / (math.pi * number) ** 2, None)

    def save(self, state: PeriodState) -> list[bytes]:
        number = max(0, state.tick - 1) // self._period
        return [to_bytes(np.array([state.tick], dtype=np.int64)), *self._counter(number).save(state.inner)]

    def load(self, tick: int, parts: list[bytes]) -> PeriodState:
        number = max(0, tick - 1) // self._period
        counter = self._counter(number)
        return PeriodState(int(from_bytes(parts[0])[0]), counter.load(tick - number * self._period, parts[1:]))
