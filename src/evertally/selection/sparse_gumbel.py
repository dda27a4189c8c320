"""sparseGumb: name the k leaders now and then, count them in between, and notice when somebody has overtaken them.

streaming-selection 6.1. Three private pieces take turns:

* a *selection* names k columns by exact noisy max (Gumbel noise, labels only);
* a *counter* (the tree of counting/tree.py) follows each of them. One that starts at tick t carries the noise of all
  blocks that tile 1..t, as if it had run from the beginning;
* a *sparse vector* asks at every tick whether some other column, with fresh noise, exceeds the smallest released count
  plus a margin eta plus one noise of its own. Only that bit is released, never the column. All columns are asked.

The smallest count of a tick is that of the counters before its test. If the answer is yes, those counts are replaced by
the new counters' and not released; they stay part of what the proof conditions on, and are paid (additions 3).

A yes buys a new selection, with new counters. After s of them the selection stands for the rest of the stream, and the
counters go on. Privacy: sparse_gumbel_budget.py. Time O(d) a tick, memory O(d + k L).

Every noise has its own address: selection and threshold by the number of the selection, questions by tick and column,
blocks by the number of the selection, tick and place.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from evertally.bounds.tails import Spread
from evertally.contract.rows import Rows, dense, from_bytes, to_bytes
from evertally.counting.process import IntArray
from evertally.counting.tree import Radix, TreeProcess
from evertally.noise import VariateSource
from evertally.secret import Secret
from evertally.selection.noisy_max import noisy_argmax, require_scale
from evertally.selection.sparse_gumbel_budget import SparseGumbelBudget

_PIECE = 1 << 15  # questions asked at once


class SparseGumbel(Secret):
    """The engine. `advance` gives, for each tick, the k named columns and their k noisy counts.

    `reuse`: a column that is named again keeps its counter and its noise (streaming-selection 6.1: fewer releases, the
    same charge); otherwise it gets a fresh one, as in the paper.

    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import ZCDP, Neighbours
    >>> from evertally.selection.sparse_gumbel_budget import sparse_gumbel_budget
    >>> budget = sparse_gumbel_budget(ZCDP(3, adversary="oblivious"), 1, 1, 1, Neighbours.ADD_REMOVE)
    >>> engine = SparseGumbel(budget, columns=3, horizon=8, eta=2, source=ZeroNoise().source())
    >>> columns, counts = engine.advance(np.array([[1, 0, 0], [0, 2, 0], [0, 1, 0], [0, 1, 0], [9, 0, 0], [9, 0, 0]]))
    >>> columns.ravel().tolist(), counts.ravel().tolist(), engine.switches_left
    ([0, 0, 0, 1, 1, 1], [1, 1, 1, 4, 4, 4], 0)
    """

    def __init__(
        self,
        budget: SparseGumbelBudget,
        *,
        columns: int,
        horizon: int,
        eta: int,
        source: VariateSource,
        radix: Radix = "formula",
        reuse: bool = False,
    ) -> None:
        # Whatever cannot be drawn is refused here, not at a tick.
        require_scale(budget.gumbel_scale)
        if budget.switches:
            _ = budget.threshold, budget.query
        self.tick = 0
        self.switches_left = budget.switches
        self._budget, self._eta, self._reuse = budget, eta, reuse
        self._source = source
        self._tree = partial(
            TreeProcess, *budget.instance, horizon=horizon, columns=budget.k, source=source, radix=radix
        )
        self._sums = np.zeros(columns, dtype=np.int64)
        self._named = np.zeros(budget.k, dtype=np.int64)
        # Which counter follows each named column: the selection that started it, and the place in that selection.
        self._origin = np.zeros((2, budget.k), dtype=np.int64)
        self._counters: dict[int, TreeProcess] = {}
        self._counter(0)
        self._z = 0

    @property
    def selections(self) -> int:
        """Selections made so far: public, because a change of the named columns is a release."""
        return self._budget.switches - self.switches_left + (self.tick > 0)

    def spread(self, tick: int | None) -> Spread:
        """The noise of one count at a tick, or at the worst one."""
        model = self._counter(0)
        return model.worst() if tick is None else model.spread(tick)

    def advance(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Named columns and noisy counts of the next ticks, both of shape (ticks, k)."""
        table = dense(rows)
        d, k = self._sums.size, self._named.size
        columns, counts = (np.empty((len(table), k), dtype=np.int64) for _ in range(2))
        piece = max(1, _PIECE // d)
        for start in range(0, len(table), piece):
            part = slice(start, start + piece)
            self._play(np.cumsum(table[part], axis=0) + self._sums, columns[part], counts[part])
        return columns, counts

    def _play(self, sums: IntArray, columns: IntArray, counts: IntArray) -> None:
        first, n, start = self.tick + 1, len(sums), 0
        if first == 1:
            self._select(sums[0], selection=0)
            columns[0], counts[0] = self._named, self._counted(sums[:1], 1)[0]
            start = 1
        reach = sums
        if self.switches_left and start < n:
            ticks = range(first + start, first + n)
            reach = sums.copy()
            reach[start:] += self._source.draws("question", self._budget.query, ticks, self._sums.size)
        while start < n:
            columns[start:] = self._named
            counts[start:] = self._counted(sums[start:], first + start)
            if not self.switches_left:
                break
            bar = counts[start:].min(axis=1) + (self._eta + self._z)
            # No early exit: every other column is asked at every tick, and only "some" is looked at.
            yes = np.flatnonzero((np.delete(reach[start:], self._named, axis=1) > bar[:, None]).any(axis=1))
            if not yes.size:
                break
            start += int(yes[0])
            self.switches_left -= 1
            self._select(sums[start], selection=self._budget.switches - self.switches_left)
            columns[start], counts[start] = self._named, self._counted(sums[start : start + 1], first + start)[0]
            start += 1
        self.tick += n
        self._sums = sums[-1].copy()

    def _select(self, sums: IntArray, selection: int) -> None:
        d, k = sums.size, self._named.size
        variates = self._source.variates("select", "gumbel", selection, d)
        named = np.array(noisy_argmax(sums, self._budget.gumbel_scale, variates, count=k), dtype=np.int64)
        origin = np.stack([np.full(k, selection), np.arange(k)])
        if self._reuse and selection:
            for place, column in enumerate(named.tolist()):
                before = np.flatnonzero(self._named == column)
                if before.size:
                    origin[:, place] = self._origin[:, before[0]]
        self._named, self._origin = named, origin
        self._settle(selection)

    def _settle(self, selection: int) -> None:
        """What follows from the addresses alone: the counters in use, and the noise of the sparse vector in force."""
        self._counters = {s: self._counter(s) for s in np.unique(self._origin[0]).tolist()}
        if self.switches_left:
            self._z = int(self._source.draws("threshold", self._budget.threshold, [selection])[0, 0])

    def _counter(self, selection: int) -> TreeProcess:
        return self._counters.get(selection) or self._tree(lane=f"count-{selection}")

    def _counted(self, sums: IntArray, first: int) -> IntArray:
        """The noisy counts of the named columns, from tick `first` on."""
        counts: IntArray = sums[:, self._named]
        for selection, counter in self._counters.items():
            if counter.tick != first - 1:
                counter.seek(first - 1)
            noise = counter.advance(len(sums))
            mine = self._origin[0] == selection
            counts[:, mine] += noise[:, self._origin[1, mine]]
        return counts

    def state(self) -> list[bytes]:
        return [to_bytes(part) for part in (self._sums, self._named, self._origin, np.array([self.switches_left]))]

    def load(self, tick: int, parts: list[bytes]) -> None:
        self._sums, self._named, origin, left = map(from_bytes, parts)
        self.tick, self.switches_left = tick, int(left[0])
        self._origin = origin.reshape(2, -1)
        if tick:
            self._settle(self.selections - 1)
