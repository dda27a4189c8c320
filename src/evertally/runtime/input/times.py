"""Time stamps of a column, on the clock of the stream: a cell that cannot be read is missing, never an error.

Each cell is read by itself: the result for one cell is a function of that cell alone. Where a vectorised and a careful
path exist, both implement the same written grammar (the tests compare them), because a column that switched its meaning
when one bad cell appears would let that cell change all the others. Arrow's own casts are only ever given cells that
they cannot refuse; their error texts quote the cell.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evertally.encode.plain import written
from evertally.errors import ConfigurationError
from evertally.runtime.clock import INSTANT_LIMIT, Clock, instant
from evertally.runtime.input.token_kernels import read_integers, read_moments
from evertally.runtime.input.tokens import is_tokens, numbers_of

Instants = NDArray[np.int64]
Valid = NDArray[np.bool_]

_TO_MICROSECONDS = {"s": (10**6, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}  # times, divided by
_SHORT_INTEGER = r"^[+-]?\d{1,18}$"
# Only days that exist in every year; 29 February takes the careful path.
_DAY = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
_CLOCK_TIME = r"[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
_NAIVE_TIME = rf"^[1-9]\d{{3}}-{_DAY}(?:{_CLOCK_TIME})?$"
_ZONED_TIME = rf"^[1-9]\d{{3}}-{_DAY}{_CLOCK_TIME}(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)$"


def is_text(column: Any) -> bool:
    return column.type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def plain(column: Any) -> Any:
    """A column without dictionary encoding, text as bytes (bytes cannot be invalid)."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    return column.cast(pa.large_binary()) if pa.types.is_large_string(column.type) else column


def as_arrow(column: NDArray[Any]) -> Any:
    """A column of Python objects as Arrow, if all are texts or all short integers: a faster way to the same end."""
    kinds = set(map(type, column)) - {type(None)}
    try:
        if kinds == {str}:
            return pa.array(column, pa.string())
        if kinds == {int}:
            typed = pa.array(column, pa.int64())
            return typed if pc.max(pc.abs_checked(typed)).as_py() <= INSTANT_LIMIT else None
    except (ValueError, OverflowError, pa.ArrowException):  # a lone surrogate, an integer of 64 bits
        pass
    return None


def whole_instant(value: object) -> int | None:
    """A time stamp on an integer clock: an integer, rounded down if it has a fraction and clipped to +-2^62."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str | bytes):
        text = written(value)
        value = None if text is None else Fraction(text)
    if isinstance(value, int | Fraction) or (isinstance(value, float) and math.isfinite(value)):
        return max(-INSTANT_LIMIT, min(INSTANT_LIMIT, math.floor(value)))
    return None


def text_instant(value: object) -> int | None:
    """A time stamp on a clock of real time: written time only."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")  # cannot fail, and no character beyond ASCII is in the grammar
    return instant(value) if isinstance(value, str) else None


def instants(column: Any, clock: Clock) -> tuple[Instants, Valid]:
    """The time stamps of a column and which of them could be read."""
    careful = whole_instant if clock.integer else text_instant
    if is_tokens(column):
        read = read_integers if clock.integer else read_moments
        return numbers_of(column, read, lambda cells: instants(cells, clock))
    if isinstance(column, np.ndarray):
        typed = as_arrow(column)
        if typed is None or not (clock.integer or is_text(typed)):
            return _filled([careful(value) for value in column])
        column = typed
    column = plain(column)
    if is_text(column):
        return _text_instants(column, clock.integer)
    if pa.types.is_null(column.type):
        return _filled([None] * len(column))
    if clock.integer and pa.types.is_integer(column.type):
        return _machine_instants(column, 1, 1)
    if clock.integer and pa.types.is_floating(column.type):
        return _filled([careful(value) for value in column.to_pylist()])
    if not clock.integer and pa.types.is_date32(column.type):
        return _machine_instants(column.cast(pa.int32()), 86_400_000_000, 1)
    if not clock.integer and pa.types.is_date64(column.type):  # in milliseconds, which need not be whole days
        return _machine_instants(column, 1000, 1)
    if not clock.integer and pa.types.is_timestamp(column.type):
        return _machine_instants(column, *_TO_MICROSECONDS[column.type.unit])
    wanted = "integers" if clock.integer else "time stamps, dates or text"
    raise ConfigurationError(
        f"the time column {clock.column!r} has type {column.type}; this clock needs {wanted}. "
        "Integers go with an integer start and tick, times with a start such as 2013-01-01T00:00:00Z"
    )


def _filled(values: list[int | None]) -> tuple[Instants, Valid]:
    valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return np.fromiter((value or 0 for value in values), np.int64, len(values)), valid


def _machine_instants(column: Any, times: int, divided_by: int) -> tuple[Instants, Valid]:
    valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
    if pa.types.is_uint64(column.type):
        column = pc.min_element_wise(column, pa.scalar(INSTANT_LIMIT, pa.uint64()))
    values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    limit = INSTANT_LIMIT // times
    return np.clip(values // divided_by, -limit, limit) * times, valid


def _text_instants(column: Any, integer: bool) -> tuple[Instants, Valid]:
    empty = pa.scalar(None, column.type)
    if integer:
        clean = pc.fill_null(pc.match_substring_regex(column, _SHORT_INTEGER), False)
        digits = pc.if_else(clean, column, empty).cast(pa.string())
        parsed = pc.utf8_ltrim(digits, characters="+").cast(pa.int64())  # Arrow's integers have no plus sign
    else:
        naive = pc.fill_null(pc.match_substring_regex(column, _NAIVE_TIME), False)
        zoned = pc.fill_null(pc.match_substring_regex(column, _ZONED_TIME), False)
        clean = pc.or_(naive, zoned)
        parsed = pc.coalesce(
            pc.if_else(naive, column, empty).cast(pa.string()).cast(pa.timestamp("us")).cast(pa.int64()),
            pc.if_else(zoned, column, empty).cast(pa.string()).cast(pa.timestamp("us", "UTC")).cast(pa.int64()),
        )
    careful = whole_instant if integer else text_instant
    values = parsed.fill_null(0).to_numpy(zero_copy_only=False)
    valid = np.asarray(clean.to_numpy(zero_copy_only=False))
    rest = ~valid & pc.is_valid(column).to_numpy(zero_copy_only=False)
    if rest.any():
        slow, read = _filled([careful(cell) for cell in column.filter(pa.array(rest)).to_pylist()])
        values, valid = values.copy(), valid.copy()
        values[rest], valid[rest] = slow, read
    return values, valid
