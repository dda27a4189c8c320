"""Cells of items: so much for this label at that tick. Cells of pieces of a stream add up to its ticks, in any order.

Every weight is positive, so a total that is clipped from above may be clipped as often as one likes while it is added
up: min(min(a, m) + b, m) = min(a + b, m). Nothing depends on the order then, and nothing leaves 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evertally.encode.name_index import distinct, taken
from evertally.encode.text_order import byte_order
from evertally.encode.texts import Texts
from evertally.secret import Secret

IntArray = NDArray[np.int64]

_NARROW = 1 << 12  # ticks from the first to the last that are numbered as they stand
_ROOM = 8  # cells for each item that are laid out in a table and not looked for
_SMALL = 1 << 16  # and so many in any case
_BITS = 31  # weights are added up in two parts: 2^31 of them cannot leave 64 bits


@dataclass(frozen=True, repr=False)
class ItemCells(Secret):
    """Cell i adds weights[i], which is positive, to label numbers[i] of `names` at tick ticks[i]. Names are distinct.
    Secret.

    >>> cells = ItemCells.of(np.array([7, 2, 7]), Texts.of(["pear", "fig", "pear"]), np.array([1, 4, 2]))
    >>> whole = cells.added_up(most=9).in_order()
    >>> whole.ticks.tolist(), whole.labels().list(), whole.weights.tolist()
    ([2, 7], ['fig', 'pear'], [4, 3])
    """

    ticks: IntArray
    numbers: IntArray
    weights: IntArray
    names: Texts

    @classmethod
    def of(cls, ticks: IntArray, labels: Texts, weights: IntArray) -> ItemCells:
        """Cells with a label each."""
        numbers, names = distinct(labels)
        return cls(ticks, numbers, weights, names)

    @classmethod
    def none(cls) -> ItemCells:
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing, nothing, nothing, Texts.of([]))

    @classmethod
    def joined(cls, parts: Sequence[ItemCells]) -> ItemCells:
        """All cells of several pieces."""
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else cls.none()
        offsets, data, size, first, numbers = [np.zeros(1, np.int64)], [], 0, 0, []
        for part in parts:
            start, stop = part.names.offsets[0], part.names.offsets[-1]
            data.append(part.names.data[start:stop])
            offsets.append(part.names.offsets[1:] - start + size)
            numbers.append(part.numbers + first)
            size, first = size + int(stop - start), first + len(part.names)
        codes, names = distinct(Texts(np.concatenate(data), np.concatenate(offsets)))
        ticks, weights = (np.concatenate([getattr(part, name) for part in parts]) for name in ("ticks", "weights"))
        return cls(ticks, codes[np.concatenate(numbers)], weights, names)

    def __len__(self) -> int:
        return len(self.ticks)

    def labels(self) -> Texts:
        """The label of each cell."""
        starts, lengths = self.names.offsets[:-1], self.names.lengths
        return taken(self.names.data, starts[self.numbers], lengths[self.numbers])

    def where(self, kept: NDArray[np.bool_] | IntArray) -> ItemCells:
        """Some of the cells, and only their names."""
        numbers = self.numbers[kept]
        used = np.zeros(len(self.names), dtype=np.bool_)
        used[numbers] = True
        names = self.names
        if not used.all():
            left = np.flatnonzero(used)
            names = taken(names.data, names.offsets[left], names.lengths[left])
        return ItemCells(self.ticks[kept], (np.cumsum(used) - 1)[numbers], self.weights[kept], names)

    def added_up(self, most: int) -> ItemCells:
        """Each tick and label once, by ticks; totals clipped to `most`, at most 2^62."""
        order = _by_pairs(self.ticks, self.numbers)
        ticks, numbers, weights = self.ticks[order], self.numbers[order], self.weights[order]
        new = np.append(True, (np.diff(ticks) != 0) | (np.diff(numbers) != 0))[: len(self)]
        begins = np.flatnonzero(new)
        if len(begins) == len(self):
            return ItemCells(ticks, numbers, np.minimum(weights, most), self.names)
        high, low = np.add.reduceat(weights >> _BITS, begins), np.add.reduceat(weights & (2**_BITS - 1), begins)
        high += low >> _BITS
        sums = (np.minimum(high, most >> _BITS) << _BITS) + (low & (2**_BITS - 1))
        totals = np.where(high > most >> _BITS, most, np.minimum(sums, most))
        return ItemCells(ticks[begins], numbers[begins], totals, self.names)

    def in_order(self) -> ItemCells:
        """The same in the one order that they have: names by their bytes, cells by tick and name."""
        order = byte_order(self.names)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        names = taken(self.names.data, self.names.offsets[order], self.names.lengths[order])
        numbers = rank[self.numbers]
        by = _by_pairs(self.ticks, numbers)
        return ItemCells(self.ticks[by], numbers[by], self.weights[by], names)


class Grid(Secret):
    """Numbers for (tick, label), of items that have both: all there could be, or where those are too many the ones that
    occur. -1 for what is no item."""

    def __init__(self, ticks: IntArray, items: IntArray, labels: Texts) -> None:
        self._ticks, at = _numbered(ticks)
        self._labels = labels
        there = items >= 0
        self.room = len(self._ticks) * len(labels)
        # By numbers of ticks, which are few: a tick itself, times all labels, would not fit 64 bits.
        self.codes = np.where(there, at * len(labels) + items, -1)
        self._found: IntArray | None = None
        if self.room > max(_SMALL, _ROOM * len(items)):
            self._found, codes = np.unique(self.codes[there], return_inverse=True)
            self.codes[there] = codes
            self.room = len(self._found)

    def places(self, codes: IntArray) -> tuple[IntArray, IntArray]:
        """Ticks and numbers of labels."""
        cells = codes if self._found is None else self._found[codes]
        return self._ticks[cells // max(1, len(self._labels))], cells % max(1, len(self._labels))

    def cells(self, counts: IntArray) -> ItemCells:
        """Where the counts are not 0. A label that counts nowhere leaves no trace."""
        there = np.flatnonzero(counts)
        ticks, numbers = self.places(there)
        return ItemCells(ticks, numbers, counts[there].astype(np.int64), self._labels).where(np.arange(len(there)))


def _by_pairs(first: IntArray, second: IntArray) -> IntArray:
    """The places of pairs in their order, equal ones as they stand. `second` is not negative.

    >>> _by_pairs(np.array([7, -2, 7, 7]), np.array([5, 9, 1, 5])).tolist()
    [1, 2, 0, 3]
    """
    if not first.size:
        return np.empty(0, np.int64)
    low, room, bits = int(first.min()), int(second.max()) + 1, len(first).bit_length()
    if (int(first.max()) - low + 1) * room << bits >= 2**63:
        return np.lexsort((second, first))
    # Sorting numbers is ten times as fast as sorting places: so the place takes the lowest bits.
    found: IntArray = np.sort(((first - low) * room + second) << bits | np.arange(len(first))) & ((1 << bits) - 1)
    return found


def _numbered(ticks: IntArray) -> tuple[IntArray, IntArray]:
    """Ticks in order, and which of them each is."""
    if not ticks.size:
        return ticks, ticks
    low, high = int(ticks.min()), int(ticks.max())
    if high - low < _NARROW:
        return np.arange(low, high + 1), ticks - low
    return np.unique(ticks, return_inverse=True)
