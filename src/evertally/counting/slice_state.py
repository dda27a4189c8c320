"""The state of a slice as a value: exact sums, cells of ticks that are not over, what its noise process remembers.

It can be cut between columns and put together again, and written in a layout of its own whose bytes follow from the
state alone, not from the order in which cells came or from the version of a library.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from evertally.contract.rows import from_bytes, to_bytes
from evertally.counting.column_memory import GROUP, ColumnMemory
from evertally.counting.process import FloatArray, IntArray
from evertally.errors import StateError
from evertally.secret import Secret

_FORMAT = b"evertally-slice1"
# noise fingerprint; first, stop, tick, bytes of laws, pending cells, whether there is a memory, its rows and bounds
_HEAD = struct.Struct("<16s16s8q")
_SAFE = 2**61  # sums of absolute weights below this cannot leave 64 bits

NO_CELLS: IntArray = np.zeros((3, 0), dtype=np.int64)


@dataclass(frozen=True, repr=False)
class SliceState(Secret):
    """Columns first .. stop - 1 after `tick`. `pending` (3, cells): tick, column of the whole, weight. Secret."""

    noise: bytes  # the fingerprint of the noise that it belongs to
    laws: bytes  # which lanes were drawn with which law
    first: int
    stop: int
    tick: int
    sums: IntArray
    pending: IntArray
    memory: ColumnMemory | None

    def cut(self, first: int, stop: int) -> SliceState:
        """Some of the columns."""
        inside = (self.pending[1] >= first) & (self.pending[1] < stop)
        places = first - self.first, stop - self.first
        return replace(
            self,
            first=first,
            stop=stop,
            sums=self.sums[slice(*places)],
            pending=self.pending[:, inside],
            memory=None if self.memory is None else self.memory.cut(*places),
        )

    @staticmethod
    def joined(states: Iterable[SliceState], first: int, stop: int) -> SliceState:
        """The columns first .. stop - 1 from states that cover them, each column once; others are left out."""
        parts = sorted((s for s in states if s.first < stop and first < s.stop), key=lambda s: s.first)
        edges = [first, *(s.stop for s in parts[:-1])]
        if not parts or [max(first, s.first) for s in parts] != edges or parts[-1].stop < stop:
            raise StateError("these states do not cover the slice, each column once; give all that overlap it")
        if len({(s.noise, s.tick) for s in parts}) != 1:
            raise StateError("these states are of different plans or ticks; give those of one batch")
        cut = [s.cut(max(first, s.first), min(stop, s.stop)) for s in parts]
        return replace(
            cut[0],
            stop=stop,
            sums=np.concatenate([s.sums for s in cut]),
            pending=merged(np.concatenate([s.pending for s in cut], axis=1)),
            memory=ColumnMemory.joined([s.memory for s in cut]),
        )

    def to_bytes(self) -> bytes:
        rows, bounds = (0, 0) if self.memory is None else self.memory.shape
        numbers = self.first, self.stop, self.tick, len(self.laws), self.pending.shape[1]
        head = _HEAD.pack(_FORMAT, self.noise, *numbers, int(self.memory is not None), rows, bounds)
        parts = [head, self.laws, to_bytes(self.sums), to_bytes(self.pending)]
        if self.memory is not None:
            parts += [to_bytes(self.memory.numbers), np.ascontiguousarray(self.memory.bounds, dtype="<f8").tobytes()]
        return b"".join(parts)

    @staticmethod
    def from_bytes(data: bytes) -> SliceState:
        if len(data) < _HEAD.size:
            raise _damaged()
        form, noise, first, stop, tick, laws, cells, remembers, rows, bounds = _HEAD.unpack_from(data)
        if form != _FORMAT:
            raise StateError("these bytes are not the state of a slice, or of another version; use the one that wrote")
        columns, groups = stop - first, -(-(stop - first) // GROUP)
        sizes = [laws, *(8 * n for n in (columns, 3 * cells, rows * columns, bounds * groups))]
        if min(first, tick, *sizes) < 0 or columns < 1 or len(data) != _HEAD.size + sum(sizes):
            raise _damaged()
        ends = np.cumsum([_HEAD.size, *sizes]).tolist()
        known, *arrays = (data[start:end] for start, end in pairwise(ends))
        sums, pending, numbers = map(from_bytes, arrays[:3])
        pending = pending.reshape(3, cells)
        if (pending[0] <= tick).any() or (pending[1] < first).any() or (pending[1] >= stop).any():
            raise _damaged()
        floats: FloatArray = np.frombuffer(arrays[3], dtype="<f8").astype(np.float64)
        memory = ColumnMemory(numbers.reshape(rows, columns), floats.reshape(bounds, groups)) if remembers else None
        return SliceState(noise, known, first, stop, tick, sums, pending, memory)


def merged(cells: IntArray) -> IntArray:
    """Cells in the one order that they have, those of one tick and column added up. Weights so large that they could
    wrap around stay as they are: who adds them up and clips, a tick at a time, sees to that. What adds up to nothing
    goes: whether it did so here or before it came must not be seen in a state."""
    cells = cells[:, np.lexsort(cells[::-1])]
    cells = cells[:, cells[2] != 0]
    tick, column, weight = cells
    if not weight.size or np.abs(weight.astype(np.float64)).sum() >= _SAFE:
        return cells
    begins = np.flatnonzero(np.append(True, (np.diff(tick) != 0) | (np.diff(column) != 0)))
    added = np.stack([tick[begins], column[begins], np.add.reduceat(weight, begins)])
    return np.asarray(added[:, added[2] != 0])


def _damaged() -> StateError:
    return StateError("this state of a slice is damaged; restore from an intact one")
