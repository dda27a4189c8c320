"""Ticks that floats leave open: the path of one coordinate in double words, before balls are asked.

optimal-counting 3.3, tier 2, and 11.2: about a hundredth of what balls take. A path goes on from where it was left, so
every tick is gone through once; what it leaves open as well (2^-60 of what floats do) is for balls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.counting.bank_balls import Drawn
from evertally.counting.bank_schedule import Bank
from evertally.noise import double_words
from evertally.noise.reals import DOUBLE_RADIUS, DoubleWords
from evertally.secret import Secret

_PIECE = 1 << 12  # ticks whose variates are asked for at once

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
States = tuple[FloatArray, FloatArray, FloatArray]  # e (2Q, n), err (Q), big (Q)


def at_rest(bank: Bank, columns: int) -> States:
    """Before the first tick."""
    Q = bank.states
    return np.zeros((2 * Q, columns)), np.zeros(Q), np.zeros(Q)


def through(
    bank: Bank, ends: NDArray[np.int64], sigma: float, tick: int, z: DoubleWords, states: States, out: IntArray
) -> int:
    """The ticks after `tick` as far as `out` goes; `states` are changed in place. Gives how many are left open."""
    held = int(np.searchsorted(ends, tick, side="right"))
    coefficients = bank.a, bank.K, bank.r, ends, held
    run = double_words.compiled("filtered")
    left: int = run(z.high, z.low, DOUBLE_RADIUS, *coefficients, sigma, tick, *states, out)
    return left


class DoublePath(Secret):
    """floor(sigma x_t + 1/2) of one coordinate, or None. `drawn(nodes)` gives its variates."""

    def __init__(self, bank: Bank, sigma: float, drawn: Drawn) -> None:
        self._bank, self._sigma, self._drawn = bank, sigma, drawn
        self._ends = np.cumsum(bank.lengths)
        self._stands: tuple[int, States] = 0, at_rest(bank, 1)

    def rounded(self, ticks: list[int]) -> list[int | None]:
        """The rounded noise of some ticks, in order; None where it is left open."""
        if ticks[0] <= self._stands[0]:
            self._stands = 0, at_rest(self._bank, 1)
        found: list[int | None] = []
        while len(found) < len(ticks):
            done, states = self._stands
            stop = min(ticks[-1], done + _PIECE)
            e, err, big = states
            made = e.copy(), err.copy(), big.copy()
            out = np.empty((stop - done, 1), dtype=np.int64)
            z = self._drawn(range(done + 1, stop + 1)).doubles()
            through(self._bank, self._ends, self._sigma, done, z, made, out)
            noise = [int(out[t - done - 1, 0]) for t in ticks[len(found) :] if t <= stop]
            found += [None if value == double_words.REDO else value for value in noise]
            self._stands = stop, made
        return found
