"""The order of events by what they mean: a keyed hash of each, for engines whose rows come in any order.

Which events of a user count first must not depend on the order in which a shuffle hands them over (docs/theory/
distributed.md, 6 and trap 4). So the events of a tick are put into an order that they bring with them: that of a
pseudo-random function of what is read of them, whoever wrote it how. With F = SipHash-2-4 of 128 bits, and a key of its
own for each purpose,

    label   F(its canonical text); 0 for what is no label
    event   sum over its labels of F(label), mod 2^64 word by word; F(F(label), weight) where the weight is not 1
    amount  its float, as it stands
    row     F(words of all columns)

Rows of equal hashes mean the same to all doors, so that nothing depends on their order. The hash looks at one row, so
that a row more or less leaves the others in their order: what holds of caps "by arrival" holds here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.bags import whole_weights
from evertally.encode.content_kernels import digests_of_rows, digests_of_texts
from evertally.encode.labels import Coded, as_list, canonical, coded, coded_arrow, is_arrow
from evertally.encode.numbers import floats
from evertally.encode.owners import named
from evertally.encode.plain import UNREADABLE, pairs
from evertally.encode.siphash import siphash
from evertally.encode.spelled import Named, Spelled, places
from evertally.encode.texts import Texts
from evertally.noise import NoiseKey

Words = NDArray[np.uint64]  # two rows, the low and the high word of each entry; 0 and 0 where there is nothing
Orders = NDArray[np.int64]

_COLLECTIONS = ("labels", "items", "values")  # uses whose cells may name several labels


def order_key(key: NoiseKey) -> bytes:
    """The key of the order, and of buckets of users, of a stream: 16 bytes that follow from its own."""
    return key.mac("content order", b"")[:16]


def content_keys(columns: Sequence[tuple[Any, str]], key: bytes) -> NDArray[np.uint64]:
    """Two words for each row: a keyed hash of what the cells of its columns mean.

    Each column comes with its use, as kinds name it (kinds/reads.py), or "users". Lists, arrays of numpy and Arrow,
    texts and numbers of any width: a cell that means the same has the same hash.

    >>> key = b"sixteen bytes..."
    >>> rows = content_keys([(["7", "fig", None], "labels"), (np.array([1, 2, 3], np.int32), "amounts")], key)
    >>> again = content_keys([(np.array([7, ["fig"], []], object), "labels"), ([1.0, "2", 3], "amounts")], key)
    >>> rows.shape, bool((rows == again).all())
    ((3, 2), True)
    """
    _check(key)
    if not columns:
        raise ValueError("a row without columns has no content; rows that nobody reads need no order")
    words = [_meaning(column, use, key) for column, use in columns]
    if len({part.shape[1] for part in words}) > 1:
        raise ValueError("columns of one table have one length")
    return digests_of_rows(np.concatenate(words), _own(key, b"rows")).T


def content_order(columns: Sequence[tuple[Any, str]], key: bytes) -> Orders:
    """The permutation that puts rows into the order of their hashes.

    >>> fruit, key = np.array(["pear", "fig", "lime"]), b"sixteen bytes..."
    >>> order, other = (content_order([(column, "labels")], key) for column in (fruit, fruit[::-1]))
    >>> fruit[order].tolist() == fruit[::-1][other].tolist()
    True
    """
    return sorted_places(content_keys(columns, key))


def sorted_places(keys: NDArray[np.uint64]) -> Orders:
    """The places of keys of two words in their order, low words first.

    >>> sorted_places(np.array([[5, 1], [3, 9], [5, 0]], np.uint64)).tolist()
    [1, 2, 0]
    """
    low, high = keys.T
    # Sorting numbers is five times as fast as sorting places: so the place takes the lowest bits of the word. Rows that
    # then stand beside each other in the wrong order are as rare as keys that agree in all other bits.
    bits = np.uint64(len(keys).bit_length())
    places = np.sort(low >> bits << bits | np.arange(len(keys), dtype=np.uint64)) & (np.uint64(1) << bits) - np.uint64(
        1
    )
    order = places.astype(np.int64)
    low, high = low[order], high[order]
    wrong = (low[1:] < low[:-1]) | ((low[1:] == low[:-1]) & (high[1:] < high[:-1]))
    return order[np.lexsort((high, low))] if wrong.any() else order


def user_buckets(users: Any, key: bytes, count: int) -> NDArray[np.int32]:
    """The bucket of each event's user, one of `count`: by the canonical name, so that 7 and "7" have one cap and not
    two; -1 for an event that has not exactly one user.

    >>> user_buckets(["7", 7, None, 7.5], b"sixteen bytes...", 1).tolist()
    [0, 0, -1, -1]
    """
    _check(key)
    if not 1 <= count < 2**31:
        raise ValueError(f"count is the number of buckets, between 1 and 2^31 - 1; got {count!r}")
    if is_arrow(users) and _is_nested(users):
        raise TypeError("users must hold one user per event; a column of several users for each is refused")
    low, high = _labels(users, _own(key, b"buckets"))
    found: NDArray[np.int32] = (low % np.uint64(count)).astype(np.int32)
    found[(low == 0) & (high == 0)] = -1
    return found


def _check(key: bytes) -> None:
    if len(key) != 16:
        raise ValueError(f"the key of an order has 16 bytes (order_key); got {len(key)}")


def _own(key: bytes, purpose: bytes) -> bytes:
    return siphash(key, b"evertally order: " + purpose, 16)


def _meaning(column: Any, use: str, key: bytes) -> Words:
    if use == "amounts":
        return _amounts(floats(column))
    if use in _COLLECTIONS and not _is_plain(column):
        return _collections(column, key)
    return _labels(column, _own(key, b"labels"))


def _amounts(numbers: NDArray[np.float64]) -> Words:
    """Floats as they stand, both zeros as one; whatever is no number is nothing."""
    here = ~np.isnan(numbers)
    words = np.zeros((2, len(numbers)), np.uint64)
    words[0, here] = (numbers[here] + 0.0).view(np.uint64)
    words[1] = here
    return words


def _labels(column: Any, key: bytes) -> Words:
    """One label of each cell."""
    if isinstance(column, Named):
        return _placed(digests_of_texts(column.texts, key), column.rows)
    if isinstance(column, Spelled):
        column = column.compact()
        return _placed(digests_of_texts(column.names, key), column.codes)
    if is_arrow(column) and _is_dictionary(column):
        # Values that are one label in two spellings may both be in it: they have one hash.
        found = coded_arrow(column)
        if found is not None:
            return _placed(_labels(found[1], key), found[0])
    several = isinstance(column, Coded) or (is_arrow(column) and _is_nested(column))
    read = None if several else named(column)
    if read is not None:
        return _labels(read, key)
    codes, values = coded(column) or (None, as_list(column))
    return _placed(_one_by_one(values, key), codes)


def _placed(words: Words, codes: Orders | None) -> Words:
    """The words of each code, nothing for -1."""
    if codes is None:
        return words
    with_none = np.concatenate([words, np.zeros((2, 1), np.uint64)], axis=1)
    return np.take(with_none, codes, axis=1, mode="wrap")


def _one_by_one(values: Sequence[object], key: bytes) -> Words:
    names = [canonical(value) for value in values]
    here = np.array([name is not None for name in names], np.bool_)
    return _placed(digests_of_texts(Texts.of([name for name in names if name is not None]), key), places(here))


def _is_plain(column: Any) -> bool:
    """Whether no cell of a column can be a collection, by its form alone."""
    if isinstance(column, Named | Spelled):
        return True
    if is_arrow(column):
        return not _is_nested(column)
    return isinstance(column, np.ndarray) and column.dtype != object


def _collections(column: Any, key: bytes) -> Words:
    """Labels, collections of them, and mappings to weights: the sum over all that a cell names."""
    labels = _own(key, b"labels")
    if is_arrow(column) and _is_list(column):
        parts = [np.zeros((2, 0), np.uint64), *(_of_lists(chunk, labels) for chunk in _chunks(column))]
        return np.concatenate(parts, axis=1)
    read = None if is_arrow(column) or isinstance(column, Coded) else named(column)
    if read is not None:
        return _labels(read, labels)
    lengths, values, weights = [], list[object](), list[object]()
    for event in as_list(column):
        items: list[tuple[object, object]] = []
        with suppress(*UNREADABLE):
            items = pairs(event)
        lengths.append(len(items))
        for value, weight in items:
            values.append(value)
            weights.append(weight)
    words = _weighed(_labels(values, labels), weights, _own(key, b"weights"))
    return _summed(words, np.array(lengths, np.int64))


def _weighed(words: Words, weights: list[object], key: bytes) -> Words:
    """What items of some weights give. Doors read a weight as a whole number or as a float: both are hashed."""
    if set(map(type, weights)) == {int} and set(weights) == {1}:
        return words
    amounts, wholes = _amounts(floats(weights)), whole_weights(weights)
    counts = (amounts[1] > 0) & (amounts[0] != 0) & (words != 0).any(axis=0)
    others = digests_of_rows(np.concatenate([words, amounts[:1], wholes[None].view(np.uint64)]), key)
    alone = (wholes == 1) & (amounts[0] == np.float64(1.0).view(np.uint64))
    return np.where(counts, np.where(alone, words, others), np.uint64(0))


def _of_lists(chunk: Any, key: bytes) -> Words:
    import pyarrow.compute as pc

    # `flatten` leaves out what lies under a null, and a null has no length.
    lengths = np.array(pc.list_value_length(chunk).fill_null(0), np.int64)
    return _summed(_labels(chunk.flatten(), key), lengths)


def _summed(words: Words, lengths: Orders) -> Words:
    """Sums over the next lengths[i] entries, mod 2^64."""
    ends = np.cumsum(lengths)
    sums = np.concatenate([np.zeros((2, 1), np.uint64), np.cumsum(words, axis=1, dtype=np.uint64)], axis=1)
    return np.asarray(sums[:, ends] - sums[:, ends - lengths])


def _chunks(column: Any) -> list[Any]:
    import pyarrow as pa

    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def _is_nested(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_nested(column.type)) or (
        _is_dictionary(column) and pa.types.is_nested(column.type.value_type)
    )


def _is_dictionary(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(column.type))


def _is_list(column: Any) -> bool:
    import pyarrow as pa

    kinds = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    return any(kind(column.type) for kind in kinds)
