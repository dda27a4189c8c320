"""Where the ticks of a run came from: released values go back into the same library, with the same index or times.

Post-processing of releases and of the shape of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.contract.labelled import Labels, time_column
from evertally.contract.parts import IntArray
from evertally.encode.frames import table
from evertally.encode.imported import imported
from evertally.secret import Secret

_VALUE = "value"
_IN_ORDER = "the ticks of a run are in order: their index (or their times) must rise from row to row, {}"


@dataclass(frozen=True, repr=False)
class Origin(Secret):
    """What is kept of the frame that ticks were in. Secret, as it may be reached from here.

    `back` makes a frame or series of values by tick, with their columns; `times` are an Arrow array, or None.
    """

    back: Callable[[Any, IntArray | None, Sequence[str] | None], Any]
    times: Callable[[], Any] | None = None

    def with_times(self, full: Any, first: int) -> Any:
        """A table of a run with a column `time` after the tick."""
        if self.times is None:
            return full
        import pyarrow as pa

        places = full["tick"].to_numpy() - first
        return full.add_column(1, "time", self.times().take(pa.array(places, pa.int64())))


def origin(x: Any, labels: Labels | None) -> Origin | None:
    """Where ticks came from; None for arrays, lists and all that has no index, which give arrays."""
    pandas, polars, arrow = (imported(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(x, pandas.DataFrame | pandas.Series):
        return _of_pandas(x, _times(x, labels), pandas)
    if polars is not None and isinstance(x, polars.Series):
        return Origin(lambda values, at, columns: _polars(None, values, at, columns, x.name or _VALUE, polars))
    if polars is not None and isinstance(x, polars.DataFrame):
        time = _times(x, labels)
        series = None if time is None else x.to_series(time)
        if series is not None and (series.null_count() or not series.is_sorted() or series.n_unique() < len(series)):
            raise TypeError(_IN_ORDER.format("frame.sort(...)"))
        return Origin(
            lambda values, at, columns: _polars(series, values, at, columns, _VALUE, polars),
            None if series is None else series.to_arrow,
        )
    if arrow is not None and isinstance(x, arrow.Table | arrow.RecordBatch):
        return _of_arrow(x, _times(x, labels), arrow)
    return None


def _times(x: Any, labels: Labels | None) -> int | None:
    found = table(x)
    return None if found is None else time_column(found, labels)


def _of_pandas(x: Any, time: int | None, pandas: Any) -> Origin:
    index, name = x.index, getattr(x, "name", None)
    times = isinstance(index, pandas.DatetimeIndex | pandas.PeriodIndex)
    if time is not None:
        if times:
            raise TypeError("the times of ticks are in the index of this frame, and in a column too; drop one of them")
        index, times = pandas.Index(x.iloc[:, time]), True
    if (times or getattr(index.dtype, "kind", "O") in "iufmM") and not (
        index.is_monotonic_increasing and index.is_unique and not index.hasnans
    ):
        raise TypeError(_IN_ORDER.format("e.g. frame.sort_index()"))

    def back(values: Any, at: IntArray | None, columns: Sequence[str] | None) -> Any:
        kept = index if at is None else index[at]
        if isinstance(values, np.ndarray) and values.ndim == 2:
            return pandas.DataFrame(values, index=kept, columns=_named(columns, values))
        return pandas.Series(values, index=kept, name=name, dtype=None if isinstance(values, np.ndarray) else object)

    def as_arrow() -> Any:
        import pyarrow as pa

        return pa.array(index.to_timestamp() if isinstance(index, pandas.PeriodIndex) else index)

    return Origin(back, as_arrow if times else None)


def _of_arrow(x: Any, time: int | None, arrow: Any) -> Origin:
    import pyarrow.compute as pc

    column, name = (None, "") if time is None else (x.column(time), x.schema.names[time])
    if column is not None:
        whole = column.combine_chunks() if isinstance(column, arrow.ChunkedArray) else column
        if whole.null_count or not pc.all(pc.less(whole[:-1], whole[1:]), min_count=0).as_py():
            raise TypeError(_IN_ORDER.format("table.sort_by(...)"))

    def back(values: Any, at: IntArray | None, columns: Sequence[str] | None) -> Any:
        cells = _cells(values, columns, _VALUE)
        if isinstance(values, list) and any(isinstance(value, dict) for value in values):
            pairs = [[(_written(label), number) for label, number in value.items()] for value in values]
            cells[_VALUE] = arrow.array(pairs, arrow.map_(arrow.string(), arrow.int64()))
        if column is not None:
            kept = column if at is None else column.take(arrow.array(at))
            cells = {_free(name, cells): kept} | cells
        return arrow.table(cells)

    return Origin(back, None if column is None else lambda: column)


def _polars(time: Any, values: Any, at: IntArray | None, columns: Sequence[str] | None, name: str, polars: Any) -> Any:
    cells = _cells(values, columns, name)
    if isinstance(values, list) and any(isinstance(value, dict) for value in values):
        cells[name] = polars.Series(name, values, dtype=polars.Object)  # labels differ from tick to tick
    if time is None and not (isinstance(values, np.ndarray) and values.ndim == 2):
        return polars.Series(name, cells[name])
    if time is not None:
        kept = time if at is None else time.gather(at)
        cells = {_free(time.name, cells): kept} | cells
    return polars.DataFrame(cells)


def _cells(values: Any, columns: Sequence[str] | None, name: str) -> dict[str, Any]:
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return {str(label): np.ascontiguousarray(values[:, i]) for i, label in enumerate(_named(columns, values))}
    return {name: values}


def _written(label: Any) -> str:
    # Arrow holds UTF-8 only; what else a label may contain is shown escaped.
    return str(label).encode("utf-8", "backslashreplace").decode()


def _named(columns: Sequence[str] | None, values: Any) -> Sequence[Any]:
    return range(values.shape[1]) if columns is None or len(columns) != values.shape[1] else list(columns)


def _free(name: str, cells: dict[str, Any]) -> str:
    """The name of the column of times, beside columns that may be called the same."""
    while name in cells:
        name += "_"
    return name
