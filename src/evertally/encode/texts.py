"""Many labels in one piece of memory: a million of them without a million Python objects."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import label_bytes
from evertally.errors import StateError
from evertally.secret import Secret

# In bytes. Longer ones are no labels: they would be kept for ever, by whoever sends them.
LONGEST_LABEL = 1024
_LONG = 256  # bytes of a text, on average


@dataclass(frozen=True, repr=False)
class Texts(Secret):
    """Labels in UTF-8, one behind the other: label i is data[offsets[i] : offsets[i + 1]]. Secret, and never shown.

    >>> texts = Texts.of(["pear", "fig", "lime"])
    >>> len(texts), texts[1], texts.take(np.array([2, 0])).list()
    (3, 'fig', ['lime', 'pear'])
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, labels: Sequence[str]) -> Texts:
        return cls.of_bytes([label_bytes(label) for label in labels])

    @classmethod
    def of_bytes(cls, names: Sequence[bytes]) -> Texts:
        offsets = np.fromiter(accumulate(map(len, names), initial=0), np.int64, len(names) + 1)
        return cls(np.frombuffer(b"".join(names), dtype=np.uint8), offsets)

    @classmethod
    def of_arrow(cls, column: Any) -> Texts | None:
        """The values of an Arrow array without nulls, if each of them is a label as it stands; otherwise None.

        Whole numbers and texts are, as long as texts are in ASCII or normalised (see `canonical`). So are bytes that
        are such a text in UTF-8: a service keeps every text as bytes.
        """
        texts = cls.raw(column)
        fits = texts is not None and (texts.lengths <= LONGEST_LABEL).all() and not texts.odd().size
        return texts if fits else None

    @classmethod
    def raw(cls, column: Any) -> Texts | None:
        """The same, whatever the texts or bytes are."""
        import pyarrow as pa

        if pa.types.is_integer(column.type):
            column = column.cast(pa.string())
        kinds = pa.string(), pa.large_string(), pa.binary(), pa.large_binary()
        if column.type not in kinds or column.null_count:
            return None
        if not len(column):
            return cls.of([])  # an empty array may have no buffers
        column = column.cast(pa.large_binary())
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
        return cls(np.frombuffer(data or b"", dtype=np.uint8), ends)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> str:
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes().decode("utf-8", "surrogatepass")

    def names(self) -> list[bytes]:
        """All labels in UTF-8."""
        first, last = self.offsets[0], self.offsets[-1]
        joined = self.data[first:last].tobytes()
        return [joined[start:stop] for start, stop in pairwise((self.offsets - first).tolist())]

    def list(self) -> list[str]:
        return [name.decode("utf-8", "surrogatepass") for name in self.names()]

    def take(self, numbers: NDArray[np.int64]) -> Texts:
        starts, lengths = self.offsets[numbers], self.lengths[numbers]
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        if offsets[-1] > _LONG * len(numbers):  # by bytes it would take 24 times their memory
            pieces = [self.data[start:stop] for start, stop in zip(starts, starts + lengths, strict=True)]
            return Texts(np.concatenate(pieces), offsets)
        return Texts(self.data[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])], offsets)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """In bytes."""
        return np.diff(self.offsets)

    @property
    def size(self) -> int:
        """Of all together, in bytes."""
        return int(self.offsets[-1] - self.offsets[0])

    def odd(self) -> NDArray[np.int64]:
        """Which of them are no labels as they stand: not normalised, or not UTF-8 (Arrow does not look at what it is
        told to be text)."""
        first, last = self.offsets[0], self.offsets[-1]
        foreign = np.flatnonzero(self.data[first:last] >= 128)
        if not foreign.size:
            return foreign
        places = np.unique(np.searchsorted(self.offsets, foreign + first, side="right") - 1)
        found: NDArray[np.int64] = places[[not _is_label(name) for name in self.take(places).names()]]
        return found


def _is_label(name: bytes) -> bool:
    try:
        return unicodedata.is_normalized("NFC", name.decode())
    except UnicodeDecodeError:
        return False


def tables_to_bytes(tables: Sequence[Mapping[str, int]]) -> bytes:
    """Counts by label, table by table, as secret bytes; the same bytes for the same tables.

    Labels are kept as their bytes. In JSON two lone surrogates and the one character that they would make together are
    written alike, and two labels come back as one.

    >>> apart = {"\\ud83d\\ude00": 1, "\\U0001f600": 2}
    >>> tables_from_bytes(tables_to_bytes([apart, {}])) == [apart, {}]
    True
    """
    parts = [len(tables).to_bytes(8, "little")]
    for table in tables:
        labels = sorted(table)
        texts = Texts.of(labels)
        counts = np.array([table[label] for label in labels], dtype="<i8")
        parts += [len(labels).to_bytes(8, "little"), counts.tobytes(), texts.offsets.astype("<i8").tobytes()]
        parts.append(texts.data.tobytes())
    return b"".join(parts)


def tables_from_bytes(data: bytes) -> list[dict[str, int]]:
    """The way back; StateError, without content, for other bytes."""
    tables, place = [], 0

    def numbers(count: int) -> NDArray[np.int64]:
        nonlocal place
        if not 0 <= 8 * count <= len(data) - place:
            raise StateError("the state of a histogram of items is cut short")
        found = np.frombuffer(data, "<i8", count, place).astype(np.int64)
        place += 8 * count
        return found

    for _ in range(int(numbers(1)[0])):
        size = int(numbers(1)[0])
        counts, offsets = numbers(size), numbers(size + 1)
        stop = place + int(offsets[-1])
        if offsets[0] != 0 or (np.diff(offsets) < 0).any() or stop > len(data):
            raise StateError("the state of a histogram of items is damaged")
        labels = Texts(np.frombuffer(data[place:stop], dtype=np.uint8), offsets).list()
        tables.append(dict(zip(labels, counts.tolist(), strict=True)))
        place = stop
    if place != len(data):
        raise StateError("the state of a histogram of items has trailing bytes")
    return tables
