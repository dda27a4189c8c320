"""Medians over the rows of a sketch: their noise, their tails, and what collisions add (users-and-domains 5.1)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evertally.contract.parts import Accuracy, IntArray

_FEW_BUCKETS = 5


def median_deviation(accuracy: Accuracy, rows: int) -> float | None:
    """The standard deviation of the median over rows; None for Laplace noise, of whose sums no such formula is known
    (it is below that for Gaussian noise)."""
    noise = accuracy.stddev
    if noise is None or rows == 1:
        return noise
    return median_factor(rows) * noise if getattr(accuracy, "law", "") == "gaussian" else None


def median_of_rows(rows: IntArray) -> IntArray:
    """The middle number of each line; there is an odd number of them."""
    middle: IntArray = np.sort(rows, axis=1)[:, rows.shape[1] // 2]
    return middle


@lru_cache
def median_factor(rows: int) -> float:
    """The standard deviation of the median of so many independent standard normal numbers; c_R = sqrt(R) times that.

    >>> [round(math.sqrt(rows) * median_factor(rows), 3) for rows in (1, 3, 5, 7, 9)]
    [1.0, 1.16, 1.198, 1.214, 1.223]
    """
    # The density of the median is R!/(k!)^2 (F(1 - F))^k f with k = (R - 1)/2; smooth and even, so that plain sums
    # over a fine grid are exact to all digits.
    k = (rows - 1) // 2
    x = np.linspace(0, 12, 6001)
    above = np.array([math.erfc(one / math.sqrt(2)) / 2 for one in x])
    log_ways = math.lgamma(rows + 1) - 2 * math.lgamma(k + 1)
    density = np.exp(log_ways + k * np.log(np.maximum(above * (1 - above), 1e-300)) - x * x / 2)
    return math.sqrt(float((density * x * x).sum() / (density.sum() - density[0] / 2)))


@lru_cache
def share_of_rows(rows: int, beta: float) -> float:
    """How likely each of so many independent rows may be off for their median to be off with probability at most beta:
    then at least half of them are.

    >>> share_of_rows(1, 0.05), round(share_of_rows(5, 0.05), 4)
    (0.05, 0.1893)
    """
    if rows == 1:
        return beta
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        off = sum(math.comb(rows, j) * middle**j * (1 - middle) ** (rows - j) for j in range((rows + 1) // 2, rows + 1))
        low, high = (middle, high) if off <= beta else (low, middle)
    return low


def _centred(table: IntArray, signs: bool) -> NDArray[np.float64]:
    """What buckets hold. Without signs every row is taken around its mean, which all labels have in every bucket."""
    width = table.shape[1]
    cells = table.astype(np.float64)
    if signs or width == 1:
        return cells
    return np.asarray((cells - cells.mean(axis=1, keepdims=True)) * math.sqrt(width / (width - 1)))


def second_moment(table: IntArray, signs: bool, noise_variance: float) -> float:
    """||f||^2, the sum of the squares of all labels' counts, estimated from a released table (rows, buckets): the
    squares of a row less those of its noise, the median over rows; never below 0. Post-processing."""
    squares = (_centred(table, signs) ** 2).sum(axis=1) - table.shape[1] * noise_variance
    return max(0.0, float(np.median(squares)))


def usual_bucket(table: IntArray, signs: bool, share: float) -> float | None:
    """What a bucket of a released table holds in absolute value, all but about a `share` of them: noise and other
    labels, which is what a label in one of them is off by. None where too few buckets are beyond it to say so."""
    if table.shape[1] * share < _FEW_BUCKETS:
        return None
    cells = np.abs(_centred(table, signs)).ravel()
    rank = min(cells.size - 1, math.ceil((1 - share) * cells.size))
    return float(np.partition(cells, rank)[rank])


def collision_radius(moment: float, width: int, share: float) -> float:
    """What the other labels of its bucket add to a label in one row exceeds this with probability at most `share`
    (Chebyshev: its standard deviation is at most ||f||/sqrt(width)), for streams chosen without looking at hashes."""
    return math.sqrt(moment / (width * share))
