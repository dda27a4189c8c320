"""Python's own lists of texts, or of whole numbers, in a few calls instead of some for each entry.

What is here looks at no object by itself, and calls no method of any: `str.join` takes objects that are texts and
nothing else, by what they hold; `marshal` writes down what each object is, by its exact type. Whatever is not all of
one kind, or is doubtful in any way, is None: then each entry is looked at by itself (encode/labels.py).
"""

from __future__ import annotations

import marshal
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FEW = 256  # entries; fewer are looked at one by one, without Arrow
_BETWEEN = "\x1f"  # which no text may hold that is read here; in UTF-8 no other character has this byte
_HEAD = 5  # bytes that `marshal` writes before the entries of a list
_ENTRY = np.dtype([("kind", "u1"), ("number", "<i4")])


def small_numbers(values: list[Any]) -> NDArray[np.int64] | None:
    """The entries of a list of integers of 32 bits, each of exactly that type; None for any other list.

    >>> small_numbers([7, -1]).tolist(), small_numbers([7, True]), small_numbers([7, 2.0]), small_numbers([2**40])
    ([7, -1], None, None, None)
    """
    if not values or type(values[0]) is not int or not len(values) < 2**31:
        return None  # most lists that are something else say so at once
    try:
        written = marshal.dumps(values, 2)  # of this version of the format integers are a letter and four bytes
    except ValueError:  # something that it does not write
        return None
    if len(written) != _HEAD + _ENTRY.itemsize * len(values):
        return None
    entries = np.frombuffer(written, _ENTRY, len(values), _HEAD)
    # From the first one on: an entry that is one ends where the next begins.
    return entries["number"].astype(np.int64) if (entries["kind"] == ord("i")).all() else None


def texts(values: list[Any]) -> Any | None:
    """The entries of a list of texts as an Arrow array, each with one byte more at its end; None for any other list,
    and where a text holds that byte or is no Unicode."""
    if not values or type(values[0]) is not str:
        return None  # most lists that are something else say so at once
    try:
        joined = _BETWEEN.join(values)
        data = np.frombuffer((joined + _BETWEEN).encode(), np.uint8)
    except (TypeError, UnicodeEncodeError):
        return None
    ends = np.flatnonzero(data == ord(_BETWEEN))
    if len(ends) != len(values):
        return None
    import pyarrow as pa

    offsets = np.zeros(len(values) + 1, np.int64)
    np.add(ends, 1, out=offsets[1:])
    return pa.Array.from_buffers(pa.large_string(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def encoded(values: list[Any]) -> tuple[NDArray[np.int64], Any] | None:
    """A long list of texts, or of whole numbers: for each entry the number of its value, and the values, distinct, as
    an Arrow array. None for any other list, and where there is no Arrow.

    >>> codes, distinct = encoded(["fig", "pear", "fig", "lime"] * 64)
    >>> codes[:4].tolist(), distinct.to_pylist()
    ([0, 1, 0, 2], ['fig', 'pear', 'lime'])
    """
    if len(values) < _FEW:
        return None
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
    except ImportError:
        return None
    column = texts(values)
    if column is not None:
        found = column.dictionary_encode()
        distinct = pc.utf8_slice_codeunits(found.dictionary, 0, -1)
    else:
        whole = small_numbers(values)
        if whole is None:
            return None
        found = pa.array(whole).dictionary_encode()
        distinct = found.dictionary
    return found.indices.to_numpy(zero_copy_only=False).astype(np.int64), distinct
