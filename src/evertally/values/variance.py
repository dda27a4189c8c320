"""Running mean, variance and standard deviation of bounded values, from three jointly noised sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.doors import RowDoor
from evertally.contract.forms import RowForm
from evertally.contract.mechanism import by_tick
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint, IntArray
from evertally.contract.rows import Rows
from evertally.contract.units import check_room
from evertally.encode import ValueDoor
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource
from evertally.privacy import Change, Neighbours
from evertally.ranking import Ranking
from evertally.values.sum_doors import ticks_of
from evertally.values.sums import check_relation
from evertally.values.tumbling import Tumbling

LABELS = ("mean", "variance", "stddev")

_LARGEST = 1e150  # whose square is a float


@statistic
class RunningVariance(Tumbling):
    """Mean, variance and standard deviation of all values so far, for values between `lower` and `upper`.

    Each value is rounded to a multiple of `resolution` around the middle of the range and clipped, an integer v with
    |v| <= A (as in RunningMean). An event adds (A, v, v^2/A to the nearest integer) to three columns under one budget.
    One event more or less moves the row by l2^2 = 3A^2, l1 = 3A; a replaced one by 4A^2 (v = A against -A); a user with
    w events by 3w^2A^2, replaced 6w^2A^2 (users-and-domains 3 [R]). Separate budgets would pay 6A^2 for a replacement.

    Everything else is post-processing: the mean, the variance E[v^2] - E[v]^2 between 0 and the largest that there can
    be, its root. Intervals of all three hold together: each sum is within its own at beta/3, and grid and rounding of
    the squares are in them. Without values: the middle, and no variance. Exactness tier "exact"; time and memory as
    VectorCounter with three columns. `stddev` of a release (the noise) is None: a ratio has none. `step` takes the
    values of the tick, `last(window)` gives all three for the last ticks, `every` those of tumbling windows.

    >>> import evertally as et
    >>> spread = et.RunningVariance(lower=0, upper=100, guarantee=et.ZCDP(0.5), horizon=24, key=et.simulation(1))
    >>> release = spread.step([40.0] * 5000 + [60.0] * 5000)
    >>> {name: round(value, -1) for name, value in release.value.items()}
    {'mean': 50.0, 'variance': 100.0, 'stddev': 10.0}
    >>> lower, upper = release.interval()
    >>> lower["stddev"] < 10 < upper["stddev"], spread.sensitivity.l2_squared == 3 * 1000**2
    (True, True)
    """

    lower: float = option("Values below this are taken for it.")
    upper: float = option("Values above this are taken for it.")
    resolution: float | None = option("What values are rounded to; None: a 2000th of the range.", default=None)

    def _blueprint(self) -> Blueprint:
        grid = self._values = ValueDoor(self.lower, self.upper, self.resolution)
        lower, upper = self.lower, self.upper
        self.lower, self.upper = float(lower), float(upper)
        if grid.grid > self.upper - self.lower or max(abs(self.lower), abs(self.upper)) > _LARGEST:
            raise ConfigurationError(
                f"a variance needs a resolution below the width of the range, and squares that floats hold: values up "
                f"to {_LARGEST:g}; measure in another unit"
            )
        relation = check_relation(self.neighbours, "a variance")
        contribution = self._contributing(max_weight=grid.steps, signed=True)
        moved, loose = variance_change(grid.steps, relation, contribution.max_events_per_user)

        def door(source: ItemSource, limit: int) -> ValuesAndSquares:
            check_room(limit, grid.steps)
            return ValuesAndSquares(grid, limit)

        return self._linear(
            "RunningVariance",
            3,
            moved,
            contribution,
            {"lower": lower, "upper": upper} | self._given("resolution", "unit", "max_events_per_user"),
            door,
            Moments(grid, self.lower, self.upper),
            loose=loose,
        )

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None, *, count: int = 0) -> float:
        """With probability at least 1 - beta no standard deviation of any tick that has at least `count` values behind
        it is further off than this, nor a mean. The error depends on how many values there are, which is private:
        without a public `count` only the width of the range can be promised.

        With all sums off by at most r: means (and means of squares, in units of A) by 2r/(An - r), the variance by
        three times that, and a root by the root.
        """
        return self._off(self._bound(beta, tick), count)

    def ways(self, *, count: int = 0) -> Ranking:
        """As for every counter, with the errors of standard deviations of at least `count` values."""
        return Ranking(way.shown_as(lambda r: self._off(r, count)) for way in super().ways())

    def _off(self, r: float, count: int) -> float:
        A, width = self._values.steps, self.upper - self.lower
        n = A * count
        if n <= r:
            return width
        # In units of A: E[v^2]/A^2 and E[v]/A are off by e each, so E[v]^2/A^2 by 2e.
        e = 2 * r / (n - r)
        return min(width, self._values.grid * (math.sqrt(3 * e * A * A + A / 2) + 0.5))


def variance_change(A: int, relation: Neighbours, events: int | None) -> tuple[Change, Change | None]:
    """What a value, or the values of a user, move (users-and-domains 3), and the same for a factor of which nothing is
    proved."""
    if events is None:
        return (
            Change(3 * A, 3 * A * A, A) if relation is Neighbours.ADD_REMOVE else Change(3 * A, 4 * A * A, 2 * A)
        ), None
    user = Change(3 * A, 3 * A * A, A).group(events)
    if relation is Neighbours.ADD_REMOVE:
        return user, None
    # Two users in other ticks: rows (A, v, v^2/A) have inner products that are not negative (users-and-domains 1.2).
    return Change(2 * user.l1, 2 * user.l2_squared, 2 * user.linf), user.group(2)


class ValuesAndSquares(RowDoor):
    """A tick's values become A for each, their sum and the sum of their squares over A."""

    def __init__(self, values: ValueDoor, limit: int) -> None:
        super().__init__(3, limit, signed=True)
        self._values = values

    def row(self, x: Any, tick: int) -> IntArray:
        A, v = self._values.steps, self._values.positions(x)
        return np.array([A * v.size, v.sum(), ((2 * v * v + A) // (2 * A)).sum()], dtype=np.int64)

    def event_row(self, events: Any, tick: int) -> IntArray:
        return self.row(events, tick)

    def many(self, x: Any, first: int) -> Rows:
        rows = [self.row(values, first) for values in ticks_of(x)]
        return np.stack(rows) if rows else np.empty((0, 3), dtype=np.int64)


class Moments(RowForm):
    """Mean, variance and standard deviation behind a row (A n, sum of v, sum of v^2/A)."""

    def __init__(self, values: ValueDoor, lower: float, upper: float) -> None:
        super().__init__(3, LABELS)
        self._values, self._lower, self._upper = values, lower, upper
        self._half = (upper - lower) / 2

    def show(self, row: IntArray) -> dict[str, float]:
        A, (n, s1, s2) = self._values.steps, map(float, row)
        n = max(n, A)  # less than one event is taken for one
        mean, square = A * s1 / n, A * A * s2 / n
        return self._shown(mean, math.sqrt(max(0.0, square - mean * mean)))

    def _shown(self, mean: float, deviation: float) -> dict[str, float]:
        """From steps to the unit of values, within what is possible."""
        grid = self._values.grid
        root = min(self._half, max(0.0, grid * deviation))
        middle = min(self._upper, max(self._lower, self._values.middle + grid * mean))
        return {"mean": middle, "variance": root * root, "stddev": root}

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return np.array([list(self.show(row).values()) for row in rows]).reshape(len(rows), 3)

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[dict[str, float], dict[str, float]]:
        # All three sums are within the radius with probability 1 - beta.
        A, radius, (n, s1, s2) = self._values.steps, accuracy.radius(beta / 3), map(float, row)
        counts = [max(n - radius, A), max(n + radius, A)]
        means = [A * (s1 + a * radius) / c for a in (-1, 1) for c in counts]
        low, high = self._variances([s1 - radius, s1 + radius], [s2 - radius, s2 + radius], counts)
        # Half a step for each value on the grid, and half a unit for each square: A/2 in the mean of squares.
        roots = [math.sqrt(max(0.0, low - A / 2)) - 0.5, math.sqrt(max(0.0, high + A / 2)) + 0.5]
        return self._shown(min(means) - 0.5, roots[0]), self._shown(max(means) + 0.5, roots[1])

    def _variances(self, s1: Sequence[float], s2: Sequence[float], counts: Sequence[float]) -> tuple[float, float]:
        """The least and the largest A^2 (s2 x - s1^2 x^2) with x = 1/n: concave in x, so the largest may lie between
        the corners."""
        A, x = self._values.steps, [1 / count for count in counts]
        most = max(s1[0] * s1[0], s1[1] * s1[1])
        least = 0.0 if s1[0] <= 0 <= s1[1] else min(s1[0] * s1[0], s1[1] * s1[1])
        low = min(A * A * (s2[0] * one - most * one * one) for one in x)
        tried = [*x, s2[1] / (2 * least)] if least and x[1] < s2[1] / (2 * least) < x[0] else x
        return low, max(A * A * (s2[1] * one - least * one * one) for one in tried)

    def deviation(self, accuracy: Accuracy) -> None:
        return None
