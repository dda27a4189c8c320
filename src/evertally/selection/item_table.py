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


class ItemTable(Secret):
    """Every label that ever counted, its exact count, and where its noise lies. Secret, and never shown.

    A label that is in stays in: forgetting one by its count is not private, in whatever way its noise is made
    (streaming-selection 7.1). Numbers follow arrival, so nothing that is released may depend on them. Memory for an
    item: the bytes of its label, and 56 to 80 more.

    >>> from evertally.noise import ZeroNoise
    >>> table = ItemTable(ZeroNoise().source())
    >>> for totals in ({"b": 2, "a": 1}, {"c": 1, "b": 5}):
    ...     table.add(ItemTotals.of(totals))
    >>> table.labels.list(), table.counts.tolist()
    (['b', 'a', 'c'], [7, 1, 1])
    """

    def __init__(self, source: ItemSource) -> None:
        self._source = source
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
            first = len(self)
            self._enter(totals.labels.take(new))
            numbers[new] = np.arange(first, len(self))
        self.counts[numbers] += totals.counts  # no label comes twice

    def _enter(self, labels: Texts) -> None:
        first, n = len(self), len(self) + len(labels)
        self._counts, self._addresses = grown(self._counts, n), grown(self._addresses, n)
        self._addresses[first:n] = item_addresses(self._source, labels.list())
        self._index.enter(labels)

    def to_bytes(self) -> list[bytes]:
        """The state; addresses follow from key and label."""
        labels = self.labels
        return [to_bytes(self.counts), to_bytes(labels.offsets), labels.data[: labels.offsets[-1]].tobytes()]

    def load(self, parts: list[bytes]) -> None:
        self._enter(Texts(np.frombuffer(parts[2], dtype=np.uint8), from_bytes(parts[1])))
        self.counts[:] = from_bytes(parts[0])
