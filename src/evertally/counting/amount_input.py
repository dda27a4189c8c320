"""Input of one number: what mechanisms take that count one thing."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.counting.inputs import as_integers
from evertally.counting.mechanism import Mechanism
from evertally.counting.process import IntArray
from evertally.counting.rows import Rows, SparseRows
from evertally.encode import AmountDoor


class AmountInput(Mechanism):
    """Totals are single integers, events are amounts. Not used directly."""

    _amounts: AmountDoor

    def _row(self, x: Any) -> IntArray:
        row = as_integers(x)
        if row.ndim != 0:
            raise TypeError("step takes one integer, the total of the tick; many ticks go to run")
        return row.reshape(1)

    def _rows(self, x: Any) -> Rows:
        if type(x) is SparseRows:
            return super()._rows(x)
        rows = as_integers(x)
        if rows.ndim != 1:
            raise TypeError(f"run takes a sequence of integers, one for each tick, not an array of shape {rows.shape}")
        return rows.reshape(-1, 1)

    def _event_row(self, events: Any, tick: int) -> IntArray:
        return np.array([self._amounts.totals(events, tick)], dtype=np.int64)

    def _labels(self) -> None:
        return None
