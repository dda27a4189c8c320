"""Tables of any library as batches of columns. What a cell means depends on that cell alone, whatever its neighbours
are: a column that was read otherwise because of one odd cell would let that cell change all the others."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evertally.encode import frames
from evertally.encode.frames import check_same_index
from evertally.encode.plain import UNREADABLE, finite, pairs, plain, real
from evertally.errors import ConfigurationError
from evertally.runtime.clock import microseconds, written
from evertally.runtime.input.arrow_columns import clean
from evertally.runtime.input.batches import encode
from evertally.runtime.input.sources import ROWS, Batch, InputFile
from evertally.runtime.input.tick_events import length
from evertally.runtime.input.times import Instants, Valid, instants
from evertally.runtime.spec import StreamSpec
from evertally.secret import Secret

Library = frames.Library | Literal["dict"]

_NUMBERS = "?" + np.typecodes["AllInteger"] + "efd"  # not times; of long doubles Arrow knows nothing
_TOO_LONG = 10**400  # has more digits than a label may have, and is above every bound


class TableInput(Secret):
    """A table in memory, or a file of events, and the library that it came from."""

    def __init__(self, table: Any) -> None:
        self._file = InputFile(table) if isinstance(table, str | os.PathLike) else None
        self._table = table if self._file is not None else _loaded(table)
        self.library: Library = "arrow" if self._file is not None else library_of(self._table)
        if isinstance(self._table, pa.RecordBatch):
            self._table = pa.Table.from_batches([self._table])
        elif self.library == "polars":
            self._table = _of_polars(self._table)

    def batches(self, columns: Sequence[str], *known: Any) -> Iterator[Batch]:
        """The wanted columns, in the order of rows; `known` is for readers of files."""
        if self._file is not None:
            yield from self._file.batches(columns, *known)
        elif self.library == "pandas":
            yield _of_pandas(self._table, columns)
        elif isinstance(self._table, Mapping):
            yield _of_lists(self._table, columns)
        else:
            _require(columns, self._table.column_names)
            for batch in self._table.select(columns).to_batches():
                yield _whole({name: _cleaned(name, batch.column(name)) for name in columns}, batch.num_rows)


class Within(Secret):
    """The rows of an input that lie within the ticks of a stream. Each row's own time stamp decides about it."""

    broken = 0  # lines of files that are no rows; who counts them asks the file

    def __init__(self, source: TableInput, spec: StreamSpec, last: int) -> None:
        self._source, self._spec, self._last = source, spec, last

    def batches(self, columns: Sequence[str], *known: Any) -> Iterator[Batch]:
        for batch in self._source.batches(columns, *known):
            own, readable = self._ticks(batch)
            yield _kept(batch, readable & (own >= 1) & (own <= self._last))

    def check(self) -> None:
        """Refuses a table with rows before or after, and one without any readable time: then nearly always the call is
        wrong, and the guarantee would be spent on it. How many there are is told to whoever holds the table."""
        rows = before = after = unreadable = 0
        clock = self._spec.clock
        for batch in self._source.batches([str(clock.column)]):
            own, readable = self._ticks(batch)
            rows, unreadable = rows + len(own), unreadable + int((~readable).sum())
            before += int((readable & (own < 1)).sum())
            after += int((readable & (own > self._last)).sum())
        if rows and rows == unreadable:
            raise ConfigurationError(
                f"no row has a readable time in the column {clock.column!r}, so that nothing would be counted; times "
                f"are like {clock.end_of(0)!r}. Nothing was released"
            )
        outside = {f"before {clock.end_of(0)}": before, f"at or after {clock.end_of(self._last)}": after}
        found = [f"{count:,} row{'s' * (count != 1)} {where}" for where, count in outside.items() if count]
        if found:
            raise ConfigurationError(
                f'the table has {" and ".join(found)}: outside="drop" leaves them out. Nothing was released'
            )

    def _ticks(self, batch: Batch) -> tuple[Instants, Valid]:
        clock = self._spec.clock
        moments, readable = instants(batch[str(clock.column)], clock)
        return clock.ticks_of(moments), readable

    def digest(self) -> bytes:
        """All that is counted, and how, as a hash. Secret: two that differ in one row have two of them."""
        found = hashlib.sha256(self._spec.digest.encode())
        for batch in self.batches(self._spec.columns()):
            payload = encode(batch) if length(batch) else b""
            found.update(len(payload).to_bytes(8, "big") + payload)
        return found.digest()


def library_of(table: Any) -> Library:
    """Which library made a table, told without importing any."""
    try:
        found = frames.library_of(table)
    except TypeError as problem:
        raise ConfigurationError(str(problem)) from None
    if found is None and not isinstance(table, Mapping):
        raise ConfigurationError(
            f"a table is a frame of pandas or Polars, an Arrow table, a dictionary of columns or the path of a file, "
            f"not a {type(table).__name__}"
        )
    return found or "dict"


def _loaded(table: Any) -> Any:
    """Tables of libraries that are not known by name as Arrow; anything else as it is."""
    try:
        return frames.loaded(table)
    except TypeError as problem:
        raise ConfigurationError(str(problem)) from None


def _of_polars(frame: Any) -> Any:
    """A frame as an Arrow table; as columns, if some hold Python objects, of which Arrow would get the addresses."""
    objects = [str(kind) == "Object" for kind in frame.dtypes]
    if not any(objects):
        return pa.table(frame)
    return {
        name: column.to_list() if foreign else column.to_arrow()
        for name, column, foreign in zip(frame.columns, frame.get_columns(), objects, strict=True)
    }


