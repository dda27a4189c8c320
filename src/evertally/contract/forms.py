"""Forms of answers: how released rows are shown. Post-processing, all of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.parts import Accuracy, IntArray
from evertally.contract.rows import from_bytes, to_bytes
from evertally.encode.range_door import NumberedLabels

BETA_OF_TABLES = 0.05


class RowForm:
    """A row of integers, shown as it is: one number for each column.

    `apart`: no two numbers that are shown are made of one column, so that each has noise of its own.
    """

    apart: bool = True

    def __init__(self, width: int, labels: Sequence[str] | None = None) -> None:
        self.width = width
        # Of the lines that a tick has in a table; numbers are written when somebody asks for them.
        self.labels = labels if labels is None or isinstance(labels, NumberedLabels) else list(labels)

    def show(self, row: IntArray) -> Any:
        return row.copy()

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return rows

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        radius = math.floor(accuracy.radius(beta))  # releases and truth are integers
        return self.show(row - radius), self.show(row + radius)

    def deviation(self, accuracy: Accuracy) -> float | None:
        return accuracy.stddev

    def table(self, ticks: Sequence[int], rows: IntArray, accuracy: Callable[[int], Accuracy]) -> Any:
        import pyarrow as pa

        shown, lower, upper = [], [], []
        # Without any tick, one made-up row says which types the columns have.
        for t, row in zip(ticks or [1], rows if len(rows) else self.first(), strict=True):
            low, high = self.interval(row, accuracy(t), BETA_OF_TABLES)
            shown.append(flat(self.show(row)))
            lower.append(flat(low))
            upper.append(flat(high))
        numbers = np.array(ticks, dtype=np.int64)
        table: dict[str, Any] = {"tick": np.repeat(numbers, len(self.labels)) if self.labels else numbers}
        if self.labels:
            table["column"] = pa.array(list(self.labels) * len(rows), type=pa.string())
        for name, values in (("value", shown), ("lower", lower), ("upper", upper)):
            table[name] = np.concatenate(values)[: len(table["tick"])]
        return pa.table(table)

    def first(self) -> IntArray:
        return np.zeros((1, self.width), dtype=np.int64)

    def nothing(self) -> IntArray:
        return np.empty((0, self.width), dtype=np.int64)

    def joined(self, kept: list[tuple[Any, IntArray | None]]) -> NDArray[Any]:
        pieces = [values if lasts is None else np.repeat(values, lasts, axis=0) for values, lasts in kept]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def save(self, rows: IntArray) -> bytes:
        return to_bytes(rows)

    def load(self, data: bytes, engine: Any, tick: int) -> IntArray:
        return from_bytes(data).reshape(-1, self.width)


class NumberForm(RowForm):
    """The first number of a row, alone.

    >>> NumberForm(1).show(np.array([7]))
    7
    """

    def show(self, row: IntArray) -> int:
        return row.item(0)

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return rows[:, 0]


class LabelledForm(RowForm):
    """A mapping from labels to numbers.

    >>> LabelledForm(["a", "b"]).show(np.array([7, 0]))
    {'a': 7, 'b': 0}
    """

    labels: list[str]

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(len(labels), labels)

    def show(self, row: IntArray) -> dict[str, int]:
        return dict(zip(self.labels, row.tolist(), strict=True))


class FoundForm(ABC):
    """Rows that bring their own labels: a release maps labels to numbers, and how many there are differs from tick to
    tick. Rows are what the engine gives; a subclass says how to read one. Not used directly."""

    @abstractmethod
    def show(self, row: Any) -> dict[str, int]:
        """One row, best first."""

    @abstractmethod
    def interval(self, row: Any, accuracy: Accuracy, beta: float) -> tuple[dict[str, int], dict[str, int]]:
        """Where the truth lies, label by label."""

    def show_many(self, rows: Any) -> Any:
        return [self.show(row) for row in rows]

    def deviation(self, accuracy: Accuracy) -> float | None:
        return accuracy.stddev

    def table(self, ticks: Sequence[int], rows: Any, accuracy: Callable[[int], Accuracy]) -> Any:
        import pyarrow as pa

        lines: dict[str, list[Any]] = {"tick": [], "column": [], "value": [], "lower": [], "upper": []}
        for tick, row in zip(ticks, rows, strict=True):
            lower, upper = self.interval(row, accuracy(tick), BETA_OF_TABLES)
            for label, count in self.show(row).items():
                # Arrow holds UTF-8 only; what else a label may contain is shown escaped.
                shown = label.encode("utf-8", "backslashreplace").decode()
                for name, cell in zip(lines, (tick, shown, count, lower[label], upper[label]), strict=True):
                    lines[name].append(cell)
        return pa.table(
            {name: pa.array(cells, pa.string() if name == "column" else pa.int64()) for name, cells in lines.items()}
        )


def flat(value: Any) -> NDArray[Any]:
    """A public value as a flat array, in column order."""
    return np.atleast_1d(np.array(list(value.values()) if isinstance(value, dict) else value))
