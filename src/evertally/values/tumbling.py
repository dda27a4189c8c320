"""Tumbling windows: statistics of public periods of ticks, each begun anew."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint
from evertally.contract.ticks import last_tick
from evertally.counting.linear import LinearEngine
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.statistics.linear_options import Linear
from evertally.statistics.own_engines import ENGINES
from evertally.values.periods import PeriodEngine, PeriodSource


@statistic
class Tumbling(Linear):
    """Linear statistics that may begin anew in every period. Not used directly; see `RunningSum`, `RunningVariance`.

    Each period has a counter of its own, with noise for as many ticks as a period has. An event lies in one period, and
    what a user does in several adds up to no more than all in one: sum_e c_e^2 <= (sum_e c_e)^2 (users-and-domains 1.7
    with encoders that are all alike). So the whole budget is for every period, also without a horizon.
    """

    every: int | None = option(
        "After how many ticks counting begins anew; None: never.",
        default=None,
    )

    def _linear(self, *parts: Any, **further: Any) -> Blueprint:
        if self.every is None:
            return super()._linear(*parts, **further)
        horizon = self.horizon
        period = self.every = self._ticks_of_sums()
        if self.max_window or self.mechanism in ENGINES:
            raise ConfigurationError("every= goes with noise of ours, and without max_window: it is a window itself")
        # One counter has as many ticks as a period.
        self.horizon = period
        try:
            rows = super()._linear(*parts, **further)
        finally:
            self.horizon = horizon

        most = self._most_in_a_tick()

        def engine(source: ItemSource) -> Periods:
            def counter(number: int) -> LinearEngine:
                made = rows.engine(PeriodSource(source, number))  # type: ignore[arg-type]
                assert isinstance(made, LinearEngine)
                return made

            return Periods(counter, period, None if horizon is None else -(-horizon // period))

        return replace(
            rows,
            address=rows.address | {"every": period},
            door=lambda source, limit: rows.door(source, most),
            engine=engine,
        )

    def _most_in_a_tick(self) -> int:
        """What totals of a tick are clipped to, so that sums fit 64 bits: those of a period, where there are any."""
        return 2**61 // self._ticks_of_sums()

    def _ticks_of_sums(self) -> int:
        if self.every is None:
            return last_tick(self.horizon)
        return whole("every", self.every, 1, 2**31 if self.horizon is None else self.horizon)

    def _about(self) -> str:
        about = super()._about()
        return about if self.every is None else f"{about}, of the current period of {self.every} ticks"


class Periods(PeriodEngine):
    """One linear engine after the other, each for `period` ticks; `count` of them, None without an end."""

    def __init__(self, make: Callable[[int], LinearEngine], period: int, count: int | None) -> None:
        super().__init__(make, period)
        self._count = count

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        """All periods share the probability of failure; without an end, the n-th has the part 6/(pi n)^2 of it."""
        if self._count is not None:
            return self._inner.error_bound(beta / self._count, None)
        assert tick is not None
        number = (tick - 1) // self._period + 1
        return self._inner.error_bound(6 * beta / (math.pi * number) ** 2, None)
