"""Blocks of H from the optimal counters: banks (Gaussian noise) and blocks of pure noise.

The lengths are those of `BlockProcess`, and so is the proof: an insert lies in one block, each block has the whole
budget, and its process is private for adaptively chosen inserts (optimal-counting 2.2 and 6). Which process a block
gets is the rule "optimal-blocks" (fittest.py). Coefficients of a bank are found by floats, and another version may find
others, or choose otherwise: so a snapshot keeps what is held, the process in force by name, and its coefficients.
"""

from __future__ import annotations

import numpy as np

from evertally.counting.process import Budget, NoiseProcess, go_to, remembered
from evertally.counting.tree import Radix
from evertally.errors import ConfigurationError, StateError
from evertally.noise import Source
from evertally.partition.blocks import BlockProcess
from evertally.partition.fittest import Fitting, fittest, fitting_of, known, make, optimal
from evertally.partition.lanes import Lanes
from evertally.privacy import Change, PureDP

_FORMAT = b"evertally-optimal-blocks-1"


class OptimalBlocks(BlockProcess):
    """Noise of H in blocks. `fit_for`: the number of columns that processes are chosen for, where a model has fewer.

    >>> from evertally.noise import simulation
    >>> source = simulation(0).source("demo")
    >>> H = OptimalBlocks(PureDP(1), Change(1, 1, 1), first=64, columns=1, source=source)
    >>> round(H.spread(64).stddev ** 2), H.advance(100).shape  # the best of trees and running sums has 112
    (31, (100, 1))
    """

    def __init__(
        self,
        charge: Budget,
        change: Change,
        *,
        first: int,
        columns: int,
        source: Source,
        fit_for: int | None = None,
    ) -> None:
        self._charge, self._change, self._source = charge, change, source
        self._fit_for = columns if fit_for is None else fit_for
        self._kept: tuple[int, bytes] | None = None
        super().__init__(self._chosen, first=first, columns=columns)

    def _chosen(self, block: int, length: int, columns: int) -> NoiseProcess:
        pure = isinstance(self._charge, PureDP)
        try:
            return self._made(optimal(pure, length, self._fit_for), block, columns)
        except ConfigurationError:  # real numbers have a smaller range than integers
            return self._made(fittest(pure, length, self._fit_for), block, columns)

    def _made(self, fitting: Fitting, block: int, columns: int) -> NoiseProcess:
        lanes, length = Lanes(self._source, f"block-{block}"), self.length(block)
        return make(fitting, self._charge, self._change, length, columns, lanes)

    def memory(self) -> bytes:
        """What closed blocks hold, and the process in force: name, coefficients, states. It changes with inserts only,
        and a partition asks for it at every tick."""
        if self._kept is None or self._kept[0] != self.tick:
            name = " ".join(map(str, fitting_of(self._inner))).encode()
            held = self._held.astype("<i8").tobytes()
            rest = b"".join(remembered(self._inner))
            self._kept = self.tick, _FORMAT + bytes([len(name)]) + name + held + rest
        return self._kept[1]

    def recall(self, tick: int, memory: bytes) -> None:
        start = len(_FORMAT) + 1
        if not memory.startswith(_FORMAT) or len(memory) < start:
            raise _not_these()
        stop = start + memory[start - 1]
        end = stop + 8 * self.columns
        name, _, radix = memory[start:stop].decode("ascii", "replace").partition(" ")
        if not known(name) or not (radix == "exact" or radix.isdecimal()) or len(memory) < end:
            raise _not_these()
        if name in (("bank", "sqrt") if isinstance(self._charge, PureDP) else ("pure-blocks",)):
            raise _not_these()
        fitting: tuple[str, Radix] = name, "exact" if radix == "exact" else int(radix)
        block = self.piece_of(tick + 1)
        inner = self._made(fitting, block, self.columns)
        go_to(inner, tick - self.before(block), [memory[end:]] if len(memory) > end else [])
        self.tick, self._piece, self._inner, self._kept = tick, block, inner, None
        self._held = np.frombuffer(memory[stop:end], dtype="<i8").astype(np.int64)


def _not_these() -> StateError:
    return StateError("these bytes are not the memory of blocks of this rule; restore from an intact snapshot")
