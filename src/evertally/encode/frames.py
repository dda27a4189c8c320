"""Columns and tables of other libraries: pandas, Polars, Arrow, whatever speaks Arrow's or numpy's interface.

None of them is needed, and none but Arrow is ever imported: who hands over an object of a library has loaded it. A
column becomes a numpy array, an Arrow array or a list, in one piece where its library keeps it so; what is missing in
it becomes null. What the cells mean is said elsewhere, cell by cell, so that no library changes a meaning. A table
stays a table: its columns have names, and nothing here reads them by their place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evertally.encode.imported import imported
from evertally.encode.labels import Codes, coded_arrow, is_arrow
from evertally.encode.plain import UNREADABLE
from evertally.secret import Secret

Library = Literal["pandas", "polars", "arrow"]

_OWN = (list, tuple, str, bytes, int, float, bool, dict, type(None))


@dataclass(frozen=True, repr=False)
class Table(Secret):
    """Columns with names, none of them read yet. Secret, for the columns are.

    `levels`: what the parts of a name are called, where names are tuples. `times`: the places of columns that hold
    dates or times.
    """

    names: tuple[Any, ...]
    read: Callable[[int], Any]
    length: int
    levels: tuple[Any, ...] | None = None
    times: tuple[int, ...] = ()

    def __len__(self) -> int:
        return self.length


def is_own(x: object) -> bool:
    """Whether an object is of this library's own types, and so no column or table of another."""
    kind = type(x)
    if any(kind is own for own in _OWN):
        return True
    if issubclass(kind, np.ndarray):
        return x.dtype.names is None  # type: ignore[attr-defined]
    return is_arrow(x) or issubclass(kind, Sequence | Mapping | AbstractSet)


def loaded(x: Any) -> Any:
    """What an object of a library that is not known by name says over Arrow's interface or `__dataframe__`, as an Arrow
    table or column; anything else as it is. A stream is read by this and gone: it is to be called once, at first."""
    if is_own(x) or isinstance(x, np.ndarray) or _is_known(x):
        return x
    arrow = hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__")
    if not arrow and not hasattr(x, "__dataframe__"):
        return x
    try:
        import pyarrow as pa
    except ImportError:
        raise TypeError(f"to read a {type(x).__name__} pyarrow is needed: pip install 'evertally[arrow]'") from None
    try:
        return (_by_arrow if arrow else _by_interchange)(x, pa)
    except Exception:  # foreign code may raise whatever it likes, and quote a cell
        raise TypeError(f"this {type(x).__name__} cannot be read; hand over its columns as lists") from None