def _of_pandas(frame: Any, columns: Sequence[str]) -> Batch:
    names = [str(name) for name in frame.columns]
    if frame.index.name is not None and frame.index.name not in names:
        frame, names = frame.reset_index(), [str(frame.index.name), *names]  # an index with a name is a column
    _require(columns, names)
    return _whole({name: _of_series(frame.iloc[:, names.index(name)]) for name in columns}, len(frame))


def _of_series(series: Any) -> Any:
    categories = getattr(series.dtype, "categories", None)
    if any(
        isinstance(kind, np.dtype) and kind.hasobject for kind in (series.dtype, getattr(categories, "dtype", None))
    ):
        return _cells(series.tolist())
    try:
        column = pa.array(series, from_pandas=True)
    except pa.ArrowException:  # whose text may quote cells
        column = None
    if column is None or isinstance(column, pa.ExtensionArray):
        raise ConfigurationError(f"the column {series.name!r} is of a type, {series.dtype}, that is not read here")
    return _cleaned(series.name, column)


def _of_lists(table: Mapping[Any, Any], columns: Sequence[str]) -> Batch:
    _require(columns, [str(name) for name in table])
    given = {str(name): column for name, column in table.items()}
    try:
        for one, other in combinations(columns, 2):
            check_same_index(given[one], given[other])
    except TypeError as error:
        raise ConfigurationError(str(error)) from None
    made = {name: _of_list(name, given[name]) for name in columns}
    lengths = {len(column) for column in made.values()}
    if len(lengths) > 1:
        raise ConfigurationError("the columns of a table have one length")
    return made


def _of_list(name: str, column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray | pa.Array):
        return _cleaned(name, column)
    if isinstance(column, np.ndarray) and column.dtype.char in _NUMBERS:
        return _cleaned(name, pa.array(column))
    if isinstance(column, np.ndarray) and column.ndim == 1:
        column = list(column)  # not tolist: it makes whole numbers of times in nanoseconds
    elif hasattr(column, "to_list"):  # a column of pandas or Polars
        column = column.to_list()
    if not isinstance(column, list | tuple):
        raise ConfigurationError("a column of a dictionary is a list or an array")
    return _cells(column)


def _cleaned(name: Any, column: Any) -> Any:
    try:
        return clean(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    except pa.ArrowException:  # whose text may quote cells
        raise _not_read(name) from None


def _not_read(name: Any) -> ConfigurationError:
    return ConfigurationError(f"the column {str(name)!r} is damaged, or of a type that is not read here")


def _cells(cells: Sequence[Any]) -> NDArray[Any]:
    return np.fromiter(map(_cell, cells), object, len(cells))


def _cell(cell: object) -> object:
    """A cell as a batch of JSON would have it: of Python's own types, moments as text, lists and tables of labels one
    level deep. What is nothing of that kind is missing."""
    if isinstance(cell, list | tuple):
        return [_entry(one) for one in cell]
    if isinstance(cell, dict):
        return {str(label): _entry(one) for label, one in cell.items() if isinstance(label, str | int)}
    if isinstance(cell, np.ndarray) and cell.ndim:  # pandas makes arrays of the lists of a Parquet file
        return [_entry(one) for one, _ in pairs(cell)]
    if isinstance(cell, set | frozenset):
        return sorted((_entry(one) for one in cell), key=repr)  # their order is another one in every process
    try:
        if isinstance(cell, np.datetime64):
            cell = cell.astype("datetime64[us]").item()
        if isinstance(cell, dt.datetime):
            return written(microseconds(cell))
        if isinstance(cell, dt.date):
            return cell.isoformat()
    except UNREADABLE:
        return None
    return _entry(cell)


def _entry(cell: object) -> object:
    try:
        value = plain(cell)
        if isinstance(value, bytes):
            return value.decode()
        return _number(value) if isinstance(value, Decimal | Fraction) else value
    except UNREADABLE:
        return None


def _number(value: Decimal | Fraction) -> int | float:
    """A whole number as an integer, another one as the nearest float: JSON has no others."""
    # Compared first: Decimal("1e999999999") is small as it stands and enormous as an integer.
    if not finite(value) or -_TOO_LONG < value < _TOO_LONG:
        return int(value) if finite(value) and value == int(value) else real(value)
    return _TOO_LONG if value > 0 else -_TOO_LONG


def _kept(batch: Batch, rows: NDArray[np.bool_]) -> Batch:
    if rows.all():
        return batch
    return {
        name: col[rows] if isinstance(col, np.ndarray) else _filtered(name, col, rows) for name, col in batch.items()
    }


def _filtered(name: str, column: Any, rows: NDArray[np.bool_]) -> Any:
    try:
        return column.filter(pa.array(rows))
    except pa.ArrowNotImplementedError:
        raise _not_read(name) from None


def _whole(columns: Batch, rows: int) -> Batch:
    return columns or {ROWS: pa.nulls(rows)}


def _require(wanted: Sequence[str], present: Sequence[str]) -> None:
    for name in wanted:
        if present.count(name) != 1:
            problem = "has no column" if name not in present else "has more than one column"
            raise ConfigurationError(f"the table {problem} {name!r}. Its columns: {', '.join(present)}")
