"""The state of a shard of labels as a value, in a layout of its own whose bytes follow from the state alone: not from
the order in which labels came, which decides about their numbers, nor from the version of a library.

Where the noise of a label lies is kept beside it, 12 bytes: to work it out again takes a microsecond, and a shard is
read at every batch. A mistake there would be other noise, so all bytes are under a keyed digest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.rows import from_bytes, to_bytes
from evertally.encode.item_cells import IntArray, ItemCells
from evertally.encode.name_index import taken
from evertally.encode.text_order import byte_order
from evertally.encode.texts import Texts
from evertally.errors import StateError
from evertally.secret import Secret

_FORMAT = b"evertally-items1"
# format, fingerprint of the noise; number, count, tick; how much there is of what follows (sizes)
_HEAD = struct.Struct("<16s16s9q")
_DIGEST = 16
_PURPOSE = b"state of a shard of items 1"

Order = Callable[[bytes], bytes]


@dataclass(frozen=True, repr=False)
class ItemState(Secret):
    """Shard `number` of `count` after `tick`; of each label, by its bytes: exact count, where its noise lies, and
    whether it was ever shown (if that is kept). `pending`: cells of later ticks, in order. Secret."""

    noise: bytes  # the fingerprint of the noise that it belongs to
    laws: bytes  # which lanes were drawn with which law
    number: int
    count: int
    tick: int
    labels: Texts
    counts: IntArray
    addresses: NDArray[np.uint64]
    shown: NDArray[np.bool_]  # of no label, or of all
    pending: ItemCells

    def in_order(self) -> ItemState:
        """The same, labels and cells in the one order that they have."""
        order, names = byte_order(self.labels), self.labels
        return ItemState(
            self.noise,
            self.laws,
            self.number,
            self.count,
            self.tick,
            taken(names.data, names.offsets[order], names.lengths[order]),
            self.counts[order],
            self.addresses[order],
            self.shown[order] if self.shown.size else self.shown,
            self.pending.in_order(),
        )

    def to_bytes(self, order: Order) -> bytes:
        """`order` is the keyed hash of the noise's source."""
        labels, cells = self.labels, self.pending
        waiting = cells.names
        sizes = len(self.laws), len(labels), labels.size, self.shown.size, len(cells), len(waiting)
        numbers = self.number, self.count, self.tick
        parts = [
            _HEAD.pack(_FORMAT, self.noise, *numbers, *sizes),
            waiting.size.to_bytes(8, "little"),
            self.laws,
            to_bytes(self.counts),
            _words(self.addresses[:, 0], "<u8"),
            _words(self.addresses[:, 1], "<u4"),
            _words(labels.lengths, "<u2"),
            np.packbits(self.shown).tobytes(),
            _letters(labels),
            *map(to_bytes, (cells.ticks, cells.numbers, cells.weights)),
            _words(waiting.lengths, "<u2"),
            _letters(waiting),
        ]
        body = b"".join(parts)
        return body + _digest(body, order)

    @staticmethod
    def from_bytes(data: bytes, noise: bytes, order: Order) -> ItemState:
        """The way back, of a state that belongs to this noise."""
        if len(data) < _HEAD.size + 8 + _DIGEST:
            raise _damaged()
        form, found, number, count, tick, laws, n, letters, shown, cells, waiting = _HEAD.unpack_from(data)
        if form != _FORMAT:
            raise StateError("these bytes are not the state of a shard, or of another version; use the one that wrote")
        if found != noise:
            raise StateError("this state belongs to another plan or key; its noise would be drawn anew")
        body = memoryview(data)[:-_DIGEST]
        if _digest(body, order) != data[-_DIGEST:]:
            raise _damaged()
        their_letters = int.from_bytes(data[_HEAD.size : _HEAD.size + 8], "little")
        sizes = [laws, 8 * n, 8 * n, 4 * n, 2 * n, -(-shown // 8), letters]
        sizes += [8 * cells, 8 * cells, 8 * cells, 2 * waiting, their_letters]
        ends = np.cumsum([_HEAD.size + 8, *sizes]).tolist()
        known, counts, high, low, lengths, bits, names, *rest = (body[start:end] for start, end in pairwise(ends))
        when, which, weights = (from_bytes(bytes(part)) for part in rest[:3])
        addresses = np.stack([np.frombuffer(high, "<u8"), np.frombuffer(low, "<u4").astype(np.uint64)], axis=1)
        return ItemState(
            found,
            bytes(known),
            number,
            count,
            tick,
            _texts(lengths, names),
            from_bytes(bytes(counts)),
            addresses.astype(np.uint64),
            np.unpackbits(np.frombuffer(bits, np.uint8), count=shown).astype(np.bool_),
            ItemCells(when, which, weights, _texts(rest[3], rest[4])),
        )


def _words(numbers: NDArray[Any], kind: str) -> bytes:
    return np.ascontiguousarray(numbers).astype(kind).tobytes()


def _letters(texts: Texts) -> bytes:
    return texts.data[texts.offsets[0] : texts.offsets[-1]].tobytes()


def _texts(lengths: Any, letters: Any) -> Texts:
    sizes = np.frombuffer(lengths, "<u2").astype(np.int64)
    return Texts(np.frombuffer(letters, np.uint8), np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]))


def _digest(body: Any, order: Order) -> bytes:
    return order(b"".join([_PURPOSE, body]))


def _damaged() -> StateError:
    return StateError("this state of a shard is damaged; restore from an intact one")
