"""The running mean of bounded values: the ratio of two jointly noised sums."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evertally.counting.linear import LinearMechanism
from evertally.counting.mechanism import Accuracy
from evertally.counting.process import IntArray
from evertally.encode import ValueDoor
from evertally.errors import ConfigurationError
from evertally.privacy import Change, Contribution, Guarantee, Neighbours
from evertally.ranking import Ranking


class RunningMean(LinearMechanism):
    """The mean of all values so far, for values between `lower` and `upper`.

    Each value is rounded to a multiple of `resolution` around the middle m of the range and clipped, an integer v with
    |v| <= A. An event adds (v, A) to two columns under one budget: the sum, and A times the count, so that both carry
    noise of the same size. The release m + resolution * A * sum/count is post-processing (factorization-counting 6.2).

    One event moves the row by at most (A, A) when it is added or removed, by (2A, 0) or (A, A) when it is replaced
    (a value that is no number counts as no event): quantise first, then bound, in integers (factorization-counting
    11, step 1). Exactness tier "exact"; time and memory as VectorCounter with two columns. `stddev` is None: a ratio
    has none; intervals and `error_bound(count=...)` hold.

    `step` takes the tick's values; there is no total to hand over, so `step_events` is the same. A tick may be empty.

    >>> import evertally as et
    >>> mean = et.RunningMean(lower=0, upper=100, guarantee=et.ZCDP(0.5), horizon=24, key=et.simulation(1))
    >>> release = mean.step([40.0] * 5000 + [60.0] * 5000)
    >>> lower, upper = release.interval()
    >>> 49 < lower < 50 < upper < 51
    True
    """

    def __init__(
        self,
        *,
        lower: float,
        upper: float,
        guarantee: Guarantee,
        horizon: int | None,
        resolution: float | None = None,
        neighbours: str | Neighbours = "add_remove",
        unit: Literal["event", "user"] = "event",
        max_events_per_user: int | None = None,
        **common: Any,
    ) -> None:
        self._door = ValueDoor(lower, upper, resolution)
        self.lower, self.upper = float(lower), float(upper)
        A = self._door.steps
        contribution = Contribution(max_weight=A, signed=True, unit=unit, max_events_per_user=max_events_per_user)
        relation = Neighbours.parse(neighbours)
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError('a mean has one event in both columns: use "add_remove" or "replace"')
        replaced = relation is Neighbours.REPLACE
        moved = Change(2 * A, 4 * A * A, 2 * A) if replaced else Change(2 * A, 2 * A * A, A)
        if max_events_per_user is not None:
            moved = moved.group(max_events_per_user * (2 if replaced else 1))
        super().__init__(
            columns=2,
            change=moved,
            contribution=contribution,
            options={
                "lower": lower,
                "upper": upper,
                "resolution": resolution,
                "unit": unit,
                "max_events_per_user": max_events_per_user,
            },
            guarantee=guarantee,
            horizon=horizon,
            neighbours=neighbours,
            **common,
        )
        # Beyond this many values in one tick the two sums would be clipped, and their ratio with them.
        if self._tick_limit // A < 2**16:
            raise ConfigurationError(
                f"with this resolution and horizon only {self._tick_limit // A} values fit into a tick; "
                "choose a coarser resolution, or a (shorter) horizon"
            )

    def _row(self, x: Any) -> IntArray:
        return self._door.totals(x, self.tick + 1)

    def _event_row(self, events: Any, tick: int) -> IntArray:
        return self._door.totals(events, tick)

    def _rows(self, x: Any) -> IntArray:
        """Ticks as a sequence of sequences of values."""
        if isinstance(x, np.ndarray) and x.ndim != 2:
            raise TypeError("run takes one sequence of values for each tick")
        rows = [self._row(values) for values in x]
        return np.stack(rows) if rows else np.empty((0, 2), dtype=np.int64)

    def _mean(self, total: float, count: float) -> float:
        # `count` carries the factor A; less than one event is taken for one.
        A = self._door.steps
        mean = self._door.middle + self._door.grid * total * A / max(count, A)
        return min(self.upper, max(self.lower, mean))

    def _show(self, values: IntArray) -> float:
        return self._mean(float(values[0]), float(values[1]))

    def _show_run(self, values: IntArray) -> NDArray[Any]:
        return np.array([self._show(row) for row in values])

    def _interval(self, values: IntArray, accuracy: Accuracy, beta: float) -> tuple[float, float]:
        # Both sums are within the radius with probability 1 - beta; the ratio is monotone in each of them. Rounding the
        # values to the grid has moved their mean by half a step at most.
        radius = accuracy.radius(beta / 2)
        total, count = float(values[0]), float(values[1])
        corners = [self._mean(total + a * radius, count + b * radius) for a in (-1, 1) for b in (-1, 1)]
        half = self._door.grid / 2
        return max(self.lower, min(corners) - half), min(self.upper, max(corners) + half)

    def _deviation(self, accuracy: Accuracy) -> None:
        return None  # a ratio of two noisy sums has no fixed variance

    def error_bound(self, beta: float = 0.05, t: int | None = None, *, count: int = 0) -> float:
        """With probability at least 1 - beta no mean of any tick that has at least `count` values behind it is further
        off than this. The error depends on how many values there are, which is private: without a public `count` only
        the width of the range can be promised.

        With both sums off by at most r and |sum| <= A n, the ratio is off by at most 2 r/(A n - r); half a grid step
        comes from rounding the values.
        """
        return self._off(super().error_bound(beta, t), count)

    def ways(self, *, count: int = 0) -> Ranking:
        """As for every counter, with the errors of means of at least `count` values."""
        return Ranking(way.shown_as(lambda r: self._off(r, count)) for way in super().ways())

    def _off(self, r: float, count: int) -> float:
        n = self._door.steps * count
        width = self.upper - self.lower
        if n <= r:
            return width
        return min(width, self._door.grid * (self._door.steps * 2 * r / (n - r) + 0.5))

    def _labels(self) -> None:
        return None
