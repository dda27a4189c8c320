"""The door of means: each value on a grid around the middle of its range, in integers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import as_list, is_arrow, require_column
from evertally.errors import ConfigurationError


class ValueDoor:
    """Turns values into two integer columns: the sum of their grid positions v, |v| <= A, and A for each
    value.

    Quantise first, clip afterwards, in integers (factorization-counting 11, step 1): then no event moves the
    row by more than (A, A), whatever rounding did. What is no number contributes nothing; infinities count as
    the ends.

    >>> door = ValueDoor(lower=0, upper=10, resolution=1)
    >>> door.steps, door.totals([0, 5, 10, 99, 7.4, None, "7", float("nan")], tick=1).tolist()
    (5, [7, 25])
    """

    def __init__(self, lower: float, upper: float, resolution: float | None = None) -> None:
        if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
            raise ConfigurationError(f"lower and upper bound the values, lower < upper; got {lower!r} and {upper!r}")
        width = Fraction(upper) - Fraction(lower)
        grid = Fraction(resolution) if resolution is not None else width / 2000
        if grid <= 0 or not 1 <= math.ceil(width / 2 / grid) <= 2**20:
            raise ConfigurationError(
                f"resolution {resolution!r} must cut the range from {lower!r} to {upper!r} into 2 to 2^21 parts"
            )
        self.middle = float((Fraction(lower) + Fraction(upper)) / 2)
        self.grid = float(grid)
        self.steps = math.ceil(width / 2 / grid)

    def totals(self, events: Any, tick: int) -> NDArray[np.int64]:
        """The row of one tick. The tick plays no part; all doors have the same shape."""
        require_column(events, "events")
        numbers = _floats(events)
        numbers = numbers[~np.isnan(numbers)]
        with np.errstate(over="ignore"):
            positions = np.rint((numbers - self.middle) / self.grid)
        clipped = np.clip(positions, -self.steps, self.steps).astype(np.int64)
        return np.array([clipped.sum(), self.steps * clipped.size], dtype=np.int64)


def _floats(events: Any) -> NDArray[np.float64]:
    """Each event as a float64, NaN where it is no number."""
    if is_arrow(events):
        import pyarrow as pa

        if pa.types.is_integer(events.type) or pa.types.is_floating(events.type):
            column = events.cast(pa.float64(), safe=False)
            chunked = isinstance(column, pa.ChunkedArray)
            array = column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False)
            return np.asarray(array, dtype=np.float64)
    if isinstance(events, np.ndarray) and events.dtype.kind in "iuf":
        with np.errstate(over="ignore"):  # a long double may be too large for float64, and must not be heard
            return events.astype(np.float64)
    return np.array([_float(value) for value in as_list(events)], dtype=np.float64)


def _float(value: object) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, Real | Decimal):
            return math.nan
        return float(value)
    except Exception:  # an object from outside may do anything when it is read
        return math.nan
