"""Exact counts by label, for labels that are not known in advance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.contract.rows import from_bytes, to_bytes
from evertally.counting.process import IntArray
from evertally.encode import ItemTotals
from evertally.encode.texts import Texts
from evertally.noise import ItemSource, item_addresses
from evertally.secret import Secret
from evertally.selection.item_index import ItemIndex, grown
from evertally.selection.label_limit import FollowedLabels


class ItemTable(Secret):
    """Every label that ever counted, its exact count, and where its noise lies. Secret, and never shown.

    A label that is in stays in: forgetting one by its count is not private, in whatever way its noise is made
    (streaming-selection 7.1). With `followed` labels are left out by a public rule (label_limit.py). Numbers follow
    arrival, so nothing that is released may depend on them. Memory for an item: the bytes of its label, and 56 to 80
    more.

    >>> from evertally.noise import ZeroNoise
    >>> table = ItemTable(ZeroNoise().source())
    >>> for totals in ({"b": 2, "a": 1}, {"c": 1, "b": 5}):
    ...     table.add(ItemTotals.of(totals))
    >>> table.labels.list(), table.counts.tolist()
    (['b', 'a', 'c'], [7, 1, 1])
    """

    def __init__(self, source: ItemSource, followed: FollowedLabels | None = None) -> None:
        self._source, self._followed = source, followed
        self._index = ItemIndex(source.order)
        self._counts = np.zeros(0, dtype=np.int64)
        self._addresses = np.zeros((0, 2), dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def labels(self) -> Texts:
        """All labels, by number."""
        return self._index.labels

    @property
    def counts(self) -> IntArray:
        return self._counts[: len(self)]

    @property
    def addresses(self) -> NDArray[np.uint64]:
        return self._addresses[: len(self)]

    def add(self, totals: ItemTotals) -> None:
        """Counts one tick's totals; labels that were never seen get the next numbers."""
        numbers = self._index.find(totals.labels)
        new = np.flatnonzero(numbers < 0)
        if new.size:
            labels = totals.labels.take(new)
            addresses = item_addresses(self._source, labels.list())
            if self._followed is not None:
                let_in = np.flatnonzero(self._followed.passes(addresses))
                new, labels, addresses = new[let_in], labels.take(let_in), addresses[let_in]
            first = len(self)
            self._enter(labels, addresses)
            numbers[new] = np.arange(first, len(self))
        known = numbers >= 0
        self.counts[numbers[known]] += totals.counts[known]  # no label comes twice

    def keep(self, numbers: IntArray) -> None:
        """Drops all labels but these, which get new numbers in the same order."""
        labels, counts, addresses = self.labels.take(numbers), self.counts[numbers], self.addresses[numbers]
        self._index = ItemIndex(self._source.order)
        self._counts, self._addresses = np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.uint64)
        self._enter(labels, addresses)
        self.counts[:] = counts

    def passing(self) -> NDArray[np.bool_]:
        """Which labels the rule would let in now."""
        assert self._followed is not None
        return self._followed.passes(self.addresses)

    def find(self, labels: Texts) -> IntArray:
        """The number of each label, -1 if it has none."""
        return self._index.find(labels)

    def enter(self, labels: Texts, counts: IntArray, addresses: NDArray[np.uint64]) -> None:
        """Labels that have no numbers yet, with all that is kept of them; where their noise lies was worked out before:
        a microsecond each."""
        first = len(self)
        self._enter(labels, addresses)
        self.counts[first:] = counts

    def _enter(self, labels: Texts, addresses: NDArray[np.uint64]) -> None:
        first, n = len(self), len(self) + len(labels)
        self._counts, self._addresses = grown(self._counts, n), grown(self._addresses, n)
        self._addresses[first:n] = addresses
        self._index.enter(labels)

    def to_bytes(self) -> list[bytes]:
        """The state; addresses follow from key and label."""
        labels = self.labels
        return [to_bytes(self.counts), to_bytes(labels.offsets), labels.data[: labels.offsets[-1]].tobytes()]

    def load(self, parts: list[bytes]) -> None:
        labels = Texts(np.frombuffer(parts[2], dtype=np.uint8), from_bytes(parts[1]))
        self._enter(labels, item_addresses(self._source, labels.list()))
        self.counts[:] = from_bytes(parts[0])
