"""The running mean of bounded values: the ratio of two jointly noised sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.doors import Values
from evertally.contract.forms import RowForm
from evertally.contract.mechanism import by_tick
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint, IntArray
from evertally.encode import ValueDoor
from evertally.errors import ConfigurationError
from evertally.privacy import Change, Neighbours, replaced_user, taking_part
from evertally.ranking import Ranking
from evertally.statistics.separated_options import Separated


@statistic
class RunningMean(Separated):
    """The mean of all values so far, for values between `lower` and `upper`.

    Each value is rounded to a multiple of `resolution` around the middle m of the range and clipped, an integer v with
    |v| <= A. An event adds (v, A) to two columns under one budget: the sum, and A times the count, so that both carry
    noise of the same size. The release m + resolution * A * sum/count is post-processing (factorization-counting 6.2).

    One event moves the row by at most (A, A) when it is added or removed, by (2A, 0) or (A, A) when it is replaced
    (a value that is no number counts as no event): quantise first, then bound, in integers (factorization-counting
    11, step 1). Exactness tier "exact"; time and memory as VectorCounter with two columns. `stddev` is None: a ratio
    has none; intervals and `error_bound(count=...)` hold.

    `step` takes the tick's values, `last(window)` gives the mean of the last ticks; there is no total to hand over, so
    `step_events` is the same. A tick may be empty.

    >>> import evertally as et
    >>> mean = et.RunningMean(lower=0, upper=100, guarantee=et.ZCDP(0.5), horizon=24, key=et.simulation(1))
    >>> release = mean.step([40.0] * 5000 + [60.0] * 5000)
    >>> lower, upper = release.interval()
    >>> 49 < lower < 50 < upper < 51
    True
    """

    lower: float = option("Values below this are taken for it.")
    upper: float = option("Values above this are taken for it.")
    resolution: float | None = option("What values are rounded to; None: a 2000th of the range.", default=None)

    def _blueprint(self) -> Blueprint:
        door = self._values = ValueDoor(self.lower, self.upper, self.resolution)
        lower, upper = self.lower, self.upper
        self.lower, self.upper = float(lower), float(upper)
        A = door.steps
        contribution = self._contributing(max_weight=A, signed=True)
        relation = Neighbours.parse(self.neighbours)
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError('a mean has one event in both columns: use "add_remove" or "replace"')
        replaced = relation is Neighbours.REPLACE
        moved, removed = Change(2 * A, 4 * A * A, 2 * A), Change(2 * A, 2 * A * A, A)
        moved = loose = moved if replaced else removed
        w = contribution.max_events_per_user
        if w is not None and (contribution.in_steps or not replaced):
            moved = loose = moved.group(w * (2 if replaced else 1))
        elif w is not None:
            # Rows (v, A) have inner products v v' + A^2 >= 0, whatever the signs of v and v' (users-and-domains 1.2).
            linf = 2 * w * moved.linf
            moved, loose = (replaced_user(removed.group(w), linf, signs=signs) for signs in (False, True))
        rule = taking_part(contribution, removed, 2 if replaced else 1) if contribution.separated else None
        if rule is not None:
            moved, loose = rule.group(self.horizon), rule.loose(self.horizon)

        def opened(source: Any, limit: int) -> Values:
            # Beyond this many values in one tick the two sums would be clipped, and their ratio with them.
            if limit // A < 2**16:
                raise ConfigurationError(
                    f"with this resolution and horizon only {limit // A} values fit into a tick; "
                    "choose a coarser resolution, or a (shorter) horizon"
                )
            return Values(door, limit)

        return self._linear(
            "RunningMean",
            2,
            moved,
            contribution,
            {"lower": lower, "upper": upper} | self._given("resolution") | self._user_address(),
            opened,
            Ratio(door, self.lower, self.upper),
            loose=loose,
            rule=rule,
        )

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None, *, count: int = 0) -> float:
        """With probability at least 1 - beta no mean of any tick that has at least `count` values behind it is further
        off than this. The error depends on how many values there are, which is private: without a public `count` only
        the width of the range can be promised.

        With both sums off by at most r and |sum| <= A n, the ratio is off by at most 2 r/(A n - r); half a grid step
        comes from rounding the values.
        """
        return self._off(self._bound(beta, tick), count)

    def ways(self, *, count: int = 0) -> Ranking:
        """As for every counter, with the errors of means of at least `count` values."""
        return Ranking(way.shown_as(lambda r: self._off(r, count)) for way in super().ways())

    def _off(self, r: float, count: int) -> float:
        n = self._values.steps * count
        width = self.upper - self.lower
        if n <= r:
            return width
        return min(width, self._values.grid * (self._values.steps * 2 * r / (n - r) + 0.5))


class Ratio(RowForm):
    """The mean behind a row (sum, A times the count). A ratio of two noisy sums has no fixed variance."""

    def __init__(self, values: ValueDoor, lower: float, upper: float) -> None:
        super().__init__(2)
        self._values = values
        self._lower, self._upper = lower, upper

    def _mean(self, total: float, count: float) -> float:
        # `count` carries the factor A; less than one event is taken for one.
        A = self._values.steps
        mean = self._values.middle + self._values.grid * total * A / max(count, A)
        return min(self._upper, max(self._lower, mean))

    def show(self, row: IntArray) -> float:
        return self._mean(float(row[0]), float(row[1]))

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return np.array([self.show(row) for row in rows])

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[float, float]:
        # Both sums are within the radius with probability 1 - beta; the ratio is monotone in each of them. Rounding the
        # values to the grid has moved their mean by half a step at most.
        radius = accuracy.radius(beta / 2)
        total, count = float(row[0]), float(row[1])
        corners = [self._mean(total + a * radius, count + b * radius) for a in (-1, 1) for b in (-1, 1)]
        half = self._values.grid / 2
        return max(self._lower, min(corners) - half), min(self._upper, max(corners) + half)

    def deviation(self, accuracy: Accuracy) -> None:
        return None
