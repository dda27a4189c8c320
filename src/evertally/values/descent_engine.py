"""The engine behind descents: exact counts of what occurred, noise where a descent reads, by address.

factorization-counting 5 and 6.0 (lazy coordinates), users-and-domains 1.7: the noise of a coordinate at a tick does not
depend on whether anybody reads it, nor on what occurred; what is read follows from released numbers alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.applications.lazy import ChosenCoordinates, resized
from evertally.contract.forms import BETA_OF_TABLES
from evertally.contract.parts import Accuracy, IntArray, Played
from evertally.contract.rows import from_bytes, to_bytes
from evertally.counting.choose import Choice, build
from evertally.counting.process import NoiseProcess, Settled, go_to, remembered
from evertally.counting.processes import Setting
from evertally.counting.survey import widest
from evertally.encode.labels import require_column
from evertally.encode.numbers import floats
from evertally.noise import ItemSource
from evertally.secret import Secret
from evertally.values.descent import DescentForm, Tree, walkers


@dataclass(frozen=True, repr=False)
class Tallied(Secret):
    """How often each leaf occurred: leaves in increasing order, and their counts. Never changed."""

    leaves: IntArray
    counts: IntArray

    def plus(self, other: Tallied) -> Tallied:
        both = np.concatenate([self.leaves, other.leaves])
        leaves, place = np.unique(both, return_inverse=True)
        counts = np.zeros(leaves.size, dtype=np.int64)
        np.add.at(counts, place, np.concatenate([self.counts, other.counts]))
        return Tallied(leaves, counts)

    def digest(self) -> bytes:
        return hashlib.sha256(to_bytes(self.leaves) + to_bytes(self.counts)).digest()


def read_leaves(events: Any, leaves: int, limit: int) -> Tallied:
    """A tick's values as whole numbers: rounded up, then clipped in integers; what is no number is left out.

    >>> found = read_leaves([3, 2.5, -7, 1e300, None, float("nan")], leaves=16, limit=100)
    >>> found.leaves.tolist(), found.counts.tolist()
    ([0, 3, 15], [1, 2, 1])
    """
    require_column(events, "events")
    values = floats(events)
    near = np.clip(np.ceil(values[~np.isnan(values)]), -1.0, float(leaves)).astype(np.int64)
    found, counts = np.unique(np.clip(near, 0, leaves - 1), return_counts=True)
    # 1-Lipschitz in every count, hence free; keeps the sums far from the end of int64.
    return Tallied(found, np.minimum(counts.astype(np.int64), limit))


class DescentEngine(Secret):
    """Ticks of leaves in, nodes with noise out: those that descents for `form.shares` come to.

    Its state is the exact counts, O(distinct values); the noise of the root is kept going from tick to tick, that of
    other nodes is made from the first tick on whenever they are read: O(log t) a coordinate for trees, O(t) for a bank.
    """

    def __init__(self, form: DescentForm, choice: Choice, setting: Setting, source: ItemSource) -> None:
        self._form, self._choice, self._setting, self._source = form, choice, setting, source
        self.width = form.width
        self.noise = self._fresh([0])

    @property
    def _tree(self) -> Tree:
        return self._form.tree

    def start(self) -> Tallied:
        return Tallied(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def begin(self, tick: int) -> None:
        if self.noise.tick != tick:  # as in LinearEngine
            self.noise.seek(tick)

    def play(self, batch: Sequence[Tallied], state: Tallied) -> Played:
        rows = []
        for tick in batch:
            state = state.plus(tick)
            rows.append(self._descend(state))
        return Played(np.stack(rows), None, state)

    def _descend(self, state: Tallied) -> IntArray:
        tree, walking = self._tree, walkers(self._form.shares)
        noise, tick = self.noise.advance(1), self.noise.tick
        radii = tree.radii(self.accuracy(tick), BETA_OF_TABLES)
        at = [0] * len(walking)
        known = {0: self._exact(state, 0, 0) + noise[0]}
        row, total = [0, *known[0].tolist()], float(tree.children.prefixes(known[0])[-1])
        for level in range(tree.levels):
            if level:
                at = [walker.number for walker in walking]
                known = self._read(state, level, sorted(set(at)), tick)
                for number in at:
                    row += [tree.code((level, number)), *known[number].tolist()]
            for walker, number in zip(walking, at, strict=True):
                walker.step(tree.children.prefixes(known[number]), total, radii(walker.q, level))
        return np.array(row, dtype=np.int64)

    def _read(self, state: Tallied, level: int, numbers: list[int], tick: int) -> dict[int, IntArray]:
        """Nodes of a level with noise, occurred or not."""
        noise = self._fresh([self._tree.code((level, number)) for number in numbers])
        if isinstance(noise, Settled):
            noise.settle_as(self.noise)
        noise.seek(tick - 1)
        drawn = noise.advance(1)[0].reshape(len(numbers), -1)
        return {n: self._exact(state, level, n) + drawn[i] for i, n in enumerate(numbers)}

    def _exact(self, state: Tallied, level: int, number: int) -> IntArray:
        """The encoded children of a node, from the counts of their leaves. Secret."""
        tree = self._tree
        first, last = tree.span((level, number))
        ends = first + np.arange(tree.fanout + 1) * ((last + 1 - first) // tree.fanout)
        sums = np.concatenate([[0], np.cumsum(state.counts)])
        return tree.children.encode(np.diff(sums[np.searchsorted(state.leaves, ends)]))

    def _fresh(self, nodes: Sequence[int]) -> NoiseProcess:
        """The noise of the children of some nodes, from the first tick on."""
        b = self._tree.fanout
        names = [code * b + child for code in nodes for child in range(b)]
        source: Any = ChosenCoordinates(self._source, names, self._tree.coordinates)
        return build(self._choice, resized(self._setting, len(names)), source)

    def go_back(self, tick: int, state: Tallied) -> None:
        noise = self._fresh([0])
        if isinstance(noise, Settled):
            noise.settle_as(self.noise)
        noise.seek(tick)
        self.noise = noise

    def accuracy(self, tick: int) -> Accuracy:
        return self.noise.spread(tick)

    def widest(self, tick: int) -> Accuracy | None:
        return widest(self.noise, tick)

    differences = False

    def window(self, tick: int, window: int) -> Accuracy:
        raise AssertionError("nodes that were read at two ticks are not the same")

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        raise AssertionError("the statistic says how far its own numbers are off")

    def save(self, state: Tallied) -> list[bytes]:
        return [to_bytes(state.leaves), to_bytes(state.counts), *remembered(self.noise)]

    def load(self, tick: int, parts: list[bytes]) -> Tallied:
        go_to(self.noise, tick, parts[2:])
        return Tallied(from_bytes(parts[0]), from_bytes(parts[1]))
