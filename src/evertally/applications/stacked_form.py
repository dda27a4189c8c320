"""Rows of a stack as values by part: each part divided by its multiplier, to the nearest whole number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.forms import RowForm
from evertally.contract.parts import Accuracy, IntArray
from evertally.contract.release import Release


@dataclass(frozen=True)
class StackedRelease(Release):
    """A release of several statistics: `value` by part, and each part with its error bar.

    >>> import evertally as et
    >>> stack = et.Stacked({"edges": et.part(et.graph.EdgeCount)}, guarantee=et.ZCDP(0.5), horizon=9,
    ...                    key=et.simulation(1))
    >>> release = stack.step([("a", "b")])
    >>> release["edges"].value == release.value["edges"], release["edges"].stddev == stack.stddevs(1)["edges"]
    (True, True)
    """

    parts: Mapping[str, Release] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, name: str) -> Release:
        return self.parts[name]


@dataclass(frozen=True)
class Divided:
    """How far a number is off that is the nearest whole number to noisy/by, for `accuracy` of the noisy one."""

    accuracy: Accuracy
    by: int

    @property
    def stddev(self) -> float | None:
        # Noise z is off by round(z/by): the rounding error is spread over `by` places of one unit.
        alone = self.accuracy.stddev
        by = self.by * self.by
        return None if alone is None else math.sqrt(alone * alone / by + (by - 1) / (12 * by))

    def radius(self, beta: float) -> float:
        radius = self.accuracy.radius(beta)
        return radius if self.by == 1 or not math.isfinite(radius) else math.floor(divided(radius, self.by))


def divided(radius: float, by: int) -> float:
    """How far off the nearest whole number to noisy/by is at most, where whole-numbered noise is at most `radius`."""
    return radius if by == 1 else math.floor(radius) / by + 0.5


def nearest(rows: IntArray, by: int) -> IntArray:
    """rows/by to the nearest whole number, halves to the even one: then errors of both signs are equally likely.

    >>> nearest(np.array([-3, -1, 0, 1, 3, 5]), 2).tolist(), nearest(np.array([-4, 4, 5]), 3).tolist()
    ([-2, 0, 0, 0, 2, 2], [-1, 1, 2])
    """
    if by == 1:
        return rows
    whole, rest = np.divmod(rows, by)
    up = (2 * rest > by) | ((2 * rest == by) & (whole % 2 == 1))
    return np.asarray(whole + up, dtype=np.int64)


@dataclass(frozen=True)
class Shown:
    """Where a part is in the row, and how it is shown."""

    name: str
    first: int
    width: int
    by: int
    form: RowForm

    def rows(self, rows: IntArray) -> IntArray:
        return nearest(rows[..., self.first : self.first + self.width], self.by)

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        return self.form.interval(self.rows(row), Divided(accuracy, self.by), beta)

    def deviation(self, accuracy: Accuracy) -> float | None:
        return self.form.deviation(Divided(accuracy, self.by))

    def table(self, tick: int, row: IntArray, accuracy: Accuracy) -> dict[str, list[Any]]:
        own = Divided(accuracy, self.by)
        cells: dict[str, list[Any]] = self.form.table([tick], self.rows(row)[None, :], lambda _: own).to_pydict()
        return cells


class StackedForm(RowForm):
    """A dictionary by part; in `run` all parts side by side."""

    def __init__(self, parts: Sequence[Shown]) -> None:
        super().__init__(sum(part.width for part in parts))
        self.parts = list(parts)

    def first(self) -> IntArray:
        return np.concatenate([part.by * part.form.first() for part in self.parts], axis=1)

    def show(self, row: IntArray) -> dict[str, Any]:
        return {part.name: part.form.show(part.rows(row)) for part in self.parts}

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        shown = [np.asarray(part.form.show_many(part.rows(rows))).reshape(len(rows), -1) for part in self.parts]
        return np.concatenate(shown, axis=1)

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        found = {part.name: part.interval(row, accuracy, beta) for part in self.parts}
        return {name: ends[0] for name, ends in found.items()}, {name: ends[1] for name, ends in found.items()}

    def deviation(self, accuracy: Accuracy) -> float | None:
        """That of each number; None where parts differ."""
        found = {part.deviation(accuracy) for part in self.parts}
        return found.pop() if len(found) == 1 else None

    def table(self, ticks: Sequence[int], rows: IntArray, accuracy: Callable[[int], Accuracy]) -> Any:
        """Columns are called by part, or part.label."""
        import pyarrow as pa

        lines: dict[str, list[Any]] = {"tick": [], "column": [], "value": [], "lower": [], "upper": []}
        for tick, row in zip(ticks, rows, strict=True):
            for part in self.parts:
                cells = part.table(tick, row, accuracy(tick))
                labels = cells.get("column") or [str(i) for i in range(len(cells["value"]))]
                alone = len(labels) == 1 and "column" not in cells
                lines["tick"] += [tick] * len(labels)
                lines["column"] += [part.name if alone else f"{part.name}.{label}" for label in labels]
                for name in ("value", "lower", "upper"):
                    lines[name] += cells[name]
        kinds = {"tick": pa.int64(), "column": pa.string()}
        # Whole numbers, unless a part shows others.
        numbers = pa.int64() if all(isinstance(value, int) for value in lines["value"]) else pa.float64()
        return pa.table({name: pa.array(cells, kinds.get(name, numbers)) for name, cells in lines.items()})