def library_of(x: Any) -> Library | None:
    """Which of the libraries that are known by name a table is of; None for whatever is no table of theirs."""
    pandas, polars, arrow = (imported(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(x, pandas.DataFrame):
        return "pandas"
    if polars is not None and isinstance(x, polars.LazyFrame):
        raise TypeError("this frame is a plan, and has no rows yet; collect it first: frame.collect()")
    if polars is not None and isinstance(x, polars.DataFrame):
        return "polars"
    return "arrow" if arrow is not None and isinstance(x, arrow.Table | arrow.RecordBatch) else None


def column(x: Any) -> Any:
    """A column of any library as a numpy array, an Arrow array or a list; anything else as it is.

    >>> column([1, 2]), column("abc")
    ([1, 2], 'abc')
    """
    x = loaded(x)
    if is_own(x) or isinstance(x, np.ndarray | np.generic) or table(x) is not None:
        return x
    pandas, polars = imported("pandas"), imported("polars")
    if _is_of_pandas(x, pandas):
        return _of_pandas(x, pandas)
    if polars is not None and isinstance(x, polars.Series):
        return _of_polars(x, polars)
    if callable(getattr(x, "to_numpy", None)):
        array = np.asarray(x.to_numpy())
        return array if array.ndim else x
    return x


def table(x: Any) -> Table | None:
    """A table of any library; None for whatever is none.

    >>> visits = np.array([("f", 3), ("m", 4)], dtype=[("sex", "U1"), ("ward", int)])
    >>> found = table(visits)
    >>> found.names, len(found), found.read(1).tolist(), table([[3, 4]])
    (('sex', 'ward'), 2, [3, 4], None)
    """
    x = loaded(x)
    if isinstance(x, np.ndarray) and x.dtype.names is not None and x.ndim == 1:
        return Table(x.dtype.names, lambda i: _field(x, x.dtype.names[i]), len(x))
    if is_own(x) or isinstance(x, np.generic):
        return None
    library = library_of(x)
    if library == "pandas":
        pandas = sys.modules["pandas"]
        levels = tuple(x.columns.names) if isinstance(x.columns, pandas.MultiIndex) else None
        times = tuple(i for i, kind in enumerate(x.dtypes) if _is_time(kind, pandas))
        return Table(tuple(x.columns), lambda i: _of_pandas(x.iloc[:, i], pandas), len(x), levels, times)
    if library == "polars":
        times = tuple(i for i, kind in enumerate(x.dtypes) if kind.is_temporal())
        return Table(tuple(x.columns), lambda i: _of_polars(x.to_series(i), sys.modules["polars"]), len(x), times=times)
    return _of_arrow(x) if library == "arrow" else None


def struct_table(x: Any) -> Table | None:
    """The table that an Arrow column of structures is; None for any other column."""
    if not is_arrow(x):
        return None
    import pyarrow as pa

    return _of_arrow(_flat(x)) if pa.types.is_struct(x.type) and not x.null_count else None


def unnested(x: Any) -> Any:
    """A column of structures as the table of their fields, in its library; anything else as it is."""
    polars = imported("polars")
    if polars is not None and isinstance(x, polars.Series) and isinstance(x.dtype, polars.Struct):
        return x.struct.unnest()
    if is_arrow(x):
        import pyarrow as pa

        return _flat(x) if pa.types.is_struct(x.type) else x
    return x


def check_same_index(events: Any, users: Any) -> None:
    """Refuses two Series whose rows have different labels: position by position they would be put together wrongly."""
    first, second = _index(events), _index(users)
    if first is None or second is None:
        return
    try:
        same = bool(first.equals(second) if hasattr(first, "equals") else first == second)
    except Exception:  # of two libraries, say; foreign code may raise whatever it likes
        same = False
    if not same:
        raise TypeError(
            "two Series that belong together have different indices, so it is not clear which rows do; take both from "
            "one frame, or hand over one of them as series.to_numpy() if they are in the same order"
        )


def _index(x: Any) -> Any:
    """The labels that the rows of a Series have, of pandas or of a library like it; None where rows have none."""
    if is_own(x) or isinstance(x, np.ndarray | np.generic):
        return None
    index = getattr(x, "index", None)
    return getattr(x, "coords", None) if index is None or callable(index) else index


def _field(x: Any, name: str) -> Any:
    """A field of a structured array; None where it is masked: what lies under a mask is nobody's number."""
    cells, masked = np.ascontiguousarray(np.ma.getdata(x[name])), np.ma.getmaskarray(x[name])
    if masked.any():
        cells = cells.astype(object)
        cells[masked] = None
    return cells


def _of_pandas(values: Any, pandas: Any) -> Any:
    if isinstance(values, pandas.MultiIndex):
        return list(values)
    if isinstance(values.dtype, np.dtype):
        array = values.to_numpy()
        if array.dtype.kind != "O":
            return array
        missing = pandas.isna(array)
        return np.where(missing, None, array) if missing.any() else array
    try:
        import pyarrow as pa
    except ImportError:
        return values.to_numpy(dtype=object, na_value=None)
    try:
        found = pa.array(values, from_pandas=True)
    except (*UNREADABLE, pa.ArrowException):  # its text quotes a cell
        found = None
    if found is None or isinstance(found.type, pa.BaseExtensionType):  # periods would become numbers, and so labels
        return _of_pandas(values.astype(object), pandas)
    return _plain_arrow(found)


def _is_known(x: Any) -> bool:
    """Whether it is an object of one of the libraries that are known by name."""
    pandas, polars, arrow = (imported(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and (_is_of_pandas(x, pandas) or isinstance(x, pandas.DataFrame)):
        return True
    if polars is not None and isinstance(x, polars.Series | polars.DataFrame | polars.LazyFrame):
        return True
    return arrow is not None and isinstance(x, arrow.Table | arrow.RecordBatch)


def _is_of_pandas(x: Any, pandas: Any) -> bool:
    """Whether it is a column of pandas."""
    if pandas is None:
        return False
    return isinstance(x, pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray)


def _is_time(kind: Any, pandas: Any) -> bool:
    return isinstance(kind, pandas.DatetimeTZDtype | pandas.PeriodDtype) or getattr(kind, "kind", "") == "M"


def _of_polars(values: Any, polars: Any) -> Any:
    if values.dtype == polars.Object:  # in Arrow they would be addresses
        return values.to_list()
    try:
        return _plain_arrow(values.to_arrow())
    except Exception:  # without Arrow, say; foreign code may raise whatever it likes, and quote a cell
        return values.to_list()


def _of_arrow(x: Any) -> Table:
    import pyarrow as pa

    times = tuple(i for i, kind in enumerate(x.schema.types) if pa.types.is_timestamp(kind) or pa.types.is_date(kind))
    return Table(tuple(x.schema.names), lambda i: _plain_arrow(x.column(i)), x.num_rows, times=times)


def _plain_arrow(values: Any) -> Any:
    """Without views, which not every function of Arrow takes, and with no more in a dictionary than what occurs: its
    order, and what else is in it, say something about other rows."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_dictionary(kind):
        encoded = coded_arrow(values)
        return values if encoded is None else _in_order(*encoded)
    for is_view, plain in ((pa.types.is_string_view, pa.large_string), (pa.types.is_binary_view, pa.large_binary)):
        if is_view(kind):
            return values.cast(plain())
    return values


def _in_order(codes: Codes, dictionary: Any) -> Any:
    """A column by numbers of its values, these in the order in which they first occur."""
    import pyarrow as pa

    first = np.full(len(dictionary), len(codes), dtype=np.int64)
    there = np.flatnonzero(codes >= 0)[::-1]
    first[codes[there]] = there  # of several the last one written stays, which is the first row
    used = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
    numbers = np.full(len(dictionary) + 1, -1, dtype=np.int64)
    numbers[used] = np.arange(len(used))
    renumbered = numbers[codes]
    return pa.DictionaryArray.from_arrays(pa.array(renumbered, mask=renumbered < 0), dictionary.take(pa.array(used)))


def _flat(structures: Any) -> Any:
    """The table whose rows a column of structures has."""
    import pyarrow as pa

    chunks = structures.chunks if isinstance(structures, pa.ChunkedArray) else [structures]
    batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in chunks]
    return pa.Table.from_batches(batches, schema=pa.schema(list(structures.type)))


def _by_arrow(x: Any, pa: Any) -> Any:
    values = pa.chunked_array(x) if hasattr(x, "__arrow_c_stream__") else pa.array(x)
    return _flat(values) if pa.types.is_struct(values.type) else _plain_arrow(values)


def _by_interchange(x: Any, pa: Any) -> Any:
    from pyarrow.interchange import from_dataframe

    return from_dataframe(x)
