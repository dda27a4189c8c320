"""Events of one tick that some batches have as lists of labels, and others as plain labels: one column of lists.

An event that is a label, and one that is a list of this label alone, count the same (encode/door.py). As Python objects
such a column would take ten times as long, whoever sent the few that are not like the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evertally.encode.labels import canonical
from evertally.encode.spelled import Named, Spelled

_LISTS = pa.large_list(pa.large_binary())
_TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def as_lists(parts: Sequence[Any]) -> Sequence[Any]:
    """Prepared columns in one form, if some of them are lists of texts and the others labels; otherwise as they are.

    >>> from evertally.encode.texts import Texts
    >>> parts = pa.array([["fig", "pear"], None]), Spelled(np.array([0, -1]), Texts.of(["fig"])), pa.array(["lime"])
    >>> [part.to_pylist() for part in as_lists(parts)]
    [[[b'fig', b'pear'], None], [[b'fig'], []], [[b'lime']]]
    """
    if len(parts) < 2 or not any(map(_is_lists, parts)):
        return parts
    try:
        made = [_listed(part) for part in parts]
    except pa.ArrowInvalid:
        return parts
    return parts if any(part is None for part in made) else made


def _is_lists(part: Any) -> bool:
    kinds = pa.types.is_list, pa.types.is_large_list
    return isinstance(part, pa.Array) and any(is_kind(part.type) for is_kind in kinds)


def _listed(part: Any) -> Any | None:
    if _is_lists(part):
        return part.cast(_LISTS) if part.type.value_type in _TEXTS else None
    if isinstance(part, Named | Spelled):
        column = part.compact()
        if column.names.odd().size:  # as bytes they would be other labels
            return None
        codes, (first, last) = column.codes, column.names.offsets[[0, -1]]
        offsets, data = column.names.offsets - first, column.names.data[first:last]
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
        names = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
        return _alone(names.take(pa.array(codes[codes >= 0])), codes >= 0)
    if isinstance(part, np.ndarray) and part.dtype == object:
        return _of_cells(part.tolist())
    if isinstance(part, pa.DictionaryArray):
        part = part.dictionary_decode()
    if not isinstance(part, pa.Array) or part.type not in _TEXTS:
        return None
    return _alone(part.drop_null().cast(pa.large_binary()), np.asarray(part.is_valid()))


def _of_cells(cells: list[Any]) -> Any | None:
    """Cells of small bodies of JSON, which are Python objects: labels and lists of labels, in their one spelling."""
    if any(isinstance(cell, dict) for cell in cells):
        return None
    found = [[canonical(label) for label in (cell if isinstance(cell, list) else [cell])] for cell in cells]
    try:
        return pa.array([[label.encode() for label in event if label is not None] for event in found], _LISTS)
    except UnicodeEncodeError:  # half a surrogate pair, which would be another label as bytes
        return None


def _alone(labels: Any, here: Any) -> Any:
    """Each label as a list of its own, and no label as an empty one."""
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(here, dtype=np.int64)])
    return pa.LargeListArray.from_arrays(pa.array(offsets), labels)
