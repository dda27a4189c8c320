"""A mechanism over unknown items on some of its labels: exact counts of them, and noise at the whole's own addresses.

A label's count and noise depend on no other label, and the threshold is public, so shards of a mechanism release
together what it would release as one, in its order (docs/theory/distributed.md). The engine is the mechanism's own
(`ItemEngine`); what a door has bounded comes as cells: so much for this label at that tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from evertally.contract.inputs import as_integers
from evertally.encode import ItemTotals
from evertally.encode.cut_kernels import compiled
from evertally.encode.item_cells import IntArray, ItemCells
from evertally.encode.name_index import fixed, taken
from evertally.encode.siphash import siphash
from evertally.encode.texts import LONGEST_LABEL, Texts
from evertally.errors import HorizonExceeded, StateError
from evertally.integers import whole
from evertally.noise import NoiseKey
from evertally.secret import Secret
from evertally.selection.found import Found
from evertally.selection.item_plan import ItemPlan
from evertally.selection.item_state import ItemState

_FEW = 256  # labels; fewer are looked at in plain Python, some 20 us each, and without a compiler
_MOST_SHARDS = 2**31


def shard_of(labels: Texts, key: NoiseKey, count: int) -> IntArray:
    """Which of `count` shards each canonical label belongs to, by SipHash under a key that follows from the stream's:
    nobody without it can send labels that all go to one. The same for all mechanisms of a key; some 50 ns a label.

    >>> import evertally as et
    >>> shard_of(Texts.of(["pear", "fig", "pear"]), et.simulation(1), 16).tolist()
    [6, 3, 6]
    """
    secret = key.mac("shards of items", b"")[:16]
    first = np.empty(len(labels), np.uint64)
    if len(labels) < _FEW:
        first[:] = [int.from_bytes(siphash(secret, name, 16)[:8], "little") for name in labels.names()]
    else:
        words = (np.uint64(int.from_bytes(secret[at : at + 8], "little")) for at in (0, 8))
        compiled("digest_labels")(*fixed(labels), np.arange(len(labels)), *words, first, np.empty_like(first))
    # The place of the first 32 bits, as a fraction: even to within count/2^32.
    shards = whole("count", count, 1, _MOST_SHARDS)
    return ((first >> np.uint64(32)) * np.uint64(shards) >> np.uint64(32)).astype(np.int64)


class ItemShard(Secret):
    """The labels of shard `number` of `count` (`shard_of` says which they are), from tick 1 on.

    Who plays shards answers for what a mechanism answers for by itself: every event in one cell and one batch, nothing
    public before it is certain that the tick is never played again from other cells, all shards of a stream under one
    count. A label in two shards would have the same noise for two counts; a shard takes none but its own. Which labels
    a shard has, how many, and how long it takes is as private as the data.

    >>> import evertally as et
    >>> key = et.simulation(1)
    >>> whole = et.UnknownHistogram(guarantee=et.ApproxDP(1.0, 1e-6), horizon=500, key=key)
    >>> labels, weights = Texts.of(["tea", "milk", "a secret"]), np.array([900, 800, 1])
    >>> parts, mine = [], shard_of(labels, key, 2)
    >>> for number in range(2):
    ...     shard, here = ItemShard(whole.item_plan(), key, number, 2), np.flatnonzero(mine == number)
    ...     [(tick, found)] = shard.advance([1] * len(here), labels.take(here), weights[here], through=1)
    ...     parts.append(found)
    >>> merged(whole.item_plan(), parts).counts == whole.step(["milk"] * 800 + ["tea"] * 900 + ["a secret"]).value
    True
    >>> ItemShard.from_bytes(whole.item_plan(), key, 1, 2, shard.to_bytes()).tick
    1
    """

    def __init__(self, plan: ItemPlan, key: NoiseKey, number: int, count: int) -> None:
        self.plan, self.count = plan, whole("count", count, 1, _MOST_SHARDS)
        self.number = whole("number", number, 0, self.count - 1)
        self._key, self._source = key, plan.source(key)
        self._engine = plan.engine(self._source)
        self._pending = ItemCells.none()
        self.tick = self._through = 0

    def advance(self, ticks: Any, labels: Texts, weights: Any, through: int) -> Iterator[tuple[int, Found]]:
        """Takes cells, and closes the ticks up to `through`: each with what it shows of these labels, made as it is
        asked for, and all of them must be.

        Cell i adds weights[i] to the i-th label at tick ticks[i]; a weight of 0 leaves no trace. Cells of ticks that
        are over enter the next one, those of later ticks wait, those beyond the horizon enter none. Several cells of
        one tick and label are added up, with all that waited, before the total is clipped.
        """
        when, heavy = as_integers(ticks), as_integers(weights)
        if not isinstance(labels, Texts) or when.shape != (len(labels),) or heavy.shape != (len(labels),):
            raise TypeError("a cell has one tick, one label and one weight: two columns of integers, and Texts between")
        return self.advance_cells(ItemCells.of(when, labels, heavy), through)

    def advance_cells(self, given: ItemCells, through: int) -> Iterator[tuple[int, Found]]:
        """The same of cells whose labels are numbered already."""
        self._check_finished()
        if whole("through", through, self.tick) > self.plan.horizon:
            raise HorizonExceeded(
                f"the ticks up to {through} exceed the horizon {self.plan.horizon} that the noise was made for"
            )
        cells = ItemCells.joined([self._pending, self._own(given)]).added_up(self.plan.limit)
        now = int(np.searchsorted(cells.ticks, through, side="right"))
        self._pending, self._through = cells.where(np.arange(now, len(cells))), int(through)
        return self._released(cells, now)

    def _own(self, cells: ItemCells) -> ItemCells:
        if len(cells) and cells.weights.min() < 0:
            raise TypeError("cells of items do not weigh less than 0")
        if len(cells.names) and cells.names.lengths.max() > LONGEST_LABEL:
            raise TypeError(f"labels have at most {LONGEST_LABEL} bytes; longer ones are left out at the door")
        if (shard_of(cells.names, self._key, self.count) != self.number).any():
            raise TypeError(f"labels of this shard are those that shard_of gives the number {self.number}")
        cells = replace(cells, ticks=np.maximum(cells.ticks, self.tick + 1))
        return cells.where((cells.ticks <= self.plan.horizon) & (cells.weights > 0))

    def _released(self, cells: ItemCells, now: int) -> Iterator[tuple[int, Found]]:
        names = cells.names
        starts, lengths = names.offsets[:-1], names.lengths
        edges = np.searchsorted(cells.ticks[:now], np.arange(self.tick + 1, self._through + 2))
        for first, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            mine = cells.numbers[first:stop]
            totals = ItemTotals(taken(names.data, starts[mine], lengths[mine]), cells.weights[first:stop])
            (found,), _ = self._engine.advance([totals])
            self.tick += 1
            yield self.tick, found

    def _check_finished(self) -> None:
        if self.tick != self._through:
            raise StateError(
                f"the releases of the last call were made up to tick {self.tick} and not to {self._through}: ask for "
                "all of them, or go back to the state before that call"
            )

    def to_bytes(self) -> bytes:
        """All that the next batch needs, to be sealed: as secret as exact counts, and as the noise. The same bytes for
        the same cells, in whatever order they came."""
        self._check_finished()
        source, table = self._source, self._engine.table
        state = ItemState(
            source.fingerprint(),
            source.laws(),
            self.number,
            self.count,
            self.tick,
            table.labels,
            table.counts,
            table.addresses,
            self._engine.shown_before,
            self._pending,
        )
        return state.in_order().to_bytes(source.order)

    @classmethod
    def from_bytes(cls, plan: ItemPlan, key: NoiseKey, number: int, count: int, state: bytes) -> ItemShard:
        """The shard after its last batch."""
        self = cls(plan, key, number, count)
        found = ItemState.from_bytes(state, self._source.fingerprint(), self._source.order)
        if (found.number, found.count) != (number, count):
            raise StateError(f"this is the state of shard {found.number} of {found.count}; labels are not cut again")
        self._source.expect(found.laws)
        self._engine.table.enter(found.labels, found.counts, found.addresses)
        self._engine.take(found.tick, found.shown)
        self._pending = found.pending
        self.tick = self._through = found.tick
        return self


def merged(plan: ItemPlan, parts: Iterable[Found]) -> Found:
    """What the whole releases at a tick, from what all of its shards show: best first, ties by label.

    >>> import evertally as et
    >>> top = et.UnknownTopK(2, guarantee=et.ApproxDP(1.0, 1e-6), horizon=500, key=et.simulation(1))
    >>> merged(top.item_plan(), [Found({"tea": 9, "milk": 5}, {}), Found({"fig": 5}, {})]).counts
    {'tea': 9, 'fig': 5}
    """
    shown = sorted((-count, label) for label, count in chain.from_iterable(part.counts.items() for part in parts))
    if len({label for _, label in shown}) < len(shown):
        # The same noise on two counts: their difference would be exact.
        raise StateError("a label is in two of these parts: give those of one tick, each shard once")
    return Found({label: -count for count, label in shown[: plan.most]}, {})
