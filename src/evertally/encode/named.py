"""Records of several named parts, columns of them put together, and counts by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from evertally.encode.frames import Table, column, loaded, table
from evertally.encode.imported import imported
from evertally.encode.labels import Coded, as_list, coded


def parts_by_name(record: Any, names: tuple[str, ...]) -> list[Any] | None:
    """The parts of a record in the order of `names`: by name of a dictionary or a named tuple that has just these
    names, as they stand of any other tuple or list. None for whatever else.

    >>> from collections import namedtuple
    >>> visit = namedtuple("visit", ["ward", "sex"])
    >>> parts_by_name(visit("north", "f"), ("sex", "ward")), parts_by_name({"ward": "north"}, ("sex", "ward"))
    (['f', 'north'], None)
    """
    kind = type(record)
    if issubclass(kind, dict):
        return [dict.get(record, name) for name in names] if set(dict.keys(record)) == set(names) else None
    for own in (tuple, list):  # by their own code: what a subclass iterates over may be something else, or endless
        if issubclass(kind, own):
            parts = list(own.__iter__(record))
            fields = getattr(kind, "_fields", None)
            if type(fields) is not tuple or len(parts) != len(fields) or sorted(map(str, fields)) != sorted(names):
                return parts
            return [parts[fields.index(name)] for name in names]
    return None


def columns_of(found: Table, wanted: Sequence[str], optional: Sequence[str] = ()) -> list[int | None]:
    """The places of columns by their names, in the order wanted; None for an optional one that is not there. Refuses a
    table that has others, or one of them twice."""
    places: dict[Any, int] = {}
    for place, name in enumerate(found.names):
        if not isinstance(name, str) or name not in (*wanted, *optional) or name in places:
            raise TypeError(_shape(wanted, optional))
        places[name] = place
    if not set(wanted) <= set(places):
        raise TypeError(_shape(wanted, optional))
    return [places.get(name) for name in (*wanted, *optional)]


def records(found: Table, places: Sequence[int | None]) -> list[tuple[Any, ...]]:
    """The rows of a table as tuples of the columns at these places, None for a column that is not there.

    >>> visits = np.array([("f", 3), ("m", 4)], dtype=[("sex", "U1"), ("ward", int)])
    >>> records(table(visits), [1, None, 0])
    [(3, None, 'f'), (4, None, 'm')]
    """
    columns = [[None] * len(found) if place is None else as_list(found.read(place)) for place in places]
    return list(zip(*columns, strict=True)) if columns else [()] * len(found)


def counts_by_label(x: Any) -> Any:
    """A histogram of another library as a mapping: a Series by its index, or a frame of labels and counts; anything
    else as it is."""
    x, pandas = loaded(x), imported("pandas")
    if pandas is not None and isinstance(x, pandas.Series):
        if isinstance(x.index, pandas.RangeIndex) or not x.index.is_unique:
            raise TypeError("a Series of counts has labels for its index, each once; take series.value_counts()")
        return dict(zip(as_list(column(x.index)), as_list(column(x)), strict=True))
    found = table(x)
    if found is None:
        return x
    counts = [place for place, name in enumerate(found.names) if name in ("count", "counts")]
    if len(found.names) != 2 or len(counts) != 1:
        raise TypeError('a histogram in a frame is a column of labels and one that is called "count", and no others')
    labels = as_list(found.read(1 - counts[0]))
    numbers = as_list(found.read(counts[0]))
    made = dict(zip(labels, numbers, strict=True))
    if len(made) < len(labels):
        raise TypeError("this frame has a label in several rows; add up their counts first")
    return made


def combined(found: Table, places: Sequence[int | None]) -> Any:
    """The rows of a table as tuples of some of its columns, different ones once: what they mean is looked up for each
    of these alone."""
    parts = [coded(found.read(place)) for place in places if place is not None]
    plain = [part for part in parts if part is not None]
    sizes = [len(values) + 1 for _, values in plain]
    if len(plain) < len(places) or math.prod(sizes) >= 2**62:  # collections in a column, or too many combinations
        return records(found, places)
    numbers = np.zeros(len(found), dtype=np.int64)
    for (codes, _), size in zip(plain, sizes, strict=True):
        numbers = numbers * size + codes + 1  # 0: null
    used, codes = np.unique(numbers, return_inverse=True)
    columns: list[list[object]] = []
    for (_, values), size in zip(reversed(plain), reversed(sizes), strict=True):
        used, cells = np.divmod(used, size)
        columns.insert(0, [values[cell - 1] if cell else None for cell in cells.tolist()])
    return Coded(codes.astype(np.int64, copy=False), list(zip(*columns, strict=True)))


def _shape(wanted: Sequence[str], optional: Sequence[str]) -> str:
    more = f" (and, if you like, {', '.join(optional)})" if optional else ""
    return (
        f"a table of events has the columns {', '.join(wanted)}{more}, each once and no others: they are read by their "
        "names. Choose or rename columns first"
    )
