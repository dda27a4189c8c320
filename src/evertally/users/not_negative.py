"""Counts that are shown as 0 where noise brought them below."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.forms import RowForm
from evertally.contract.parts import Accuracy, IntArray


class NotNegative(RowForm):
    """Another form, with 0 in the place of what is below. It leans upwards where there is little to count.

    >>> from evertally.contract.forms import LabelledForm
    >>> NotNegative(LabelledForm(["a", "b"])).show(np.array([7, -2]))
    {'a': 7, 'b': 0}
    """

    def __init__(self, inner: RowForm) -> None:
        super().__init__(inner.width, inner.labels)
        self.inner = inner

    def show(self, row: IntArray) -> Any:
        return self.inner.show(np.maximum(row, 0))

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return self.inner.show_many(np.maximum(rows, 0))

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        # Around the noisy number itself; no count lies below 0.
        low, high = self.inner.interval(row, accuracy, beta)
        return _at_least_zero(low), _at_least_zero(high)

    def deviation(self, accuracy: Accuracy) -> float | None:
        return self.inner.deviation(accuracy)


def _at_least_zero(value: Any) -> Any:
    if isinstance(value, dict):
        return {label: max(0, number) for label, number in value.items()}
    return max(0, value)
