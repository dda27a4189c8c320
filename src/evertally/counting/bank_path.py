"""The correctly rounded path of a bank: floats with proved bounds decide almost every tick, double words the rest.

optimal-counting 3.2 [R, reviewed twice] and 11.2. Where sums are of amounts so large that floats would decide little,
double words come first. What they leave open balls decide. Noise is made a little ahead where there are few columns.
What is made does not depend on how it is made: any tier, block, machine or restart gives the same integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from evertally.counting import bank_kernels as kernels
from evertally.counting.bank_balls import BallPath, Drawn
from evertally.counting.bank_doubles import DoublePath, through
from evertally.counting.bank_schedule import Bank
from evertally.counting.column_memory import GROUP, ColumnMemory
from evertally.counting.process import FloatArray, IntArray
from evertally.errors import StateError
from evertally.noise import Source, double_words
from evertally.noise.reals import KnownReals, RealLaw, Reals
from evertally.secret import Secret

_BLOCK = GROUP  # columns that share their error bounds; a block of states stays in the processor's cache
_AHEAD = 1 << 12  # numbers made ahead where there are few columns
_AT_ONCE = 1 << 14  # numbers made at once: their random bits stay in the cache
_MOST_BALLS, _MOST_DOUBLES = 1 << 8, 1 << 14  # paths of single columns that are kept

Path = TypeVar("Path", BallPath, DoublePath)


@dataclass(repr=False)
class Block(Secret):
    """Some columns: states e (Q, n), and bounds for all of them: err of |e - truth|, big of |e|. Secret.

    Of double words e has 2 Q rows, first the high parts.
    """

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
        self._double = large(sigma, bank.horizon) and double_words.trusted()
        self._restart()

    def _restart(self) -> None:
        self._known: list[Block] | None = None  # as of tick `_made`; None: at rest, and nobody has asked for them
        self._before: list[Block] | None = None  # as of tick `_start`, where it is kept
        self._made = self._start = 0
        self._rows = np.empty((0, self._columns), dtype=np.int64)  # the noise of ticks _start+1 .. _made
        self._doubles: dict[int, DoublePath] = {}
        self._balls: dict[int, BallPath] = {}
        self._torn = False

    @property
    def _blocks(self) -> list[Block]:
        """States as of tick `_made`, made when they are first needed: who asks for spreads or a plan needs none."""
        if self._known is None:
            self._known = self._fresh()
        return self._known

    def _fresh(self) -> list[Block]:
        Q = self._bank.states
        rows = 2 * Q if self._double else Q
        widths = [min(_BLOCK, self._columns - start) for start in range(0, self._columns, _BLOCK)]
        return [Block(np.zeros((rows, n)), np.zeros(Q), np.zeros(Q)) for n in widths]

    def rows(self, start: int, stop: int) -> IntArray:
        """The noise of the ticks start+1 .. stop, not to be written to."""
        first = self._start
        if first <= start and stop <= self._made and not self._torn:
            return self._rows[start - first : stop - first]
        if self._torn or start < self._start:
            self._restart()
        while self._made < start:
            self._make(start - self._made)
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
        at, blocks = self._states(tick)
        numbers = b"".join(part.astype("<f8").tobytes() for block in blocks for part in block.parts)
        return np.array([at], dtype="<i8").tobytes() + numbers

    def _states(self, tick: int) -> tuple[int, list[Block]]:
        """The latest states that are not later, and of which tick they are."""
        if self._made <= tick and not self._torn:
            return self._made, self._blocks
        if self._before is not None and self._start <= tick:
            return self._start, self._before
        return 0, self._fresh()

    def kept(self, tick: int) -> ColumnMemory:
        """States as of this very tick: those of neighbours can be put together."""
        at, blocks = self._states(tick)
        if at < tick:
            path = BankPath(self._bank, self._sigma, self._law, self._columns, self._source, self._lane)
            path._known, path._made = [block.copy() for block in blocks], at
            while path._made < tick:
                path._make_exactly(min(tick - path._made, max(1, _AT_ONCE // self._columns)))
            blocks = path._blocks
        e = np.concatenate([block.e for block in blocks], axis=1)
        return ColumnMemory.of(e, np.stack([block.err for block in blocks], axis=1))

    def take(self, tick: int, kept: ColumnMemory) -> None:
        self._restart()
        e, err, Q = kept.floats(), kept.bounds, self._bank.states
        good = np.isfinite(e).all() and np.isfinite(err).all() and (err >= 0).all()
        if kept.shape not in ((Q, Q), (2 * Q, Q)) or kept.columns != self._columns or not good:
            raise not_a_bank()
        if len(e) != (2 * Q if self._double else Q):
            return  # states of the other precision, by another version or machine: it begins at the beginning
        for i, block in enumerate(self._blocks):
            block.e[...] = e[:, i * _BLOCK : (i + 1) * _BLOCK]
            block.err[...] = err[:, i]
            # Looked at again: one column alone keeps no bound of its states (`filtered_alone`), and its neighbours by
            # now need one. A hair above, for the low parts of double words.
            block.big[...] = np.abs(block.e[:Q]).max(axis=1) * (1 + 2.0**-50)
        self._before = [block.copy() for block in self._blocks]
        self._made = self._start = tick

    def recall(self, tick: int, memory: bytes) -> None:
        self._restart()
        if len(memory) not in (self._bytes(double=False), self._bytes(double=True)):
            raise not_a_bank()
        at, numbers = int(np.frombuffer(memory[:8], dtype="<i8")[0]), np.frombuffer(memory[8:], dtype="<f8")
        if not 0 <= at <= tick or not np.isfinite(numbers).all():
            raise not_a_bank()
        if len(memory) != self._bytes(self._double):
            return  # states of the other precision, by another version or machine: it begins at the beginning
        blocks = self._fresh()
        parts = [part for block in blocks for part in block.parts]
        done = 0
        for part in parts:
            part[...] = numbers[done : done + part.size].reshape(part.shape)
            done += part.size
        if any((bound < 0).any() for block in blocks for bound in (block.err, block.big)):
            raise not_a_bank()
        self._known, self._before = blocks, [block.copy() for block in blocks]
        self._made = self._start = at

    def _bytes(self, double: bool) -> int:
        """The length of a memory."""
        Q = self._bank.states
        return 8 * (1 + (2 * Q if double else Q) * self._columns + 2 * Q * -(-self._columns // _BLOCK))

    def _make(self, wanted: int) -> None:
        """The noise of the next ticks: those that are wanted now, a few more where there are few columns."""
        count = max(1, _AHEAD // self._columns, min(wanted, _AT_ONCE // self._columns))
        self._make_exactly(min(self._bank.horizon - self._made, count))

    def _make_exactly(self, count: int) -> None:
        assert count > 0, "no noise is made beyond the last tick of a bank"
        self._torn = True  # until all of it is there
        before = [block.copy() for block in self._blocks] if self._columns * 2 <= _AHEAD else None
        rows = np.empty((count, self._columns), dtype=np.int64)
        nodes = range(self._made + 1, self._made + 1 + count)
        start = 0
        for block in self._blocks:
            n = block.e.shape[1]
            if n == self._columns:
                out = rows
            elif count == 1:
                out = rows[0, start : start + n].reshape(1, n)
            else:
                out = np.empty((count, n), dtype=np.int64)
            if self._filter(block, self._source.reals(self._lane, self._law, nodes, n, start), out):
                for column in np.flatnonzero((out == kernels.REDO).any(axis=0)).tolist():
                    open_ticks = np.flatnonzero(out[:, column] == kernels.REDO)
                    out[open_ticks, column] = self.settled(start + column, (open_ticks + nodes.start).tolist())
            if n < self._columns and count > 1:
                rows[:, start : start + n] = out
            start += n
        rows.flags.writeable = False
        self._before, self._rows = before, rows
        self._start, self._made = self._made, self._made + count
        self._torn = False

    def _filter(self, block: Block, z: Reals | KnownReals, out: IntArray) -> int:
        """The next ticks of a block; gives how many are left open."""
        if self._double:
            return through(self._bank, self._ends, self._sigma, self._made, z.doubles(), block.parts, out)
        run = kernels.compiled("filtered" if self._columns > 1 else "filtered_alone")
        held = int(np.searchsorted(self._ends, self._made, side="right"))
        coefficients = self._bank.a, self._bank.K, self._bank.r, self._ends, held
        left: int = run(z.value, z.radius, z.size, *coefficients, self._sigma, self._made, *block.parts, out)
        return left

    def settled(self, column: int, ticks: list[int]) -> list[int]:
        """Some ticks of a column, in order, that floats leave open; or double words, where those come first."""
        if self._double or not double_words.trusted():
            return self.by_balls(column, ticks)
        found = self._path(self._doubles, _MOST_DOUBLES, column, DoublePath).rounded(ticks)
        still = [tick for tick, value in zip(ticks, found, strict=True) if value is None]
        balls = iter(self.by_balls(column, still) if still else ())
        return [next(balls) if value is None else value for value in found]

    def by_balls(self, column: int, ticks: list[int]) -> list[int]:
        """Some ticks of a column, in order, from as many bits as it takes."""
        return self._path(self._balls, _MOST_BALLS, column, BallPath).rounded(ticks)

    def _path(self, paths: dict[int, Path], most: int, column: int, make: Callable[[Bank, float, Drawn], Path]) -> Path:
        """The path of a column, which goes on from where it stands."""
        path = paths.get(column)
        if path is None:

            def drawn(nodes: range) -> Reals | KnownReals:
                return self._source.reals(self._lane, self._law, nodes, 1, column)

            if len(paths) >= most:
                del paths[next(iter(paths))]
            path = paths[column] = make(self._bank, self._sigma, drawn)
        return path


def large(sigma: float, horizon: int) -> bool:
    """Whether floats would leave open so much that double words come first. Their bound is about 2^-52 sigma t, so a
    column would sooner or later be gone through again (at 300 ns a tick) on average; where there are few ticks it would
    be asked for too often. Without a horizon few streams come near their last tick."""
    ticks = min(horizon, 2**20)
    return sigma * ticks * max(ticks, 2**7) > 2.0**50


def not_a_bank() -> StateError:
    return StateError("these bytes are not the memory of a bank; restore from an intact snapshot")
