"""Reading what a caller hands over. Mistakes in the call raise here, before a tick is used; content never does."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import Coded, as_list
from evertally.encode.places import check_place
from evertally.encode.plain import plain

IntArray = NDArray[np.int64]

# Far beyond any clip of a tick's total, so that cutting here changes nothing.
FAR = 2**62


def as_integers(x: Any) -> IntArray:
    """Integers as int64; TypeError for anything else. Numbers beyond int64 are content, and are clipped.

    >>> as_integers([1, True, 10**30]).tolist()
    [1, 1, 4611686018427387904]
    """
    check_place(x)
    try:
        array = np.asarray(x)
        if array.dtype.kind == "f" and not hasattr(x, "dtype"):
            # numpy turns [2**63, -1] into floats: whether a total is huge must not decide whether the call is refused.
            array = np.asarray(x, dtype=object)
    except ValueError:
        raise TypeError("totals are integers in rows of equal length") from None
    if array.size == 0 and not isinstance(x, np.ndarray):
        return array.astype(np.int64)
    if array.dtype.kind == "O":
        # Copied into Python's own integers, then bounded: a subclass may say anything when it is compared.
        numbers = [plain(v) for v in array.flat]
        if all(isinstance(n, int) for n in numbers):
            return np.array([max(-FAR, min(FAR, n)) for n in numbers], dtype=np.int64).reshape(array.shape)  # type: ignore[type-var]
    if array.dtype == np.uint64:
        return np.asarray(np.minimum(array, np.uint64(FAR)), dtype=np.int64)
    if array.dtype.kind not in "iub":
        raise TypeError(f"totals are whole numbers, not {_named(array)}")
    return array.astype(np.int64)


def _named(array: NDArray[Any]) -> str:
    """What was given in place of whole numbers, by its type alone, and what to do."""
    odd = (kind for kind in map(type, array.flat) if not issubclass(kind, int | np.integer | np.bool_))
    kind = next(odd, object) if array.dtype.kind == "O" else array.dtype.type
    if issubclass(kind, float | np.floating | Decimal | Fraction):
        return (
            f"{kind.__name__}. Amounts with fractions are summed, event by event, by "
            "et.RunningSum(upper=..., resolution=0.01), by category by et.Histogram(max_weight=..., resolution=0.01); "
            "whole numbers that are stored as floats are converted by int(x) or x.astype(int)"
        )
    if issubclass(kind, str | bytes):
        return "texts: raw events go to step_events"
    if issubclass(kind, type(None)):
        return "None: a tick without events has the total 0"
    return f"{kind.__name__}: give an int, or a list or array of them; raw events go to step_events"


def keep_events(events: Any, kept: NDArray[np.bool_]) -> Any:
    """The events whose users still have room."""
    if hasattr(events, "filter") and hasattr(events, "type"):  # an Arrow array
        import pyarrow as pa

        try:
            return events.filter(pa.array(kept))
        except pa.ArrowNotImplementedError:
            raise TypeError(f"a column of {events.type} cannot be filtered by user; cast it, e.g. to string") from None
    if isinstance(events, np.ndarray | Coded):
        return events[kept]
    return [event for event, keep in zip(as_list(events), kept, strict=True) if keep]
