"""Input by column: what mechanisms with one number for each column or category take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evertally.counting.inputs import as_integers
from evertally.counting.mechanism import Mechanism
from evertally.counting.process import IntArray
from evertally.encode import CategoryDoor
from evertally.errors import ConfigurationError

Columns = int | Sequence[str]


def column_count(columns: Any, other: str | None = None) -> int:
    """How many columns there are, with the one for undeclared labels; refuses what is neither a number nor a list."""
    if isinstance(columns, bool) or not isinstance(columns, int | Sequence):
        raise ConfigurationError(f"columns are a number or a list of names, not {type(columns).__name__}")
    # Counted one by one, as the door reads them: a list of the caller's own making may say another length.
    return (int(columns) if isinstance(columns, int) else sum(1 for _ in columns)) + (other is not None)


class ColumnInput(Mechanism):
    """Rows, mappings from labels and raw events become one integer for each column. Not used directly."""

    def _open_door(
        self, columns: Columns, other: str | None, max_per_event: int, max_weight: int, **options: Any
    ) -> Columns:
        """Makes the door and the labels; returns the columns in the form that a snapshot keeps."""
        if isinstance(columns, int) and not 1 <= columns <= 2**31:
            raise ConfigurationError(f"columns must be a list of names or a number from 1 to 2^31; got {columns!r}")
        names = range(columns) if isinstance(columns, int) else columns
        self._door = CategoryDoor(names, other, max_per_event, max_weight, order=self._rank, **options)
        self.columns: tuple[str, ...] = self._door.labels
        return columns if isinstance(columns, int) else list(self.columns[: len(names)])

    def _rank(self, message: bytes) -> bytes:
        return self._source.order(message)

    def _row(self, x: Any) -> IntArray:
        if isinstance(x, Mapping):
            return self._row_of_mapping(x)
        row = as_integers(x)
        if row.shape != (self._columns,):
            raise TypeError(f"step takes {self._columns} integers, one for each column, not shape {row.shape}")
        return row

    def _row_of_mapping(self, totals: Mapping[Any, Any]) -> IntArray:
        row = [0] * self._columns
        pairs = list(totals.items())  # read once: a mapping of the caller's own making may say something else later
        numbers = as_integers([number for _, number in pairs])
        for (label, _), number in zip(pairs, numbers.tolist(), strict=True):
            # An undeclared label is content, not a mistake in the call: it goes to `other` or nowhere, silently.
            column = self._door.column(label)
            if column is not None:
                row[column] += number
        return as_integers([max(-self._tick_limit, min(self._tick_limit, total)) for total in row])

    def _event_row(self, events: Any, tick: int) -> IntArray:
        return self._door.totals(events, tick)

    def _labels(self) -> list[str] | None:
        return list(self.columns)
