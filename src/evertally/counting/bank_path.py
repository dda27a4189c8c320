"""The correctly rounded path of a bank: floats with proved bounds decide almost every tick, balls the rest.

optimal-counting 3.2 [R, reviewed twice]. Noise is made a little ahead where there are few columns. What is made does
not depend on how it is made: any block, machine or restart gives the same integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evertally.counting import bank_kernels as kernels
from evertally.counting.bank_balls import BallPath
from evertally.counting.bank_schedule import Bank
from evertally.counting.process import FloatArray, IntArray
from evertally.errors import StateError
from evertally.noise import Source
from evertally.noise.reals import KnownReals, RealLaw, Reals
from evertally.secret import Secret

_BLOCK = 4096  # columns that share their error bounds; a block of states stays in the processor's cache
_AHEAD = 1 << 12  # numbers made ahead where there are few columns
_AT_ONCE = 1 << 14  # numbers made at once: their random bits stay in the cache
_MOST_BALL_PATHS = 256


@dataclass(repr=False)
class Block(Secret):
    """Some columns: states e (Q, n), and bounds for all of them: err of |e - truth|, big of |e|. Secret."""

    e: FloatArray
    err: FloatArray
    big: FloatArray

    def copy(self) -> Block:
        return Block(self.e.copy(), self.err.copy(), self.big.copy())

    @property
    def parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.e, self.err, self.big


class BankPath(Secret):
    """floor(sigma x_t + 1/2) for many coordinates.

    >>> from evertally.counting.bank_schedule import build_bank
    >>> from evertally.noise import simulation
    >>> path = BankPath(build_bank(64), 2.0, RealLaw("normal", "doc"), 3, simulation(1).source("doc"), "bank")
    >>> bool((path.rows(10, 20) == path.rows(0, 20)[10:]).all())
    True
    """

    def __init__(self, bank: Bank, sigma: float, law: RealLaw, columns: int, source: Source, lane: str) -> None:
        self._bank, self._sigma, self._law = bank, sigma, law
        self._columns, self._source, self._lane = columns, source, lane
        self._ends = np.cumsum(bank.lengths)
        self._restart()

    def _restart(self) -> None:
        self._blocks = self._fresh()
        self._before: list[Block] | None = self._fresh()  # as of tick `_start`, where it is kept
        self._made = self._start = 0
        self._rows = np.empty((0, self._columns), dtype=np.int64)  # the noise of ticks _start+1 .. _made
        self._balls: dict[int, BallPath] = {}
        self._torn = False

    def _fresh(self) -> list[Block]:
        Q = self._bank.states
        widths = [min(_BLOCK, self._columns - start) for start in range(0, self._columns, _BLOCK)]
        return [Block(np.zeros((Q, n)), np.zeros(Q), np.zeros(Q)) for n in widths]

    def rows(self, start: int, stop: int) -> IntArray:
        """The noise of the ticks start+1 .. stop."""
        if self._torn or start < self._start:
            self._restart()
        while self._made < start:
            self._make(start - self._made)
        if stop <= self._made:
            return self._rows[start - self._start : stop - self._start].copy()
        out = np.empty((stop - start, self._columns), dtype=np.int64)
        done = start
        while done < stop:
            if done == self._made:
                self._make(stop - done)
            last = min(stop, self._made)
            out[done - start : last - start] = self._rows[done - self._start : last - self._start]
            done = last
        return out

    def memory(self, tick: int) -> bytes:
        """States as of some tick that is not later; any floats with true bounds lead to the same noise."""
        if self._made <= tick and not self._torn:
            at, blocks = self._made, self._blocks
        elif self._before is not None and self._start <= tick:
            at, blocks = self._start, self._before
        else:
            at, blocks = 0, self._fresh()
        numbers = b"".join(part.astype("<f8").tobytes() for block in blocks for part in block.parts)
        return np.array([at], dtype="<i8").tobytes() + numbers

    def recall(self, tick: int, memory: bytes) -> None:
        self._restart()
        blocks = self._fresh()
        parts = [part for block in blocks for part in block.parts]
        if len(memory) != 8 + 8 * sum(part.size for part in parts):
            raise not_a_bank()
        at, numbers = int(np.frombuffer(memory[:8], dtype="<i8")[0]), np.frombuffer(memory[8:], dtype="<f8")
        if not 0 <= at <= tick or not np.isfinite(numbers).all():
            raise not_a_bank()
        done = 0
        for part in parts:
            part[...] = numbers[done : done + part.size].reshape(part.shape)
            done += part.size
        if any((bound < 0).any() for block in blocks for bound in (block.err, block.big)):
            raise not_a_bank()
        self._blocks, self._before = blocks, [block.copy() for block in blocks]
        self._made = self._start = at

    def _make(self, wanted: int) -> None:
        """The noise of the next ticks: those that are wanted now, a few more where there are few columns."""
        ahead = _AHEAD // self._columns
        count = max(1, ahead, min(wanted, _AT_ONCE // self._columns))
        count = min(self._bank.horizon - self._made, count)
        assert count > 0, "no noise is made beyond the last tick of a bank"
        self._torn = True  # until all of it is there
        before = [block.copy() for block in self._blocks] if ahead > 1 else None
        rows = np.empty((count, self._columns), dtype=np.int64)
        run = kernels.compiled("filtered" if self._columns > 1 else "filtered_alone")
        held = int(np.searchsorted(self._ends, self._made, side="right"))
        bank, nodes = self._bank, range(self._made + 1, self._made + 1 + count)
        start = 0
        for block in self._blocks:
            e, n = block.e, block.e.shape[1]
            z = self._source.reals(self._lane, self._law, nodes, n, start)
            out = rows if n == self._columns else np.empty((count, n), dtype=np.int64)
            coefficients = bank.a, bank.K, bank.r, self._ends, held
            if run(z.value, z.radius, z.size, *coefficients, self._sigma, self._made, e, block.err, block.big, out):
                for column in np.flatnonzero((out == kernels.REDO).any(axis=0)).tolist():
                    open_ticks = np.flatnonzero(out[:, column] == kernels.REDO)
                    out[open_ticks, column] = self.settled(start + column, (open_ticks + nodes.start).tolist())
            if out is not rows:
                rows[:, start : start + n] = out
            start += n
        self._before, self._rows = before, rows
        self._start, self._made = self._made, self._made + count
        self._torn = False

    def settled(self, column: int, ticks: list[int]) -> list[int]:
        """Some ticks of a column by balls."""
        path = self._balls.get(column)
        if path is None:

            def drawn(nodes: range) -> Reals | KnownReals:
                return self._source.reals(self._lane, self._law, nodes, 1, column)

            if len(self._balls) >= _MOST_BALL_PATHS:
                self._balls.clear()
            path = self._balls[column] = BallPath(self._bank, self._sigma, drawn)
        return path.rounded(ticks)


def not_a_bank() -> StateError:
    return StateError("these bytes are not the memory of a bank; restore from an intact snapshot")
