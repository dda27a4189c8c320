"""Statistics of events that each have one of a list of types: how they are read, and how metrics are shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.applications.stacked_form import Divided, divided, nearest
from evertally.bounds.tails import Spread
from evertally.contract.doors import RowDoor
from evertally.contract.forms import LabelledForm
from evertally.contract.inputs import as_integers
from evertally.contract.labelled import Labels, filled, handed_over, many_by_label, row_by_label
from evertally.contract.parts import Accuracy, IntArray
from evertally.encode.frames import column
from evertally.encode.labels import as_list, canonical, coded, require_column
from evertally.encode.plain import UNREADABLE, pairs

# Of an event that is no plain label: the number of its type, None for none. Never raises.
TypeOf = Callable[[Any], int | None]


class TypeDoor(RowDoor):
    """Events become counts of types, and those become a row by a matrix: what one event of each type adds."""

    takes_totals = True

    def __init__(self, type_of: TypeOf, labels: Labels, matrix: IntArray, limit: int) -> None:
        super().__init__(matrix.shape[1], limit)
        self.named = labels
        self._type_of, self._matrix = type_of, matrix
        # So many events of one type count in a tick: the products stay in 64 bits. 1-Lipschitz, hence free.
        self._most = min(limit, 2**61 // max(1, int(matrix.sum())))

    def row(self, x: Any, tick: int) -> IntArray:
        return self._times(self._counts(x))

    def _counts(self, x: Any) -> IntArray:
        x = handed_over(x)
        found = row_by_label(x, self.named)
        if found is not None:
            return filled(found, len(self._matrix), self._most)
        counts = as_integers(column(x))
        if counts.shape != (len(self._matrix),):
            raise TypeError(f"step takes {len(self._matrix)} integers, one for each type, not shape {counts.shape}")
        return counts

    def event_row(self, events: Any, tick: int) -> IntArray:
        require_column(events, "events")
        counts = np.zeros(len(self._matrix), dtype=np.int64)
        plain = coded(events)
        if plain is None:
            values, many = as_list(events), None
        else:
            values, many = plain[1], np.bincount(plain[0][plain[0] >= 0], minlength=len(plain[1])).tolist()
        for i, value in enumerate(values):
            number = self._type_of(value)
            if number is not None:
                counts[number] += 1 if many is None else many[i]
        return self._times(counts)

    def many(self, x: Any, first: int) -> Any:
        found = many_by_label(x, self._counts, self.named)
        rows = as_integers(x) if found is None else found
        if rows.ndim != 2 or rows.shape[1] != len(self._matrix):
            raise TypeError(f"run takes integers of shape (ticks, {len(self._matrix)}), not of shape {rows.shape}")
        return self._times(rows)

    def _times(self, counts: IntArray) -> IntArray:
        row: IntArray = np.clip(counts, 0, self._most) @ self._matrix
        return row


def first_type(index: Mapping[str, int], other: int | None) -> TypeOf:
    """The first declared type among the labels of an event; `other` where there are labels, and none is declared."""

    def found(event: Any) -> int | None:
        try:
            labels = [canonical(label) for label, _ in pairs(event)]
        except UNREADABLE:
            return None
        known = [index[label] for label in labels if label is not None and label in index]
        if known:
            return min(known)
        return other if any(label is not None for label in labels) else None

    return found


@dataclass(frozen=True)
class Summed:
    """How far the sum of `count` columns is off, each by `accuracy`, independently."""

    accuracy: Accuracy
    count: int

    @property
    def stddev(self) -> float | None:
        alone = self.accuracy.stddev
        return None if alone is None else math.sqrt(self.count) * alone

    def radius(self, beta: float) -> float:
        apart = self.count * self.accuracy.radius(beta / self.count)
        if not isinstance(self.accuracy, Spread):
            return apart
        one = self.accuracy
        together = Spread(
            one.law, self.count * one.variance, self.count * one.proxy, one.peak, one.finest, self.count * one.roundings
        )
        return min(apart, together.radius(beta))


@dataclass(frozen=True)
class Metric:
    """Where a metric is in the row, and what it is divided by."""

    name: str
    columns: tuple[int, ...]
    by: int

    def value(self, row: IntArray) -> int:
        return int(nearest(row[list(self.columns)].sum(keepdims=True), self.by)[0])

    def accuracy(self, accuracy: Accuracy) -> Accuracy:
        several = accuracy if len(self.columns) == 1 else Summed(accuracy, len(self.columns))
        return several if self.by == 1 else Divided(several, self.by)

    def bound(self, bound: float) -> float:
        """How far it is off where no column is off by more than `bound`."""
        return divided(len(self.columns) * bound, self.by)


class MetricsForm(LabelledForm):
    """A number for each metric, with its own error."""

    def __init__(self, metrics: Sequence[Metric], width: int) -> None:
        super().__init__([metric.name for metric in metrics])
        self.metrics, self.width = list(metrics), width
        used = [column for metric in metrics for column in metric.columns]
        self.apart = len(used) == len(set(used))

    def show(self, row: IntArray) -> dict[str, int]:
        return {metric.name: metric.value(row) for metric in self.metrics}

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        shown = [nearest(rows[:, list(metric.columns)].sum(axis=1), metric.by) for metric in self.metrics]
        return np.stack(shown, axis=1)

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[dict[str, int], dict[str, int]]:
        lower, upper = {}, {}
        for metric in self.metrics:
            radius = math.floor(metric.accuracy(accuracy).radius(beta))
            lower[metric.name], upper[metric.name] = metric.value(row) - radius, metric.value(row) + radius
        return lower, upper

    def deviation(self, accuracy: Accuracy) -> float | None:
        """That of each number; None where metrics differ."""
        found = {metric.accuracy(accuracy).stddev for metric in self.metrics}
        return found.pop() if len(found) == 1 else None
