"""A table of users as secret bytes, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evertally.encode.name_kernels import IntArray
from evertally.encode.texts import Texts
from evertally.errors import StateError

_FORMAT = b"evertally-user-table-2\n"
_DAMAGED = "a table of users is damaged; restore from an intact snapshot"


def table_to_bytes(texts: Texts, columns: Sequence[IntArray], erased: IntArray) -> bytes:
    """Names and fields by number, and the numbers of erased users, whose names are digests."""
    stop = int(texts.offsets[-1])
    head = np.array([len(columns), len(texts), len(erased), stop], np.int64)
    parts = [head, texts.offsets, *columns, erased]
    return b"".join(
        [_FORMAT, *(part.astype("<i8", copy=False).tobytes() for part in parts), texts.data[:stop].tobytes()]
    )


def table_from_bytes(data: bytes, fields: int) -> tuple[Texts, list[IntArray], IntArray]:
    """The way back; StateError, without content, for other bytes."""
    start = len(_FORMAT)
    if not data.startswith(_FORMAT) or len(data) < start + 32:
        raise StateError("these bytes are not a table of users; restore from an intact snapshot")
    found, size, erased_count, stop = np.frombuffer(data, "<i8", 4, start).tolist()
    if found != fields or min(size, erased_count, stop) < 0:
        raise StateError("these bytes are not a table of users of this statistic; restore from an intact snapshot")
    start += 32
    count = (size + 1) + fields * size + erased_count
    if len(data) != start + 8 * count + stop:
        raise StateError("a table of users is cut short or has trailing bytes; restore from an intact snapshot")
    numbers = np.frombuffer(data, "<i8", count, start)
    offsets = numbers[: size + 1].astype(np.int64)
    columns = [numbers[1 + size * (i + 1) : 1 + size * (i + 2)].astype(np.int64) for i in range(fields)]
    erased = numbers[count - erased_count :].astype(np.int64)
    if offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] != stop:
        raise StateError(_DAMAGED)
    if (np.diff(erased) <= 0).any() or (erased_count and not 0 <= erased[0] <= erased[-1] < size):
        raise StateError(_DAMAGED)
    return Texts(np.frombuffer(data, np.uint8, stop, start + 8 * count).copy(), offsets), columns, erased
