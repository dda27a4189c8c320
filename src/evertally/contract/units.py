"""Amounts in whole steps of a declared resolution: their room in a tick, how sums are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.forms import LabelledForm, RowForm
from evertally.contract.parts import Accuracy, IntArray, Options
from evertally.encode.values import AmountGrid, as_written
from evertally.errors import ConfigurationError

_FEWEST = 2**16  # amounts that must fit into a tick


def check_room(limit: int, most: int) -> None:
    """Beyond so many values in one tick sums would be clipped."""
    if limit // most < _FEWEST:
        raise ConfigurationError(
            f"with this resolution and horizon only {limit // most} values fit into a tick; "
            "choose a coarser resolution, or a (shorter) horizon"
        )


def own_numbers(given: Options) -> Options:
    """Options that are numbers as Python's own, the same for the same number: what addresses and snapshots keep.

    >>> from fractions import Fraction
    >>> own_numbers({"upper": np.float32(2), "resolution": Fraction(1, 100), "max_total_per_user": None})
    {'upper': 2, 'resolution': 0.01, 'max_total_per_user': None}
    """
    found: Options = {}
    for name, value in given.items():
        exact = as_written(value)
        if value is not None and exact is None:
            raise ConfigurationError(f"{name} is a finite number, not {value!r}")
        if exact is not None and exact.denominator > 1 and as_written(_float(exact)) != exact:
            raise ConfigurationError(f"{name} is {value!r}, which no decimal number of 17 digits says; round it")
        found[name] = None if exact is None else int(exact) if exact.denominator == 1 else float(exact)
    return found


def _float(exact: Fraction) -> float:
    return float(exact) if abs(exact) < 2**1000 else math.inf


class RowInUnits(RowForm):
    """Sums of whole steps by column, in the unit that amounts have."""

    def __init__(self, grid: AmountGrid, labels: Sequence[str]) -> None:
        super().__init__(len(labels), labels)
        self._grid = grid

    def show(self, row: IntArray) -> NDArray[np.float64]:
        return self._grid.shown(row)

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return self._grid.shown(rows)

    def deviation(self, accuracy: Accuracy) -> float | None:
        return None if accuracy.stddev is None else float(self._grid.shown(np.asarray(accuracy.stddev)))


class LabelledInUnits(LabelledForm):
    """The same as a mapping from labels to sums.

    >>> LabelledInUnits(AmountGrid(0, 500, 0.01), ["a", "b"]).show(np.array([1999, 5]))
    {'a': 19.99, 'b': 0.05}
    """

    def __init__(self, grid: AmountGrid, labels: Sequence[str]) -> None:
        super().__init__(labels)
        self._row = RowInUnits(grid, labels)

    def show(self, row: IntArray) -> dict[str, Any]:
        return dict(zip(self.labels, self._row.show(row).tolist(), strict=True))

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return self._row.show_many(rows)

    def deviation(self, accuracy: Accuracy) -> float | None:
        return self._row.deviation(accuracy)
