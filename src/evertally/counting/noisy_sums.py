"""Exact running sums plus a noise process: the engine of d counters, for veils that release what they make of it."""

from __future__ import annotations

import numpy as np

from evertally.counting.mechanism import from_bytes, to_bytes
from evertally.counting.process import IntArray, NoiseProcess, go_to, remembered
from evertally.counting.rows import Rows, dense
from evertally.secret import Secret


class NoisySums(Secret):
    """Rows in, noisy running sums out (price-of-continual-release 3.2).

    >>> from evertally.counting.accumulate import AccumulatingProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import Change, PureDP
    >>> source = ZeroNoise().source()
    >>> noise = AccumulatingProcess(PureDP(1), Change(2, 2, 1), horizon=9, columns=2, source=source)
    >>> NoisySums(noise).advance(np.array([[1, 0], [2, 5]])).tolist()
    [[1, 0], [3, 5]]
    """

    def __init__(self, process: NoiseProcess) -> None:
        self.noise = process
        self._sums = np.zeros(process.columns, dtype=np.int64)

    @property
    def tick(self) -> int:
        """Ticks played so far."""
        return self.noise.tick

    def advance(self, rows: Rows) -> IntArray:
        """The noisy sums of the next ticks."""
        values: IntArray = np.cumsum(dense(rows), axis=0)
        values += self._sums
        self._sums = values[-1].copy()
        values += self.noise.advance(len(values))
        return values

    def state(self) -> list[bytes]:
        """Secret bytes: the exact sums, and what the noise remembers."""
        return [to_bytes(self._sums), *remembered(self.noise)]

    def load(self, tick: int, parts: list[bytes]) -> None:
        """The way back."""
        self._sums = from_bytes(parts[0])
        go_to(self.noise, tick, parts[1:])
