"""What may be read by its place: plain sequences and arrays of numbers.

numpy makes an array of whatever says that it has a length and entries: of rows of a database, of structures, of arrays
with named dimensions. The names are then gone, and the first number is the first column's whatever it was called. So
what numpy may open is listed here, and all else is refused, by its type.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from evertally.encode.imported import imported
from evertally.encode.labels import is_arrow

_SEQUENCES = (list, tuple, deque)
_LEAVES = (range, array, memoryview, str, bytes)
# What frames, series and arrays with named dimensions of other libraries have.
_LABELLED = ("columns", "column_names", "iloc", "coords", "dims", "__dataframe__")
_OPENED = ("__array__", "__array_interface__", "__array_struct__", "to_numpy")


def has_labels(x: object) -> bool:
    """Whether an object of another library says that its numbers have names."""
    if any(hasattr(x, name) for name in _LABELLED):
        return True
    index = getattr(x, "index", None)  # sequences have a method of this name
    return index is not None and not callable(index)


def check_place(x: object, depth: int = 2) -> None:
    """Refuses what numpy would read by its place although its numbers may have names.

    >>> check_place([[1, 2], (3, 4)])
    >>> class Row(tuple):
    ...     __fields__ = ["south", "north"]
    >>> check_place([Row((1, 2))])
    Traceback (most recent call last):
    TypeError: a Row may have names for its numbers, and is not read by their place: ...
    """
    kind = type(x)
    if any(kind is own for own in _SEQUENCES):
        if depth and not all(map(_is_leaf, set(map(type, x)))):  # type: ignore[call-overload]
            for entry in x:  # type: ignore[attr-defined]
                check_place(entry, depth - 1)
    elif issubclass(kind, np.ma.MaskedArray):
        raise TypeError("masked totals do not say what is meant where the mask is; fill them first, x.filled(0)")
    elif not _is_leaf(kind) and not is_arrow(x) and not _is_column(x):
        raise TypeError(
            f"a {kind.__name__} may have names for its numbers, and is not read by their place: hand over a dictionary "
            "(dict(x)) if names are meant, list(x) or numpy.asarray(x) if places are"
        )


def _is_leaf(kind: type) -> bool:
    """Whether numpy takes objects of a type as they are, or knows no more of them than their places."""
    if issubclass(kind, np.ndarray):
        return not issubclass(kind, np.ma.MaskedArray)
    if issubclass(kind, np.generic | Mapping | AbstractSet) or any(kind is own for own in _LEAVES):
        return True
    sequence = hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    return not sequence and not any(hasattr(kind, name) for name in _OPENED)


def _is_column(x: Any) -> bool:
    """Whether it is a column of another library: one number after the other, without names."""
    pandas, polars = imported("pandas"), imported("polars")
    if pandas is not None and isinstance(x, pandas.Index | pandas.api.extensions.ExtensionArray):
        return True
    if polars is not None and isinstance(x, polars.Series):
        kind = x.dtype
        while isinstance(kind, polars.Array | polars.List):
            kind = kind.inner
        return not isinstance(kind, polars.Struct)
    return callable(getattr(x, "to_numpy", None)) and not has_labels(x)
