"""Totals that come with labels: put where their labels say, or refused before a tick is used; never by their place.

The columns of a frame (and the fields of a structured array or a named tuple) are the shape of a call, which an analyst
wrote: one that was not declared is refused, unless there is an `other` for it. The index of a Series is content, as the
keys of a mapping are: `frame.value_counts()` has whatever occurred. So undeclared labels there go to `other` or
nowhere, silently; an error would say that they occurred. What is not there counts 0, in both, and what is there twice
in an index adds up. In a frame, columns that have numbers for names must all be there: a number is nobody's name for a
thing, and half of them is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from evertally.contract.inputs import FAR, IntArray, as_integers
from evertally.encode.frames import Table, column, loaded, table, unnested
from evertally.encode.imported import imported
from evertally.encode.labels import as_list, canonical
from evertally.encode.places import check_place, has_labels
from evertally.encode.range_door import NumberedLabels

_WHOLE = re.compile(r"-?\d+")


class Places(Protocol):
    """Where the number of a name is."""

    def get(self, name: Any, /) -> int | None:
        """Its place, None for what is not a name."""


@dataclass(frozen=True)
class Labels:
    """What the numbers of a tick are called, in their order.

    `names`: in their one spelling, tuples of them where a name has several parts, called `levels`. `other`: the place
    of whatever is not among them. `numbered`: columns have nothing but their numbers for names.
    """

    names: Sequence[Any]
    place: Places
    other: int | None = None
    levels: tuple[str, ...] = ()
    numbered: bool = False

    @classmethod
    def of(
        cls, names: Sequence[Any], other: int | None = None, levels: Sequence[str] = (), numbered: bool = False
    ) -> Labels:
        if isinstance(names, NumberedLabels):
            return cls(names, names, other, tuple(levels), numbered)
        return cls(tuple(names), {name: i for i, name in enumerate(names)}, other, tuple(levels), numbered)

    def spelled(self, label: Any) -> Any:
        """A label as it is among the names; None for what is no label."""
        if not self.levels:
            return canonical(label)
        parts = tuple(map(canonical, label if isinstance(label, tuple) else (label,)))
        return None if None in parts else parts

    def declared(self, labels: Sequence[Any], levels: Sequence[Any] | None) -> list[int | None]:
        """The place of each label, None for those that were not declared."""
        order = self._order(levels)
        turned = labels if order is None else [tuple(label[i] for i in order) for label in labels]
        return [None if (name := self.spelled(label)) is None else self.place.get(name) for label in turned]

    def _order(self, levels: Sequence[Any] | None) -> list[int] | None:
        """Which part of a label comes first, second, ...; None: they are in order."""
        if levels is None:
            return None
        if len(levels) != len(self.levels):
            raise TypeError(
                f"labels have {max(1, len(self.levels))} parts here, and this index has {len(levels)} levels"
            )
        if set(levels) != set(self.levels):
            raise TypeError(
                f"labels of several parts are read by the names of their levels, which are {', '.join(self.levels)}"
            )
        return [list(levels).index(level) for level in self.levels]

    def called(self) -> str:
        """The names in words, the first of them."""
        shown = ["/".join(name) if isinstance(name, tuple) else name for name in self.names[:4]]
        return ", ".join(map(repr, shown)) + (", ..." if len(self.names) > 4 else "")


def handed_over(x: Any) -> Any:
    """`loaded`, of totals with labels: refused where labels would be lost, as the index of a Series over Arrow is. A
    column of structures is the table of their fields."""
    found = unnested(loaded(x))
    if found is not x and table(found) is None and has_labels(x):
        raise TypeError(f"the labels of a {type(x).__name__} cannot be read; hand over a dictionary, or an array")
    return found


def row_by_label(x: Any, labels: Labels) -> dict[int, int] | None:
    """The numbers of one tick by their places, added up in Python's own integers; None for what has no labels."""
    pandas = imported("pandas")
    if isinstance(x, Mapping):
        pairs = list(x.items())  # read once: a mapping of the caller's own making may say something else later
        return _added([label for label, _ in pairs], [number for _, number in pairs], None, labels)
    if pandas is not None and isinstance(x, pandas.Series):
        _check_index(x.index, labels, pandas)
        levels = list(x.index.names) if isinstance(x.index, pandas.MultiIndex) else None
        return _added(as_list(column(x.index)), _integers(column(x)), levels, labels)
    if isinstance(x, np.void) and x.dtype.names is not None:
        x = np.array([x], dtype=x.dtype)
    found = _of_named_tuple(x) if isinstance(x, tuple) else table(x)
    if found is None:
        check_place(x)
        return None
    if len(found) != 1:
        raise TypeError("step takes one tick, a frame with one row; many ticks go to run")
    row: dict[int, int] = {}
    for i, place in _columns(found, labels):
        row[place] = row.get(place, 0) + int(_integers(found.read(i))[0])
    return row


def rows_by_label(x: Any, labels: Labels) -> IntArray | None:
    """Many ticks' numbers, a row for each and a column for each label; None for what has no labels."""
    found = table(x)
    if found is None:
        return None
    rows = np.zeros((len(found), len(labels.names)), dtype=np.int64)
    several: dict[int, list[IntArray]] = {}
    for i, place in _columns(found, labels):
        several.setdefault(place, []).append(_integers(found.read(i)))
    for place, columns in several.items():
        if len(columns) == 1:
            rows[:, place] = columns[0]
        else:  # all that goes to `other`, in Python's own integers: sums of 64 bits wrap silently
            exact = np.sum([each.astype(object) for each in columns], axis=0)
            rows[:, place] = np.clip(exact, -FAR, FAR).astype(np.int64)
    return rows


