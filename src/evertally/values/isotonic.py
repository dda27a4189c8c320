"""The nondecreasing sequence nearest to a given one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def isotonic(values: FloatArray) -> FloatArray:
    """Isotonic regression in least squares, by pooling neighbours that are out of order. O(n).

    No entry gets further from a nondecreasing truth than the farthest was: the sup norm never grows (users-and-domains
    4).

    >>> isotonic(np.array([1.0, 3.0, 2.0, 4.0, 0.0])).tolist()
    [1.0, 2.25, 2.25, 2.25, 2.25]
    """
    if not np.any(values[1:] < values[:-1]):
        return values
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] > mean:
            before, of = means.pop(), sizes.pop()
            mean, size = (before * of + mean * size) / (of + size), of + size
        means.append(mean)
        sizes.append(size)
    # Rounding may leave two pools out of order in the last place.
    return np.maximum.accumulate(np.repeat(means, sizes))
