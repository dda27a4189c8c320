"""The door of means: each value on a grid around the middle of its range, in integers."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import require_column
from evertally.encode.numbers import floats
from evertally.encode.plain import finite, plain
from evertally.errors import ConfigurationError
from evertally.secret import Secret

_SMALLEST_STEP, _LARGEST_STEP = Fraction(sys.float_info.min), Fraction(sys.float_info.max)


class ValueDoor(Secret):
    """Turns values into two integer columns: the sum of their grid positions v, |v| <= A, and A for each value.

    Quantise first, clip afterwards, in integers (factorization-counting 11, step 1): then no event moves the row by
    more than (A, A), whatever rounding did. What is no number contributes nothing; infinities count as the ends.

    >>> door = ValueDoor(lower=0, upper=10, resolution=1)
    >>> door.steps, door.totals([0, 5, 10, 99, 7.4, None, "7", float("nan")], tick=1).tolist()
    (5, [9, 30])
    """

    def __init__(self, lower: float, upper: float, resolution: float | None = None) -> None:
        low, high = _bound(lower), _bound(upper)
        if low is None or high is None or not low < high:
            raise ConfigurationError(f"lower and upper bound the values, lower < upper; got {lower!r} and {upper!r}")
        width = high - low
        grid = width / 2000 if resolution is None else _bound(resolution)
        if grid is None or grid <= 0 or not 1 <= math.ceil(width / 2 / grid) <= 2**20:
            raise ConfigurationError(
                f"resolution {resolution!r} must cut the range from {lower!r} to {upper!r} into 2 to 2^21 parts"
            )
        middle = (low + high) / 2
        # Floats must be able to say where a value lies on the grid: in a range of denormal numbers a step would be
        # 0.0, and between two neighbouring floats the middle would be one of the ends.
        if not _SMALLEST_STEP <= grid <= _LARGEST_STEP or 8 * abs(Fraction(float(middle)) - middle) > grid:
            raise ConfigurationError(
                f"the range from {lower!r} to {upper!r} is too narrow or too wide for floating-point numbers to cut it "
                "into steps; measure in another unit, from another zero, or with a coarser resolution"
            )
        self.middle = float(middle)
        self.grid = float(grid)
        self.steps = math.ceil(width / 2 / grid)

    def totals(self, events: Any, tick: int) -> NDArray[np.int64]:
        """The row of one tick. The tick plays no part; all doors have the same shape."""
        require_column(events, "events")
        numbers = floats(events)
        numbers = numbers[~np.isnan(numbers)]
        with np.errstate(all="ignore"):
            positions = np.rint((numbers - self.middle) / self.grid)
            near = np.clip(positions, -self.steps, self.steps).astype(np.int64)
        clipped = np.clip(near, -self.steps, self.steps)  # in integers: what bounds an event comes after all rounding
        return np.array([clipped.sum(), self.steps * clipped.size], dtype=np.int64)


def _bound(value: object) -> Fraction | None:
    """A finite number of the caller's, exactly."""
    number = plain(value)
    if number is None or isinstance(number, bool | str | bytes):
        return None
    return None if isinstance(number, float | Decimal) and not finite(number) else Fraction(number)
