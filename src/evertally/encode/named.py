"""Records of several named parts, and columns of them put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evertally.encode.frames import Table
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

    >>> from evertally.encode.frames import table
    >>> visits = np.array([("f", 3), ("m", 4)], dtype=[("sex", "U1"), ("ward", int)])
    >>> records(table(visits), [1, None, 0])
    [(3, None, 'f'), (4, None, 'm')]
    """
    columns = [[None] * len(found) if place is None else as_list(found.read(place)) for place in places]
    return list(zip(*columns, strict=True)) if columns else [()] * len(found)


def combined(found: Table, places: Sequence[int | None]) -> Any:
    """The rows of a table as tuples of some of its columns, different ones once: what they mean is looked up for each
    of these alone."""
    columns = [None if place is None else coded(found.read(place)) for place in places]
    sizes = [0 if column is None else len(column[1]) + 1 for column in columns]
    total = 1
    for size in sizes:
        total *= max(1, size)
    if any(column is None for column in columns) or total >= 2**62:
        return records(found, places)
    numbers = np.zeros(len(found), dtype=np.int64)
    for (codes, _), size in ((column, size) for column, size in zip(columns, sizes, strict=True) if column):
        numbers = numbers * size + codes + 1  # 0: null
    used, codes = np.unique(numbers, return_inverse=True)
    values: list[object] = []
    for number in used.tolist():
        parts: list[object] = []
        for column, size in zip(reversed(columns), reversed(sizes), strict=True):
            number, code = divmod(number, size)
            parts.append(column[1][code - 1] if column and code else None)
        values.append(tuple(reversed(parts)))
    return Coded(codes.astype(np.int64, copy=False), values)


def _shape(wanted: Sequence[str], optional: Sequence[str]) -> str:
    more = f" (and, if you like, {', '.join(optional)})" if optional else ""
    return (
        f"a table of events has the columns {', '.join(wanted)}{more}, each once and no others: they are read by their "
        "names. Choose or rename columns first"
    )
