"""The fast path of a draw in float64: plain functions, interpreted for single draws and compiled for vectors.

Only additions, multiplications, floor and frexp are used, so the error analysis needs nothing of the machine but IEEE
754 rounding of these (fused multiply-adds included: they round less). A result is returned only if it is the same for
every real number within the certified distance; otherwise the answer is TOO_CLOSE and the slow path decides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOO_CLOSE = -1
REDO = np.iinfo(np.int64).min  # marks, in a vector, a draw that the slow path has to decide

# Kept as module constants with the values of quantile.py, because compiled code freezes them.
CELLS = 32
DEGREE = 8
_SLACK = 2.0**-50  # eight roundings of y: scale (2), product, sum, lower end, and a reserve (section 2)


def magnitude(
    v: float, coefficients: Any, radius: Any, bits: int, octaves: int, scale: float, shift: float, curvature: float
) -> int:
    """floor(scale * quantile(V) + shift) for all V that begin with the word v, or TOO_CLOSE.

    `curvature` weighs the distance between the wide discrete Gaussian and its continuous quantile, bounded by
    curvature * (z^3 + 9 z + 16) (docs/theory/samplers.md, section 3); it is 0 for the Laplace law.
    """
    m, exponent = math.frexp(v)
    octave = bits - exponent
    if octave < 0 or octave >= octaves:
        return TOO_CLOSE
    position = m * (2 * CELLS)
    cell = math.floor(position)
    x = position - cell - 0.5
    row = octave * CELLS + int(cell) - CELLS
    c = coefficients[row]
    z = c[DEGREE]
    for k in range(DEGREE - 1, -1, -1):
        z = z * x + c[k]
    y = scale * z + shift
    distance = scale * radius[row] + curvature * (z * (z * z + 9.0) + 16.0) + y * _SLACK
    answer: int = math.floor(y - distance)
    if answer < 0 or answer != math.floor(y + distance):
        return TOO_CLOSE
    return answer


def count_above(v: Any, thresholds: Any, start: int) -> int:
    """#{k : thresholds[k] > v} for falling thresholds, given a bound `start` on it, or TOO_CLOSE on a tie."""
    if v == 0:
        return TOO_CLOSE
    k = start
    while k > 0 and thresholds[k - 1] <= v:
        if thresholds[k - 1] == v:
            return TOO_CLOSE
        k -= 1
    return k


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
        k = magnitude(v, coefficients, radius, bits, octaves, scale, shift, curvature)
        if k < 0:
            out[i] = REDO
            undecided += 1
        else:
            out[i] = -k if word & np.uint64(1) else k
    return undecided


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
        k = count_above(v, thresholds, guide[v >> guide_shift])
        if k < 0:
            out[i] = REDO
            undecided += 1
        else:
            out[i] = -k if word & np.uint64(1) else k
    return undecided


def fill_reals(
    words: NDArray[np.uint64],
    coefficients: NDArray[np.float64],
    radius: NDArray[np.float64],
    value: NDArray[np.float64],
    largest_radius: NDArray[np.float64],
    largest_size: NDArray[np.float64],
) -> int:
    """Writes real variates (reals.py): a polynomial at 64 bits from the leading one on. V below 2^-53 has no cell and
    is written as NaN. Returns how many those are."""
    left = 0
    for i in range(value.shape[0]):
        widest, size = 0.0, 0.0
        for j in range(value.shape[1]):
            word = words[i, j, 0]
            top = np.float64(np.int64(word >> np.uint64(11)))  # 53 bits, exactly
            if top == 0.0:
                value[i, j] = np.nan
                left += 1
                continue
            octave = 53 - math.frexp(top)[1]
            o = np.uint64(octave)
            y = ((word >> np.uint64(1)) << (o + np.uint64(1))) | (words[i, j, 1] >> (np.uint64(63) - o))
            row = octave * CELLS + np.int64((y >> np.uint64(58)) & np.uint64(31))
            x = np.float64(np.int64(y & np.uint64(2**58 - 1))) * 2.0**-58 - 0.5
            z = coefficients[row, DEGREE]
            for k in range(DEGREE - 1, -1, -1):
                z = z * x + coefficients[row, k]
            widest = max(widest, radius[row])
            size = max(size, abs(z))  # near V = 1 a rounding error may make it negative
            value[i, j] = -z if word & np.uint64(1) else z
        largest_radius[i] = widest
        largest_size[i] = size
    return left
