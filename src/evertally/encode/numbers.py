"""Columns of numbers: what `real` says of each cell, for a whole column at once.

Which way a column goes is a matter of speed. Every way keeps the one meaning (the tests compare them): a column that
changed its meaning when one odd cell appears would let that cell change all the others.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import as_list, coded_arrow, is_arrow
from evertally.encode.plain import NUMBER, only, real

Floats = NDArray[np.float64]


def floats(column: Any) -> Floats:
    """Each cell as a float, NaN where it is no number.

    >>> floats([3, "7", " 2.5 ", True, None, "seven"]).tolist()
    [3.0, 7.0, 2.5, 1.0, nan, nan]
    """
    if is_arrow(column):
        found = _of_arrow(column)
        return _one_by_one(as_list(column)) if found is None else found
    # Of its own type only: a masked array hides entries from some functions and shows them to others. Long doubles may
    # be finite and too large for a float.
    if type(column) is np.ndarray and column.dtype.kind in "iubf" and column.dtype.itemsize <= 8:
        with np.errstate(all="ignore"):  # a signalling NaN must not be heard
            return column.astype(np.float64, copy=False)
    return _one_by_one(as_list(column))


def holds_numbers(column: Any) -> bool:
    """Whether a column holds numbers, by its type alone.

    >>> holds_numbers(np.array([1.5])), holds_numbers(np.array([{"a": 1.5}])), holds_numbers([1.5])
    (True, False, False)
    """
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "biufc"
    if not is_arrow(column):
        return False
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(is_kind(column.type) for is_kind in kinds)


def _one_by_one(cells: list[Any]) -> Floats:
    if only(cells, int, float, bool, type(None)):
        with suppress(OverflowError):
            return np.array(cells, dtype=np.float64)  # None is NaN here
    return np.array([real(cell) for cell in cells], dtype=np.float64)


def _of_arrow(column: Any) -> Floats | None:
    """None for a type whose cells must be looked at one by one."""
    import pyarrow as pa

    kind = column.type
    if isinstance(column, pa.ChunkedArray):
        return np.concatenate([np.empty(0), *map(floats, column.chunks)])
    if pa.types.is_dictionary(kind):
        coded = coded_arrow(column)
        return None if coded is None else np.append(floats(coded[1]), math.nan)[coded[0]]
    try:
        if any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)):
            return _of_texts(column.cast(pa.large_binary()))
        if pa.types.is_large_binary(kind):
            return _of_texts(column)
        if pa.types.is_boolean(kind):
            column = column.cast(pa.int8())
        elif not (pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)):
            return None
        numbers = column.cast(pa.float64(), safe=False).fill_null(math.nan)
    except pa.ArrowException:
        return None
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _of_texts(column: Any) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    # Arrow's casts are only ever given cells that they cannot refuse: their error texts quote the cell.
    clean = pc.fill_null(pc.match_substring_regex(column, f"^{NUMBER}$"), False)
    cells = pc.if_else(clean, column, pa.scalar(None, column.type)).cast(pa.large_string())
    values = cells.cast(pa.float64()).fill_null(math.nan).to_numpy(zero_copy_only=False)
    rest = pc.and_(pc.invert(clean), pc.is_valid(column))
    if pc.any(rest).as_py():
        values = values.copy()
        values[rest.to_numpy(zero_copy_only=False)] = [real(cell) for cell in column.filter(rest).to_pylist()]
    return np.asarray(values)
