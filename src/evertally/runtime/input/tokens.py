"""Columns of JSON cells as they are written: an Arrow array of bytes whose type says what the bytes are.

Arrow cuts, joins and writes such a column at the speed of bytes. What a cell means is decided when it is used, by the
functions that read single cells: once for each *different* cell, or by loops that know the simple ones
(token_kernels.py) and leave all others to those functions. So a cell means the same in this form and in any other, and
an odd one costs its own time alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evertally.encode.labels import canonical
from evertally.encode.name_index import distinct, fixed, taken
from evertally.encode.name_kernels import kernel
from evertally.encode.numbers import floats
from evertally.encode.spelled import Named, Spelled, places
from evertally.encode.texts import Texts
from evertally.errors import StateError
from evertally.runtime.input.json_cells import flat
from evertally.runtime.input.token_kernels import (
    FOREIGN,
    KNOWN,
    MISSING,
    NUMBER,
    POWERS,
    TEXT,
    UNKNOWN,
    read_amounts,
    read_lists,
    read_names,
)
from evertally.secret import Secret

Cells = NDArray[Any]
Numbers = tuple[NDArray[np.int64], NDArray[np.bool_]]

_write = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class _TokenArray(pa.ExtensionArray):  # type: ignore[misc]
    """Whoever asks for Python objects gets the cells that are written there."""

    def to_pylist(self, **_: Any) -> list[Any]:
        return _cells(self.storage.to_pylist())


class _Token(pa.ExtensionScalar):  # type: ignore[misc]
    def as_py(self, **_: Any) -> Any:
        return None if self.value is None else _cells([self.value.as_py()])[0]


class _TokenType(pa.ExtensionType):  # type: ignore[misc]
    """Not registered: no Arrow stream from outside can have a column of this type."""

    def __init__(self) -> None:
        super().__init__(pa.large_binary(), "evertally.json")

    def __hash__(self) -> int:
        return hash(self.extension_name)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> _TokenType:
        return cls()

    def __arrow_ext_class__(self) -> type:
        return _TokenArray

    def __arrow_ext_scalar_class__(self) -> type:
        return _Token


TOKENS = _TokenType()


def is_tokens(column: Any) -> bool:
    """Whether a column is one of JSON cells as they are written."""
    return isinstance(column, _TokenArray)


def token(cell: Any) -> bytes:
    """A cell as it may be written; no bytes for a missing one.

    >>> token("caf\\u00e9"), token([7, None]), token(None)
    (b'"caf\\\\u00e9"', b'[7,null]', b'')
    """
    write = _WRITERS.get(type(cell))
    return (_write(flat(cell)) if write is None else write(cell)).encode()


def _written_float(cell: float) -> str:
    return repr(cell) if math.isfinite(cell) else _write(cell)


# The encoder of the standard library writes the same, but takes microseconds to begin.
_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "",
    str: encode_basestring_ascii,
    bool: lambda cell: "true" if cell else "false",
    int: repr,
    float: _written_float,
}


def column_of(texts: Texts) -> Any:
    """The column of these values; empty ones are missing."""
    here = texts.lengths > 0
    valid = None if here.all() else pa.py_buffer(np.packbits(here, bitorder="little"))
    buffers = [valid, pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)]
    return tokens_of(pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(texts), buffers))


def tokens_of(storage: Any) -> Any:
    """An Arrow array of bytes, taken for JSON cells as they are written."""
    return pa.ExtensionArray.from_storage(TOKENS, storage)


def joined(parts: Sequence[Any]) -> Any:
    """One column of several."""
    if len(parts) == 1:
        return parts[0]
    return tokens_of(pa.concat_arrays([part.storage for part in parts] or [pa.array([], pa.large_binary())]))


def mapped_bytes(column: Any) -> int:
    """How many bytes of a column are mappings: each of their entries is looked at by itself.

    >>> mapped_bytes(column_of(Texts.of(['{"a": 1}', '["a"]', "", '{}'])))
    10
    """
    texts = _texts(column)
    lengths = texts.lengths
    return int(lengths[lengths > 0][_begin_with(texts, b"{")].sum())


def cells_of(column: Any) -> Cells:
    """The cells as Python objects, as the careful reader gives them."""
    return np.fromiter(column.to_pylist(), object, len(column))


def floats_of(column: Any) -> NDArray[np.float64]:
    """What `floats` says of these cells.

    >>> floats_of(column_of(Texts.of(["7", '"2.5"', "true", '"north"', "", "1e3"]))).tolist()
    [7.0, 2.5, 1.0, nan, nan, 1000.0]
    """
    texts = _texts(column)
    out, how = np.full(len(texts), np.nan), np.empty(len(texts), np.uint8)
    kernel(read_amounts, len(texts), texts.size)(*fixed(texts), POWERS, out, how)
    rest = np.flatnonzero(how == UNKNOWN)
    if rest.size:
        out[rest] = floats(column.take(pa.array(rest)).to_pylist())
    return out


def numbers_of(column: Any, read: Callable[..., None], careful: Callable[[Cells], Numbers]) -> Numbers:
    """Whole numbers that a loop reads where cells are simple, and a function of other cells where they are not; and
    which cells are such numbers."""
    texts = _texts(column)
    out, how = np.zeros(len(texts), np.int64), np.empty(len(texts), np.uint8)
    kernel(read, len(texts), texts.size)(*fixed(texts), out, how)
    valid = how == KNOWN
    rest = np.flatnonzero(how == UNKNOWN)
    if rest.size:
        out[rest], valid[rest] = careful(cells_of(column.take(pa.array(rest))))
    return out, valid


def spelled(column: Any) -> Spelled | None:
    """The labels that the cells are, in their one spelling, each once; None if there are collections among them.

    >>> list(spelled(column_of(Texts.of(['"7"', "7.0", "", '"n\\\\u006frth"', "2.5"]))))
    ['7', '7', None, 'north', None]
    """
    written = _texts(column)
    if _begin_with(written, b"[{").any():
        return None  # before each of them is read
    codes, different = distinct(written)
    labels = _labels(different)
    if labels.nested:
        return None
    numbers, names = places(labels.here), labels.texts
    # Different texts without escapes are different labels, and so are different numbers; both together may not be.
    if not labels.different:
        again, names = distinct(names)
        numbers = np.append(again, -1)[numbers]
    return Spelled(numbers[codes], names)


def begins_with_list(column: Any) -> bool:
    """Whether the first cell that is not missing is a list."""
    return bool(_begin_with(_texts(column), b"[")[:1].any())


def lists_of(column: Any) -> Any | None:
    """The cells as an Arrow array of lists, if each of them is a list of texts without escapes, or missing; otherwise
    None. The same lists as Python objects take ten times as long.

    >>> lists_of(column_of(Texts.of(['["fig", "pear"]', "", "[]"]))).to_pylist()
    [['fig', 'pear'], None, []]
    >>> lists_of(column_of(Texts.of(['["fig"]', '"fig"']))), lists_of(column_of(Texts.of(['[7]'])))
    (None, None)
    """
    written = _texts(column)
    lists = _begin_with(written, b"[")
    if not lists.size or not lists.all():
        return None
    data, offsets = fixed(written)
    most = int(np.count_nonzero(data[offsets[0] : offsets[-1]] == ord('"'))) // 2
    starts, stops, lengths = (np.empty(size, np.int64) for size in (most, most, len(written)))
    count = kernel(read_lists, most)(data, offsets, starts, stops, lengths)
    if count < 0:
        return None
    texts = taken(data, starts[:count], stops[:count] - starts[:count])
    values = pa.Array.from_buffers(
        pa.large_string(), count, [None, pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)]
    )
    ends = np.cumsum(np.maximum(lengths, 0))
    missing = np.append(lengths < 0, False)
    places = pa.array(np.concatenate([[0], ends]), pa.int64(), mask=missing)
    return pa.LargeListArray.from_arrays(places, values)


def named(column: Any) -> Named:
    """The label of each event; collections are none, as they are no users.

    >>> list(named(column_of(Texts.of(['"ann"', "7.0", "", '["bob"]']))))
    ['ann', '7', None, None]
    """
    labels = _labels(_texts(column))
    return Named(labels.texts, None if labels.here.all() else places(labels.here))


@dataclass(frozen=True, repr=False)
class _Labels(Secret):
    """Labels of some cells: which cells have one, and theirs; whether some are collections; whether different cells
    are sure to be different labels."""

    here: NDArray[np.bool_]
    texts: Texts
    nested: bool
    different: bool


def _labels(written: Texts) -> _Labels:
    count, data, nested = len(written), written.data, False
    starts, lengths, how = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.uint8)
    kernel(read_names, count, written.size)(*fixed(written), starts, lengths, how)
    different = bool((how == TEXT).all() or (how == NUMBER).all())
    odd = np.flatnonzero((how == UNKNOWN) | (how == FOREIGN))
    if odd.size:
        codes, found = distinct(written.take(odd))
        cells = _cells(found.names())
        nested = any(type(cell) in (list, dict) for cell in cells)
        labels = [canonical(cell) for cell in cells]
        added = Texts.of([label or "" for label in labels])
        how[odd] = np.array([MISSING if label is None else UNKNOWN for label in labels], np.uint8)[codes]
        starts[odd], lengths[odd] = (added.offsets[:-1] + len(data))[codes], added.lengths[codes]
        data = np.concatenate([data, added.data])
    here = how != MISSING
    if not here.all():
        starts, lengths = starts[here], lengths[here]
    return _Labels(here, taken(data, starts, lengths), nested, different)


def _texts(column: Any) -> Texts:
    """The values one behind the other, missing ones empty."""
    storage = column.storage
    if storage.null_count:
        storage = storage.fill_null(b"")
    if not len(storage):
        return Texts.of([])
    _, offsets, data = storage.buffers()
    ends = np.frombuffer(offsets, np.int64)[storage.offset : storage.offset + len(storage) + 1]
    return Texts(np.frombuffer(data or b"", np.uint8), ends)


def _begin_with(written: Texts, letters: bytes) -> NDArray[np.bool_]:
    """Whether the values that are not missing begin with one of these letters."""
    return np.isin(written.data[written.offsets[:-1][written.lengths > 0]], list(letters))


def _cells(written: Sequence[bytes | None]) -> list[Any]:
    try:
        found: list[Any] = json.loads(b"[" + b",".join(cell or b"null" for cell in written) + b"]")
    except (ValueError, RecursionError):
        found = []
    if len(found) != len(written):
        raise StateError("a batch in the journal cannot be read; the state file is damaged")
    return [flat(cell) for cell in found]
