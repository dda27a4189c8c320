"""Many ticks of totals with few entries: (tick, column) pairs in place of a table that is nearly all zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.contract.inputs import IntArray, as_integers
from evertally.encode.frames import check_same_index, column
from evertally.encode.plain import plain
from evertally.secret import Secret


class SparseRows(Secret):
    """Totals of `length` ticks in `width` columns, given where they are not zero.

    Entry i adds `weights[i]` (1 by default) to column `columns[i]` of tick `ticks[i]`; ticks and columns count from 0.
    Several entries of one cell are added up. `run` takes it in place of an array of shape (length, width).

    >>> rows = SparseRows([2, 0, 2], [1, 0, 1], length=4, width=3)
    >>> rows.dense().tolist()
    [[1, 0, 0], [0, 0, 0], [0, 2, 0], [0, 0, 0]]
    >>> rows[1:3].total().tolist(), len(rows[1:3])
    ([0, 2, 0], 2)
    """

    def __init__(self, ticks: Any, columns: Any, weights: Any = None, *, length: int, width: int) -> None:
        length, width = _size("length", length), _size("width", width)
        for other in (columns, weights):
            check_same_index(ticks, other)
        ticks, columns = as_integers(column(ticks)).ravel(), as_integers(column(columns)).ravel()
        weights = np.ones(len(ticks), dtype=np.int64) if weights is None else as_integers(column(weights)).ravel()
        if not len(ticks) == len(columns) == len(weights):
            raise TypeError("ticks, columns and weights differ in length; an entry has one of each")
        if not (_within(ticks, length) and _within(columns, width)):
            raise TypeError(f"ticks lie in 0..{length - 1} and columns in 0..{width - 1}")
        if (ticks[1:] < ticks[:-1]).any():
            order = np.argsort(ticks, kind="stable")
            ticks, columns, weights = ticks[order], columns[order], weights[order]
        self._set(ticks, columns, weights, length, width)

    def _set(self, ticks: IntArray, columns: IntArray, weights: IntArray, length: int, width: int) -> None:
        self.ticks, self.columns, self.weights = ticks, columns, weights
        self.shape = (length, width)
        for part in (ticks, columns, weights):
            part.flags.writeable = False  # it was checked: what is counted later must be the same

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> SparseRows:
        start, stop, step = part.indices(len(self))
        if step != 1:
            raise TypeError("ticks come in order: a slice of them has step 1")
        first, last = np.searchsorted(self.ticks, [start, max(start, stop)])
        piece = object.__new__(SparseRows)
        piece._set(
            self.ticks[first:last] - start,
            self.columns[first:last],
            self.weights[first:last],
            max(0, stop - start),
            self.shape[1],
        )
        return piece

    def total(self) -> IntArray:
        """The sum over all ticks, one number for each column."""
        total = np.zeros(self.shape[1], dtype=np.int64)
        np.add.at(total, self.columns, self.weights)
        return total

    def dense(self) -> IntArray:
        """The table that this stands for."""
        rows = np.zeros(self.shape, dtype=np.int64)
        np.add.at(rows.reshape(-1), self.ticks * self.shape[1] + self.columns, self.weights)
        return rows

    def clip(self, low: int, high: int) -> SparseRows:
        """The cells merged, then bounded, low <= 0 <= high: as `numpy.clip` on the dense table."""
        if len(self.weights) and max(-int(self.weights.min()), int(self.weights.max())) > 2**61 // len(self.weights):
            # Cells this large could wrap around when they are added up; whole numbers of any size cannot.
            cells: dict[tuple[int, int], int] = {}
            for t, j, w in zip(self.ticks.tolist(), self.columns.tolist(), self.weights.tolist(), strict=True):
                cells[t, j] = cells.get((t, j), 0) + w
            keys = np.array(sorted(cells), dtype=np.int64).reshape(-1, 2)
            merged = np.array([max(low, min(high, cells[t, j])) for t, j in keys.tolist()], dtype=np.int64)
            return self._of_cells(keys[:, 0], keys[:, 1], merged)
        if np.all((self.weights >= 0) & (self.weights <= high)) and low <= 0 and self.weights.sum() <= high:
            return self  # no cell can be out of bounds
        cell, where = np.unique(self.ticks * self.shape[1] + self.columns, return_inverse=True)
        sums = np.zeros(len(cell), dtype=np.int64)
        np.add.at(sums, where, self.weights)
        return self._of_cells(cell // self.shape[1], cell % self.shape[1], np.clip(sums, low, high))

    def _of_cells(self, ticks: IntArray, columns: IntArray, weights: IntArray) -> SparseRows:
        made = object.__new__(SparseRows)
        made._set(ticks, columns, weights, *self.shape)
        return made


def _within(places: IntArray, size: int) -> bool:
    return not places.size or bool(places.min() >= 0 and places.max() < size)


def _size(name: str, value: Any) -> int:
    number = plain(value)
    if type(number) is not int or not 0 <= number <= 2**62:
        raise TypeError(f"{name} is a whole number from 0 on")
    return number


Rows = IntArray | SparseRows


def dense(rows: Rows) -> IntArray:
    return rows.dense() if isinstance(rows, SparseRows) else rows


def total(rows: Rows) -> IntArray:
    if isinstance(rows, SparseRows):
        return rows.total()
    summed: IntArray = rows.sum(axis=0)
    return summed


def to_bytes(array: IntArray) -> bytes:
    """Integers as bytes that mean the same everywhere."""
    return np.ascontiguousarray(array, dtype="<i8").tobytes()


def from_bytes(data: bytes) -> IntArray:
    """The way back."""
    return np.frombuffer(data, dtype="<i8").astype(np.int64)
