"""A strict scanner of JSON lines, compiled: where the wanted cells of a record lie. It never guesses.

A line that it fully understands is a record, and for each wanted column it notes the span of the value as it is
written. Every other line is left to the careful reader (json_lines.py): with keys or nesting that need more thought,
with bytes beyond ASCII where they are not known to be UTF-8, with anything that is no JSON. What a value means is not
decided here.

Reading stops at the newline that ends every line: it is no blank, and nothing in a record may hold one. Eight bytes
more are looked at, and must be there. Importing this
file imports numba, which takes seconds: it is left to whoever has many lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.noise.jit import jit

_inline = partial(jit, forceinline=True)


def _table(*groups: Iterable[int]) -> NDArray[np.uint8]:
    """By byte: the number of the group that it is in, from 1 on; 0 for none."""
    table = np.zeros(256, np.uint8)
    for number, members in enumerate(groups, 1):
        table[list(members)] = number
    return table


_QUOTE, _OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = b'"{}[]'
_COLON, _COMMA, _POINT, _MINUS, _PLUS, _ZERO, _NEWLINE = b":,.-+0\n"
_IN_STRING = _table(b'"', b"\\", range(32), range(128, 256))  # 0: plain
_END, _BACKSLASH, _FOREIGN = 1, 2, 4
_ESCAPE = _table(b'"\\/bfnrt', b"u")
_SHORT_ESCAPE, _LONG_ESCAPE = 1, 2
_HEX = _table(b"0123456789abcdefABCDEF")
_DIGIT = _table(b"0123456789")
_BLANK = _table(b" \t\r")
_STRIPPED = _table(b" \t\r\x0b\x0c")  # what `bytes.strip` takes away
_T, _R, _U, _E, _N, _L, _F, _A, _S = b"truenlfas"

_QUOTES, _BACKSLASHES, _BLANKS, _ONES, _HIGHEST = (
    np.uint64(int.from_bytes(bytes([byte]) * 8)) for byte in (0x22, 0x5C, 0x20, 0x01, 0x80)
)

_LONGEST_NUMBER = 300  # characters; Python refuses whole numbers of more than 4300 digits
_DEEPEST = 60  # a record may be 64 deep; what comes near is counted by the careful reader
# What the scanner of a list or an object expects next.
_VALUE, _BEHIND_VALUE, _VALUE_OR_END, _KEY = 0, 1, 2, 3


@_inline
def _skip(b: Any, i: int, table: Any) -> int:
    """Behind the bytes at i that are in the table."""
    while table[b[i]]:
        i += 1
    return i


@_inline
def _eight_are_plain(b: Any, i: int) -> Any:
    """Whether the eight bytes at i are in ASCII, and neither quotes, backslashes nor control characters.

    With unsigned places the compiler makes one load of the loop. Each test below has the highest bit of a byte at 1 if
    the byte is what it looks for, and perhaps of bytes behind such a one.
    """
    word = np.uint64(0)
    for k in range(8):
        word |= np.uint64(b[np.uint64(i) + np.uint64(k)]) << np.uint64(8 * k)
    quote, backslash = word ^ _QUOTES, word ^ _BACKSLASHES
    special = (word - _BLANKS) | (quote - _ONES) | (backslash - _ONES) | word
    return special & _HIGHEST == np.uint64(0)


@_inline
def _string(b: Any, i: int, ascii_only: bool) -> tuple[int, bool]:
    """Behind the string whose content starts at i, or -1; and whether it has escapes."""
    escaped = False
    while _eight_are_plain(b, i):
        i += 8
    while True:
        kind = _IN_STRING[b[i]]
        if kind == 0 or (kind == _FOREIGN and not ascii_only):
            i += 1
        elif kind == _END:
            return i + 1, escaped
        elif kind == _BACKSLASH and _ESCAPE[b[i + 1]] == _SHORT_ESCAPE:
            i, escaped = i + 2, True
        elif (
            kind == _BACKSLASH
            and _ESCAPE[b[i + 1]] == _LONG_ESCAPE
            and _HEX[b[i + 2]]
            and _HEX[b[i + 3]]
            and _HEX[b[i + 4]]
            and _HEX[b[i + 5]]
        ):
            i, escaped = i + 6, True
        else:
            return -1, escaped


@_inline
def _number(b: Any, start: int) -> int:
    i = start + 1 if b[start] == _MINUS else start
    if not _DIGIT[b[i]]:
        return -1
    i = i + 1 if b[i] == _ZERO else _skip(b, i, _DIGIT)
    if b[i] == _POINT:
        if not _DIGIT[b[i + 1]]:
            return -1
        i = _skip(b, i + 1, _DIGIT)
    if b[i] | 32 == _E:
        i += 2 if b[i + 1] == _PLUS or b[i + 1] == _MINUS else 1
        if not _DIGIT[b[i]]:
            return -1
        i = _skip(b, i, _DIGIT)
    return i if i - start < _LONGEST_NUMBER else -1


@_inline
def _scalar(b: Any, i: int, ascii_only: bool) -> Any:
    """Behind the text, number, truth value or null at i, or -1."""
    if b[i] == _QUOTE:
        return _string(b, i + 1, ascii_only)[0]
    if b[i] == _T:
        return i + 4 if b[i + 1] == _R and b[i + 2] == _U and b[i + 3] == _E else -1
    if b[i] == _N:
        return i + 4 if b[i + 1] == _U and b[i + 2] == _L and b[i + 3] == _L else -1
    if b[i] == _F:
        return i + 5 if b[i + 1] == _A and b[i + 2] == _L and b[i + 3] == _S and b[i + 4] == _E else -1
    return _number(b, i)  # NaN and Infinity, which Python reads, are left to it


@jit
def _nested(b: Any, i: int, ascii_only: bool) -> int:
    """Behind the list or object at i, or -1. `kinds`: of each open one, whether it is an object, the innermost last."""
    one, kinds, depth, state = np.uint64(1), np.uint64(0), 0, _VALUE
    while True:
        i = _skip(b, i, _BLANK)
        in_object = kinds & one == one
        at_end = b[i] == _CLOSE or b[i] == _CLOSE_LIST
        if state == _BEHIND_VALUE or (state == _VALUE_OR_END and at_end):
            if b[i] == _COMMA and state == _BEHIND_VALUE:
                i, state = i + 1, _KEY if in_object else _VALUE
            elif b[i] == (_CLOSE if in_object else _CLOSE_LIST):
                i, depth, kinds, state = i + 1, depth - 1, kinds >> one, _BEHIND_VALUE
                if depth == 0:
                    return i
            else:
                return -1
        elif state == _KEY or (state == _VALUE_OR_END and in_object):
            i = _string(b, i + 1, ascii_only)[0] if b[i] == _QUOTE else -1
            if i < 0:
                return -1
            i = _skip(b, i, _BLANK)
            if b[i] != _COLON:
                return -1
            i, state = i + 1, _VALUE
        elif b[i] == _OPEN_LIST or b[i] == _OPEN:
            depth, kinds = depth + 1, kinds << one | np.uint64(b[i] == _OPEN)
            if depth > _DEEPEST:
                return -1
            i, state = i + 1, _VALUE_OR_END
        else:
            i, state = _scalar(b, i, ascii_only), _BEHIND_VALUE
            if i < 0:
                return -1


@_inline
def _expected(b: Any, start: int, keys: Any, offsets: Any, guess: int) -> tuple[int, int]:
    """The number of the key at `start` and what is behind it, if it is the one that is expected there: records mostly
    have their keys in one order. No key of ours needs escapes (json_lines.py)."""
    if guess >= offsets.size - 1:
        return -1, start
    first, size = offsets[guess], offsets[guess + 1] - offsets[guess]
    j = 0
    while j < size and b[start + j] == keys[first + j]:
        j += 1
    return (guess, start + size + 1) if j == size and b[start + size] == _QUOTE else (-1, start)


@_inline
def _column(b: Any, start: int, size: int, keys: Any, offsets: Any) -> int:
    """The number of a key, or -1."""
    for k in range(offsets.size - 1):
        if offsets[k + 1] - offsets[k] == size:
            j = 0
            while j < size and b[start + j] == keys[offsets[k] + j]:
                j += 1
            if j == size:
                return k
    return -1


@jit
def _line(b: Any, i: int, keys: Any, offsets: Any, ascii_only: bool, first: Any, last: Any) -> tuple[int, int]:
    """Reads the record at i: behind it, or -1 if it is not understood; and whether it has a key of ours (1), only
    others (0), or no key at all (1). Columns that are not wanted have no place in `first`."""
    i, guess, ours = _skip(b, i, _BLANK), 0, 0
    if b[i] != _OPEN:
        return -1, 0
    i = _skip(b, i + 1, _BLANK)
    more = b[i] != _CLOSE
    if not more:
        ours = 1
    while more:
        start = i + 1
        if b[i] != _QUOTE:
            return -1, 0
        column, i = _expected(b, start, keys, offsets, guess)
        if column < 0:
            i, escaped = _string(b, start, ascii_only)
            if i < 0 or escaped:
                return -1, 0
            column = _column(b, start, i - 1 - start, keys, offsets)
        i = _skip(b, i, _BLANK)
        if b[i] != _COLON:
            return -1, 0
        start = _skip(b, i + 1, _BLANK)
        nested = b[start] == _OPEN_LIST or b[start] == _OPEN
        i = _nested(b, start, ascii_only) if nested else _scalar(b, start, ascii_only)
        if i < 0:
            return -1, 0
        if column >= 0:
            ours, guess = 1, column + 1
            if column < first.size:  # of a key that comes twice the last one counts, also if it is null
                first[column], last[column] = start, start if b[start] == _N else i
        i = _skip(b, i, _BLANK)
        more = b[i] == _COMMA
        if more:
            i = _skip(b, i + 1, _BLANK)
    if b[i] != _CLOSE:
        return -1, 0
    i = _skip(b, i + 1, _BLANK)
    return (i, ours) if b[i] == _NEWLINE else (-1, 0)


@partial(jit, nogil=True)
def scan(
    b: Any, size: int, keys: Any, offsets: Any, all_ours: bool, ascii_only: bool, first: Any, last: Any, doubtful: Any
) -> tuple[int, int, int]:
    """The rows of `size` bytes of whole lines: spans (an empty one is a missing cell), and where a line begins that the
    careful reader has to look at, else -1. How many rows there are, how many records had no column of ours and are
    left out, and how many lines are neither blank nor understood (also those that cannot be records: they are no rows).
    """
    i, row, others, strange = 0, 0, 0, 0
    while i < size:
        first[:, row] = 0
        last[:, row] = 0
        doubtful[row] = -1
        end, ours = _line(b, i, keys, offsets, ascii_only, first[:, row], last[:, row])
        if end >= 0 and (ours or all_ours):
            row += 1
        elif end >= 0:
            others += 1
        else:
            end, brace = _skip(b, i, _STRIPPED), False
            strange += b[end] != _NEWLINE
            while b[end] != _NEWLINE:
                brace |= b[end] == _OPEN
                end += 1
            if brace:  # without one there is no record
                first[:, row] = 0
                last[:, row] = 0
                doubtful[row] = i
                row += 1
        i = end + 1
    return row, others, strange