def time_column(found: Table, labels: Labels | None) -> int | None:
    """The place of the one column of dates or times that is no label: it says when the ticks were. None without any."""
    times = [i for i in found.times if labels is None or labels.declared([found.names[i]], found.levels) == [None]]
    return times[0] if len(times) == 1 else None


def _columns(found: Table, labels: Labels) -> list[tuple[int, int]]:
    """For each column of a table that counts, its place there and among the labels."""
    time = time_column(found, labels)
    given = [i for i in range(len(found.names)) if i != time]
    places = labels.declared([found.names[i] for i in given], found.levels)
    known = [place for place in places if place is not None]
    if len(set(known)) < len(known):
        raise TypeError("two columns have the same name (in one spelling); add them up or drop one of them")
    if labels.numbered and len(known) < len(labels.names):
        raise TypeError(
            f"these columns have no names but 0 to {len(labels.names) - 1}, and a frame has all of these; rename its "
            "columns, declare names (columns=[...]), or hand over an array: frame.to_numpy()"
        )
    nameless = any(labels.spelled(found.names[i]) is None for i in given)
    if nameless or (None in places and labels.other is None):
        raise TypeError(
            f"a frame has a column for each label that was declared ({labels.called()}); this one has others. Choose "
            "the columns that are meant, or declare other=. Times of ticks are a frame's index in pandas, and one "
            "column of dates or times elsewhere"
        )
    put = [(i, labels.other if place is None else place) for i, place in zip(given, places, strict=True)]
    return [(i, place) for i, place in put if place is not None]


def _added(given: Sequence[Any], numbers: Any, levels: Any, labels: Labels) -> dict[int, int]:
    row: dict[int, int] = {}
    places = labels.declared(given, levels)
    for label, place, number in zip(given, places, as_integers(numbers).tolist(), strict=True):
        if place is None and labels.other is not None and labels.spelled(label) is not None:
            place = labels.other
        # An undeclared label is content, not a mistake in the call: it goes to `other` or nowhere, silently.
        if place is not None:
            row[place] = row.get(place, 0) + number
    return row


def _check_index(index: Any, labels: Labels, pandas: Any) -> None:
    """Refuses an index that can only be meant by position, by its type, its name and its levels alone. Which labels
    occur in it, and how many and how often, is content: one record more may change it."""
    if isinstance(index, pandas.RangeIndex) and index.name is None:
        raise TypeError(
            "a Series is read by its index, and this one just counts from 0, as pandas makes it; set it to the labels "
            f"({labels.called()}), or hand over an array: series.to_numpy()"
        )
    if index.nlevels != max(1, len(labels.levels)):
        raise TypeError(f"labels have {max(1, len(labels.levels))} parts here, this index has {index.nlevels} levels")
    dtype = index.categories.dtype if isinstance(index, pandas.CategoricalIndex) else index.dtype
    kind = getattr(dtype, "kind", "O")
    numbers = kind in "iuf" and any(isinstance(name, str) and _WHOLE.fullmatch(name) for name in labels.names)
    if not numbers and (kind in "iufcmM" or isinstance(dtype, pandas.PeriodDtype | pandas.IntervalDtype)):
        raise TypeError(
            f"a Series is read by its index, which holds numbers or times here; the labels are {labels.called()}"
        )


def _of_named_tuple(x: Any) -> Table | None:
    names = getattr(type(x), "_fields", None)
    if not isinstance(names, tuple) or len(names) != len(x):
        return None
    return Table(names, lambda i: [x[i]], 1)


def _integers(values: Any) -> IntArray:
    if getattr(values, "null_count", 0):
        raise TypeError("some totals are missing; say what is meant there, e.g. frame.fillna(0)")
    numbers = as_integers(values)
    if numbers.ndim != 1:
        raise TypeError("a column holds one number for each tick; this one holds arrays")
    return numbers


def one_column(x: Any) -> Any:
    """The only column of a frame, one of times aside, or a column of any library."""
    found = table(x)
    if found is None:
        return column(x)
    time = time_column(found, None)
    given = [i for i in range(len(found.names)) if i != time]
    if len(given) != 1:
        raise TypeError("one number is counted at each tick: choose the column that holds it, frame[name]")
    return _integers(found.read(given[0]))


def many_by_label(x: Any, row: Callable[[Any], IntArray], labels: Labels) -> IntArray | None:
    """Ticks with labels: a frame, or a list of which some have labels, each read as `step` does; None for others."""
    found = rows_by_label(x, labels)
    x = column(x) if found is None else x
    if found is not None or not isinstance(x, list | tuple) or all(map(_has_none, set(map(type, x)))):
        return found
    return np.stack([row(one) for one in x])


def filled(row: dict[int, int], width: int, limit: int) -> IntArray:
    """Numbers by their places as a row, cut to the limit of a tick."""
    cut = np.zeros(width, dtype=np.int64)
    for place, number in row.items():
        cut[place] = max(-limit, min(limit, number))
    return cut


def _has_none(kind: type) -> bool:
    """Whether objects of a type have no labels: numbers, plain lists and arrays."""
    return kind is tuple or issubclass(kind, int | float | list | np.ndarray | np.number | np.bool_)
