"""Columns of collections and mappings, laid out flat: how many items each event has, all items behind each other, what
each of them weighs. What an item means, and how much of it counts, the door decides.

Only columns whose entries are exactly of Python's own types, or Arrow's, are laid out: what else an event may be (an
object that lies about its length, a subclass) is looked at one by one (encode/plain.py), and so is what cannot be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.bag_kernels import keep_last
from evertally.encode.labels import Codes, as_list, coded_arrow, is_arrow
from evertally.encode.lists import small_numbers
from evertally.encode.name_kernels import kernel
from evertally.encode.plain import UNREADABLE, only, whole
from evertally.secret import Secret

LARGEST_WEIGHT = 2**62  # of an item, as it is read; far beyond what any door lets through


@dataclass(frozen=True, repr=False)
class Bag(Secret):
    """Some events: event i has the next lengths[i] of the values, a column. Without weights each weighs 1. Secret."""

    lengths: Codes
    values: Any
    weights: Codes | None = None


def bags(events: Any) -> list[Bag] | None:
    """A column of events in flat pieces; None where they must be looked at one by one.

    >>> (bag,) = bags([["fig", "pear"], {"fig": 5}, "lime", None])
    >>> bag.lengths.tolist(), bag.values, bag.weights.tolist()
    ([2, 1, 1, 0], ['fig', 'pear', 'fig', 'lime'], [1, 1, 5, 1])
    """
    try:
        return _arrow_bags(events) if is_arrow(events) else _python_bags(as_list(events))
    except UNREADABLE:
        return None


def _python_bags(column: list[Any]) -> list[Bag] | None:
    if only(column, list, tuple, set, frozenset):  # collections of items of weight 1
        return [Bag(_lengths(column), list(chain.from_iterable(column)))]
    if only(column, dict):
        weights = whole_weights(list(chain.from_iterable(map(dict.values, column))))
        return [Bag(_lengths(column), list(chain.from_iterable(column)), weights)]
    if not only(column, list, tuple, set, frozenset, dict, str, int, type(None)):
        return None
    lengths, values, counts = [], list[Any](), list[object]()
    for event in column:
        before, kind = len(values), type(event)
        if kind is dict:
            values += event
            counts += event.values()
        elif kind is str or kind is int:
            values.append(event)
            counts.append(1)
        elif event is not None:
            values += event
            counts += [1] * len(event)
        lengths.append(len(values) - before)
    return [Bag(np.array(lengths, dtype=np.int64), values, whole_weights(counts))]


def _lengths(column: list[Any]) -> Codes:
    return np.fromiter(map(len, column), np.int64, len(column))


def _arrow_bags(column: Any) -> list[Bag] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if pa.types.is_map(column.type):
        made = [_of_maps(chunk) for chunk in chunks]
        return None if None in made else [bag for bag in made if bag is not None]
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(kind(column.type) for kind in kinds):
        return None
    # `flatten` leaves out what lies under a null, and a null has no length.
    # Copied: memory of Arrow's cannot be written to, is another type for the compiler, and would be compiled once more.
    return [Bag(np.array(pc.list_value_length(chunk).fill_null(0), np.int64), chunk.flatten()) for chunk in chunks]


def _of_maps(chunk: Any) -> Bag | None:
    """Arrow's maps. Of equal keys of one event the last counts, as in a dictionary."""
    import pyarrow as pa

    offsets = np.asarray(chunk.offsets, np.int64)
    lengths, first, last = np.diff(offsets), int(offsets[0]), int(offsets[-1])
    if chunk.null_count:
        there = np.asarray(chunk.is_valid())
        if lengths[~there].any():  # something lies under a null, and is no item
            return None
    keys, values = chunk.keys[first:last], chunk.items[first:last]
    texts = keys.type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    if keys.null_count or not (texts or pa.types.is_integer(keys.type)):
        return None
    encoded = coded_arrow(keys)
    assert encoded is not None
    encoded[1].validate(full=True)  # an event with a key that is no text is unreadable as a whole
    weights = whole_weights(values)
    kernel(keep_last, len(weights))(lengths, encoded[0], np.full(len(encoded[1]), -1, np.int64), weights)
    return Bag(lengths, keys, weights)


def whole_weights(values: Any) -> NDArray[np.int64]:
    """What `whole` makes of each entry of a column.

    >>> whole_weights([2, -1]).tolist(), whole_weights([2.9, float("nan")]).tolist()
    ([2, -1], [2, 0])
    """
    if is_arrow(values):
        import pyarrow as pa

        kind = values.type
        if pa.types.is_integer(kind) and kind != pa.uint64():
            numbers = np.array(values.cast(pa.int64()).fill_null(0), dtype=np.int64)
            return np.clip(numbers, -LARGEST_WEIGHT, LARGEST_WEIGHT)
        if kind in (pa.float32(), pa.float64()):
            return _cut_towards_zero(np.asarray(values.cast(pa.float64()).fill_null(0.0)))
        values = as_list(values)
    small = small_numbers(values)
    if small is not None:
        return small
    if only(values, int):
        try:
            return np.clip(np.array(values, dtype=np.int64), -LARGEST_WEIGHT, LARGEST_WEIGHT)
        except OverflowError:
            pass
    elif only(values, float):
        return _cut_towards_zero(np.array(values, dtype=np.float64))
    return np.array([whole(value, LARGEST_WEIGHT) for value in values], dtype=np.int64)


def _cut_towards_zero(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    with np.errstate(all="ignore"):  # a signalling NaN must not be heard
        finite = np.where(np.isfinite(numbers), numbers, 0.0)
    return np.clip(np.trunc(finite), -LARGEST_WEIGHT, LARGEST_WEIGHT).astype(np.int64)
