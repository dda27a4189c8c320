"""A linear mechanism on a range of its columns: exact sums of them, and noise drawn at the whole's own addresses.

Noise is a function of its address and sums are exact, so slices of a mechanism release together, number by number, what
it would release as one (docs/theory/distributed.md). The engine is the mechanism's own (`LinearEngine`); what a door
has bounded comes as cells: so much for this column at that tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from evertally.contract.inputs import as_integers
from evertally.contract.rows import SparseRows
from evertally.contract.ticks import last_tick
from evertally.counting.ahead import Ahead
from evertally.counting.column_memory import Divisible
from evertally.counting.linear import LinearEngine
from evertally.counting.plan import LinearPlan
from evertally.counting.process import IntArray, NoiseProcess
from evertally.counting.processes import PROCESSES
from evertally.counting.slice_state import NO_CELLS, SliceState, merged
from evertally.errors import HorizonExceeded, StateError
from evertally.integers import whole
from evertally.noise import NoiseKey
from evertally.secret import Secret

_PIECE = 1 << 20  # released numbers made at once


class LinearSlice(Secret):
    """Columns first .. stop - 1 of the mechanism of a plan, from tick 1 on.

    Who plays slices answers for what a mechanism answers for by itself: every column in one slice, every event in one
    cell and one batch, nothing public before it is certain that the tick is never played again from other cells. The
    same tick from other cells has the same noise, and the difference of the two is exact.

    >>> import evertally as et
    >>> key = et.simulation(1)
    >>> whole = et.VectorCounter(columns=5, guarantee=et.ZCDP(0.5), horizon=90, key=key)
    >>> part = LinearSlice(whole.plan(), key, 2, 4)
    >>> [(first, rows)] = part.advance(ticks=[1, 2], coordinates=[3, 2], weights=[7, 1], through=2)
    >>> bool((rows == whole.run([[0, 0, 0, 7, 0], [0, 0, 1, 0, 0]])[:, 2:4]).all()), first, part.tick
    (True, 1, 2)
    >>> again = LinearSlice.from_bytes(whole.plan(), key, 2, 4, [part.to_bytes()])
    >>> again.tick
    2
    """

    def __init__(self, plan: LinearPlan, key: NoiseKey, first: int, stop: int) -> None:
        self.plan, self.first, self.stop = plan, first, stop
        self._source = plan.source(key)
        self._engine = LinearEngine(self._process)
        self._sums = self._engine.start()
        self._pending = NO_CELLS
        self.tick = self._through = 0

    def _process(self) -> NoiseProcess:
        made = self.plan.process(self._source, self.first, self.stop)
        return Ahead(made) if PROCESSES[self.plan.choice.mechanism].ahead else made

    def advance(
        self, ticks: Any, coordinates: Any, weights: Any, through: int, at: Sequence[int] | None = None
    ) -> Iterator[tuple[int, IntArray]]:
        """Takes cells, and closes the ticks up to `through`: their releases, in pieces (first tick, rows of all columns
        of the slice), are made as they are asked for, and all of them must be. With `at`, some of these ticks in
        order, only their releases are made: a choice that must not depend on data.

        Cell i adds weights[i] to column coordinates[i] of the whole at tick ticks[i]. Cells of ticks that are over
        enter the next one, those of later ticks wait, those beyond the horizon enter none. Several cells of one tick
        and column are added up, with all that waited, before the total is clipped.
        """
        self._check_finished()
        last = last_tick(self.plan.horizon)
        if whole("through", through, self.tick) > last:
            raise HorizonExceeded(f"the ticks up to {through} exceed the horizon {last} that the noise was made for")
        cells = np.concatenate([self._pending, self._cells(ticks, coordinates, weights, last)], axis=1)
        now, later = _up_to(cells, through)
        rows = SparseRows(
            now[0] - (self.tick + 1), now[1] - self.first, now[2], length=through - self.tick, width=self._sums.size
        )
        self._pending, self._through = merged(later), int(through)
        return self._released(rows) if at is None else self._released_at(rows, at)

    def _cells(self, ticks: Any, coordinates: Any, weights: Any, last: int) -> IntArray:
        parts = [as_integers(part) for part in (ticks, coordinates, weights)]
        if any(part.ndim != 1 for part in parts) or len({part.size for part in parts}) != 1:
            raise TypeError("a cell has one tick, one coordinate and one weight: three columns of one length")
        cells = np.stack(parts)
        if cells.size and not self.first <= cells[1].min() <= cells[1].max() < self.stop:
            raise TypeError(f"cells of this slice have coordinates from {self.first} to {self.stop - 1}")
        np.maximum(cells[0], self.tick + 1, out=cells[0])
        return _up_to(cells, last)[0]

    def _released(self, rows: SparseRows) -> Iterator[tuple[int, IntArray]]:
        piece = max(1, _PIECE // self._sums.size)
        for start in range(0, len(rows), piece):
            part = rows[start : start + piece].clip(self.plan.low, self.plan.limit)
            first = self.tick + 1
            self._engine.begin(self.tick)
            played = self._engine.play(part, self._sums)
            self._sums, self.tick = played.state, self.tick + len(part)
            yield first, played.rows

    def _released_at(self, rows: SparseRows, at: Sequence[int]) -> Iterator[tuple[int, IntArray]]:
        """Sums alone between the ticks that are asked for; noise is looked up where it is needed."""
        for wanted in at:
            self._add_up(rows, wanted - 1)
            place = wanted - 1 - self._start(rows)
            part = rows[place : place + 1].clip(self.plan.low, self.plan.limit)
            self._engine.begin(self.tick)
            played = self._engine.play(part, self._sums)
            self._sums, self.tick = played.state, wanted
            yield wanted, played.rows
        self._add_up(rows, self._through)

    def _start(self, rows: SparseRows) -> int:
        return self._through - len(rows)

    def _add_up(self, rows: SparseRows, through: int) -> None:
        if through > self.tick:
            start = self._start(rows)
            part = rows[self.tick - start : through - start].clip(self.plan.low, self.plan.limit)
            self._sums, self.tick = self._sums + part.total(), through

    @property
    def sums(self) -> IntArray:
        """The exact sums after the last tick. Secret."""
        return self._sums

    def noise(self) -> IntArray:
        """The noise of the last tick, of all columns of the slice: sums and this are what was, or is, released there.
        Secret."""
        process = self._process()
        process.seek(self.tick - 1)
        row: IntArray = process.advance(1)[0]
        return row

    def _check_finished(self) -> None:
        if self.tick != self._through:
            raise StateError(
                f"the releases of the last call were made up to tick {self.tick} and not to {self._through}: ask for "
                "all of them, or go back to the state before that call"
            )

    def to_bytes(self, remember: bool = True) -> bytes:
        """All that the next batch needs, to be sealed: as secret as exact counts, and as the noise. Without `remember`
        the process finds its noise again from the beginning: for slices that are seldom released."""
        self._check_finished()
        noise, kept = self._engine.noise, None
        if remember and isinstance(noise, Divisible):
            self._engine.begin(self.tick)
            kept = noise.kept()
        source, columns = self._source, (self.first, self.stop)
        state = SliceState(source.fingerprint(), source.laws(), *columns, self.tick, self._sums, self._pending, kept)
        return state.to_bytes()

    @classmethod
    def from_bytes(
        cls, plan: LinearPlan, key: NoiseKey, first: int, stop: int, states: Iterable[bytes], *, lazy: bool = False
    ) -> LinearSlice:
        """The slice after its last batch, from the states of all slices of that batch that overlap it: its own, or
        those of another cut. `lazy`: noise is looked for when some is asked for, and not before."""
        self = cls(plan, key, first, stop)
        found = [SliceState.from_bytes(state) for state in states]
        for one in found:
            if one.noise != self._source.fingerprint():
                raise StateError("this state belongs to another plan or key; its noise would be drawn anew")
            self._source.expect(one.laws)
        state, noise = SliceState.joined(found, first, stop), self._engine.noise
        if state.memory is not None and isinstance(noise, Divisible):
            noise.take(state.tick, state.memory)
        elif not lazy:
            noise.seek(state.tick)
        self._sums, self._pending = state.sums, state.pending
        self.tick = self._through = state.tick
        return self


def _up_to(cells: IntArray, tick: int) -> tuple[IntArray, IntArray]:
    """Cells of the ticks up to one, and those of later ticks."""
    later = cells[0] > tick
    return (cells[:, ~later], cells[:, later]) if later.any() else (cells, NO_CELLS)
