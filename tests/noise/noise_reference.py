"""What the noise must be, computed without the package: plain formulas and sums in mpmath, and exact tests.

Every statistical test of this folder runs under a fixed key, so it gives the same verdict each time. Its stated
false-alarm rate is over the choice of that key: a correct sampler fails under one key in a million or fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray

FALSE_ALARM = 1e-6
Z_BOUND = 6.0  # a standard normal exceeds it in absolute value with probability 2e-9

mp.prec = 256  # one precision for all tests: the setting is global, and files share a process


def real(value: Fraction | int) -> mpf:
    value = Fraction(value)
    return mpf(value.numerator) / value.denominator


def laplace_pmf(scale: Fraction) -> Callable[[int], mpf]:
    q = mp.exp(-1 / real(scale))
    return lambda z: (1 - q) / (1 + q) * q ** abs(z)


def gaussian_pmf(sigma_squared: Fraction) -> Callable[[int], mpf]:
    two = 2 * real(sigma_squared)
    last = int(mp.sqrt(two * mp.prec)) + 2
    total = 1 + 2 * mp.fsum(mp.exp(-mpf(j * j) / two) for j in range(1, last))
    return lambda z: mp.exp(-mpf(z * z) / two) / total


def laplace_tails(scale: Fraction, bits: int) -> list[mpf]:
    """S(1), S(2), ... down to 2^-bits, S(k) = P(|Z| >= k)."""
    q = mp.exp(-1 / real(scale))
    tails = []
    tail = 2 * q / (1 + q)
    while tail > mpf(2) ** -bits:
        tails.append(tail)
        tail *= q
    return tails


def gaussian_tails(sigma_squared: Fraction, bits: int) -> list[mpf]:
    """The same by plain summation from the far end, where all terms together are below 2^-370."""
    two = 2 * real(sigma_squared)
    last = int(mp.sqrt(two * 260)) + 2
    sums: list[mpf] = []
    running = mpf(0)
    for j in range(last, 0, -1):
        running += mp.exp(-mpf(j * j) / two)
        sums.append(running)
    sums.reverse()
    total = 1 + 2 * sums[0]
    return [2 * s / total for s in sums if 2 * s / total > mpf(2) ** -bits]


class ExactMagnitude:
    """#{k >= 1 : V < S(k)} at both ends of the interval of V that begins with a word of `bits` bits."""

    def __init__(self, tails: Sequence[mpf], bits: int) -> None:
        floors = []
        for tail in tails:
            scaled = tail * 2**bits
            floor = int(mp.floor(scaled))
            assert mpf(2) ** -100 < scaled - floor < 1 - mpf(2) ** -100, "a reference threshold is itself too close"
            floors.append(floor)
        self.floors = np.array(floors, dtype=np.int64)  # falling

    def ends(self, words: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        # No threshold is an integer, so v < 2^bits S(k) exactly when v <= its floor.
        ascending = self.floors[::-1]
        at_left = self.floors.size - np.searchsorted(ascending, words, side="left")
        at_right = self.floors.size - np.searchsorted(ascending, words + 1, side="left")
        return at_left, at_right


def chi_square_p(observed: Sequence[int], expected: Sequence[float]) -> float:
    """p-value of Pearson's test; every expected count must be at least 10."""
    assert min(expected) >= 10
    assert abs(sum(observed) - sum(expected)) <= 1e-6 * sum(expected)
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return float(mp.gammainc(mpf(len(observed) - 1) / 2, statistic / 2, mp.inf, regularized=True))


def law_p(draws: NDArray[np.int64], pmf: Callable[[int], mpf]) -> float:
    """p-value of the draws against an exact law, with tail outcomes pooled until 10 are expected."""
    n = draws.size
    reach = 0
    while n * float(pmf(reach + 1)) >= 10:
        reach += 1
    inner = [float(n * pmf(z)) for z in range(-reach, reach + 1)]
    tail = (n - sum(inner)) / 2
    counts = np.bincount(np.clip(draws, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3).tolist()
    expected = [tail, *inner, tail]
    if tail < 10:  # fold each end into its neighbour
        counts = [counts[0] + counts[1], *counts[2:-2], counts[-2] + counts[-1]] if reach else [n]
        expected = [tail + inner[0], *inner[1:-1], inner[-1] + tail] if reach else [float(n)]
    return chi_square_p(counts, expected) if len(counts) > 1 else 1.0
