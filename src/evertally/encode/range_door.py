"""Columns that have nothing but their numbers for names: any number of them, and no text for one before it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np

from evertally.encode.door import CategoryDoor, Row, declared_labels
from evertally.encode.labels import Codes, is_arrow, label_bytes, require_column
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError

MOST_COLUMNS = 2**32  # an address of noise has room for so many


class NumberedLabels(Sequence[str]):
    """The labels "0" to "numbers - 1", and perhaps one more for all others: each is made when it is asked for.

    >>> labels = NumberedLabels(3, "rest")
    >>> list(labels), labels.get("2"), labels.get("02"), labels.get("rest"), labels == ("0", "1", "2", "rest")
    (['0', '1', '2', 'rest'], 2, None, 3, True)
    """

    def __init__(self, numbers: int, other: str | None = None) -> None:
        self.numbers, self.other = numbers, other

    def __len__(self) -> int:
        return self.numbers + (self.other is not None)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...

    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(self[i] for i in range(len(self))[place])
        number = range(len(self))[place]
        return self.other if number == self.numbers and self.other is not None else str(number)

    def __iter__(self) -> Iterator[str]:
        yield from map(str, range(self.numbers))
        if self.other is not None:
            yield self.other

    def get(self, label: Any) -> int | None:
        """The place of a label in its one spelling; None if it is not among them."""
        if type(label) is not str:
            return None
        if label == self.other:
            return self.numbers
        # As `str` writes it: no sign, no zero in front, no digits of another script, and not too long to be read.
        short = len(label) <= len(str(self.numbers)) and label.isascii() and label.isdigit()
        number = int(label) if short else self.numbers
        return number if number < self.numbers and str(number) == label else None

    def __contains__(self, label: object) -> bool:
        return self.get(label) is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedLabels):
            return (self.numbers, self.other) == (other.numbers, other.other)
        return (
            isinstance(other, tuple)
            and len(other) == len(self)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]  # it would have to be that of a tuple


class RangeDoor(CategoryDoor):
    """A `CategoryDoor` for the columns 0 to n - 1. The same rows; what it costs does not grow with n before a row is
    asked for, and plain numbers are counted without a look at each.

    >>> door = RangeDoor(range(10**9), order=lambda message: message)
    >>> door.width, door.column("7"), door.column(7.0), door.column("07"), door.column(10**9)
    (1000000000, 7, 7, None, None)
    >>> few = RangeDoor(range(3), other="rest", order=lambda message: message)
    >>> few.totals([0, 2, 2, -1, 3, None, "1", "one"], tick=1).tolist()
    [1, 1, 2, 3]
    """

    names: NumberedLabels

    def _declare(self, categories: Iterable[object], other: object | None) -> None:
        assert isinstance(categories, range), "columns without names are counted from 0"
        assert categories == range(len(categories)), "columns without names are counted from 0"
        count = len(categories)
        rest = None if other is None else declared_labels(["0"], other)[-1]
        if rest is not None and NumberedLabels(count).get(rest) is not None:
            raise ConfigurationError(f"category {rest!r} is declared twice (after Unicode normalisation, with `other`)")
        self.names = NumberedLabels(count, rest)
        if len(self.names) > MOST_COLUMNS:
            raise ConfigurationError(f"there are at most {MOST_COLUMNS} columns, `other` included")
        self._other = count if rest is not None else -1

    @cached_property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.names)

    @cached_property
    def _names(self) -> Texts:  # type: ignore[override]
        return Texts.of(self.labels)

    def totals(self, events: Any, tick: int) -> Row:
        require_column(events, "events")
        numbers = _plain_numbers(events)
        if numbers is None:
            return super().totals(events, tick)
        count = self.names.numbers
        inside = (numbers >= 0) & (numbers < count)
        row: Row = np.bincount(numbers[inside].astype(np.int64), minlength=self.width)
        if self._other >= 0:
            row[self._other] = inside.size - np.count_nonzero(inside)
        return row

    def places(self, events: Any) -> Codes | None:
        numbers = None if is_arrow(events) and events.null_count else _plain_numbers(events)
        if numbers is None:
            return super().places(events)
        inside = (numbers >= 0) & (numbers < self.names.numbers)
        found = np.full(numbers.shape, self._other, np.int64)
        found[inside] = numbers[inside]
        return found

    def _place(self, label: str) -> int | None:
        return self.names.get(label)

    def _label_bytes(self, item: int) -> bytes:
        return label_bytes(self.names[item])


def _plain_numbers(events: Any) -> Codes | None:
    """Events that are whole numbers, all of them but nulls, as an array; None for others."""
    if type(events) is np.ndarray:
        return events if events.dtype.kind in "iu" else None
    if is_arrow(events):
        import pyarrow as pa

        return events.drop_null().to_numpy(zero_copy_only=False) if pa.types.is_integer(events.type) else None
    if type(events) is not list or set(map(type, events)) != {int}:
        return None
    try:
        return np.array(events, dtype=np.int64)
    except OverflowError:
        return None
