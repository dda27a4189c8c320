"""The doors of means and sums: each value on a grid, in integers."""

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
MOST_STEPS = 2**40  # of one event of a sum


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
        positions = self.positions(events)
        return np.array([positions.sum(), self.steps * positions.size], dtype=np.int64)

    def positions(self, events: Any) -> NDArray[np.int64]:
        """Where each value lies on the grid, |v| <= A; of those that are numbers."""
        require_column(events, "events")
        numbers = floats(events)
        numbers = numbers[~np.isnan(numbers)]
        with np.errstate(all="ignore"):
            positions = np.rint((numbers - self.middle) / self.grid)
            near = np.clip(positions, -self.steps, self.steps).astype(np.int64)
        # In integers: what bounds an event comes after all rounding.
        clipped: NDArray[np.int64] = np.clip(near, -self.steps, self.steps)
        return clipped


class AmountGrid(Secret):
    """Amounts between two bounds as places on a grid of whole steps from 0: what sums are counted in.

    `low` and `high` are the bounds in steps, outwards: whatever a value is rounded to, a clip to them in integers moves
    nothing that was in range, and is what bounds an event. Floats are read as they are written, 0.01 as a hundredth.

    >>> grid = AmountGrid(lower=0, upper=500, resolution=0.01)
    >>> grid.low, grid.high, grid.places([19.99, 999, None, "7", float("-inf"), 0.005]).tolist()
    (0, 50000, [1999.0, 50000.0, nan, 700.0, 0.0, 0.5])
    """

    def __init__(self, lower: float, upper: float, resolution: float = 1) -> None:
        low, high, step = as_written(lower), as_written(upper), as_written(resolution)
        if low is None or high is None or not low < high:
            raise ConfigurationError(f"lower and upper bound the amounts, lower < upper; got {lower!r} and {upper!r}")
        if step is None or not _SMALLEST_STEP <= step <= _LARGEST_STEP:
            raise ConfigurationError(f"resolution is what amounts are rounded to, a number above 0; got {resolution!r}")
        if step > max(abs(low), abs(high)):
            raise ConfigurationError(
                f"resolution {resolution!r} is more than any amount from {lower!r} to {upper!r}: choose a finer one"
            )
        # A place that is no event at all is 0: with one sign only, the other end of what an event may add.
        self.low, self.high = min(0, math.floor(low / step)), max(0, math.ceil(high / step))
        if max(-self.low, self.high) > MOST_STEPS:
            raise ConfigurationError(
                f"resolution {resolution!r} cuts amounts up to {upper!r} into more than 2^40 steps; choose another one"
            )
        self.step, self._step = step, float(step)
        self._ends = float(low), float(high)

    @property
    def most(self) -> int:
        """How far one event moves the sum at most, in steps."""
        return max(-self.low, self.high)

    @property
    def signed(self) -> bool:
        return self.low < 0 < self.high

    def places(self, events: Any) -> NDArray[np.float64]:
        """Where each event lies, in steps, NaN where it is no number. Not yet rounded, and bounded in floats only."""
        require_column(events, "events")
        with np.errstate(all="ignore"):
            places = np.clip(floats(events), *self._ends) / self._step
            whole = np.rint(places)
            # What floats cannot tell from a whole number was meant as one: 19.99 is 1999 hundredths.
            return np.where(np.abs(places - whole) <= 2.0**-48 * np.maximum(1.0, np.abs(places)), whole, places)

    def shown(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """Sums of steps as numbers of the unit that amounts have."""
        numbers: NDArray[np.float64] = np.asarray(steps, dtype=np.float64) * self.step.numerator / self.step.denominator
        return numbers


def as_written(value: object) -> Fraction | None:
    """A finite number of the caller's, exactly, a float as its shortest decimal form.

    >>> as_written(0.01), as_written(float("nan")), as_written("3")
    (Fraction(1, 100), None, None)
    """
    number = plain(value)
    exact = _bound(number)
    return Fraction(repr(number)) if exact is not None and isinstance(number, float) else exact


def _bound(value: object) -> Fraction | None:
    """A finite number of the caller's, exactly."""
    number = plain(value)
    if number is None or isinstance(number, bool | str | bytes):
        return None
    return None if isinstance(number, float | Decimal) and not finite(number) else Fraction(number)
