"""Loops over the ticks of a block (optimal-counting 6, low state), with sums that carry what rounding takes from them.

`high`, `low`: a sum in two parts. What an addition loses is found exactly (Knuth's TwoSum: no fused operations, no
reordering), so a sum of n numbers is as good as one rounding, up to n^2 u^2 of the sum of their sizes.
"""

from __future__ import annotations

from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from evertally.noise.jit import jit


def collected(z: Any, first: int, d: Any, starts: Any, row: Any, value: Any, high: Any, low: Any) -> None:
    """high + low (k, columns) -= C (z/d) for the ticks first, first + 1, ... of z (ticks, columns)."""
    for t in range(z.shape[0]):
        tick = first + t
        if d[tick] == 0.0:
            continue
        for entry in range(starts[tick], starts[tick + 1]):
            r = row[entry]
            for i in range(z.shape[1]):
                p = -(value[entry] * (z[t, i] / d[tick]))
                a = high[r, i]
                s = a + p
                b = s - a
                low[r, i] += (a - (s - b)) + (p - b)
                high[r, i] = s


def walked(
    z: Any,
    first: int,
    d: Any,
    starts: Any,
    row: Any,
    value: Any,
    bare: Any,
    h: Any,
    high: Any,
    low: Any,
    out: Any,
) -> None:
    """out (ticks, columns) are prefix sums of x, going on from high + low (columns), for the ticks first, ..."""
    k = h.shape[0] - bare.shape[0]
    corrected = np.empty(z.shape[1])
    for t in range(z.shape[0]):
        tick = first + t
        if d[tick] == 0.0:
            at = k
            while bare[at - k] != tick:
                at += 1
            for i in range(z.shape[1]):
                corrected[i] = h[at, i]
        else:
            for i in range(z.shape[1]):
                corrected[i] = 0.0
            for entry in range(starts[tick], starts[tick + 1]):
                for i in range(z.shape[1]):
                    corrected[i] += value[entry] * h[row[entry], i]
            for i in range(z.shape[1]):
                corrected[i] = z[t, i] / d[tick] + corrected[i] / (d[tick] * d[tick])
        for i in range(z.shape[1]):
            a = high[i]
            s = a + corrected[i]
            b = s - a
            low[i] += (a - (s - b)) + (corrected[i] - b)
            high[i] = s
            out[t, i] = s + low[i]


@lru_cache(maxsize=4)
def compiled(name: str) -> Any:
    """One of the functions here as machine code."""
    function = globals()[name]
    assert isinstance(function, FunctionType)
    return jit(function, error_model="numpy")
