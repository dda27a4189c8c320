"""Whose events are whose: a column of users as names, each once, and a number for each event.

`canonical` says what a user is called, value by value. Long columns of texts and whole numbers are read in one piece,
where every value is known to be a name as it stands; whatever is not goes the slow way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import Codes, as_list, canonical, coded, coded_arrow, is_arrow
from evertally.encode.name_index import distinct, replaced, taken
from evertally.encode.name_kernels import first_seen, kernel, rank_codes, write_decimals
from evertally.encode.plain import only
from evertally.encode.spelled import Named, Spelled, places
from evertally.encode.texts import Texts

_FEW = 256  # events; so few are read one by one, and no compiler is needed


def owners(users: Any) -> tuple[Codes, Texts]:
    """Codes into distinct canonical user names, in the order of their first events; -1 for events without a user."""
    read = named(users)
    if isinstance(read, Named):
        read = read.compact()
    codes, names = _one_by_one(users) if read is None else (read.codes, read.names)
    # A column may come with a dictionary in any order, and with users in it who have no event.
    codes, order = codes.copy(), np.empty(len(names), np.int64)
    count = kernel(first_seen, len(codes))(codes, np.full(len(names), -1, np.int64), order)
    if count < len(names) or (order != np.arange(count)).any():
        names = taken(names.data, names.offsets[order[:count]], names.lengths[order[:count]])
    return codes, names


def named(users: Any) -> Named | Spelled | None:
    """A column of texts or whole numbers as the names that they are, read in one piece; None for any other column, and
    for short ones."""
    if isinstance(users, Named):
        return users
    if isinstance(users, Spelled):
        return users.compact()
    if len(users) < _FEW:
        return None
    return _of_arrow(users) if is_arrow(users) else _of_values(users)


def _one_by_one(users: Any) -> tuple[Codes, Texts]:
    coded_users = coded(users)
    if coded_users is None:
        if is_arrow(users) and _is_nested(users):
            raise TypeError("users must hold one user per event; a column of several users for each is refused")
        values = as_list(users)
        coded_users = np.arange(len(values)), values
    codes, values = coded_users
    number: dict[str, int] = {}
    recoded = np.full(len(values) + 1, -1, np.int64)  # the last entry is where code -1 points
    for i, value in enumerate(values):
        name = canonical(value)
        if name is not None:
            recoded[i] = number.setdefault(name, len(number))
    return recoded[codes], Texts.of(list(number))


def _of_arrow(users: Any) -> Named | Spelled | None:
    import pyarrow as pa

    if pa.types.is_dictionary(users.type):
        encoded = coded_arrow(users)
        texts = None if encoded is None or encoded[1].null_count else Texts.raw(encoded[1])
        if encoded is None or texts is None:
            return None
        codes, names = distinct(_spelled(texts))
        return Spelled(np.append(codes, -1)[encoded[0]], names)
    if isinstance(users, pa.ChunkedArray):
        users = users.combine_chunks()
        if isinstance(users, pa.ChunkedArray):  # in some versions
            return None
    rows = None
    if users.null_count:
        rows = places(users.is_valid().to_numpy(zero_copy_only=False))
        users = users.drop_null()
    if pa.types.is_integer(users.type) and not pa.types.is_uint64(users.type):
        return Named(decimals(users.to_numpy(zero_copy_only=False)), rows)
    texts = Texts.raw(users)
    return None if texts is None else Named(_spelled(texts), rows)


def _spelled(texts: Texts) -> Texts:
    """Texts as labels: the odd ones are looked at one by one, and no other is."""
    odd = texts.odd()
    if not odd.size:
        return texts
    return replaced(texts, odd, [str(canonical(name)) for name in texts.take(odd).names()])


def _of_values(users: Any) -> Named | None:
    if type(users) is np.ndarray and users.dtype.kind in "iu" and users.dtype != np.uint64:
        return Named(decimals(users))
    if type(users) is np.ndarray and users.dtype.kind not in "OU":
        return None
    values = as_list(users)
    rows = None
    if not only(values, str):
        if not only(values, str, type(None)):
            return None
        rows = places(np.fromiter((value is not None for value in values), np.bool_, len(values)))
        values = [value for value in values if value is not None]
    texts: list[str] = values  # type: ignore[assignment]  # by `only`
    odd = [] if "".join(texts).isascii() else [i for i, text in enumerate(texts) if not text.isascii()]
    labels = [str(canonical(texts[i])) for i in odd]
    for i in odd:
        texts[i] = ""
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
    names = Texts(np.frombuffer("".join(texts).encode("ascii"), np.uint8), offsets)
    return Named(replaced(names, np.array(odd), labels) if odd else names, rows)


def decimals(values: NDArray[np.integer[Any]]) -> Texts:
    """Whole numbers of 64 bits in decimal.

    >>> decimals(np.array([7, -12, 0, -(2**63)])).list()
    ['7', '-12', '0', '-9223372036854775808']
    """
    data, offsets = np.empty(20 * len(values), np.uint8), np.empty(len(values) + 1, np.int64)
    kernel(write_decimals, len(values))(np.array(values, np.int64), offsets, data)
    return Texts(data[: offsets[-1]].copy(), offsets)


def _is_nested(users: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_nested(users.type))


def rank_within_code(codes: Codes, count: int) -> Codes:
    """For each entry, how many earlier entries have the same code; codes are below `count`."""
    ranks = np.zeros(len(codes), np.int64)
    kernel(rank_codes, len(codes))(codes, np.zeros(count, np.int64), ranks)
    return ranks
