"""One spelling per label: how category and user names are canonicalised, alone or as a whole column.

Two spellings of one label must not become two items (an event could then move a column twice), so every label
is brought to one form before anything is merged, hashed or capped. The form depends on the label alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.composed import composed
from evertally.encode.imported import imported
from evertally.encode.lists import encoded
from evertally.encode.plain import UNREADABLE, finite, only, plain
from evertally.secret import Secret

Codes = NDArray[np.int64]

_LONGEST = 10**400  # as a label; Python would not print much longer integers


def canonical(value: object) -> str | None:
    """The one spelling of a label, or None when `value` cannot be a label.

    Text is brought to Unicode NFC and otherwise left alone (case and blanks are the user's business); whole
    numbers are written in decimal, so that 7, 7.0 and "7" are the same label whatever file format they came
    from; truth values are "true" and "false"; bytes are read as UTF-8.

    >>> canonical("cafe\\u0301") == canonical("caf\\u00e9")
    True
    >>> canonical(7), canonical(7.0), canonical(True), canonical(None), canonical(float("nan"))
    ('7', '7', 'true', None, None)
    """
    # A subclass may hash, compare and print as it likes: two spellings of one user would be two users.
    value = plain(value)
    if isinstance(value, str):
        return value if value.isascii() else composed(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return decimal(value)
    if isinstance(value, float | Fraction | Decimal):
        # Compared first: Decimal("1e999999999") is small as it stands and enormous as an integer.
        usable = finite(value) and -_LONGEST < value < _LONGEST and value == int(value)
        return decimal(int(value)) if usable else None
    if isinstance(value, bytes):
        # surrogateescape keeps distinct byte strings distinct even when they are not UTF-8.
        return composed(value.decode("utf-8", "surrogateescape"))
    return None


def decimal(value: int) -> str | None:
    """Decimal digits of an integer; None when it is too long for a label."""
    return str(value) if abs(value) < _LONGEST else None


def label_bytes(label: str) -> bytes:
    """A label as bytes for hashing and storing; defined for every Python string, lone surrogates included."""
    return label.encode("utf-8", "surrogatepass")


def is_text(label: str) -> bool:
    """Whether a label can be written in UTF-8. Declared labels must: they are written down, in specs and snapshots,
    where two halves of a surrogate pair would come back as one character.

    >>> is_text("caf\\u00e9"), is_text("\\ud83d\\ude00")
    (True, False)
    """
    try:
        label.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_column(events: object, what: str) -> None:
    """Refuse a container without one entry per event: a mistake in the call, not in a record."""
    if isinstance(events, np.ndarray):
        if events.ndim != 1:
            raise TypeError(f"{what} must be one-dimensional, one entry per event; got {events.ndim} dimensions")
        return
    if is_arrow(events):
        return
    if isinstance(events, str | bytes | bytearray | memoryview | Mapping | AbstractSet) or not isinstance(
        events, Sequence
    ):
        raise TypeError(
            f"{what} must be a list, tuple, 1-d numpy array, Series or Arrow array with one entry per event; got "
            f"{type(events).__name__}. One single event goes in a list: [event]"
        )


class Coded(Sequence[Any], Secret):
    """A column of few different values: for each entry the number of its value. Secret.

    >>> column = Coded(np.array([1, 0, 1]), [("f", "north"), ("m", "south")])
    >>> list(column), len(column[np.array([True, False, False])])
    ([('m', 'south'), ('f', 'north'), ('m', 'south')], 1)
    """

    def __init__(self, codes: Codes, values: list[object]) -> None:
        self.codes, self.values = codes, values

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, int):
            return self.values[self.codes[which]]
        return Coded(self.codes[which], self.values)

    def compact(self) -> Coded:
        """The same column; one with many values has fewer of them then."""
        return self


def own_column(column: Any) -> Any:
    """A column whose length and entries are what they seem: arrays as they are, anything else as a list."""
    own = type(column) in (list, tuple, np.ndarray) or isinstance(column, Coded)
    return column if own or is_arrow(column) else as_list(column)


def is_arrow(column: object) -> bool:
    """Whether `column` is an Arrow array. Arrow is optional: if nobody imported it, nothing can be one."""
    arrow = imported("pyarrow")
    return arrow is not None and isinstance(column, arrow.Array | arrow.ChunkedArray)


def as_list(column: Any) -> list[object]:
    """The entries of a column as Python objects; None for an entry that has no Python form."""
    if isinstance(column, np.ndarray):
        # A time in nanoseconds would become an integer, one in microseconds a date.
        return [None] * len(column) if column.dtype.kind in "mM" else list(column.tolist())
    for own in (list, tuple):  # by their own code: what a subclass iterates over may be something else, or endless
        if issubclass(type(column), own):
            return list(own.__iter__(column))
    if not is_arrow(column):
        return list(column)
    import pyarrow as pa

    # Only what may hold maps is asked about maps: Arrow then looks at each entry, ten times slower.
    maps = pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type)
    try:
        values = column.to_pylist(maps_as_pydicts="strict") if maps else column.to_pylist()
    except UNREADABLE:
        values = [_python_form(scalar) for scalar in column]
    return list(values)


def _python_form(scalar: Any) -> object:
    with suppress(*UNREADABLE):
        return scalar.as_py(maps_as_pydicts="strict")
    # A map with a repeated key; Arrow's own lossy way would warn, with the key in the text.
    with suppress(*UNREADABLE):
        return dict(scalar.as_py())
    return None


def coded(column: Any) -> tuple[Codes, list[object]] | None:
    """A column of plain values as (codes, distinct values), code -1 for null; None when entries are collections.

    Only the distinct values are then looked at one by one, by the same functions that look at single events,
    so the fast path cannot disagree with the slow one.
    """
    if isinstance(column, Coded):
        column = column.compact()
        return column.codes, column.values
    if is_arrow(column):
        found = coded_arrow(column)
        return None if found is None else (found[0], as_list(found[1]))
    if type(column) is np.ndarray and column.dtype.kind in "iubfU":
        with np.errstate(all="ignore"):  # a signalling NaN must not be heard
            distinct, codes = np.unique(column, return_inverse=True)
        return codes.astype(np.int64, copy=False), list(distinct)
    values = as_list(column)
    quickly = encoded(values)
    if quickly is not None:
        return quickly[0], quickly[1].to_pylist()
    # Exact types only: as dictionary keys True, 1 and 1.0 are one, as labels they are not.
    if not only(values, str, int, type(None)):
        return None
    number: dict[object, int] = {value: i for i, value in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(number.__getitem__, values), np.int64, len(values)), list(number)


def coded_arrow(column: Any) -> tuple[Codes, Any] | None:
    """As `coded` for an Arrow column, the values (distinct, unless the column came with a dictionary of its own) as an
    Arrow array."""
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        return None
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, np.int64), column[:0]
    try:
        found = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        if isinstance(found, pa.ChunkedArray):
            found = found.unify_dictionaries().combine_chunks()
            if isinstance(found, pa.ChunkedArray):  # no chunk at all, in some versions
                return np.empty(0, np.int64), pa.array([], column.type)
        indices = found.indices
        if indices.null_count:
            indices = indices.cast(pa.int64()).fill_null(-1)
        codes = indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes[(codes < 0) | (codes >= len(found.dictionary))] = -1  # an array that nobody validated
    except pa.ArrowException:
        return None
    dictionary = found.dictionary
    if pa.types.is_nested(dictionary.type):
        return None
    if len(dictionary) > len(codes):
        # A slice of a long column carries the whole column's dictionary; look only at what occurs in the slice.
        used, codes = np.unique(codes, return_inverse=True)
        missing = int(used.size > 0 and used[0] < 0)
        dictionary = dictionary.take(pa.array(used[missing:]))
        codes = codes - missing
    return codes, dictionary
