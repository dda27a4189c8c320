"""The kernels for whole vectors, compiled by numba. The import costs seconds; single draws never do it."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evertally.noise import kernels

_magnitude = njit(cache=True, error_model="numpy")(kernels.magnitude)
_count_above = njit(cache=True)(kernels.count_above)

REDO = np.iinfo(np.int64).min  # marks a draw that the slow path has to decide


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def fill_by_polynomials(
    words: NDArray[np.uint64],
    coefficients: NDArray[np.float64],
    radius: NDArray[np.float64],
    bits: int,
    octaves: int,
    scale: float,
    shift: float,
    curvature: float,
    out: NDArray[np.int64],
) -> int:
    """Writes the draws; returns how many are left to the slow path."""
    undecided = 0
    for i in range(out.size):
        word = words[i, 0]
        v = np.float64(word >> np.uint64(1))
        k = _magnitude(v, coefficients, radius, bits, octaves, scale, shift, curvature)
        if k < 0:
            out[i] = REDO
            undecided += 1
        elif word & np.uint64(1):
            out[i] = -k
        else:
            out[i] = k
    return undecided


@njit(cache=True)  # type: ignore[untyped-decorator]
def fill_by_thresholds(
    words: NDArray[np.uint64],
    thresholds: NDArray[np.int64],
    guide: NDArray[np.int64],
    guide_shift: int,
    out: NDArray[np.int64],
) -> int:
    """Writes the draws; returns how many are left to the slow path."""
    undecided = 0
    for i in range(out.size):
        word = words[i, 0]
        v = np.int64(word >> np.uint64(1))
        k = _count_above(v, thresholds, guide[v >> guide_shift])
        if k < 0:
            out[i] = REDO
            undecided += 1
        elif word & np.uint64(1):
            out[i] = -k
        else:
            out[i] = k
    return undecided
